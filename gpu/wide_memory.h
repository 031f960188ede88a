/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory of the grid-wide kernels (wide.cuh, step.cuh).
 */
#ifndef FT_GPU_WIDE_MEMORY_H
#define FT_GPU_WIDE_MEMORY_H

#include "question.h"
#include "room.h"

typedef struct ft_wide_memory {
    ft_gpu_room nodes, sums, children, items, codes, slots;
    ft_gpu_room candidates, findings, kept, bins, counters;
} ft_wide_memory;

/* Room for the question's beam, results and proposals. */
ft_status ft_wide_memory_for(ft_wide_memory *m, const ft_gpu_question *q,
                             ft_gpu_wide *wide, ft_error *err);
void ft_wide_memory_close(ft_wide_memory *m);

#endif
