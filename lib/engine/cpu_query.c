/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cpu_query.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint32_t ft_cpu_take(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step,
                     ft_cpu_item items[FT_CPU_CHUNK])
{
    const uint64_t n_items = q->n_beams * q->n_slices;
    /* Many hide more cache misses; a large team needs parts to share. */
    const uint64_t most = q->n_slices > 1    ? 1
                          : q->n_workers < 4 ? FT_CPU_CHUNK / q->n_workers
                                             : FT_CPU_CHUNK / 4;
    const uint64_t from =
        atomic_fetch_add_explicit(&q->next_item, most, memory_order_relaxed);
    if (from >= n_items || w->status != FT_OK)
        return 0;
    const uint32_t n = (uint32_t)(n_items - from < most ? n_items - from : most);
    const bool sliced = q->n_slices > 1;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t beam = sliced ? (from + i) / q->n_slices : from + i;
        items[i] = (ft_cpu_item){
            .x = {q, w, step, (uint32_t)beam, q->sigmas[beam], step + 1 == q->n_steps},
            .slice = sliced ? (from + i) % q->n_slices : 0,
        };
    }
    return n;
}

/* Set out the next step's work. A few beams are cut into slices, so that the whole team
 * has something to do at the root. */
static void share_out(ft_cpu_query *q)
{
    for (uint32_t i = 0; i < q->n_workers; i++) {
        ft_cpu_worker *w = q->workers[i];
        ft_topset_reset_one(&w->beams, q->params->beam, q->n_workers);
        w->beams_part = -INFINITY;
    }
    const uint64_t wanted = 4 * (uint64_t)q->n_workers;
    q->n_slices = q->n_workers == 1 || q->n_beams >= wanted
                      ? 1
                      : wanted / (q->n_beams ? q->n_beams : 1);
    atomic_store_explicit(&q->next_item, 0, memory_order_relaxed);
}

static ft_status reserve_frontier(ft_cpu_query *q, uint64_t n, ft_error *err)
{
    uint64_t cap = q->cap_beams;
    void *nodes = q->nodes;
    ft_status st = ft_reserve(&nodes, &cap, n, sizeof *q->nodes, err);
    q->nodes = nodes;
    if (st != FT_OK || cap == q->cap_beams)
        return st;
    float *sigmas = ft_realloc(q->sigmas, cap, sizeof *sigmas, err);
    if (!sigmas)
        return FT_ENOMEM;
    q->sigmas = sigmas;
    q->cap_beams = cap;
    return FT_OK;
}

/* The step's best beams, which the policy left with worker 0, become the frontier. */
static ft_status advance(ft_cpu_query *q, uint32_t step, ft_error *err)
{
    ft_status st = q->policy->prune(q, err);
    const ft_topset *best = &q->workers[0]->beams;
    void *trace = q->trace;
    if (st == FT_OK)
        st = ft_reserve(&trace, &q->cap_trace, q->n_trace + best->n, sizeof *q->trace,
                        err);
    q->trace = trace;
    if (st == FT_OK)
        st = reserve_frontier(q, best->n, err);
    if (st != FT_OK)
        return st;
    q->trace_at[step] = q->n_trace;
    for (uint64_t i = 0; i < best->n; i++) {
        q->nodes[i] = best->items[i].node;
        q->sigmas[i] = (float)best->items[i].score;
        q->trace[q->n_trace + i] =
            (ft_cpu_trace){best->items[i].parent, best->items[i].token};
    }
    q->n_trace += best->n;
    q->n_beams = best->n;
    return FT_OK;
}

static void count(ft_cpu_query *q, uint32_t step, uint64_t n_beams, double seconds)
{
    ft_step_stats *s = &q->stats[step];
    *s = (ft_step_stats){.beams = n_beams, .kept = q->n_beams, .seconds = seconds};
    for (uint32_t i = 0; i < q->n_workers; i++) {
        s->probes += q->workers[i]->n_probes;
        s->candidates += q->workers[i]->n_candidates;
        q->workers[i]->n_probes = q->workers[i]->n_candidates = 0;
    }
}

