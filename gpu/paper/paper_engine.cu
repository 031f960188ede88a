/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's engine and its ablations, host side (section 2.2, Appendix D): grids go
 * through pinned memory to the device, one cooperative launch searches them, records
 * come back. Rows of the engine table that only ft-bench adds.
 */
#include "../engine.h"
#include "paper_launch.h"
#include "paper_rows.h"

extern "C" {
#include "baseline/baseline.h"
}

enum {
    MAX_CHUNK_BYTES = 64 << 20, /* of grids, or of records, in a launch */
    SPARE_STATES = 1 << 20      /* results kept before they are cut to N */
};

typedef struct paper_engine {
    ft_engine base;
    const ft_paper_kernels *kernels;
    ft_paper_constraint constraint;
    uint64_t most_states; /* that a step can make, whatever B and K */
    int device, clock_khz;
    uint32_t n_blocks[2]; /* of a grid: plain and timed */
    cudaStream_t stream;
    ft_gpu_room pinned_in, device_in, pinned_out, device_out;
    ft_gpu_room slots;      /* the partitions' memory */
    ft_gpu_room counters;   /* and their counters */
    ft_gpu_room slot_table; /* and where it is, FT_PAPER_MAX_SLOTS of them */
    ft_paper_slot table[FT_PAPER_MAX_SLOTS]; /* the same on the host */
    ft_gpu_room stats, phases;
} paper_engine;

extern const ft_engine_ops ft_paper_rows[];

/* What a launch is about. */
typedef struct launch_plan {
    const ft_batch *batch;
    const ft_search_params *params;
    uint32_t first, n; /* queries */
    uint64_t in_bytes, out_bytes;
    bool steps, phases; /* statistics that are wanted */
} launch_plan;

/* By the numbers of paper_rows.h. */
static const ft_paper_kernels *const systems[] = {&ft_paper_binary, &ft_paper_linear,
                                                  &ft_paper_two_pointer,
                                                  &ft_paper_per_child, &ft_paper_ppt};

ft_status ft_paper_load_trie(ft_paper_constraint *c, const ft_index *index,
                             ft_error *err)
{
    const char *layout = ft_index_layout(index);
    if (strcmp(layout, "narrow") != 0 && strcmp(layout, "narrow-tails") != 0)
        return ft_fail(err, FT_EUNAVAILABLE,
                       "%s: layout '%s' is not the paper's: build narrow-tails or "
                       "narrow",
                       ft_index_name(index), layout);
    return ft_device_index_open(&c->index, index, err);
}

static void paper_close(ft_engine *engine)
{
    paper_engine *e = (paper_engine *)engine;
    cudaSetDevice(e->device);
    if (e->stream) {
        cudaStreamSynchronize(e->stream);
        cudaStreamDestroy(e->stream);
    }
    ft_device_index_close(&e->constraint.index);
    ft_room_free_on_device(&e->constraint.sets.memory);
    ft_room_free_pinned(&e->pinned_in);
    ft_room_free_pinned(&e->pinned_out);
    ft_gpu_room *const rooms[] = {&e->device_in, &e->device_out, &e->slots,
                                  &e->counters,  &e->slot_table, &e->stats,
                                  &e->phases};
    for (ft_gpu_room *r : rooms)
        ft_room_free_on_device(r);
    free(e);
}

/* The grid fills the device: all its blocks run at a time. */
static ft_status count_blocks(paper_engine *e, ft_error *err)
{
    int n = 0, each = 0;
    ft_status st = FT_CUDA(
        err, cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, e->device));
    for (int timed = 0; timed < 2 && st == FT_OK; timed++) {
        st = e->kernels->occupancy(timed, &each, err);
        e->n_blocks[timed] = (uint32_t)(n * each);
    }
    return st;
}

