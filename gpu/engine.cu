/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA engine's host side. A batch is cut into chunks; a chunk goes through a slot:
 * copied to pinned memory, over the bus, searched by one launch, which writes the wire
 * records straight into pinned host memory. While one slot's kernel runs, the next
 * slot's copies do. A slot's memory is made for the first batch of a shape and kept.
 */
#include "launch.h"
#include "slot.h"

enum {
    N_SLOTS = 3,
    MAX_CHUNK_BYTES = 32 << 20, /* of grids in a chunk */
    MIN_CHUNK = 64,             /* queries; a smaller batch is one chunk */
    CLUSTER = 4,     /* blocks a query where latency counts; MAX_TEAM at most */
    FEW_QUERIES = 16 /* so few get clusters */
};

static const ft_gpu_kernels *const layouts[] = {&ft_gpu_narrow, &ft_gpu_wide_layout,
                                                &ft_gpu_compact};

typedef struct cuda_engine {
    ft_engine base;
    ft_device_index index;
    const ft_gpu_kernels *kernels;
    int device, clock_khz;
    bool clusters;      /* compute capability 9.0 and up */
    uint32_t fit[2][2]; /* teams at a time: small and large room, block and cluster */
    ft_slot slots[N_SLOTS];
    ft_wide_memory wide;
} cuda_engine;

static void cuda_close(ft_engine *engine)
{
    cuda_engine *e = (cuda_engine *)engine;
    cudaSetDevice(e->device);
    for (int i = 0; i < N_SLOTS; i++)
        ft_slot_close(&e->slots[i]);
    ft_wide_memory_close(&e->wide);
    ft_device_index_close(&e->index);
    free(e);
}

/* A machine without a GPU or a driver is no error of the machine's. */
static ft_status find_device(int device, ft_error *err)
{
    int n = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0) {
        cudaGetLastError();
        return ft_fail(err, FT_EUNAVAILABLE, "no CUDA device: %s",
                       e == cudaSuccess ? "none found" : cudaGetErrorString(e));
    }
    if (device < 0 || device >= n)
        return ft_fail(err, FT_EUNAVAILABLE, "no CUDA device %d (there are %d)", device,
                       n);
    return FT_CUDA(err, cudaSetDevice(device));
}

static ft_status open_parts(cuda_engine *e, const ft_index *index, ft_error *err)
{
    int major = 0;
    for (const ft_gpu_kernels *k : layouts)
        if (strcmp(k->layout, ft_index_layout(index)) == 0)
            e->kernels = k;
    if (!e->kernels)
        return ft_fail(err, FT_EUNAVAILABLE, "%s: layout '%s' is not one the GPU reads",
                       ft_index_name(index), ft_index_layout(index));
    ft_status st =
        FT_CUDA(err, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                            e->device));
    e->clusters = major >= 9;
    if (st == FT_OK)
        st = FT_CUDA(err, cudaDeviceGetAttribute(&e->clock_khz, cudaDevAttrClockRate,
                                                 e->device));
    for (int large = 0; large < 2 && st == FT_OK; large++)
        for (int wide = 0; wide <= e->clusters && st == FT_OK; wide++)
            st = e->kernels->occupancy(large ? FT_GPU_ROOM_LARGE : FT_GPU_ROOM_SMALL,
                                       wide ? CLUSTER : 1, &e->fit[large][wide], err);
    if (st == FT_OK)
        st = ft_device_index_open(&e->index, index, err);
    if (st == FT_OK)
        st = e->kernels->make_tables(&e->index, err);
    for (int i = 0; i < N_SLOTS && st == FT_OK; i++)
        st = ft_slot_open(&e->slots[i], err);
    return st;
}

static ft_status cuda_open(ft_engine **out, const ft_index *index,
                           const ft_engine_options *options, ft_error *err)
{
    ft_status st = find_device(options->device, err);
    if (st != FT_OK)
        return st;
    cuda_engine *e = ft_new(cuda_engine, err);
    if (!e)
        return FT_ENOMEM;
    e->base.ops = &ft_engine_cuda;
    e->device = options->device;
    st = open_parts(e, index, err);
    if (st != FT_OK) {
        cuda_close(&e->base);
        return st;
    }
    *out = &e->base;
    return FT_OK;
}

/* How to spend the chip on n queries: clusters for the latency of a few, single blocks
 * for the throughput of many. room 0: the grid-wide kernel. */
