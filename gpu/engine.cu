/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA engine's host side. A batch is cut into chunks; a chunk goes through a slot:
 * to pinned memory, over the bus, searched by one launch, and its records come back.
 * While one slot's kernel runs, the next slots' copies do, and the host hands out what
 * an earlier one found.
 */
#include "engine.h"

#include <stdio.h>

enum {
    DEFAULT_SLOTS = 15, /* the first chunk's way in and the last one's out are short */
    MIN_CHUNK_BYTES = 2 << 20, /* of grids, where nobody asks for smaller chunks */
    MAX_CHUNK_BYTES = 32 << 20,
    MIN_CHUNK = 64,          /* queries; a smaller batch is one chunk */
    FEW_QUERIES = 16,        /* of so few, latency counts */
    DIRECT_BYTES = 32 << 10, /* over the bus: a copy costs more than reading so few */
    MAX_COPIERS = 16         /* threads: eight are slower than the bus, both ways */
};

static const ft_gpu_kernels *const layouts[] = {
    &ft_gpu_narrow,       &ft_gpu_wide_layout, &ft_gpu_compact,
    &ft_gpu_narrow_tails, &ft_gpu_wide_tails,  &ft_gpu_compact_tails};

/* By room: the forms for latency, the best first, and at last that for throughput.
 * Clusters of small rooms are slower: their barriers cost more than they save. */
static const ft_gpu_plan forms[2][FT_GPU_FORMS] = {
    {{FT_GPU_ROOM_SMALL, 1, true}, {FT_GPU_ROOM_SMALL, 1, false}},
    {{FT_GPU_ROOM_LARGE, 16, true},
     {FT_GPU_ROOM_LARGE, 8, true},
     {FT_GPU_ROOM_LARGE, 1, false}}};

static ft_status open_part(ft_wide_part *p, ft_error *err)
{
    const ft_status st =
        FT_CUDA(err, cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    return st == FT_OK ? FT_CUDA(err, cudaEventCreateWithFlags(&p->free,
                                                               cudaEventDisableTiming))
                       : st;
}

static void close_part(ft_wide_part *p)
{
    if (p->stream)
        cudaStreamSynchronize(p->stream);
    ft_wide_memory_close(&p->memory);
    if (p->free)
        cudaEventDestroy(p->free);
    if (p->stream)
        cudaStreamDestroy(p->stream);
}

static void cuda_close(ft_engine *engine)
{
    ft_cuda_engine *e = (ft_cuda_engine *)engine;
    cudaSetDevice(e->device);
    for (uint32_t i = 0; i < e->n_slots; i++)
        ft_slot_close(&e->slots[i]);
    for (ft_wide_part &p : e->parts)
        close_part(&p);
    ft_device_index_close(&e->index);
    ft_pool_close(e->pool);
    free(e);
}

/* A machine without a GPU or a driver is no error of the machine's. */
ft_status ft_cuda_find_device(uint32_t device, ft_error *err)
{
    int n = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0) {
        cudaGetLastError();
        return ft_fail(err, FT_EUNAVAILABLE, "no CUDA device: %s",
                       e == cudaSuccess ? "none found" : cudaGetErrorString(e));
    }
    if (device >= (uint32_t)n)
        return ft_fail(err, FT_EUNAVAILABLE, "no CUDA device %u (there are %d)", device,
                       n);
    return FT_CUDA(err, cudaSetDevice((int)device));
}

static ft_status cuda_describe(uint32_t device, char *text, size_t bytes, ft_error *err)
{
    cudaDeviceProp p;
    int runs = 0, clock = 0, memory_clock = 0;
    const int d = (int)device;
    ft_status st = ft_cuda_find_device(device, err);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaGetDeviceProperties(&p, d));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaDriverGetVersion(&runs));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, d));
    if (st == FT_OK)
        st = FT_CUDA(
            err, cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, d));
    if (st == FT_OK)
        snprintf(text, bytes,
                 "%s, %d SMs to %d MHz, %.1f GiB at %d MHz, driver for CUDA %d.%d",
                 p.name, p.multiProcessorCount, clock / 1000,
                 (double)p.totalGlobalMem / (1 << 30), memory_clock / 1000, runs / 1000,
                 runs % 1000 / 10);
    return st;
}

