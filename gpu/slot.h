/* SPDX-License-Identifier: Apache-2.0
 *
 * A slot: stream, pinned and device memory of one chunk of queries in flight. Its
 * memory is made when a shape is first met and kept. In turn: send the grids, ask the
 * question, (launch,) fetch the answer, wait, gather.
 */
#ifndef FT_GPU_SLOT_H
#define FT_GPU_SLOT_H

#include "copy.h"
#include "launcher.h"
#include "question.h"
#include "room.h"

/* Grids where a kernel reads them: [n_queries][n_steps][n_proposals]. */
typedef struct ft_gpu_grids {
    const uint32_t *tokens;
    const float *logp;
    uint32_t n_queries, n_steps, n_proposals;
} ft_gpu_grids;

typedef struct ft_slot {
    cudaStream_t stream;
    cudaEvent_t asked; /* the question's grids are on the device */
    ft_gpu_launcher launcher;
    uint32_t first, n_queries; /* of the batch, in flight */
    ft_form form;              /* of the last launch */
    ft_gpu_room pinned_in, device_in;
    ft_gpu_room widened; /* binary16 log-probs as binary32 */
    ft_gpu_room norm;    /* for norm_alpha, n_norm entries */
    double norm_alpha;
    uint32_t n_norm;
    ft_gpu_room pinned_out, device_out; /* n_records ft_gpu_record, then records */
    uint32_t n_records;                 /* of a query: see ft_gpu_record */
    bool out_on_device;
    bool told; /* the kernel tells of each record in pinned_out: see ft_gpu_plan */
    uint64_t out_bytes;
    ft_gpu_room trace, findings, stats, phases;
    ft_gpu_room counter; /* of tickets */
    uint32_t tickets;    /* what it stands at */
    ft_copies copies;
} ft_slot;

ft_status ft_slot_open(ft_slot *s, ft_error *err);
void ft_slot_close(ft_slot *s);

/* After a failure, with nothing in flight: the counter starts anew. */
ft_status ft_slot_reset(ft_slot *s, ft_error *err);

/* Put queries first .. first + n - 1 where the kernel reads them: pinned host memory
 * (direct), or device memory, to which copies are on the stream when this returns. */
ft_status ft_slot_send(ft_slot *s, const ft_batch *batch, uint32_t first, uint32_t n,
                       bool direct, ft_pool *pool, ft_gpu_grids *grids, ft_error *err);

/* State the question for the plan; records go to pinned host memory or, with
 * out_on_device, to device memory. stats (or NULL) says what is to be counted. */
ft_status ft_slot_ask(ft_slot *s, const ft_gpu_grids *grids,
                      const ft_search_params *params, const ft_gpu_plan *plan,
                      bool out_on_device, const ft_stats *stats, ft_gpu_question *q,
                      ft_error *err);

/* Behind the launch: copy records that are on the device, if they are `wanted`. */
ft_status ft_slot_fetch(ft_slot *s, bool wanted, ft_error *err);

/* Until the chunk's records are there. Where the kernel does not tell, until its stream
 * has nothing else to do: an event costs a query of its own 2 us more, being told 1.5
 * us less. */
ft_status ft_slot_wait(ft_slot *s, ft_error *err);

/* Append the finished chunk's records to *out, in the order of the queries. */
ft_status ft_slot_gather(ft_slot *s, ft_pool *pool, ft_results *out, ft_error *err);

/* Fill the statistics of the finished chunk; `hz` turns cycles into seconds. */
ft_status ft_slot_stats(ft_slot *s, uint32_t n_steps, double hz, ft_stats *stats,
                        ft_error *err);

#endif