static ft_status open_parts(paper_engine *e, const ft_index *index, ft_error *err)
{
    int cooperative = 0;
    ft_status st =
        FT_CUDA(err, cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch,
                                            e->device));
    if (st == FT_OK && !cooperative)
        st = ft_fail(err, FT_EUNAVAILABLE, "CUDA device %d has no cooperative launches",
                     e->device);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaDeviceGetAttribute(&e->clock_khz, cudaDevAttrClockRate,
                                                 e->device));
    if (st == FT_OK)
        st = count_blocks(e, err);
    if (st == FT_OK)
        st = e->kernels->load(&e->constraint, index, err);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaStreamCreateWithFlags(&e->stream, cudaStreamNonBlocking));
    if (st == FT_OK)
        st = ft_room_on_device(&e->slot_table, sizeof e->table, err);
    if (st == FT_OK)
        st = ft_room_on_device(&e->counters,
                               FT_PAPER_MAX_SLOTS * sizeof(ft_paper_counters), err);
    return st;
}

static ft_status open_row(ft_engine **out, uint32_t row, const ft_index *index,
                          const ft_engine_options *options, ft_error *err)
{
    ft_status st = ft_cuda_find_device(options->device, err);
    if (st != FT_OK)
        return st;
    paper_engine *e = ft_new(paper_engine, err);
    if (!e)
        return FT_ENOMEM;
    e->base.ops = &ft_paper_rows[row];
    e->kernels = systems[row];
    e->device = (int)options->device;
    e->most_states =
        e->kernels == &ft_paper_ppt ? UINT64_MAX : ft_index_trie(index)->n_nodes;
    st = open_parts(e, index, err);
    if (st != FT_OK) {
        paper_close(&e->base);
        return st;
    }
    *out = &e->base;
    return FT_OK;
}

/* Shapes that the kernel does not take are refused, never cut. */
static ft_status check_shape(const paper_engine *e, const ft_batch *b,
                             const ft_search_params *p, ft_paper_question *q,
                             ft_error *err)
{
    uint64_t most = (uint64_t)p->beam * b->n_proposals;
    most = most < e->most_states ? most : e->most_states;
    if (p->beam > FT_PAPER_MAX_BEAM || b->n_steps > FT_PAPER_MAX_STEPS)
        return ft_fail(err, FT_EUNAVAILABLE,
                       "engine %s takes beams up to %d and %d steps: engine cuda takes "
                       "more",
                       e->base.ops->name, FT_PAPER_MAX_BEAM, FT_PAPER_MAX_STEPS);
    if (most + p->n_results + SPARE_STATES >= UINT32_MAX)
        return ft_fail(err, FT_EUNAVAILABLE,
                       "engine %s takes up to 2^32 candidates a step, %u beams of %u "
                       "proposals may make more: engine cuda takes them",
                       e->base.ops->name, p->beam, b->n_proposals);
    const uint64_t later = most * (b->n_steps - 1ull);
    q->cap_next = (uint32_t)most;
    q->cap_selected =
        (uint32_t)(p->n_results + most + (later < SPARE_STATES ? later : SPARE_STATES));
    return FT_OK;
}

/* The address of n items of `bytes` each at *end, which moves behind them in whole
 * lines. What check_shape lets through cannot overflow. */
static void *take(uintptr_t *end, uint64_t n, uint64_t bytes)
{
    void *const at = (void *)*end;
    *end += (n * bytes + 255) / 256 * 256;
    return at;
}

/* Lay out a partition's memory from `base` on; returns its bytes. */
static uint64_t lay_out(const ft_paper_question *q, uintptr_t base, ft_paper_slot *s)
{
    const uint64_t steps = q->n_steps, beam = q->beam;
    const uint64_t next = q->cap_next > q->n_results ? q->cap_next : q->n_results;
    uintptr_t end = base;
    s->proposals = (uint64_t *)take(&end, steps * q->n_sorted, 8);
    s->nodes = (uint64_t *)take(&end, beam, 8);
    s->orders = (uint64_t *)take(&end, beam, 8);
    s->sums = (float *)take(&end, beam, 4);
    s->next = (ft_paper_state *)take(&end, next, sizeof *s->next);
    s->selected = (ft_paper_state *)take(&end, q->cap_selected, sizeof *s->selected);
    for (ft_paper_item *&items : s->items)
        items = (ft_paper_item *)take(&end, q->cap_selected, sizeof *items);
    s->history = (ft_gpu_trace *)take(&end, steps * beam, sizeof *s->history);
    s->ends = (uint64_t *)take(&end, q->n_results, 8);
    return end - base;
}