static ft_status open_device(ft_cuda_engine *e, ft_error *err)
{
    int major = 0;
    ft_status st =
        FT_CUDA(err, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                            e->device));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaDeviceGetAttribute(&e->clock_khz, cudaDevAttrClockRate,
                                                 e->device));
    for (int large = 0; large < 2 && st == FT_OK; large++)
        for (int i = 0; i < FT_GPU_FORMS && st == FT_OK; i++) {
            ft_gpu_plan *p = &e->forms[large][i];
            *p = forms[large][i];
            if (p->cluster == 1 || (p->cluster > 1 && major >= 9))
                st = e->kernels->occupancy(p, err);
        }
    return st;
}

static ft_status open_parts(ft_cuda_engine *e, const ft_index *index,
                            const ft_engine_options *o, ft_error *err)
{
    for (const ft_gpu_kernels *k : layouts)
        if (strcmp(k->layout, ft_index_layout(index)) == 0)
            e->kernels = k;
    if (!e->kernels)
        return ft_fail(err, FT_EUNAVAILABLE,
                       "%s: the GPU does not read the layout '%s'",
                       ft_index_name(index), ft_index_layout(index));
    const uint32_t n_threads = o->n_threads ? o->n_threads : ft_n_processors();
    e->in = o->in;
    e->direct_out = o->out != FT_TRANSFER_COPY;
    ft_status st = open_device(e, err);
    if (st == FT_OK)
        st = ft_pool_open(&e->pool, n_threads < MAX_COPIERS ? n_threads : MAX_COPIERS,
                          err);
    if (st == FT_OK)
        st = ft_device_index_open(&e->index, index, err);
    if (st == FT_OK)
        st = e->kernels->make_tables(&e->index, err);
    const uint32_t n_slots = o->n_slots ? o->n_slots : DEFAULT_SLOTS;
    e->least_bytes = o->n_slots ? 0 : MIN_CHUNK_BYTES;
    while (e->n_slots < n_slots && st == FT_OK)
        st = ft_slot_open(&e->slots[e->n_slots++], err);
    for (int i = 0; i < FT_WIDE_PARTS && st == FT_OK; i++)
        st = open_part(&e->parts[i], err);
    return st;
}

static ft_status cuda_open(ft_engine **out, const ft_index *index,
                           const ft_engine_options *options, ft_error *err)
{
    ft_status st = ft_cuda_find_device(options->device, err);
    if (st != FT_OK)
        return st;
    if (options->n_slots > FT_MAX_SLOTS)
        return ft_fail(err, FT_EINVAL, "%u slots are too many (at most %d)",
                       options->n_slots, FT_MAX_SLOTS);
    ft_cuda_engine *e = ft_new(ft_cuda_engine, err);
    if (!e)
        return FT_ENOMEM;
    e->base.ops = &ft_engine_cuda;
    e->device = (int)options->device;
    st = open_parts(e, index, options, err);
    if (st != FT_OK) {
        cuda_close(&e->base);
        return st;
    }
    *out = &e->base;
    return FT_OK;
}

static void cuda_notes(const ft_engine *engine, char *text, size_t bytes)
{
    const ft_cuda_engine *e = (const ft_cuda_engine *)engine;
    snprintf(text, bytes,
             "index of %.1f MB on GPU %d in %.2f ms, %.2f GB/s; launches: %llu with a "
             "cluster a query, %llu with a block, %llu with the grid",
             1e-6 * (double)e->index.bytes, e->device, 1e3 * e->index.seconds,
             1e-9 * (double)e->index.bytes / e->index.seconds,
             (unsigned long long)e->n_by_form[FT_FORM_CLUSTER],
             (unsigned long long)e->n_by_form[FT_FORM_BLOCK],
             (unsigned long long)e->n_by_form[FT_FORM_GRID]);
}

/* The first form that has room for all queries at once, if they are few. room 0: the
 * grid-wide kernel. */
