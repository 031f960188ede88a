/* SPDX-License-Identifier: Apache-2.0 */
#include "slot.h"

#include "launch.h"

enum { SPARE_ITEMS = 4 << 20 }; /* of the grid-wide kernel: room for its warps' work */

static ft_status room_on_device(ft_gpu_room *r, uint64_t bytes, ft_error *err)
{
    if (bytes <= r->bytes)
        return FT_OK;
    cudaFree(r->memory);
    *r = {};
    const ft_status st = FT_CUDA(err, cudaMalloc(&r->memory, bytes));
    if (st == FT_OK)
        r->bytes = bytes;
    return st;
}

static ft_status room_pinned(ft_gpu_room *r, uint64_t bytes, ft_error *err)
{
    if (bytes <= r->bytes)
        return FT_OK;
    cudaFreeHost(r->memory);
    *r = {};
    const ft_status st =
        FT_CUDA(err, cudaHostAlloc(&r->memory, bytes, cudaHostAllocMapped));
    if (st == FT_OK)
        r->bytes = bytes;
    return st;
}

ft_status ft_slot_open(ft_slot *s, ft_error *err)
{
    ft_status st =
        FT_CUDA(err, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaEventCreateWithFlags(&s->done, cudaEventDisableTiming));
    if (st == FT_OK)
        st = room_on_device(&s->counters, 16, err);
    return st == FT_OK ? FT_CUDA(err, cudaMemset(s->counters.memory, 0, 16)) : st;
}

void ft_slot_close(ft_slot *s)
{
    if (s->stream)
        cudaStreamSynchronize(s->stream);
    cudaFreeHost(s->pinned_in.memory);
    cudaFreeHost(s->pinned_out.memory);
    cudaFreeHost(s->records.memory);
    cudaFree(s->device_in.memory);
    cudaFree(s->scratch.memory);
    cudaFree(s->trace.memory);
    cudaFree(s->stats.memory);
    cudaFree(s->counters.memory);
    if (s->done)
        cudaEventDestroy(s->done);
    if (s->stream)
        cudaStreamDestroy(s->stream);
    *s = {};
}

/* The longest record that a query can have. */
static bool record_bytes(uint32_t n_results, uint32_t n_steps, uint64_t *bytes)
{
    return ft_mul_ok(n_results, 16 + 4ull * n_steps, bytes) &&
           ft_add_ok(*bytes, 16, bytes) && (*bytes &= ~7ull);
}

static ft_status make_room(ft_slot *s, const ft_batch *b, const ft_search_params *p,
                           uint32_t n, uint32_t n_teams, bool stats, ft_error *err)
{
    const uint64_t values = (uint64_t)b->n_steps * b->n_proposals * n;
    uint64_t each, out, scratch, trace;
    if (!record_bytes(p->n_results, b->n_steps, &each) || !ft_mul_ok(each, n, &out) ||
        !ft_mul_ok(each, n_teams, &scratch) ||
        !ft_mul_ok((uint64_t)p->beam * b->n_steps, sizeof(ft_gpu_trace) * n_teams,
                   &trace))
        return ft_fail(err, FT_ENOMEM, "beam, results and steps are too many");
    /* The norm lies in front of the values: one copy takes both. */
    const uint64_t in = 8ull * (b->n_steps + 1) + 8 * values;
    ft_status st = room_pinned(&s->pinned_in, in, err);
    if (st == FT_OK)
        st = room_on_device(&s->device_in, in, err);
    if (st == FT_OK)
        st = room_pinned(&s->pinned_out, out, err);
    if (st == FT_OK)
        st = room_pinned(&s->records, sizeof(ft_gpu_record) * n, err);
    if (st == FT_OK)
        st = room_on_device(&s->trace, trace, err);
    if (st == FT_OK)
        st = room_on_device(&s->scratch, scratch, err);
    if (st == FT_OK && stats)
        st = room_on_device(&s->stats,
                            sizeof(ft_gpu_step_stats) * n * (uint64_t)b->n_steps, err);
    return st;
}