/* Partitions for the launch's queries: as many as there is memory for. */
static ft_status make_slots(paper_engine *e, ft_paper_question *q, uint32_t n_blocks,
                            ft_error *err)
{
    ft_paper_slot table[FT_PAPER_MAX_SLOTS] = {};
    const uint64_t each = lay_out(q, 0, &table[0]);
    uint64_t n = q->n_queries < n_blocks ? q->n_queries : n_blocks;
    n = n < FT_PAPER_MAX_SLOTS ? n : FT_PAPER_MAX_SLOTS;
    ft_status st = FT_OK;
    if (n * each > e->slots.bytes) {
        size_t free_bytes, all_bytes;
        st = FT_CUDA(err, cudaMemGetInfo(&free_bytes, &all_bytes));
        if (st != FT_OK)
            return st;
        const uint64_t fit = (free_bytes + e->slots.bytes) / 8 * 7 / each;
        n = fit == 0 ? 1 : fit < n ? fit : n;
        st = ft_room_on_device(&e->slots, n * each, err);
    }
    if (st != FT_OK)
        return st;
    for (uint64_t i = 0; i < n; i++) {
        lay_out(q, (uintptr_t)e->slots.memory + i * each, &table[i]);
        table[i].counters = (ft_paper_counters *)e->counters.memory + i;
    }
    q->n_slots = (uint32_t)n;
    q->slots = (const ft_paper_slot *)e->slot_table.memory;
    if (memcmp(table, e->table, sizeof table) == 0)
        return FT_OK;
    memcpy(e->table, table, sizeof table);
    st = FT_CUDA(err, cudaMemcpyAsync(e->slot_table.memory, e->table, sizeof e->table,
                                      cudaMemcpyHostToDevice, e->stream));
    if (st != FT_OK)
        memset(e->table, 0, sizeof e->table); /* the device does not have it */
    return st;
}

/* The grids' way in: the norm, tokens and log-probs, one copy. */
static ft_status send(paper_engine *e, const launch_plan *p, ft_paper_question *q,
                      ft_error *err)
{
    const ft_batch *b = p->batch;
    const uint64_t each = (uint64_t)b->n_steps * b->n_proposals, n_values = each * p->n;
    ft_status st = ft_room_pinned(&e->pinned_in, p->in_bytes, err);
    if (st == FT_OK)
        st = ft_room_on_device(&e->device_in, p->in_bytes, err);
    if (st != FT_OK)
        return st;
    double *norm = (double *)e->pinned_in.memory;
    uint32_t *tokens = (uint32_t *)(norm + b->n_steps + 1);
    ft_norm_table(p->params->alpha, b->n_steps, norm);
    memcpy(tokens, b->tokens + each * p->first, 4 * n_values);
    memcpy(tokens + n_values, b->logp + each * p->first, 4 * n_values);
    q->norm = (const double *)e->device_in.memory;
    q->tokens = (const uint32_t *)(q->norm + b->n_steps + 1);
    q->logp = (const float *)(q->tokens + n_values);
    return FT_CUDA(err, cudaMemcpyAsync(e->device_in.memory, norm, p->in_bytes,
                                        cudaMemcpyHostToDevice, e->stream));
}

static ft_status make_zeroed(paper_engine *e, ft_gpu_room *r, uint64_t bytes,
                             ft_error *err)
{
    const ft_status st = ft_room_on_device(r, bytes, err);
    return st == FT_OK ? FT_CUDA(err, cudaMemsetAsync(r->memory, 0, bytes, e->stream))
                       : st;
}