ft_gpu_plan ft_cuda_plan(const ft_cuda_engine *e, const ft_gpu_grids *grids,
                         const ft_search_params *params)
{
    const uint32_t n = grids->n_queries;
    const ft_gpu_plan grid_wide = {
        .cluster = 1, .n_teams = n < FT_WIDE_PARTS ? n : (uint32_t)FT_WIDE_PARTS};
    uint32_t most = grids->n_proposals;
    most = params->beam > most ? params->beam : most;
    most = params->n_results > most ? params->n_results : most;
    if (most > FT_GPU_ROOM_LARGE || grids->n_steps > UINT16_MAX)
        return grid_wide;
    for (ft_gpu_plan p : e->forms[most > FT_GPU_ROOM_SMALL])
        if (p.for_latency ? n <= FEW_QUERIES && n <= p.n_teams : p.n_teams > 0) {
            p.n_teams = n < p.n_teams ? n : p.n_teams;
            return p;
        }
    return grid_wide; /* it needs little shared memory */
}

/* Part number i of the question on one of n parts of the chip, behind what is on the
 * slot's stream, which waits for it in turn. */
static ft_status launch_part(ft_cuda_engine *e, ft_slot *s, const ft_gpu_question *q,
                             uint32_t i, uint32_t n, ft_error *err)
{
    ft_wide_part *p = &e->parts[i];
    const cudaStream_t stream = i ? p->stream : s->stream;
    const uint64_t end = (uint64_t)q->n_queries * (i + 1) / n;
    ft_gpu_question part = *q;
    ft_gpu_wide wide;
    part.first_query = (uint32_t)((uint64_t)q->n_queries * i / n);
    part.n_queries = (uint32_t)end - part.first_query;
    part.trace += (uint64_t)i * q->n_steps * q->beam;
    ft_status st =
        ft_wide_memory_for(&p->memory, &part, FT_GPU_SPARE_ITEMS / n, &wide, err);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaStreamWaitEvent(stream, p->free));
    if (st == FT_OK && i)
        st = FT_CUDA(err, cudaStreamWaitEvent(stream, s->asked));
    if (st == FT_OK)
        st = e->kernels->search_wide(&e->index, &part, &wide, n, stream, err);
    return st == FT_OK ? FT_CUDA(err, cudaEventRecord(p->free, stream)) : st;
}

static ft_status launch_wide(ft_cuda_engine *e, ft_slot *s, const ft_gpu_plan *plan,
                             const ft_gpu_question *q, ft_error *err)
{
    const uint32_t n = plan->n_teams;
    ft_status st = FT_OK;
    if (n > 1)
        st = FT_CUDA(err, cudaEventRecord(s->asked, s->stream));
    for (uint32_t i = 0; i < n && st == FT_OK; i++)
        st = launch_part(e, s, q, i, n, err);
    for (uint32_t i = 1; i < n && st == FT_OK; i++)
        st = FT_CUDA(err, cudaStreamWaitEvent(s->stream, e->parts[i].free));
    if (st != FT_OK)
        cudaDeviceSynchronize(); /* parts may be at work, for nobody */
    return st;
}

ft_status ft_cuda_launch(ft_cuda_engine *e, ft_slot *s, const ft_gpu_plan *plan,
                         const ft_gpu_question *q, ft_error *err)
{
    s->form = !plan->room         ? FT_FORM_GRID
              : plan->cluster > 1 ? FT_FORM_CLUSTER
                                  : FT_FORM_BLOCK;
    e->n_by_form[s->form]++;
    if (!plan->room)
        return launch_wide(e, s, plan, q, err);
    s->tickets += q->n_queries; /* a team draws one with each query */
    return e->kernels->search(&e->index, q, plan, &s->launcher, s->stream, err);
}

/* Does the kernel read the grids from host memory itself? Each block of a team does. */
static bool reads_directly(const ft_cuda_engine *e, const ft_gpu_plan *plan,
                           const ft_gpu_grids *g)
{
    const uint64_t bytes = 8ull * g->n_steps * g->n_proposals * g->n_queries;
    if (e->in != FT_TRANSFER_DEFAULT)
        return e->in == FT_TRANSFER_DIRECT;
    return bytes * plan->cluster <= DIRECT_BYTES;
}

