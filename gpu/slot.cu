/* SPDX-License-Identifier: Apache-2.0 */
#include "slot.h"

#include <cuda_fp16.h>

ft_status ft_slot_open(ft_slot *s, ft_error *err)
{
    ft_status st =
        FT_CUDA(err, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaEventCreateWithFlags(&s->asked, cudaEventDisableTiming));
    if (st == FT_OK)
        st = ft_room_on_device(&s->counter, 4, err);
    return st == FT_OK ? ft_slot_reset(s, err) : st;
}

ft_status ft_slot_reset(ft_slot *s, ft_error *err)
{
    s->tickets = 0;
    return FT_CUDA(err, cudaMemsetAsync(s->counter.memory, 0, 4, s->stream));
}

void ft_slot_close(ft_slot *s)
{
    if (s->stream)
        cudaStreamSynchronize(s->stream);
    ft_gpu_room *const pinned[] = {&s->pinned_in, &s->pinned_out};
    ft_gpu_room *const on_device[] = {&s->device_in,  &s->widened, &s->norm,
                                      &s->device_out, &s->trace,   &s->findings,
                                      &s->stats,      &s->phases,  &s->counter};
    for (ft_gpu_room *r : pinned)
        ft_room_free_pinned(r);
    for (ft_gpu_room *r : on_device)
        ft_room_free_on_device(r);
    free(s->copies.list);
    ft_gpu_launcher_close(&s->launcher);
    if (s->asked)
        cudaEventDestroy(s->asked);
    if (s->stream)
        cudaStreamDestroy(s->stream);
    *s = {};
}

/* Exactly what ft_half_to_float does: every binary16 is a binary32. */
static __global__ void widen(const uint16_t *from, float *to, uint64_t n)
{
    const uint64_t n_threads = gridDim.x * (uint64_t)blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n;
         i += n_threads)
        to[i] = __half2float(__ushort_as_half(from[i]));
}

static ft_status launch_widen(ft_slot *s, const uint16_t *from, uint64_t n,
                              ft_error *err)
{
    enum { THREADS = 256, MOST_BLOCKS = 1024 };
    const uint64_t blocks = (n + THREADS - 1) / THREADS;
    ft_status st = ft_room_on_device(&s->widened, 4 * n, err);
    if (st != FT_OK)
        return st;
    widen<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0,
            s->stream>>>(from, (float *)s->widened.memory, n);
    return FT_CUDA(err, cudaGetLastError());
}

ft_status ft_slot_send(ft_slot *s, const ft_batch *batch, uint32_t first, uint32_t n,
                       bool direct, ft_pool *pool, ft_gpu_grids *grids, ft_error *err)
{
    const uint64_t each = (uint64_t)batch->n_steps * batch->n_proposals;
    const uint64_t values = each * n, width = batch->half ? 2 : 4;
    const uint64_t bytes = values * (4 + width);
    ft_status st = ft_room_pinned(&s->pinned_in, bytes, err);
    if (st == FT_OK && !direct)
        st = ft_room_on_device(&s->device_in, bytes, err);
    if (st != FT_OK)
        return st;
    s->first = first;
    s->n_queries = n;
    s->copies.n = 0;
    uint8_t *pinned = (uint8_t *)s->pinned_in.memory;
    st = ft_copies_add(&s->copies, pinned, batch->tokens + each * first, 4 * values,
                       err);
    if (st == FT_OK)
        st = ft_copies_add(&s->copies, pinned + 4 * values,
                           (const uint8_t *)batch->logp + width * each * first,
                           width * values, err);
    if (st != FT_OK)
        return st;
    ft_copies_run(&s->copies, pool);
    void *in = direct ? s->pinned_in.mapped : s->device_in.memory;
    if (!direct)
        st = FT_CUDA(
            err, cudaMemcpyAsync(in, pinned, bytes, cudaMemcpyHostToDevice, s->stream));
    const void *logp = (const uint8_t *)in + 4 * values;
    if (st == FT_OK && batch->half) {
        st = launch_widen(s, (const uint16_t *)logp, values, err);
        logp = s->widened.memory;
    }
    if (st == FT_OK)
        *grids = {(const uint32_t *)in, (const float *)logp, n, batch->n_steps,
                  batch->n_proposals};
    return st;
}

/* The longest record that a query can have. */
static bool record_bytes(uint32_t n_results, uint32_t n_steps, uint64_t *bytes)
{
    return ft_mul_ok(n_results, 16 + 4ull * n_steps, bytes) &&
           ft_add_ok(*bytes, 16, bytes) && (*bytes &= ~7ull);
}

