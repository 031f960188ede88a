/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "baseline/baseline.h"
#include "baseline/sorted_proposals.h"
#include "engine/cpu.h"

/* Nothing of the trie is carried over a step: the frontier's tokens are all that the
 * search uses of it. Candidates lie in workers[0]->beams.items, a flat vector. */
typedef struct int_state {
    ft_sorted_proposals proposals; /* of this step */
    uint32_t *prefix;              /* of the beam in hand, and room for one token */
    uint64_t cap;
} int_state;

static ft_status int_open_query(ft_cpu_query *q, ft_error *err)
{
    q->state = ft_new(int_state, err);
    return q->state ? FT_OK : FT_ENOMEM;
}

static void int_close_query(ft_cpu_query *q)
{
    int_state *s = q->state;
    if (!s)
        return;
    ft_sorted_proposals_free(&s->proposals);
    free(s->prefix);
    free(s);
}

/* There is one thread: expand takes the proposals in when their step comes. */
static ft_status int_prepare(ft_cpu_query *q, uint32_t step, ft_error *err)
{
    (void)q;
    (void)step;
    (void)err;
    return FT_OK;
}

/* The step tokens of a beam that enters it. */
static void spell(const ft_cpu_query *q, uint32_t step, uint32_t beam, uint32_t *prefix)
{
    for (uint32_t t = step; t-- > 0;) {
        const ft_cpu_trace *from = &q->trace[q->trace_at[t] + beam];
        prefix[t] = from->token;
        beam = from->parent;
    }
}

static ft_status append(ft_topset *vector, const ft_candidate *c, ft_error *err)
{
    void *items = vector->items;
    const ft_status st =
        ft_reserve(&items, &vector->cap, vector->n + 1, sizeof *vector->items, err);
    vector->items = items;
    if (st == FT_OK)
        vector->items[vector->n++] = *c;
    return st;
}

/* One pair of beam and proposal, by MARISA's operations on single sequences, each from
 * the root: predictive search says whether anything goes on from here, lookup whether
 * this is a key. */
static void evaluate(const ft_cpu_extension *x, const uint32_t *tokens, float sum)
{
    const ft_cpu_query *q = x->q;
    const uint32_t n = x->step + 1;
    x->w->n_probes++;
    const uint64_t node = ft_trie_walk(q->trie, tokens, n);
    if (node == UINT64_MAX)
        return;
    x->w->n_candidates++;
    ft_candidate c = {sum, node, x->beam, tokens[x->step], x->step};
    if (!x->last && (q->trie->ops->flags(q->trie, node) & FT_NODE_HAS_CHILDREN))
        ft_cpu_note(x->w, append(&x->w->beams, &c, &x->w->error));
    x->w->n_probes++;
    const uint64_t key = ft_trie_walk(q->trie, tokens, n);
    if (q->trie->ops->flags(q->trie, key) & FT_NODE_TERMINAL) {
        c.score = (double)sum * q->norm[n];
        ft_cpu_note(x->w, ft_topset_push(&x->w->results, &c, &x->w->error));
    }
}

static ft_status make_ready(ft_cpu_query *q, uint32_t step, ft_error *err)
{
    int_state *s = q->state;
    void *prefix = s->prefix;
    const ft_status st =
        ft_reserve(&prefix, &s->cap, (uint64_t)step + 1, sizeof *s->prefix, err);
    s->prefix = prefix;
    return st == FT_OK ? ft_sorted_proposals_set(&s->proposals, q, step, err) : st;
}

static void int_expand(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step)
{
    int_state *s = q->state;
    ft_cpu_note(w, make_ready(q, step, &w->error));
    ft_cpu_item items[FT_CPU_CHUNK];
    for (uint32_t n; (n = ft_cpu_take(q, w, step, items)) > 0;)
        for (uint32_t i = 0; i < n; i++) {
            const ft_cpu_extension *x = &items[i].x;
            spell(q, step, x->beam, s->prefix);
            for (uint32_t k = 0; k < s->proposals.n; k++) {
                const ft_proposal *p = &s->proposals.v[k];
                float sum;
                s->prefix[step] = p->token;
                if (ft_admit(x->sigma, p->logp, q->params->token_threshold,
                             q->params->sentence_threshold, &sum))
                    evaluate(x, s->prefix, sum);
            }
        }
}

/* Restore the heap items[0 .. n), worst on top, where items[hole] may be too good. */
static void sink(const ft_topset *v, uint64_t hole, uint64_t n)
{
    const ft_candidate c = v->items[hole];
    for (uint64_t child; (child = 2 * hole + 1) < n; hole = child) {
        if (child + 1 < n &&
            ft_topset_better(v, &v->items[child], &v->items[child + 1]))
            child++;
        if (ft_topset_better(v, &v->items[child], &c))
            break;
        v->items[hole] = v->items[child];
    }
    v->items[hole] = c;
}

/* As std::partial_sort does it: a heap of the first B takes in what is better of the
 * rest, and is sorted in the end. */
static ft_status int_prune(ft_cpu_query *q, ft_error *err)
{
    ft_topset *v = &q->workers[0]->beams;
    const uint64_t most = v->n < v->want ? v->n : v->want;
    (void)err;
    for (uint64_t i = most / 2; i-- > 0;)
        sink(v, i, most);
    for (uint64_t i = most; i < v->n; i++)
        if (ft_topset_better(v, &v->items[i], &v->items[0])) {
            v->items[0] = v->items[i];
            sink(v, 0, most);
        }
    for (uint64_t i = most; i-- > 1;) {
        const ft_candidate worst = v->items[0];
        v->items[0] = v->items[i];
        v->items[i] = worst;
        sink(v, 0, i);
    }
    v->n = most;
    return FT_OK;
}

static const ft_cpu_policy policy = {
    .open = int_open_query,
    .close = int_close_query,
    .prepare = int_prepare,
    .expand = int_expand,
    .prune = int_prune,
};

static ft_status int_open(ft_engine **out, const ft_index *index,
                          const ft_engine_options *options, ft_error *err)
{
    ft_engine_options alone = *options;
    alone.n_threads = 1;
    return ft_cpu_open(out, &ft_engine_marisa_int, &policy, index, &alone, err);
}

const ft_engine_ops ft_engine_marisa_int = {
    .name = "marisa-int",
    .summary = "paper Appendix B.1: each candidate walked from the root, one thread",
    .open = int_open,
    .search = ft_cpu_search,
    .close = ft_cpu_close,
};