/* Queries first .. first + n - 1 of the batch start their way through slot s. */
static ft_status submit(ft_cuda_engine *e, ft_slot *s, const ft_batch *batch,
                        const ft_search_params *params, uint32_t first, uint32_t n,
                        const ft_stats *stats, ft_error *err)
{
    ft_gpu_grids grids = {
        .n_queries = n, .n_steps = batch->n_steps, .n_proposals = batch->n_proposals};
    const ft_gpu_plan plan = ft_cuda_plan(e, &grids, params);
    ft_gpu_question q;
    ft_status st = ft_slot_send(s, batch, first, n, reads_directly(e, &plan, &grids),
                                e->pool, &grids, err);
    if (st != FT_OK)
        return st;
    if (stats && stats->phases && !plan.room)
        return ft_fail(err, FT_EINVAL,
                       "phases are measured up to %d beams, proposals and results",
                       FT_GPU_ROOM_LARGE);
    st = ft_slot_ask(s, &grids, params, &plan, !e->direct_out, stats, &q, err);
    if (st == FT_OK)
        st = ft_cuda_launch(e, s, &plan, &q, err);
    return st == FT_OK ? ft_slot_fetch(s, true, err) : st;
}

static ft_status collect(ft_cuda_engine *e, ft_slot *s, uint32_t n_steps,
                         ft_results *out, ft_stats *stats, ft_error *err)
{
    ft_status st = ft_slot_wait(s, err);
    if (st == FT_OK)
        st = ft_slot_gather(s, e->pool, out, err);
    if (st == FT_OK && stats)
        st = ft_slot_stats(s, n_steps, 1e3 * e->clock_khz, stats, err);
    return st;
}

static uint32_t chunk_of(const ft_cuda_engine *e, const ft_batch *b)
{
    const uint64_t bytes = 8ull * b->n_steps * b->n_proposals;
    const uint64_t few = e->least_bytes / bytes;
    const uint64_t least = few < MIN_CHUNK ? MIN_CHUNK : few;
    uint64_t most = MAX_CHUNK_BYTES / bytes;
    most = most ? most : 1;
    uint64_t chunk = (b->n_queries + e->n_slots) / (e->n_slots + 1);
    chunk = chunk < least ? least : chunk;
    return (uint32_t)(chunk < most ? chunk : most);
}

/* Nothing of a batch that failed may still run in a slot, or be counted there. */
static void abandon(ft_cuda_engine *e)
{
    ft_error ignored;
    cudaDeviceSynchronize();
    for (uint32_t i = 0; i < e->n_slots; i++)
        ft_slot_reset(&e->slots[i], &ignored);
}

static ft_status cuda_search(ft_engine *engine, const ft_batch *batch,
                             const ft_search_params *params, ft_results *out,
                             ft_stats *stats, ft_error *err)
{
    ft_cuda_engine *e = (ft_cuda_engine *)engine;
    ft_status st = ft_results_reset(out, batch->n_queries, err);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaSetDevice(e->device));
    if (st != FT_OK)
        return st;
    const uint32_t chunk = chunk_of(e, batch);
    uint32_t submitted = 0, collected = 0, n_in = 0, n_out = 0;
    out->offset[0] = 0;
    while (st == FT_OK && collected < batch->n_queries) {
        if (submitted < batch->n_queries && n_in - n_out < e->n_slots) {
            const uint32_t left = batch->n_queries - submitted;
            const uint32_t n = left < chunk ? left : chunk;
            st = submit(e, &e->slots[n_in++ % e->n_slots], batch, params, submitted, n,
                        stats, err);
            submitted += n;
            continue;
        }
        ft_slot *s = &e->slots[n_out++ % e->n_slots];
        collected += s->n_queries;
        st = collect(e, s, batch->n_steps, out, stats, err);
    }
    if (st != FT_OK)
        abandon(e);
    return st;
}

extern "C" const ft_engine_ops ft_engine_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPU: all steps of a batch in one launch",
    .open = cuda_open,
    .search = cuda_search,
    .close = cuda_close,
    .has_phases = true,
    .takes_half = true,
    .load = ft_cuda_load,
    .search_loaded = ft_cuda_search_loaded,
    .unload = ft_cuda_unload,
    .notes = cuda_notes,
    .steps = ft_cuda_steps,
    .describe = cuda_describe,
};