static ft_status make_room(ft_slot *s, const ft_gpu_grids *g, const ft_search_params *p,
                           const ft_gpu_plan *plan, ft_error *err)
{
    const uint32_t n = g->n_queries;
    const uint64_t beams = p->beam > plan->trace_beams ? p->beam : plan->trace_beams;
    uint64_t each, out, trace;
    if (!record_bytes(p->n_results, g->n_steps, &each) || !ft_mul_ok(each, n, &out) ||
        !ft_add_ok(out, sizeof(ft_gpu_record) * (uint64_t)n * plan->cluster, &out) ||
        !ft_mul_ok(beams * g->n_steps, sizeof(ft_gpu_trace) * plan->n_teams, &trace))
        return ft_fail(err, FT_ENOMEM, "beam, results and steps are too many");
    s->out_bytes = out;
    s->n_records = plan->cluster;
    ft_status st = s->out_on_device ? ft_room_on_device(&s->device_out, out, err)
                                    : ft_room_pinned(&s->pinned_out, out, err);
    if (st == FT_OK)
        st = ft_room_on_device(&s->trace, trace, err);
    if (st == FT_OK && plan->finding_bytes)
        st = ft_room_on_device(&s->findings, plan->finding_bytes * plan->n_teams, err);
    return st;
}

/* The table changes with alpha alone, so it is seldom sent. */
static ft_status send_norm(ft_slot *s, double alpha, uint32_t n_steps, ft_error *err)
{
    const uint32_t n = n_steps + 1;
    if (s->n_norm >= n && s->norm_alpha == alpha)
        return FT_OK;
    s->n_norm = 0;
    ft_status st = ft_room_on_device(&s->norm, 8ull * n, err);
    if (st != FT_OK)
        return st;
    double *norm = (double *)ft_calloc(n, sizeof *norm, err);
    if (!norm)
        return FT_ENOMEM;
    ft_norm_table(alpha, n_steps, norm);
    /* From pageable memory: it is read when the call returns. */
    st = FT_CUDA(err, cudaMemcpyAsync(s->norm.memory, norm, 8ull * n,
                                      cudaMemcpyHostToDevice, s->stream));
    free(norm);
    if (st == FT_OK) {
        s->n_norm = n;
        s->norm_alpha = alpha;
    }
    return st;
}

/* Zeroed counters. */
static ft_status counters_for(ft_slot *s, ft_gpu_room *r, uint64_t bytes, ft_error *err)
{
    const ft_status st = ft_room_on_device(r, bytes, err);
    return st == FT_OK ? FT_CUDA(err, cudaMemsetAsync(r->memory, 0, bytes, s->stream))
                       : st;
}

static uint64_t stats_bytes(uint32_t n_queries, uint32_t n_steps)
{
    return sizeof(ft_gpu_step_stats) * n_queries * (uint64_t)n_steps;
}

static uint64_t phases_bytes(uint32_t n_queries)
{
    return sizeof(unsigned long long) * FT_N_PHASES * n_queries;
}

ft_status ft_slot_ask(ft_slot *s, const ft_gpu_grids *grids,
                      const ft_search_params *params, const ft_gpu_plan *plan,
                      bool out_on_device, const ft_stats *stats, ft_gpu_question *q,
                      ft_error *err)
{
    const uint32_t n = grids->n_queries;
    s->out_on_device = out_on_device;
    ft_status st = make_room(s, grids, params, plan, err);
    if (st == FT_OK)
        st = send_norm(s, params->alpha, grids->n_steps, err);
    const bool steps = stats && stats->steps, phases = stats && stats->phases;
    if (st == FT_OK && steps)
        st = counters_for(s, &s->stats, stats_bytes(n, grids->n_steps), err);
    if (st == FT_OK && phases)
        st = counters_for(s, &s->phases, phases_bytes(n), err);
    if (st != FT_OK)
        return st;
    void *out = out_on_device ? s->device_out.memory : s->pinned_out.mapped;
    s->told = plan->tells && !out_on_device && !steps && !phases;
    if (s->told)
        memset(s->pinned_out.memory, 0, sizeof(ft_gpu_record) * n * s->n_records);
    *q = {};
    q->tokens = grids->tokens;
    q->logp = grids->logp;
    q->n_queries = n;
    q->n_steps = grids->n_steps;
    q->n_proposals = grids->n_proposals;
    q->beam = params->beam;
    q->n_results = params->n_results;
    q->token_threshold = params->token_threshold;
    q->sentence_threshold = params->sentence_threshold;
    q->norm = (const double *)s->norm.memory;
    q->trace = (ft_gpu_trace *)s->trace.memory;
    q->findings = s->findings.memory;
    q->next_ticket = (uint32_t *)s->counter.memory;
    q->first_ticket = s->tickets;
    q->records = (ft_gpu_record *)out;
    q->out = (uint8_t *)(q->records + (uint64_t)n * s->n_records);
    record_bytes(params->n_results, grids->n_steps, &q->record_bytes);
    q->stats = steps ? (ft_gpu_step_stats *)s->stats.memory : NULL;
    q->phases = phases ? (unsigned long long *)s->phases.memory : NULL;
    return FT_OK;
}