static ft_status plan_for(const cuda_engine *e, const ft_batch *batch,
                          const ft_search_params *params, uint32_t n_queries,
                          ft_gpu_plan *plan, ft_error *err)
{
    uint32_t most = batch->n_proposals;
    most = params->beam > most ? params->beam : most;
    most = params->n_results > most ? params->n_results : most;
    *plan = ft_gpu_plan{0, 1, 1};
    if (most > FT_GPU_ROOM_LARGE || batch->n_steps > UINT16_MAX)
        return FT_OK;
    const bool large = most > FT_GPU_ROOM_SMALL;
    const bool wide = e->clusters && n_queries <= FEW_QUERIES;
    const uint32_t fit = e->fit[large][wide];
    if (fit == 0)
        return FT_OK; /* the grid-wide kernel needs little shared memory */
    plan->room = large ? FT_GPU_ROOM_LARGE : FT_GPU_ROOM_SMALL;
    plan->cluster = wide ? CLUSTER : 1;
    plan->n_teams = n_queries < fit ? n_queries : fit;
    return FT_OK;
}

static ft_status launch(cuda_engine *e, ft_slot *s, const ft_gpu_plan *plan,
                        const ft_gpu_question *q, ft_error *err)
{
    ft_status st;
    if (plan->room) {
        st = e->kernels->search(&e->index, q, plan, s->stream, err);
        s->tickets += q->n_queries + plan->n_teams; /* each team draws a last one */
    } else {
        ft_gpu_wide wide;
        st = ft_wide_memory_for(&e->wide, q, &wide, err);
        if (st == FT_OK)
            st = e->kernels->search_wide(&e->index, q, &wide, s->stream, err);
    }
    return st == FT_OK ? FT_CUDA(err, cudaEventRecord(s->done, s->stream)) : st;
}

/* Queries first .. first + n - 1 of the batch start their way through slot s. */
static ft_status submit(cuda_engine *e, ft_slot *s, const ft_batch *batch,
                        const ft_search_params *params, uint32_t first, uint32_t n,
                        bool stats, ft_error *err)
{
    ft_gpu_plan plan;
    ft_gpu_question q;
    ft_status st = plan_for(e, batch, params, n, &plan, err);
    if (st == FT_OK)
        st = ft_slot_fill(s, batch, params, first, n, plan.n_teams, stats, &q, err);
    return st == FT_OK ? launch(e, s, &plan, &q, err) : st;
}

static ft_status collect(cuda_engine *e, ft_slot *s, const ft_batch *batch,
                         ft_results *out, ft_stats *stats, ft_error *err)
{
    ft_status st = FT_CUDA(err, cudaEventSynchronize(s->done));
    if (st == FT_OK)
        st = ft_slot_gather(s, out, err);
    if (st == FT_OK && stats)
        st = ft_slot_stats(s, batch->n_steps, 1e3 * e->clock_khz, stats, err);
    return st;
}

static uint32_t chunk_of(const ft_batch *b)
{
    const uint64_t bytes = 8ull * b->n_steps * b->n_proposals;
    uint64_t most = MAX_CHUNK_BYTES / bytes;
    most = most ? most : 1;
    uint64_t chunk = (b->n_queries + N_SLOTS) / (N_SLOTS + 1);
    chunk = chunk < MIN_CHUNK ? MIN_CHUNK : chunk;
    return (uint32_t)(chunk < most ? chunk : most);
}

static ft_status cuda_search(ft_engine *engine, const ft_batch *batch,
                             const ft_search_params *params, ft_results *out,
                             ft_stats *stats, ft_error *err)
{
    cuda_engine *e = (cuda_engine *)engine;
    ft_status st = ft_results_reset(out, batch->n_queries, err);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaSetDevice(e->device));
    const uint32_t chunk = chunk_of(batch);
    uint32_t submitted = 0, collected = 0, n_in = 0, n_out = 0;
    out->offset[0] = 0;
    while (st == FT_OK && collected < batch->n_queries) {
        if (submitted < batch->n_queries && n_in - n_out < N_SLOTS) {
            const uint32_t left = batch->n_queries - submitted;
            const uint32_t n = left < chunk ? left : chunk;
            st = submit(e, &e->slots[n_in++ % N_SLOTS], batch, params, submitted, n,
                        stats != NULL, err);
            submitted += n;
            continue;
        }
        ft_slot *s = &e->slots[n_out++ % N_SLOTS];
        collected += s->n_queries;
        st = collect(e, s, batch, out, stats, err);
    }
    if (st != FT_OK) /* nothing of this batch may still run in a slot */
        cudaDeviceSynchronize();
    return st;
}

extern "C" const ft_engine_ops ft_engine_cuda = {
    "cuda", "NVIDIA GPU: all steps of a batch in one launch", cuda_open, cuda_search,
    cuda_close};