/* Room for what comes back. */
static ft_status make_out(paper_engine *e, const launch_plan *p, ft_paper_question *q,
                          ft_error *err)
{
    const uint64_t n_steps = (uint64_t)p->n * q->n_steps;
    ft_status st = ft_room_on_device(&e->device_out, p->out_bytes, err);
    if (st == FT_OK)
        st = ft_room_pinned(&e->pinned_out, p->out_bytes, err);
    if (st == FT_OK && p->steps)
        st = make_zeroed(e, &e->stats, n_steps * sizeof(ft_gpu_step_stats), err);
    if (st == FT_OK && p->phases)
        st = make_zeroed(e, &e->phases, 8ull * p->n * FT_N_PHASES, err);
    q->record_bytes = (uint64_t *)e->device_out.memory;
    q->out = (uint8_t *)(q->record_bytes + p->n);
    q->stats = p->steps ? (ft_gpu_step_stats *)e->stats.memory : NULL;
    q->phases = p->phases ? (unsigned long long *)e->phases.memory : NULL;
    return st;
}

static uint64_t record_room(uint32_t n_steps, uint32_t n_results)
{
    return (8 + n_results * (16 + 4ull * n_steps) + 7) / 8 * 8;
}

static ft_status launch(paper_engine *e, const launch_plan *p, ft_error *err)
{
    const ft_batch *b = p->batch;
    ft_paper_question q = {};
    const uint32_t n_blocks = e->n_blocks[p->phases];
    q.n_queries = p->n;
    q.n_steps = b->n_steps;
    q.n_proposals = b->n_proposals;
    q.n_sorted = 1;
    while (q.n_sorted < q.n_proposals)
        q.n_sorted *= 2;
    q.beam = p->params->beam;
    q.n_results = p->params->n_results;
    q.token_threshold = p->params->token_threshold;
    q.sentence_threshold = p->params->sentence_threshold;
    q.record_room = record_room(q.n_steps, q.n_results);
    ft_status st = check_shape(e, b, p->params, &q, err);
    if (st == FT_OK)
        st = make_out(e, p, &q, err);
    if (st == FT_OK)
        st = send(e, p, &q, err);
    if (st == FT_OK)
        st = make_slots(e, &q, n_blocks, err);
    if (st == FT_OK)
        st = FT_CUDA(err,
                     cudaMemsetAsync(e->counters.memory, 0,
                                     q.n_slots * sizeof(ft_paper_counters), e->stream));
    if (st == FT_OK)
        st =
            e->kernels->launch(&e->constraint, &q, p->phases, n_blocks, e->stream, err);
    if (st == FT_OK)
        st = FT_CUDA(err,
                     cudaMemcpyAsync(e->pinned_out.memory, e->device_out.memory,
                                     p->out_bytes, cudaMemcpyDeviceToHost, e->stream));
    return st == FT_OK ? FT_CUDA(err, cudaStreamSynchronize(e->stream)) : st;
}

static ft_status gather(const paper_engine *e, const launch_plan *p, ft_results *out,
                        ft_error *err)
{
    const uint64_t *bytes = (const uint64_t *)e->pinned_out.memory;
    const uint8_t *records = (const uint8_t *)(bytes + p->n);
    const uint64_t room = record_room(p->batch->n_steps, p->params->n_results);
    ft_status st = FT_OK;
    for (uint32_t i = 0; i < p->n && st == FT_OK; i++) {
        st = ft_buf_append(&out->bytes, records + i * room, bytes[i], err);
        out->offset[p->first + i + 1] = out->bytes.len;
    }
    return st;
}

/* Copy n items of device memory into *to, which the caller frees. */
static ft_status fetch(void **to, const ft_gpu_room *from, uint64_t bytes,
                       ft_error *err)
{
    *to = ft_calloc(bytes, 1, err);
    return *to ? FT_CUDA(err,
                         cudaMemcpy(*to, from->memory, bytes, cudaMemcpyDeviceToHost))
               : FT_ENOMEM;
}

