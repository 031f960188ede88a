/* SPDX-License-Identifier: Apache-2.0
 *
 * The production step: each beam's join is chosen by its cost, nothing hopeless is
 * looked at, candidates go into bounded sets.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/cpu_query.h"

enum {
    /* A binary search among children counts as much as probing this many labels of a
     * run. 16 was slower, 32 to 512 differed by less than the noise. */
    PROBES_PER_SEARCH = 64,

    /* Below this many children nothing is cheaper than to probe them all. */
    FEW_CHILDREN = 64
};

/* Note what a sum must reach for now to enter anything; less is hopeless. A little too
 * low, so that no rounding matters: the sets see to the rest. */
static void set_bar(const ft_cpu_query *q, ft_cpu_worker *w)
{
    const bool last = q->step + 1 == q->n_steps;
    const double beam = last ? (double)INFINITY : w->beams.bound;
    const double result = w->results.bound / q->norm[q->step + 1];
    const double least = beam <= result ? beam : result;
    w->bar = (float)(least - fabs(least) * 1e-6);
}

/* Of NaN, which is no bar, nothing is said. */
static inline bool hopeless(const ft_cpu_worker *w, float sum)
{
    return sum < w->bar;
}

/* Can a child enter that is reached with log-prob rho, or with a lower one? Sums and
 * scores are monotone in rho, rounding included. */
static inline bool worthwhile(const ft_cpu_extension *x, float rho)
{
    return !hopeless(x->w, x->sigma + rho);
}

/* Make room for n candidates; take over the bounds that the team has together. */
static ft_status make_room(const ft_cpu_query *q, ft_cpu_worker *w, uint32_t n)
{
    ft_status st = ft_topset_reserve(&w->beams, n, &w->error);
    if (st == FT_OK)
        st = ft_topset_reserve(&w->results, n, &w->error);
    if (st != FT_OK)
        return st;
    w->beams_part = w->beams.part_bound;
    w->results_part = w->results.part_bound;
    double beams = INFINITY, results = INFINITY;
    for (uint32_t i = 0; i < q->n_workers; i++) {
        beams = fmin(beams, q->workers[i]->beams_part);
        results = fmin(results, q->workers[i]->results_part);
    }
    ft_topset_raise(&w->beams, beams);
    ft_topset_raise(&w->results, results);
    return FT_OK;
}

/* Look at the pending nodes and keep each as beam, result or both. */
static void look(const ft_cpu_query *q, ft_cpu_worker *w)
{
    const uint32_t step = q->step;
    const ft_trie *trie = q->trie;
    const unsigned parent = step + 1 == q->n_steps ? 0 : FT_NODE_HAS_CHILDREN;
    uint64_t nodes[FT_CPU_PENDING];
    uint8_t flags[FT_CPU_PENDING];
    for (uint32_t i = 0; i < w->n_pending; i++)
        nodes[i] = w->pending[i].node;
    trie->ops->flags_many(trie, nodes, w->n_pending, flags);
    const ft_status st = make_room(q, w, w->n_pending);
    ft_cpu_note(w, st);
    for (uint32_t i = 0; i < w->n_pending && st == FT_OK; i++) {
        const ft_cpu_match *m = &w->pending[i];
        ft_candidate c = {m->sum, m->node, m->beam, m->token, step};
        ft_topset_put(&w->beams, &c, flags[i] & parent);
        c.score = (double)m->sum * q->norm[step + 1];
        ft_topset_put(&w->results, &c, flags[i] & FT_NODE_TERMINAL);
    }
    w->n_candidates += w->n_pending;
    w->n_pending = 0;
    set_bar(q, w);
}

/* Child `node` of the run's beam is proposed, if `proposed`: it becomes pending if it
 * can still enter anything. There is room for it. Most hits differ from the one before
 * in what becomes of them: without a branch. */
static inline void admit(const ft_cpu_query *q, ft_cpu_worker *w, const ft_cpu_run *run,
                         uint64_t node, const ft_proposal *p, bool proposed)
{
    float sum;
    const bool admitted = ft_admit(run->sigma, p->logp, q->params->token_threshold,
                                   q->params->sentence_threshold, &sum);
    w->pending[w->n_pending] = (ft_cpu_match){node, sum, run->beam, p->token};
    w->n_pending += admitted & proposed & !hopeless(w, sum);
}

