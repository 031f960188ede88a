/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the search kernels. A layout's view is instantiated in a file of its own
 * (search_narrow.cu, ...), which provides one ft_gpu_kernels.
 */
#ifndef FT_GPU_LAUNCH_H
#define FT_GPU_LAUNCH_H

#include "cuda.h"
#include "device_index.h"
#include "launcher.h"
#include "question.h"

enum { FT_GPU_FORMS = 3 };

typedef struct ft_gpu_kernels {
    const char *layout;

    /* Once an engine: the rest of a plan whose room, cluster and for_latency are given.
     * n_teams is what fits on the device at a time; 0 where a block's shared memory is
     * too small, or where clusters are. */
    ft_status (*occupancy)(ft_gpu_plan *plan, ft_error *err);

    /* Once an engine: tables that the layout needs. */
    ft_status (*make_tables)(ft_device_index *index, ft_error *err);

    /* Launch the kernel of search.cuh; the launcher is the stream's. */
    ft_status (*search)(const ft_device_index *index, const ft_gpu_question *q,
                        const ft_gpu_plan *plan, ft_gpu_launcher *launcher,
                        cudaStream_t stream, ft_error *err);

    /* Launch the grid-wide kernel of wide.cuh, on one of so many parts of the chip. */
    ft_status (*search_wide)(const ft_device_index *index, const ft_gpu_question *q,
                             const ft_gpu_wide *wide, uint32_t n_parts,
                             cudaStream_t stream, ft_error *err);

    /* Launch the kernel of step.cuh. */
    ft_status (*extend)(const ft_device_index *index, const ft_gpu_question *q,
                        const ft_gpu_wide *wide, const ft_gpu_extension *x,
                        cudaStream_t stream, ft_error *err);
} ft_gpu_kernels;

extern const ft_gpu_kernels ft_gpu_narrow, ft_gpu_wide_layout, ft_gpu_compact;
extern const ft_gpu_kernels ft_gpu_narrow_tails, ft_gpu_wide_tails,
    ft_gpu_compact_tails;

#endif
