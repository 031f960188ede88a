/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory of the grid-wide kernels (wide.cuh, step.cuh).
 */
#ifndef FT_GPU_WIDE_MEMORY_H
#define FT_GPU_WIDE_MEMORY_H

#include "question.h"
#include "room.h"

typedef struct ft_wide_memory {
    ft_gpu_room sums, children, before, codes, slots;
    ft_gpu_room candidates, findings, kept, ranked, order;
    ft_gpu_room bins, block_sums, counters;
} ft_wide_memory;

/* Room for the question's beam, results and proposals, and `spare` candidates and
 * results beside those that are kept. */
ft_status ft_wide_memory_for(ft_wide_memory *m, const ft_gpu_question *q,
                             uint64_t spare, ft_gpu_wide *wide, ft_error *err);
void ft_wide_memory_close(ft_wide_memory *m);

#endif