/* Probe the runs, and look what the filter lets through up among the proposals. */
static void probe(const ft_cpu_query *q, ft_cpu_worker *w, const ft_proposals *p)
{
    const ft_hits *hits = &w->hits;
    q->trie->ops->probe(q->trie, w->ranges, w->n_runs, w->filter, &w->hits);
    for (uint32_t from = 0; from < hits->n; from += FT_CPU_PENDING) {
        const uint32_t left = hits->n - from;
        const uint32_t to = from + (left < FT_CPU_PENDING ? left : FT_CPU_PENDING);
        if (w->n_pending + (to - from) > FT_CPU_PENDING)
            look(q, w);
        for (uint32_t i = from; i < to; i++) {
            const ft_proposal *found = ft_proposals_find(p, hits->codes[i]);
            const ft_cpu_run *run = &w->runs[hits->runs[i]];
            admit(q, w, run, run->origin + hits->edges[i], found,
                  found->code == hits->codes[i]);
        }
    }
    w->n_runs = w->n_edges = 0;
}

/* Take proposal i out of the good ones, or in again, unless others share its bit. */
static void toggle(ft_cpu_worker *w, const ft_proposals *p, uint32_t i)
{
    const uint32_t code = p->list[i].code;
    if (p->slots[ft_proposals_rank(p, code)].next == FT_NO_TOKEN)
        w->good[code / 64 % FT_FILTER_WORDS] ^= UINT64_C(1) << code % 64;
}

/* Let through what is worthwhile for the best of these beams, which mostly are like
 * those before: little changes. */
static void set_filter(ft_cpu_worker *w, const ft_proposals *p,
                       const ft_cpu_item *items, uint32_t n)
{
    float best = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        best = items[i].x.sigma > best ? items[i].x.sigma : best;
    if (w->filter == p->filter) {
        if (!p->n || !hopeless(w, best + p->list[p->n - 1].logp))
            return;
        memcpy(w->good, p->filter, sizeof w->good);
        w->filter = w->good;
        w->n_good = p->n;
    }
    while (w->n_good && hopeless(w, best + p->list[w->n_good - 1].logp))
        toggle(w, p, --w->n_good);
    while (w->n_good < p->n && !hopeless(w, best + p->list[w->n_good].logp))
        toggle(w, p, w->n_good++);
}

/* Few children: a run, or more, to be probed together with others. */
static void join_children(const ft_cpu_extension *x, ft_range children,
                          const ft_proposals *p)
{
    ft_cpu_worker *w = x->w;
    w->n_probes += children.count;
    while (children.count) {
        if (w->n_edges == FT_PROBE_EDGES || w->n_runs == FT_CPU_RUNS)
            probe(x->q, w, p);
        const uint64_t room = FT_PROBE_EDGES - w->n_edges;
        const uint64_t n = children.count < room ? children.count : room;
        w->ranges[w->n_runs] = (ft_range){children.first, n};
        w->runs[w->n_runs++] =
            (ft_cpu_run){children.first - w->n_edges, x->beam, x->sigma};
        w->n_edges += (uint32_t)n;
        children.first += n;
        children.count -= n;
    }
}