ft_status ft_slot_fill(ft_slot *s, const ft_batch *batch,
                       const ft_search_params *params, uint32_t first, uint32_t n,
                       uint32_t n_teams, bool stats, ft_gpu_question *q, ft_error *err)
{
    const uint64_t each = (uint64_t)batch->n_steps * batch->n_proposals;
    const uint64_t values = each * n, n_norm = batch->n_steps + 1ull;
    ft_status st = make_room(s, batch, params, n, n_teams, stats, err);
    if (st != FT_OK)
        return st;
    s->first = first;
    s->n_queries = n;
    double *norm = (double *)s->pinned_in.memory;
    uint32_t *tokens = (uint32_t *)(norm + n_norm);
    ft_norm_table(params->alpha, batch->n_steps, norm);
    memcpy(tokens, batch->tokens + each * first, 4 * values);
    memcpy(tokens + values, batch->logp + each * first, 4 * values);
    st =
        FT_CUDA(err, cudaMemcpyAsync(s->device_in.memory, norm, 8 * n_norm + 8 * values,
                                     cudaMemcpyHostToDevice, s->stream));
    if (st == FT_OK && stats)
        st = FT_CUDA(err, cudaMemsetAsync(s->stats.memory, 0,
                                          sizeof(ft_gpu_step_stats) * n *
                                              (uint64_t)batch->n_steps,
                                          s->stream));
    void *out, *records;
    if (st == FT_OK)
        st = FT_CUDA(err, cudaHostGetDevicePointer(&out, s->pinned_out.memory, 0));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaHostGetDevicePointer(&records, s->records.memory, 0));
    if (st != FT_OK)
        return st;
    const double *device_norm = (const double *)s->device_in.memory;
    const uint32_t *device_tokens = (const uint32_t *)(device_norm + n_norm);
    *q = {};
    q->tokens = device_tokens;
    q->logp = (const float *)(device_tokens + values);
    q->n_queries = n;
    q->n_steps = batch->n_steps;
    q->n_proposals = batch->n_proposals;
    q->beam = params->beam;
    q->n_results = params->n_results;
    q->token_threshold = params->token_threshold;
    q->sentence_threshold = params->sentence_threshold;
    q->norm = device_norm;
    q->trace = (ft_gpu_trace *)s->trace.memory;
    q->scratch = (uint8_t *)s->scratch.memory;
    record_bytes(params->n_results, batch->n_steps, &q->scratch_bytes);
    q->next_ticket = (uint32_t *)s->counters.memory;
    q->first_ticket = s->tickets;
    q->out = (uint8_t *)out;
    q->out_used = (unsigned long long *)s->counters.memory + 1;
    q->out_base = s->used;
    q->records = (ft_gpu_record *)records;
    q->stats = stats ? (ft_gpu_step_stats *)s->stats.memory : NULL;
    return FT_OK;
}

ft_status ft_slot_gather(ft_slot *s, ft_results *out, ft_error *err)
{
    const ft_gpu_record *records = (const ft_gpu_record *)s->records.memory;
    uint64_t all = 0;
    for (uint32_t i = 0; i < s->n_queries; i++)
        all += records[i].bytes;
    const ft_status st = ft_buf_reserve(&out->bytes, all, err);
    if (st != FT_OK)
        return st;
    for (uint32_t i = 0; i < s->n_queries; i++) {
        const ft_gpu_record *r = &records[i];
        memcpy(out->bytes.data + out->bytes.len,
               (const uint8_t *)s->pinned_out.memory + r->at, r->bytes);
        out->bytes.len += r->bytes;
        out->offset[s->first + i + 1] = out->bytes.len;
        s->used += (r->bytes + 7) / 8 * 8;
    }
    return FT_OK;
}

