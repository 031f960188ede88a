/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu/search.cuh in its forms, asked as the CUDA engine asks it.
 */
#include <cuda_runtime.h>

#include "../../gpu/compact_tables.cuh"
#include "../../gpu/louds_view.cuh"
#include "../../gpu/search.cuh"
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
    *n_differ = 0;
    for (uint32_t i = 0; i < a.q.n_queries; i++) {
        const uint64_t n = want->offset[i + 1] - want->offset[i];
        const ft_gpu_record r = a.q.records[(uint64_t)i * e->n_blocks];
        *n_differ += r.bytes != n ||
                     memcmp(a.q.out + r.at, want->bytes.data + want->offset[i], n);
    }
    return n_faults;
}
