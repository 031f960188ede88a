/* SPDX-License-Identifier: Apache-2.0
 *
 * A slot: stream, pinned and device memory of one chunk of queries in flight. Memory
 * grows to the largest chunk met and is kept.
 */
#ifndef FT_GPU_SLOT_H
#define FT_GPU_SLOT_H

#include "cuda.h"
#include "question.h"

/* One allocation that only grows. */
typedef struct ft_gpu_room {
    void *memory;
    uint64_t bytes;
} ft_gpu_room;

typedef struct ft_slot {
    cudaStream_t stream;
    cudaEvent_t done;
    uint32_t first, n_queries; /* of the batch, in flight */
    ft_gpu_room pinned_in, device_in;
    ft_gpu_room pinned_out;
    ft_gpu_room records; /* pinned */
    ft_gpu_room trace, scratch, stats;
    ft_gpu_room counters; /* {ticket, used} */
    uint32_t tickets;     /* what the counters stand at */
    uint64_t used;
} ft_slot;

ft_status ft_slot_open(ft_slot *s, ft_error *err);
void ft_slot_close(ft_slot *s);

/* Copy queries first .. first + n - 1 in and state the question for n_teams teams. The
 * copies are on the stream when this returns. */
ft_status ft_slot_fill(ft_slot *s, const ft_batch *batch,
                       const ft_search_params *params, uint32_t first, uint32_t n,
                       uint32_t n_teams, bool stats, ft_gpu_question *q, ft_error *err);

/* Append the finished chunk's records to *out, in the order of the queries. */
ft_status ft_slot_gather(ft_slot *s, ft_results *out, ft_error *err);

/* Fill stats of the finished chunk; `hz` turns cycles into seconds. */
ft_status ft_slot_stats(ft_slot *s, uint32_t n_steps, double hz, ft_stats *stats,
                        ft_error *err);

/* Device memory of the grid-wide kernel. */
typedef struct ft_wide_memory {
    ft_gpu_room nodes, sums, children, items, codes, slots;
    ft_gpu_room candidates, findings, kept, bins, counters;
} ft_wide_memory;

ft_status ft_wide_memory_for(ft_wide_memory *m, const ft_gpu_question *q,
                             ft_gpu_wide *wide, ft_error *err);
void ft_wide_memory_close(ft_wide_memory *m);

#endif
