/* SPDX-License-Identifier: Apache-2.0
 *
 * The production step: each beam's join is chosen by its cost, nothing hopeless is
 * looked at, candidates go into bounded sets.
 */
#include "engine/cpu_query.h"

enum {
    /* A binary search among children counts as much as probing this many labels of a
     * run. 16 was slower, 32 to 512 differed by less than the noise. */
    PROBES_PER_SEARCH = 64,

    /* Below this many children nothing is cheaper than to probe them all. */
    FEW_CHILDREN = 64
};

/* Can a child reached with log-prob rho, or a lower one, still enter anything? Sums and
 * scores are monotone in rho, rounding included. */
static inline bool worthwhile(const ft_cpu_extension *x, float rho)
{
    const float sum = x->sigma + rho;
    return (!x->last && ft_topset_admits(&x->w->beams, sum)) ||
           ft_topset_admits(&x->w->results, (double)sum * x->q->norm[x->step + 1]);
}

/* Look at the pending nodes and keep each as beam, result or both. The looks are
 * independent of each other, so their cache misses overlap. */
static void look(const ft_cpu_query *q, ft_cpu_worker *w, uint32_t step)
{
    const ft_trie *trie = q->trie;
    const bool last = step + 1 == q->n_steps;
    uint8_t flags[FT_CPU_PENDING];
    for (uint32_t i = 0; i < w->n_pending; i++)
        flags[i] = (uint8_t)trie->ops->flags(trie, w->pending[i].node);
    for (uint32_t i = 0; i < w->n_pending; i++) {
        const ft_cpu_match *m = &w->pending[i];
        ft_candidate c = {m->sum, m->node, m->beam, m->token, step};
        if ((flags[i] & FT_NODE_HAS_CHILDREN) && !last)
            ft_cpu_note(w, ft_topset_push(&w->beams, &c, &w->error));
        if (flags[i] & FT_NODE_TERMINAL) {
            c.score = (double)m->sum * q->norm[step + 1];
            ft_cpu_note(w, ft_topset_push(&w->results, &c, &w->error));
        }
    }
    w->n_pending = 0;
}

/* Child `node` is proposed with `rho`: admit it. */
static void admit(const ft_cpu_extension *x, uint64_t node, uint32_t token, float rho)
{
    const ft_cpu_query *q = x->q;
    ft_cpu_worker *w = x->w;
    float sum;
    if (!ft_admit(x->sigma, rho, q->params->token_threshold,
                  q->params->sentence_threshold, &sum))
        return;
    w->n_candidates++;
    if (!worthwhile(x, rho))
        return;
    if (q->trie->ops->fetch_node)
        q->trie->ops->fetch_node(q->trie, node);
    w->pending[w->n_pending++] = (ft_cpu_match){node, sum, x->beam, token};
    if (w->n_pending == FT_CPU_PENDING)
        look(q, w, x->step);
}

/* Few children: look each edge up among the proposals, of which the best n_good are
 * worthwhile. */
static void join_children(const ft_cpu_extension *x, ft_range children,
                          const ft_proposals *p, uint32_t n_good)
{
    ft_cpu_worker *w = x->w;
    const ft_trie *trie = x->q->trie;
    w->n_probes += children.count;
    for (uint64_t done = 0; done < children.count;) {
        const uint64_t first = children.first + done;
        const uint64_t left = children.count - done;
        const uint32_t n = left < FT_CPU_RUN ? (uint32_t)left : FT_CPU_RUN;
        const uint32_t n_hits =
            trie->ops->probe(trie, first, n, p->filter, w->hits, w->labels);
        for (uint32_t i = 0; i < n_hits; i++) {
            const uint32_t hit = ft_proposals_find(p, w->labels[i]);
            if (hit < n_good) /* FT_NO_TOKEN is not */
                admit(x, first + w->hits[i], p->list[hit].token, p->list[hit].logp);
        }
        done += n;
    }
}

/* Many children: search each of proposals from .. to - 1 among them, best first. */
static void join_proposals(const ft_cpu_extension *x, ft_range children,
                           const ft_proposals *p, uint64_t from, uint64_t to)
{
    const ft_trie *trie = x->q->trie;
    for (uint64_t i = from; i < to && worthwhile(x, p->list[i].logp); i++) {
        x->w->n_probes++;
        const uint64_t node = trie->ops->find(trie, children, p->list[i].token);
        if (node != UINT64_MAX)
            admit(x, node, p->list[i].token, p->list[i].logp);
    }
}

/* How many of the proposals, which are best first, are worthwhile. */
static uint32_t count_worthwhile(const ft_cpu_extension *x, const ft_proposals *p)
{
    uint32_t lo = 0, hi = p->n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (worthwhile(x, p->list[mid].logp))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* One item of the step's work; the join is chosen by its cost. */
static void extend(const ft_cpu_item *item, const ft_proposals *p)
{
    const ft_cpu_extension *x = &item->x;
    const ft_range all = item->children;
    const uint64_t n = x->q->n_slices, slice = item->slice;
    if (!p->n || !worthwhile(x, p->list[0].logp))
        return;
    uint64_t n_good = p->n;
    if (all.count > FEW_CHILDREN) {
        n_good = count_worthwhile(x, p);
        if (all.count / PROBES_PER_SEARCH > n_good) {
            join_proposals(x, all, p, n_good * slice / n, n_good * (slice + 1) / n);
            return;
        }
    }
    const uint64_t from = all.count * slice / n, to = all.count * (slice + 1) / n;
    join_children(x, (ft_range){all.first + from, to - from}, p, (uint32_t)n_good);
}

/* In passes, so that the cache misses of the items overlap. */
static void find_children(const ft_cpu_query *q, ft_cpu_item *items, uint32_t n)
{
    const ft_trie *trie = q->trie;
    const ft_trie_ops *ops = trie->ops;
    for (uint32_t i = 0; i < n && ops->fetch_children; i++)
        ops->fetch_children(trie, q->nodes[items[i].x.beam]);
    for (uint32_t i = 0; i < n; i++)
        items[i].children = ops->children(trie, q->nodes[items[i].x.beam]);
    for (uint32_t i = 0; i < n && ops->fetch_run; i++)
        ops->fetch_run(trie, items[i].children);
    for (uint32_t i = 0; i < n && ops->fetch_codes; i++)
        ops->fetch_codes(trie, items[i].children);
}

static void expand(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step)
{
    ft_cpu_item items[FT_CPU_CHUNK];
    for (uint32_t n; (n = ft_cpu_take(q, w, step, items)) > 0;) {
        find_children(q, items, n);
        for (uint32_t i = 0; i < n; i++)
            extend(&items[i], &q->proposals[step % 2]);
    }
    look(q, w, step);
}

static ft_status prepare(ft_cpu_query *q, uint32_t step, ft_error *err)
{
    const uint64_t at = (uint64_t)step * q->n_proposals;
    return ft_proposals_build(&q->proposals[step % 2], q->memo, step + 1,
                              q->tokens + at, q->logp + at, q->n_proposals,
                              q->params->token_threshold, err);
}

static ft_status prune(ft_cpu_query *q, ft_error *err)
{
    ft_topset *best = &q->workers[0]->beams;
    for (uint32_t i = 1; i < q->n_workers; i++) {
        const ft_status st = ft_topset_merge(best, &q->workers[i]->beams, err);
        if (st != FT_OK)
            return st;
    }
    return ft_topset_trim(best, err);
}

const ft_cpu_policy ft_cpu_policy_default = {
    .prepare = prepare,
    .expand = expand,
    .prune = prune,
};
