/* SPDX-License-Identifier: Apache-2.0
 *
 * The search by steps on the device. The frontier and the results so far are the host's
 * (engine/steps.c); a step sends the frontier and its proposals, and fetches the best
 * candidates.
 */
#include "engine.h"

struct device_steps {
    ft_cuda_engine *engine;
    cudaStream_t stream;
    ft_gpu_room pinned_in, device_in; /* nodes, sums, tokens, log-probs */
    ft_gpu_room slots, found;
    ft_gpu_room pinned_out; /* the two counts, then candidates and findings */
    ft_wide_memory wide;
    ft_copies copies;
};

static void close_steps(void *state)
{
    device_steps *s = (device_steps *)state;
    cudaSetDevice(s->engine->device);
    if (s->stream)
        cudaStreamSynchronize(s->stream);
    ft_room_free_pinned(&s->pinned_in);
    ft_room_free_pinned(&s->pinned_out);
    ft_room_free_on_device(&s->device_in);
    ft_room_free_on_device(&s->slots);
    ft_room_free_on_device(&s->found);
    ft_wide_memory_close(&s->wide);
    free(s->copies.list);
    if (s->stream)
        cudaStreamDestroy(s->stream);
    free(s);
}

/* The frontier and the proposals, in one copy. */
static ft_status send(device_steps *s, const ft_extension *x, ft_gpu_extension *to,
                      ft_error *err)
{
    uint64_t n_pairs, bytes;
    if (!ft_mul_ok(x->n_beams, x->n_proposals, &n_pairs) ||
        !ft_mul_ok(n_pairs, 8, &bytes) || !ft_add_ok(bytes, 12 * x->n_beams, &bytes))
        return ft_fail(err, FT_ENOMEM, "beams and proposals are too many");
    ft_status st = ft_room_pinned(&s->pinned_in, bytes, err);
    if (st == FT_OK)
        st = ft_room_on_device(&s->device_in, bytes, err);
    const struct {
        const void *from;
        uint64_t bytes;
    } parts[] = {{x->nodes, 8 * x->n_beams},
                 {x->sums, 4 * x->n_beams},
                 {x->tokens, 4 * n_pairs},
                 {x->logp, 4 * n_pairs}};
    uint64_t at = 0;
    s->copies.n = 0;
    for (const auto &p : parts) {
        if (st == FT_OK)
            st = ft_copies_add(&s->copies, (uint8_t *)s->pinned_in.memory + at, p.from,
                               p.bytes, err);
        at += p.bytes;
    }
    if (st != FT_OK)
        return st;
    ft_copies_run(&s->copies, s->engine->pool);
    *to = {};
    to->n_beams = x->n_beams;
    to->n_proposals = x->n_proposals;
    to->step = x->step;
    to->norm = x->norm;
    to->nodes = (const uint64_t *)s->device_in.memory;
    to->sums = (const float *)(to->nodes + x->n_beams);
    to->tokens = (const uint32_t *)(to->sums + x->n_beams);
    to->logp = (const float *)(to->tokens + n_pairs);
    return FT_CUDA(err, cudaMemcpyAsync(s->device_in.memory, s->pinned_in.memory, bytes,
                                        cudaMemcpyHostToDevice, s->stream));
}

static ft_status make_hash(device_steps *s, ft_gpu_extension *x, ft_error *err)
{
    uint64_t n = 32;
    while (n < 2 * x->n_beams * x->n_proposals)
        n *= 2;
    ft_status st = ft_room_on_device(&s->slots, n * sizeof *x->slots, err);
    if (st == FT_OK)
        st = ft_room_on_device(&s->found, 2 * sizeof *x->found, err);
    x->slots = (ft_gpu_extension_slot *)s->slots.memory;
    x->slot_mask = n - 1;
    x->found = (unsigned long long *)s->found.memory;
    return st;
}

/* Copy n items of the device and push them. */
static ft_status push(device_steps *s, const ft_gpu_wide_item *from, uint64_t n,
                      ft_topset *to, ft_error *err)
{
    const uint64_t bytes = n * sizeof *from;
    ft_status st = ft_room_pinned(&s->pinned_out, bytes, err);
    const ft_gpu_wide_item *items = (const ft_gpu_wide_item *)s->pinned_out.memory;
    if (st == FT_OK && n)
        st = FT_CUDA(err, cudaMemcpyAsync(s->pinned_out.memory, from, bytes,
                                          cudaMemcpyDeviceToHost, s->stream));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaStreamSynchronize(s->stream));
    for (uint64_t i = 0; i < n && st == FT_OK; i++) {
        const ft_candidate c = {items[i].value, items[i].node, items[i].beam,
                                items[i].token, items[i].step};
        st = ft_topset_push(to, &c, err);
    }
    return st;
}

static ft_status extend(void *state, const ft_extension *x, ft_topset *beams,
                        ft_topset *results, ft_error *err)
{
    device_steps *s = (device_steps *)state;
    const ft_cuda_engine *e = s->engine;
    ft_gpu_extension device;
    ft_gpu_question q = {};
    ft_gpu_wide wide;
    unsigned long long found[2];
    q.beam = x->params->beam;
    q.n_results = x->params->n_results;
    q.token_threshold = x->params->token_threshold;
    q.sentence_threshold = x->params->sentence_threshold;
    ft_status st = FT_CUDA(err, cudaSetDevice(e->device));
    if (st == FT_OK)
        st = send(s, x, &device, err);
    if (st == FT_OK)
        st = make_hash(s, &device, err);
    if (st == FT_OK)
        st = ft_wide_memory_for(&s->wide, &q, FT_GPU_SPARE_ITEMS, &wide, err);
    if (st == FT_OK)
        st = e->kernels->extend(&e->index, &q, &wide, &device, s->stream, err);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMemcpyAsync(found, device.found, sizeof found,
                                          cudaMemcpyDeviceToHost, s->stream));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaStreamSynchronize(s->stream));
    if (st == FT_OK)
        st = push(s, wide.candidates, found[0], beams, err);
    return st == FT_OK ? push(s, wide.findings, found[1], results, err) : st;
}

static const ft_steps_ops steps_ops = {extend, close_steps};

ft_status ft_cuda_steps(ft_steps **out, ft_engine *engine,
                        const ft_search_params *params, ft_error *err)
{
    ft_cuda_engine *e = (ft_cuda_engine *)engine;
    device_steps *s = ft_new(device_steps, err);
    if (!s)
        return FT_ENOMEM;
    s->engine = e;
    ft_status st = FT_CUDA(err, cudaSetDevice(e->device));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    if (st != FT_OK) {
        close_steps(s);
        return st;
    }
    return ft_steps_adapt(out, &steps_ops, s, e->index.trie, params, err);
}
