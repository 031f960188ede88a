/* SPDX-License-Identifier: Apache-2.0
 *
 * The production step: each beam's join is chosen by its cost, nothing hopeless is
 * looked at, candidates go into bounded sets.
 */
#include "engine/cpu_query.h"

/* A binary search among children costs about as much as probing this many labels of a
 * decoded run (measured). */
enum { PROBES_PER_SEARCH = 16 };

/* Can a child reached with log-prob rho, or a lower one, still enter anything? Sums and
 * scores are monotone in rho, rounding included. */
static inline bool worthwhile(const ft_cpu_extension *x, float rho)
{
    const float sum = x->sigma + rho;
    return (!x->last && ft_topset_admits(&x->w->beams, sum)) ||
           ft_topset_admits(&x->w->results, (double)sum * x->q->norm[x->step + 1]);
}

/* Child `node` is proposed with `rho`: admit it, and keep it as beam, result or both. */
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
    const unsigned flags = q->trie->ops->flags(q->trie, node);
    ft_candidate c = {sum, node, x->beam, token, x->step};
    if ((flags & FT_NODE_HAS_CHILDREN) && !x->last)
        ft_cpu_note(w, ft_topset_push(&w->beams, &c, &w->error));
    if (flags & FT_NODE_TERMINAL) {
        c.score = (double)sum * q->norm[x->step + 1];
        ft_cpu_note(w, ft_topset_push(&w->results, &c, &w->error));
    }
}

/* Few children: decode them and look each up among the proposals. */
static void join_children(const ft_cpu_extension *x, ft_range children,
                          const ft_proposals *p)
{
    ft_cpu_worker *w = x->w;
    const ft_trie *trie = x->q->trie;
    w->n_probes += children.count;
    for (uint64_t done = 0; done < children.count;) {
        const uint64_t first = children.first + done;
        const uint64_t left = children.count - done;
        const uint32_t n = left < FT_CPU_RUN ? (uint32_t)left : FT_CPU_RUN;
        trie->ops->labels(trie, first, n, w->labels);
        uint32_t n_hits = 0;
        for (uint32_t i = 0; i < n; i++) {
            w->hits[n_hits] = i;
            n_hits += ft_proposals_may_have(p, w->labels[i]);
        }
        for (uint32_t i = 0; i < n_hits; i++) {
            const uint32_t at = w->hits[i];
            const ft_proposal *hit = ft_proposals_find(p, w->labels[at]);
            if (hit)
                admit(x, first + at, hit->token, hit->logp);
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

/* Part number `slice` of the work on one beam. */
static void extend(const ft_cpu_extension *x, uint64_t slice, const ft_proposals *p)
{
    const ft_cpu_query *q = x->q;
    if (!p->n || !worthwhile(x, p->list[0].logp))
        return;
    const ft_range all = q->trie->ops->children(q->trie, q->nodes[x->beam]);
    const uint64_t n = q->n_slices;
    if (all.count / PROBES_PER_SEARCH <= p->n) {
        const uint64_t from = all.count * slice / n, to = all.count * (slice + 1) / n;
        join_children(x, (ft_range){all.first + from, to - from}, p);
    } else {
        join_proposals(x, all, p, p->n * slice / n, p->n * (slice + 1) / n);
    }
}

static void expand(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step)
{
    ft_cpu_cursor cursor = {0, 0};
    ft_cpu_extension x;
    uint64_t slice;
    while (ft_cpu_take(q, w, step, &cursor, &x, &slice))
        extend(&x, slice, &q->proposals[step % 2]);
}

static ft_status prepare(ft_cpu_query *q, uint32_t step, ft_error *err)
{
    const uint64_t at = (uint64_t)step * q->n_proposals;
    return ft_proposals_build(&q->proposals[step % 2], q->tokens + at, q->logp + at,
                              q->n_proposals, q->params->token_threshold, err);
}

static ft_status prune(ft_cpu_query *q, ft_error *err)
{
    ft_topset *best = &q->workers[0]->beams;
    for (uint32_t i = 1; i < q->n_workers; i++) {
        const ft_status st = ft_topset_merge(best, &q->workers[i]->beams, err);
        if (st != FT_OK)
            return st;
    }
    ft_topset_trim(best);
    return FT_OK;
}

const ft_cpu_policy ft_cpu_policy_default = {
    .prepare = prepare,
    .expand = expand,
    .prune = prune,
};
