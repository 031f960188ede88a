/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu/search.cuh in its forms, and gpu/wide.cuh, asked as the CUDA engine asks them.
 */
#include <cuda_runtime.h>

#include "../../gpu/compact_tables.cuh"
#include "../../gpu/louds_view.cuh"
#include "../../gpu/search.cuh"
#include "../../gpu/wide.cuh"
#include "emulate.h"

#include <stdio.h>

#include <vector>

/* Sections stay where they are. */
const void *ft_device_address(const ft_device_index *, const void *host)
{
    return host;
}

namespace
{

/* What a run needs beside the question, and what the kernel reads. */
struct asked {
    ft_gpu_question q;
    std::vector<double> norm;
    uint32_t ticket;
};

template <class View, class Mem, bool CLUSTER> struct form {
    static View view;
    static ft_gpu_question q;

    static void body()
    {
        ft::search<View, Mem, 1, CLUSTER, false>(view, q);
    }

    static unsigned run(const View &v, const ft_gpu_question &question,
                        const emu_run *e)
    {
        static_assert(sizeof(Mem) <= emulated::BLOCK_BYTES, "a block's memory");
        view = v;
        q = question;
        if (Mem::SPARING)
            q.findings = emulated::device_memory(Mem::FINDINGS * sizeof(ft::finding));
        return emulated::run(body, e->n_blocks,
                             {Mem::THREADS, Mem::SETTLERS, sizeof(Mem)}, e->schedule);
    }
};
template <class View, class Mem, bool CLUSTER> View form<View, Mem, CLUSTER>::view;
template <class View, class Mem, bool CLUSTER>
ft_gpu_question form<View, Mem, CLUSTER>::q;

template <class T> T *some(uint64_t n)
{
    return (T *)emulated::device_memory(n * sizeof(T));
}

/* With little room, so that a step takes several rounds, and ties are no few. */
template <class View> struct grid_form {
    static View view;
    static ft_gpu_question q;
    static ft_gpu_wide w;

    static void body()
    {
        ft::search_wide<View>(view, q, w);
    }

    static unsigned run(const View &v, const ft_gpu_question &question,
                        const emu_run *e)
    {
        enum { SPARE = 3 * ft::WIDE_RUN };
        static_assert(sizeof(ft::wide_block) <= emulated::BLOCK_BYTES, "room");
        view = v;
        q = question;
        w = {};
        w.slot_mask = 63;
        while (w.slot_mask + 1 < 2 * q.n_proposals)
            w.slot_mask = 2 * w.slot_mask + 1;
        w.cap_candidates = q.beam + SPARE;
        w.cap_findings = q.n_results + SPARE;
        w.cap_ranked = q.n_results;
        w.sums = some<float>(q.beam);
        w.children = some<ft_range>(q.beam);
        w.before = some<uint64_t>(q.beam);
        w.codes = some<uint32_t>(q.n_proposals);
        w.tokens = some<uint32_t>(q.n_proposals);
        w.slot_code = some<uint32_t>(w.slot_mask + 1);
        w.slot_logp = some<uint32_t>(w.slot_mask + 1);
        w.slot_proposal = some<uint32_t>(w.slot_mask + 1);
        w.candidates = some<ft_gpu_wide_item>(w.cap_candidates);
        w.findings = some<ft_gpu_wide_item>(w.cap_findings);
        w.kept = some<ft_gpu_wide_item>(std::max(q.beam, q.n_results));
        w.ranked = some<ft_gpu_wide_rank>(w.cap_ranked);
        w.order = some<uint32_t>(q.n_results);
        w.bins = some<uint32_t>(3 * FT_GPU_WIDE_BINS);
        w.block_sums = some<uint64_t>(e->n_blocks);
        w.counters = some<ft::wide_counters>(1);
        return emulated::run(body, e->n_blocks,
                             {ft::WIDE_THREADS, 0, sizeof(ft::wide_block)},
                             e->schedule);
    }
};
template <class View> View grid_form<View>::view;
template <class View> ft_gpu_question grid_form<View>::q;
template <class View> ft_gpu_wide grid_form<View>::w;

/* As launch.cuh has them. */
template <class View>
unsigned run_form(const View &v, const ft_gpu_question &q, const emu_run *e)
{
    enum { SMALL = FT_GPU_ROOM_SMALL, LARGE = FT_GPU_ROOM_LARGE };
    switch (e->memory) {
    case EMU_HASTY:
        return form<View, ft::memory<512, SMALL>, false>::run(v, q, e);
    case EMU_SMALL:
        return form<View, ft::memory<256, SMALL>, false>::run(v, q, e);
    case EMU_SPARING:
        return form<View, ft::memory<512, LARGE, true>, false>::run(v, q, e);
    case EMU_GRID:
        return grid_form<View>::run(v, q, e);
    default:
        return form<View, ft::memory<512, LARGE>, true>::run(v, q, e);
    }
}

void ask(asked *a, const emu_run *e)
{
    const ft_batch *b = e->batch;
    const uint64_t n_steps = (uint64_t)b->n_queries * b->n_steps;
    ft_gpu_question *q = &a->q;
    a->norm.resize(b->n_steps + 1);
    ft_norm_table(e->params->alpha, b->n_steps, a->norm.data());
    a->ticket = UINT32_MAX - 1; /* it wraps */
    *q = {};
    q->tokens = b->tokens;
    q->logp = b->logp;
    q->n_queries = b->n_queries;
    q->n_steps = b->n_steps;
    q->n_proposals = b->n_proposals;
    q->beam = e->params->beam;
    q->n_results = e->params->n_results;
    q->token_threshold = e->params->token_threshold;
    q->sentence_threshold = e->params->sentence_threshold;
    q->norm = a->norm.data();
    q->first_ticket = a->ticket;
    q->next_ticket = &a->ticket;
    q->record_bytes = (8 + q->n_results * (16 + 4ull * q->n_steps) + 7) / 8 * 8;
    const uint32_t least = ft::memory<512, FT_GPU_ROOM_LARGE>::TRACE_BEAMS;
    q->trace = (ft_gpu_trace *)emulated::device_memory(
        q->n_steps * std::max(q->beam, least) * sizeof *q->trace);
    q->out = (uint8_t *)emulated::device_memory(q->n_queries * q->record_bytes);
    q->records = (ft_gpu_record *)emulated::device_memory(
        (uint64_t)q->n_queries * e->n_blocks * sizeof *q->records);
    if (e->stats)
        q->stats =
            (ft_gpu_step_stats *)emulated::device_memory(n_steps * sizeof *q->stats);
}

template <class View> unsigned run_view(const ft_gpu_question &q, const emu_run *e)
{
    ft_error err = {};
    ft_device_index d = {};
    d.index = e->index;
    d.trie = ft_index_trie(e->index);
    if (View::make_tables(&d, &err) != FT_OK) {
        printf("Bail out! %s\n", err.message);
        exit(1);
    }
    View v = View::of(&d);
    if constexpr (std::is_same_v<View, ft::compact_view>)
        if (!e->starts) { /* as beyond 2^32 slots */
            v.starts = NULL;
            v.lists = v.groups = NULL;
            v.root_children = NULL;
        }
    const unsigned n_faults = run_form(v, q, e);
    free(d.tables);
    free(d.starts);
    free(d.lists);
    return n_faults;
}

} // namespace

unsigned emulate(const emu_run *e, const ft_results *want, unsigned *n_differ)
{
    asked a;
    emulated::free_memory();
    ask(&a, e);
    const bool compact = strcmp(ft_index_layout(e->index), "compact") == 0;
    const unsigned n_faults = compact ? run_view<ft::compact_view>(a.q, e)
                                      : run_view<ft::louds_view<ft_wide>>(a.q, e);
    const uint64_t n_records = e->memory == EMU_GRID ? 1 : e->n_blocks;
    *n_differ = 0;
    for (uint32_t i = 0; i < a.q.n_queries; i++) {
        const uint64_t n = want->offset[i + 1] - want->offset[i];
        const ft_gpu_record r = a.q.records[i * n_records];
        *n_differ += r.bytes != n ||
                     memcmp(a.q.out + r.at, want->bytes.data + want->offset[i], n);
    }
    return n_faults;
}