static ft_status gather_stats(const paper_engine *e, const launch_plan *p,
                              ft_stats *stats, ft_error *err)
{
    const double hz = 1e3 * e->clock_khz;
    const uint64_t n = (uint64_t)p->n * p->batch->n_steps;
    const uint64_t n_phases = (uint64_t)p->n * FT_N_PHASES;
    void *steps = NULL, *phases = NULL;
    ft_status st = FT_OK;
    if (p->steps)
        st = fetch(&steps, &e->stats, n * sizeof(ft_gpu_step_stats), err);
    if (st == FT_OK && p->phases)
        st = fetch(&phases, &e->phases, 8 * n_phases, err);
    for (uint64_t i = 0; p->steps && i < n && st == FT_OK; i++) {
        const ft_gpu_step_stats s = ((const ft_gpu_step_stats *)steps)[i];
        stats->steps[(uint64_t)p->first * p->batch->n_steps + i] = {
            s.beams, s.probes, s.candidates, s.kept, (double)s.cycles / hz};
    }
    for (uint64_t i = 0; p->phases && i < n_phases && st == FT_OK; i++)
        stats->phases[(uint64_t)p->first * FT_N_PHASES + i] =
            (double)((const unsigned long long *)phases)[i] / hz;
    free(steps);
    free(phases);
    return st;
}

static ft_status paper_search(ft_engine *engine, const ft_batch *batch,
                              const ft_search_params *params, ft_results *out,
                              ft_stats *stats, ft_error *err)
{
    paper_engine *e = (paper_engine *)engine;
    const uint64_t in_each = 8ull * batch->n_steps * batch->n_proposals;
    const uint64_t out_each = 8 + record_room(batch->n_steps, params->n_results);
    const uint64_t most = MAX_CHUNK_BYTES / (in_each > out_each ? in_each : out_each);
    const uint32_t chunk = most ? (uint32_t)most : 1;
    ft_status st = ft_results_reset(out, batch->n_queries, err);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaSetDevice(e->device));
    if (st == FT_OK)
        out->offset[0] = 0;
    for (uint32_t done = 0; done < batch->n_queries && st == FT_OK;) {
        const uint32_t left = batch->n_queries - done;
        launch_plan p = {batch, params, done, left < chunk ? left : chunk};
        p.in_bytes = 8 * (batch->n_steps + 1ull) + in_each * p.n;
        p.out_bytes = out_each * p.n;
        p.steps = stats && stats->steps;
        p.phases = stats && stats->phases;
        st = launch(e, &p, err);
        if (st == FT_OK)
            st = gather(e, &p, out, err);
        if (st == FT_OK && stats)
            st = gather_stats(e, &p, stats, err);
        done += p.n;
    }
    if (st != FT_OK) /* nothing of this batch may still be under way */
        cudaStreamSynchronize(e->stream);
    return st;
}

static ft_status paper_describe(uint32_t device, char *text, size_t bytes,
                                ft_error *err)
{
    return ft_engine_cuda.describe(device, text, bytes, err);
}

template <uint32_t ROW>
static ft_status paper_open(ft_engine **out, const ft_index *index,
                            const ft_engine_options *options, ft_error *err)
{
    return open_row(out, ROW, index, options, err);
}

#define ROW(i, name_, summary_)                                                        \
    {.name = (name_),                                                                  \
     .summary = (summary_),                                                            \
     .open = paper_open<i>,                                                            \
     .search = paper_search,                                                           \
     .close = paper_close,                                                             \
     .has_phases = true,                                                               \
     .describe = paper_describe},

const ft_engine_ops ft_paper_rows[] = {FT_PAPER_ROWS(ROW)};

extern "C" ft_status ft_paper_register(ft_error *err)
{
    ft_status st = FT_OK;
    for (uint32_t i = 0;
         i < sizeof ft_paper_rows / sizeof *ft_paper_rows && st == FT_OK; i++)
        st = ft_engine_register(&ft_paper_rows[i], err);
    return st;
}