static void expand(void *arg, uint32_t member)
{
    ft_cpu_query *q = arg;
    q->policy->expand(q, q->workers[member], q->step);
}

/* Whoever has nothing else to do prepares positions, if any are to be. */
static void prepare_some(void *arg)
{
    ft_cpu_query *q = arg;
    while (atomic_load_explicit(&q->next_position, memory_order_relaxed) < q->n_ahead) {
        const uint64_t at =
            atomic_fetch_add_explicit(&q->next_position, 1, memory_order_relaxed);
        if (at >= q->n_ahead)
            return;
        ft_error error = {0};
        const ft_status st = q->policy->prepare(q, (uint32_t)at, &error);
        if (st != FT_OK && !atomic_exchange(&q->prepare_failed, true)) {
            q->prepare_status = st;
            q->prepare_error = error;
        }
    }
}

static void prepare_as_member(void *arg, uint32_t member)
{
    (void)member;
    prepare_some(arg);
}

/* Positions up to `step` are prepared; if no more are, the next ones are to be: one for
 * each member that has a processor. What others would add a query that ends early does
 * not need. */
static void look_ahead(ft_cpu_query *q, uint64_t step)
{
    const uint64_t n = q->n_together;
    if (q->n_ahead > step || step >= q->n_steps)
        return;
    q->n_ahead = step + n < q->n_steps ? step + n : q->n_steps;
    atomic_store_explicit(&q->next_position, step, memory_order_relaxed);
}

/* Between two steps: nobody else is at work on beams, some may be on proposals. */
static void turn(void *arg)
{
    ft_cpu_query *q = arg;
    ft_cpu_worker *w = q->workers[0];
    q->done = false;
    for (uint32_t i = 0; i < q->n_workers; i++)
        q->done |= q->workers[i]->status != FT_OK;
    if (!q->done) {
        ft_cpu_note(w, advance(q, q->step, &w->error));
        q->done = w->status != FT_OK || !q->n_beams || q->step + 1 == q->n_steps;
    }
    share_out(q);
    if (!q->done)
        prepare_some(q);
}

void ft_cpu_query_step(ft_cpu_query *q, uint32_t step)
{
    static const ft_pool_job job = {expand, turn, prepare_some};
    const uint64_t n_beams = q->n_beams;
    const double start = q->stats ? now() : 0;
    q->step = step;
    look_ahead(q, step + UINT64_C(1));
    if (q->pool) {
        ft_pool_run(q->pool, &job, q);
    } else {
        expand(q, 0);
        turn(q);
    }
    q->done |= q->prepare_status != FT_OK;
    if (q->stats)
        count(q, step, n_beams, now() - start);
}

void ft_cpu_query_run(ft_cpu_query *q)
{
    for (uint32_t step = 0; step < q->n_steps && !q->done; step++)
        ft_cpu_query_step(q, step);
}

void ft_cpu_reset_results(const ft_cpu_query *q, ft_cpu_worker *w)
{
    ft_topset_reset_one(&w->results, q->params->n_results, q->n_workers);
    w->results_part = -INFINITY;
}