ft_status ft_slot_fetch(ft_slot *s, bool wanted, ft_error *err)
{
    if (!s->out_on_device || !wanted)
        return FT_OK;
    const ft_status st = ft_room_pinned(&s->pinned_out, s->out_bytes, err);
    return st == FT_OK
               ? FT_CUDA(err, cudaMemcpyAsync(s->pinned_out.memory,
                                              s->device_out.memory, s->out_bytes,
                                              cudaMemcpyDeviceToHost, s->stream))
               : st;
}

/* A kernel that failed tells nothing, so the stream is asked now and then. */
static ft_status wait_to_be_told(const ft_slot *s, ft_error *err)
{
    enum { LOOKS = 1 << 16 };
    const ft_gpu_record *records = (const ft_gpu_record *)s->pinned_out.memory;
    for (uint64_t i = 0, looks = 0; i < (uint64_t)s->n_queries * s->n_records;) {
        if (__atomic_load_n(&records[i].bytes, __ATOMIC_ACQUIRE)) {
            i++;
        } else if (++looks % LOOKS == 0) {
            const cudaError_t e = cudaStreamQuery(s->stream);
            if (e != cudaErrorNotReady)
                return ft_cuda_status(err, e, "cudaStreamQuery");
        }
    }
    return FT_OK;
}

ft_status ft_slot_wait(ft_slot *s, ft_error *err)
{
    return s->told ? wait_to_be_told(s, err)
                   : FT_CUDA(err, cudaStreamSynchronize(s->stream));
}

ft_status ft_slot_gather(ft_slot *s, ft_pool *pool, ft_results *out, ft_error *err)
{
    const ft_gpu_record *records = (const ft_gpu_record *)s->pinned_out.memory;
    const uint8_t *from =
        (const uint8_t *)(records + (uint64_t)s->n_queries * s->n_records);
    uint64_t all = 0;
    for (uint32_t i = 0; i < s->n_queries; i++)
        all += records[(uint64_t)i * s->n_records].bytes;
    ft_status st = ft_buf_reserve(&out->bytes, all, err);
    s->copies.n = 0;
    for (uint32_t i = 0; i < s->n_queries && st == FT_OK; i++) {
        const ft_gpu_record *r = &records[(uint64_t)i * s->n_records];
        st = ft_copies_add(&s->copies, out->bytes.data + out->bytes.len, from + r->at,
                           r->bytes, err);
        out->bytes.len += r->bytes;
        out->offset[s->first + i + 1] = out->bytes.len;
    }
    if (st == FT_OK)
        ft_copies_run(&s->copies, pool);
    return st;
}

static ft_status step_stats(const ft_slot *s, uint32_t n_steps, double hz,
                            ft_step_stats *to, ft_error *err)
{
    const uint64_t n = (uint64_t)s->n_queries * n_steps;
    ft_gpu_step_stats *from = (ft_gpu_step_stats *)ft_calloc(n, sizeof *from, err);
    if (!from)
        return FT_ENOMEM;
    const ft_status st =
        FT_CUDA(err, cudaMemcpy(from, s->stats.memory, n * sizeof *from,
                                cudaMemcpyDeviceToHost));
    for (uint64_t i = 0; i < n && st == FT_OK; i++)
        to[i] = {from[i].beams,
                 from[i].probes,
                 from[i].candidates,
                 from[i].kept,
                 (double)from[i].cycles / hz,
                 s->form};
    free(from);
    return st;
}

static ft_status phase_stats(const ft_slot *s, double hz, double *to, ft_error *err)
{
    const uint64_t n = (uint64_t)s->n_queries * FT_N_PHASES;
    unsigned long long *from = (unsigned long long *)ft_calloc(n, sizeof *from, err);
    if (!from)
        return FT_ENOMEM;
    const ft_status st =
        FT_CUDA(err, cudaMemcpy(from, s->phases.memory, n * sizeof *from,
                                cudaMemcpyDeviceToHost));
    for (uint64_t i = 0; i < n && st == FT_OK; i++)
        to[i] = (double)from[i] / hz;
    free(from);
    return st;
}

ft_status ft_slot_stats(ft_slot *s, uint32_t n_steps, double hz, ft_stats *stats,
                        ft_error *err)
{
    ft_status st = FT_OK;
    if (stats->steps)
        st = step_stats(s, n_steps, hz, stats->steps + (uint64_t)s->first * n_steps,
                        err);
    if (st == FT_OK && stats->phases)
        st = phase_stats(s, hz, stats->phases + (uint64_t)s->first * FT_N_PHASES, err);
    return st;
}
