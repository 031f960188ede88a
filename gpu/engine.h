/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA engine's inside: engine.cu searches batches, loaded.cu those that are on the
 * device already, steps.cu by steps.
 */
#ifndef FT_GPU_ENGINE_H
#define FT_GPU_ENGINE_H

#include "launch.h"
#include "slot.h"
#include "wide_memory.h"

/* One of the grid-wide launches that share the chip. */
typedef struct ft_wide_part {
    ft_wide_memory memory;
    cudaEvent_t free; /* recorded where the memory was used last */
    cudaStream_t stream;
} ft_wide_part;

enum { FT_WIDE_PARTS = 16 };

typedef struct ft_cuda_engine {
    ft_engine base;
    ft_device_index index;
    const ft_gpu_kernels *kernels;
    int device, clock_khz;
    ft_gpu_plan forms[2][FT_GPU_FORMS]; /* for small and large room, those for latency
                                           first; n_teams is what fits at a time */
    ft_transfer in;
    bool direct_out; /* kernels write host memory themselves */
    ft_pool *pool;
    uint32_t n_slots;
    uint64_t least_bytes; /* of grids in a chunk */
    ft_slot slots[FT_MAX_SLOTS];
    ft_wide_part parts[FT_WIDE_PARTS];
    uint64_t n_by_form[FT_N_FORMS]; /* launches */
} ft_cuda_engine;

/* Make the device current. FT_EUNAVAILABLE: there is no such device. */
ft_status ft_cuda_find_device(uint32_t device, ft_error *err);

/* How to spend the chip on the grids. */
ft_gpu_plan ft_cuda_plan(const ft_cuda_engine *e, const ft_gpu_grids *grids,
                         const ft_search_params *params);

/* Launch the search on the slot's stream. */
ft_status ft_cuda_launch(ft_cuda_engine *e, ft_slot *s, const ft_gpu_plan *plan,
                         const ft_gpu_question *q, ft_error *err);

/* Parts of the engine's row: see ft_engine_ops. */
ft_status ft_cuda_load(ft_engine *engine, const ft_batch *batch, ft_loaded **out,
                       ft_error *err);
ft_status ft_cuda_search_loaded(ft_engine *engine, ft_loaded *l,
                                const ft_search_params *params, ft_results *out,
                                ft_error *err);
void ft_cuda_unload(ft_engine *engine, ft_loaded *l);
ft_status ft_cuda_steps(ft_steps **out, ft_engine *engine,
                        const ft_search_params *params, ft_error *err);

#endif