ft_status ft_cpu_query_start(ft_cpu_query *q, ft_error *err)
{
    for (uint32_t i = 0; i < q->n_workers; i++) {
        ft_cpu_worker *w = q->workers[i];
        w->status = FT_OK;
        w->n_probes = w->n_candidates = w->n_pending = w->n_runs = w->n_edges = 0;
        ft_topset_use(&w->beams, q->trie);
        ft_topset_use(&w->results, q->trie);
        ft_cpu_reset_results(q, w);
    }
    void *at = q->trace_at;
    ft_status st =
        ft_reserve(&at, &q->cap_trace_at, q->n_steps, sizeof *q->trace_at, err);
    q->trace_at = at;
    if (st == FT_OK)
        st = reserve_frontier(q, 1, err);
    if (st != FT_OK)
        return st;
    atomic_store_explicit(&q->prepare_failed, false, memory_order_relaxed);
    q->prepare_status = FT_OK;
    const uint32_t n_abreast = q->pool ? ft_pool_n_abreast(q->pool) : 1;
    q->n_together = n_abreast < FT_CPU_AHEAD ? n_abreast : FT_CPU_AHEAD;
    q->n_ahead = 0;
    look_ahead(q, 0);
    if (q->pool)
        ft_pool_share(q->pool, prepare_as_member, q);
    else
        prepare_some(q);
    if (q->prepare_status != FT_OK) {
        *err = q->prepare_error;
        return q->prepare_status;
    }
    q->nodes[0] = 0;
    q->sigmas[0] = 0;
    q->n_beams = 1;
    q->n_trace = 0;
    q->done = false;
    share_out(q);
    return FT_OK;
}

/* Tokens of a result, from its parents' traces (paper Alg. 1, Backtrace). */
static void backtrace(const ft_cpu_query *q, const ft_candidate *c, uint8_t *out)
{
    uint32_t token = c->token, beam = c->parent;
    for (uint32_t t = c->step;; t--) {
        memcpy(out + 4 * (uint64_t)t, &token, 4);
        if (t == 0)
            return;
        const ft_cpu_trace *from = &q->trace[q->trace_at[t - 1] + beam];
        token = from->token;
        beam = from->parent;
    }
}

ft_status ft_cpu_query_finish(ft_cpu_query *q, ft_buf *out, ft_error *err)
{
    ft_topset *best = &q->workers[0]->results;
    ft_status st = FT_OK;
    if (q->prepare_status != FT_OK) {
        *err = q->prepare_error;
        return q->prepare_status;
    }
    for (uint32_t i = 0; i < q->n_workers; i++)
        if (q->workers[i]->status != FT_OK) {
            *err = q->workers[i]->error;
            return q->workers[i]->status;
        }
    for (uint32_t i = 1; i < q->n_workers && st == FT_OK; i++)
        st = ft_topset_merge(best, &q->workers[i]->results, err);
    if (st == FT_OK)
        st = ft_topset_trim(best, err);
    if (st == FT_OK)
        st = ft_topset_sort(best, err);
    if (st != FT_OK)
        return st;

    const uint64_t n = best->n;
    uint64_t n_tokens = 0;
    for (uint64_t i = 0; i < n; i++)
        n_tokens += best->items[i].step + 1;
    st = ft_buf_reserve(out, 8 + 16 * n + 4 * n_tokens, err);
    if (st != FT_OK)
        return st;
    uint8_t *p = out->data + out->len;
    memcpy(p, &n, 8);
    uint8_t *scores = p + 8, *ends = scores + 8 * n, *tokens = ends + 8 * n;
    uint64_t end = 0;
    for (uint64_t i = 0; i < n; i++) { /* ascending: the best is the last */
        const ft_candidate *c = &best->items[n - 1 - i];
        backtrace(q, c, tokens + 4 * end);
        end += c->step + 1;
        memcpy(scores + 8 * i, &c->score, 8);
        memcpy(ends + 8 * i, &end, 8);
    }
    out->len += 8 + 16 * n + 4 * n_tokens;
    return FT_OK;
}

void ft_cpu_query_free(ft_cpu_query *q)
{
    if (q->policy && q->policy->close)
        q->policy->close(q);
    free(q->nodes);
    free(q->sigmas);
    free(q->trace);
    free(q->trace_at);
}

void ft_cpu_worker_free(ft_cpu_worker *w)
{
    ft_topset_free(&w->beams);
    ft_topset_free(&w->results);
    ft_proposals_free(&w->own);
}