ft_status ft_slot_stats(ft_slot *s, uint32_t n_steps, double hz, ft_stats *stats,
                        ft_error *err)
{
    const uint64_t n = (uint64_t)s->n_queries * n_steps;
    ft_gpu_step_stats *from = (ft_gpu_step_stats *)ft_calloc(n, sizeof *from, err);
    if (!from)
        return FT_ENOMEM;
    const ft_status st =
        FT_CUDA(err, cudaMemcpy(from, s->stats.memory, n * sizeof *from,
                                cudaMemcpyDeviceToHost));
    ft_step_stats *to = stats->steps + (uint64_t)s->first * n_steps;
    for (uint64_t i = 0; i < n && st == FT_OK; i++)
        to[i] = {from[i].beams, from[i].probes, from[i].candidates, from[i].kept,
                 (double)from[i].cycles / hz};
    free(from);
    return st;
}

ft_status ft_wide_memory_for(ft_wide_memory *m, const ft_gpu_question *q,
                             ft_gpu_wide *wide, ft_error *err)
{
    uint64_t n_slots = 64, n_sorted = 1;
    while (n_slots < 2ull * q->n_proposals)
        n_slots *= 2;
    while (n_sorted < q->n_results)
        n_sorted *= 2;
    const uint64_t beam = q->beam, results = q->n_results;
    const uint64_t most = beam + 1 > results ? beam + 1 : results;
    const uint64_t cap_candidates = beam + SPARE_ITEMS;
    const uint64_t cap_findings =
        results + SPARE_ITEMS > n_sorted ? results + SPARE_ITEMS : n_sorted;
    const struct {
        ft_gpu_room *room;
        uint64_t bytes;
    } rooms[] = {
        {&m->nodes, 8 * beam},
        {&m->sums, 4 * beam},
        {&m->children, sizeof(ft_range) * beam},
        {&m->items, 8 * most},
        {&m->codes, 4ull * q->n_proposals},
        {&m->slots, 12 * n_slots},
        {&m->candidates, sizeof(ft_gpu_wide_item) * cap_candidates},
        {&m->findings, sizeof(ft_gpu_wide_item) * cap_findings},
        {&m->kept, sizeof(ft_gpu_wide_item) * most},
        {&m->bins, 4 * 2048},
        {&m->counters, FT_GPU_COUNTER_BYTES},
    };
    for (const auto &r : rooms) {
        const ft_status st = room_on_device(r.room, r.bytes, err);
        if (st != FT_OK)
            return st;
    }
    uint32_t *slots = (uint32_t *)m->slots.memory;
    *wide = {};
    wide->nodes = (uint64_t *)m->nodes.memory;
    wide->sums = (float *)m->sums.memory;
    wide->children = (ft_range *)m->children.memory;
    wide->items_before = (uint64_t *)m->items.memory;
    wide->codes = (uint32_t *)m->codes.memory;
    wide->slot_code = slots;
    wide->slot_logp = slots + n_slots;
    wide->slot_proposal = slots + 2 * n_slots;
    wide->slot_mask = (uint32_t)(n_slots - 1);
    wide->candidates = (ft_gpu_wide_item *)m->candidates.memory;
    wide->findings = (ft_gpu_wide_item *)m->findings.memory;
    wide->kept = (ft_gpu_wide_item *)m->kept.memory;
    wide->cap_candidates = cap_candidates;
    wide->cap_findings = cap_findings;
    wide->bins = (uint32_t *)m->bins.memory;
    wide->counters = m->counters.memory;
    return FT_OK;
}

void ft_wide_memory_close(ft_wide_memory *m)
{
    ft_gpu_room *const rooms[] = {&m->nodes, &m->sums,  &m->children,   &m->items,
                                  &m->codes, &m->slots, &m->candidates, &m->findings,
                                  &m->kept,  &m->bins,  &m->counters};
    for (ft_gpu_room *r : rooms) {
        cudaFree(r->memory);
        *r = {};
    }
}