/* Many children: search each of proposals from .. to - 1 among them, best first. */
static void join_proposals(const ft_cpu_extension *x, ft_range children,
                           const ft_proposals *p, uint64_t from, uint64_t to)
{
    const ft_trie *trie = x->q->trie;
    const ft_cpu_run run = {children.first, x->beam, x->sigma};
    for (uint64_t i = from; i < to && worthwhile(x, p->list[i].logp); i++) {
        const uint32_t token = p->list[i].token;
        const uint64_t node = trie->ops->find(
            trie, x->step == 0 ? ft_root_part(x->q->root, token) : children, token);
        if (x->w->n_pending == FT_CPU_PENDING)
            look(x->q, x->w);
        admit(x->q, x->w, &run, node, &p->list[i], node != UINT64_MAX);
        x->w->n_probes++;
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
    if (all.count > FEW_CHILDREN) {
        /* Bounds differ between slices, which must agree on the join. */
        const uint64_t n_good = n > 1 ? p->n : count_worthwhile(x, p);
        if (all.count / PROBES_PER_SEARCH > n_good) {
            join_proposals(x, all, p, p->n * slice / n, p->n * (slice + 1) / n);
            return;
        }
    }
    ft_range share = all;
    if (n > 1) { /* mostly it is 1, and divisions are dear */
        share.first += all.count * slice / n;
        share.count = all.first + all.count * (slice + 1) / n - share.first;
    }
    join_children(x, share, p);
}

/* Take the next items and find their children, whose labels are fetched during the work
 * on the items before. */
static uint32_t take(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step,
                     ft_cpu_item items[FT_CPU_CHUNK])
{
    const ft_trie *trie = q->trie;
    const ft_trie_ops *ops = trie->ops;
    const uint32_t n = ft_cpu_take(q, w, step, items);
    uint64_t nodes[FT_CPU_CHUNK];
    ft_range children[FT_CPU_CHUNK];
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = q->nodes[items[i].x.beam];
    ops->children_many(trie, nodes, n, children);
    for (uint32_t i = 0; i < n; i++)
        items[i].children = children[i];
    ops->fetch(trie, children, n);
    return n;
}

static void expand(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step)
{
    const ft_proposals *positions = q->state, *p = &positions[ft_cpu_place(q, step)];
    ft_cpu_item items[2][FT_CPU_CHUNK];
    unsigned at = 0;
    set_bar(q, w);
    w->filter = p->filter;
    for (uint32_t n = take(q, w, step, items[0]), next; n > 0; n = next, at ^= 1) {
        next = take(q, w, step, items[at ^ 1]);
        set_filter(w, p, items[at], n);
        for (uint32_t i = 0; i < n; i++)
            extend(&items[at][i], p);
        probe(q, w, p);
    }
    look(q, w);
}

static ft_status open_positions(ft_cpu_query *q, ft_error *err)
{
    q->state = ft_calloc(FT_CPU_POSITIONS, sizeof(ft_proposals), err);
    return q->state ? FT_OK : FT_ENOMEM;
}

static void close_positions(ft_cpu_query *q)
{
    ft_proposals *positions = q->state;
    for (uint32_t i = 0; positions && i < FT_CPU_POSITIONS; i++)
        ft_proposals_free(&positions[i]);
    free(positions);
}

static ft_status prepare(ft_cpu_query *q, uint32_t step, ft_error *err)
{
    ft_proposals *positions = q->state;
    const uint64_t at = (uint64_t)step * q->n_proposals;
    return ft_proposals_build(&positions[ft_cpu_place(q, step)], q->memo, step + 1,
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
    .open = open_positions,
    .close = close_positions,
    .prepare = prepare,
    .expand = expand,
    .prune = prune,
};

/* For the step entry: tokens and log-probs are [beam][proposal]. */
static void expand_own(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step)
{
    ft_cpu_item items[FT_CPU_CHUNK];
    set_bar(q, w);
    for (uint32_t n; (n = take(q, w, step, items)) > 0;) {
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t at = (uint64_t)items[i].x.beam * q->n_proposals;
            const ft_status st = ft_proposals_build(
                &w->own, q->memo, step + 1, q->tokens + at, q->logp + at,
                q->n_proposals, q->params->token_threshold, &w->error);
            ft_cpu_note(w, st);
            w->filter = w->own.filter;
            if (st == FT_OK)
                extend(&items[i], &w->own);
            probe(q, w, &w->own);
        }
    }
    look(q, w);
}

static ft_status prepare_none(ft_cpu_query *q, uint32_t step, ft_error *err)
{
    (void)q;
    (void)step;
    (void)err;
    return FT_OK;
}

ft_status ft_cpu_prune_sorted(ft_cpu_query *q, ft_error *err)
{
    const ft_status st = prune(q, err);
    return st == FT_OK ? ft_topset_sort(&q->workers[0]->beams, err) : st;
}

const ft_cpu_policy ft_cpu_policy_own = {
    .prepare = prepare_none,
    .expand = expand_own,
    .prune = ft_cpu_prune_sorted,
};
