/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/steps_open.h"

#include <stdlib.h>

#include "engine/cpu.h"

struct ft_steps {
    ft_cpu_query query;
    ft_search_params params;
    ft_cpu_worker **workers;
    uint32_t n_workers;
    uint32_t n_done; /* steps */
    double *norm;
    uint64_t cap_norm;
    uint32_t *parents, *tokens; /* of the frontier */
    uint64_t cap_parents, cap_tokens;
    ft_error failure;
};

void ft_steps_close(ft_steps *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->workers && i < s->n_workers; i++)
        if (s->workers[i]) {
            ft_cpu_worker_free(s->workers[i]);
            free(s->workers[i]);
        }
    free(s->workers);
    ft_cpu_query_free(&s->query);
    free(s->norm);
    free(s->parents);
    free(s->tokens);
    free(s);
}

/* norm[] up to n + 1 tokens, and room for the trace of step n. */
static ft_status reach_step(ft_steps *s, uint32_t n, ft_error *err)
{
    ft_cpu_query *q = &s->query;
    void *norm = s->norm, *at = q->trace_at;
    const uint64_t had = s->cap_norm;
    ft_status st = ft_reserve(&norm, &s->cap_norm, n + 2ull, sizeof *s->norm, err);
    s->norm = norm;
    if (st == FT_OK)
        st = ft_reserve(&at, &q->cap_trace_at, n + 1ull, sizeof *q->trace_at, err);
    q->trace_at = at;
    if (st == FT_OK && s->cap_norm != had)
        ft_norm_table(s->params.alpha, (uint32_t)(s->cap_norm - 1), s->norm);
    q->norm = s->norm;
    q->n_steps = n + 2; /* no step is known to be the last */
    return st;
}

static ft_status start(ft_steps *s, const ft_steps_means *means, ft_error *err)
{
    ft_cpu_query *q = &s->query;
    s->workers = ft_calloc(means->n_workers, sizeof *s->workers, err);
    if (!s->workers)
        return FT_ENOMEM;
    s->n_workers = means->n_workers;
    for (uint32_t i = 0; i < s->n_workers; i++)
        if (!(s->workers[i] = ft_new(ft_cpu_worker, err)))
            return FT_ENOMEM;
    q->trie = means->trie;
    q->memo = means->memo;
    q->root = means->root;
    q->pool = means->pool;
    q->params = &s->params;
    q->workers = s->workers;
    q->n_workers = s->n_workers;
    const ft_status st = reach_step(s, 0, err);
    return st == FT_OK ? ft_cpu_query_start(q, err) : st;
}

ft_status ft_steps_new(ft_steps **out, const ft_steps_means *means,
                       const ft_search_params *params, ft_error *err)
{
    ft_steps *s = ft_new(ft_steps, err);
    if (!s) {
        ft_cpu_query none = {.policy = means->policy, .state = means->state};
        ft_cpu_query_free(&none);
        return FT_ENOMEM;
    }
    s->params = *params;
    s->query.policy = means->policy;
    s->query.state = means->state;
    const ft_status st = start(s, means, err);
    if (st == FT_OK)
        *out = s;
    else
        ft_steps_close(s);
    return st;
}

/* A policy that leaves the step to an engine's own means. */
typedef struct adapter {
    const ft_steps_ops *ops;
    void *state;
} adapter;

static void adapted_close(ft_cpu_query *q)
{
    adapter *a = q->state;
    a->ops->close(a->state);
    free(a);
}

static void adapted_expand(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step)
{
    const adapter *a = q->state;
    const ft_extension x = {.nodes = q->nodes,
                            .sums = q->sigmas,
                            .n_beams = q->n_beams,
                            .tokens = q->tokens,
                            .logp = q->logp,
                            .n_proposals = q->n_proposals,
                            .step = step,
                            .norm = q->norm[step + 1],
                            .params = q->params};
    ft_cpu_note(w, a->ops->extend(a->state, &x, &w->beams, &w->results, &w->error));
}

static ft_status adapted_prepare(ft_cpu_query *q, uint32_t step, ft_error *err)
{
    (void)q;
    (void)step;
    (void)err;
    return FT_OK;
}

static const ft_cpu_policy adapted = {.close = adapted_close,
                                      .prepare = adapted_prepare,
                                      .expand = adapted_expand,
                                      .prune = ft_cpu_prune_sorted};

ft_status ft_steps_adapt(ft_steps **out, const ft_steps_ops *ops, void *state,
                         const ft_trie *trie, const ft_search_params *params,
                         ft_error *err)
{
    adapter *a = ft_new(adapter, err);
    if (!a) {
        ops->close(state);
        return FT_ENOMEM;
    }
    *a = (adapter){ops, state};
    const ft_steps_means means = {
        .policy = &adapted, .state = a, .trie = trie, .n_workers = 1};
    return ft_steps_new(out, &means, params, err);
}

ft_status ft_steps_open(ft_steps **out, ft_engine *e, const ft_search_params *params,
                        ft_error *err)
{
    const ft_search_params p = ft_search_params_for(params, 0);
    const ft_status st = ft_search_params_check(params, err);
    if (st != FT_OK)
        return st;
    if (!p.beam)
        return ft_fail(err, FT_EINVAL, "a search by steps needs a beam width");
    if (!e->ops->steps)
        return ft_fail(err, FT_EUNAVAILABLE, "engine %s does not search by steps",
                       e->ops->name);
    return e->ops->steps(out, e, &p, err);
}

static ft_status failed(const ft_cpu_query *q, ft_error *err)
{
    for (uint32_t i = 0; i < q->n_workers; i++)
        if (q->workers[i]->status != FT_OK) {
            *err = q->workers[i]->error;
            return q->workers[i]->status;
        }
    return FT_OK;
}

/* The newest beams' parents and tokens, from the trace. */
static ft_status show(ft_steps *s, ft_frontier *out, ft_error *err)
{
    const ft_cpu_query *q = &s->query;
    void *parents = s->parents, *tokens = s->tokens;
    ft_status st =
        ft_reserve(&parents, &s->cap_parents, q->n_beams, sizeof *s->parents, err);
    s->parents = parents;
    if (st == FT_OK)
        st = ft_reserve(&tokens, &s->cap_tokens, q->n_beams, sizeof *s->tokens, err);
    s->tokens = tokens;
    if (st != FT_OK)
        return st;
    for (uint64_t i = 0; i < q->n_beams; i++) {
        const ft_cpu_trace *t = &q->trace[q->trace_at[s->n_done - 1] + i];
        s->parents[i] = t->parent;
        s->tokens[i] = t->token;
    }
    *out = (ft_frontier){q->n_beams, s->parents, s->tokens, q->sigmas};
    return FT_OK;
}

static ft_status step(ft_steps *s, ft_error *err)
{
    ft_status st = reach_step(s, s->n_done, err);
    if (st != FT_OK)
        return st;
    ft_cpu_query_step(&s->query, s->n_done++);
    return failed(&s->query, err);
}

ft_status ft_steps_next(ft_steps *s, const uint32_t *tokens, const float *logp,
                        uint32_t n_proposals, ft_frontier *out, ft_error *err)
{
    ft_cpu_query *q = &s->query;
    ft_status st = s->failure.status;
    q->tokens = tokens;
    q->logp = logp;
    q->n_proposals = n_proposals;
    if (st == FT_OK && q->n_beams == 0) {
        *out = (ft_frontier){0};
        return FT_OK;
    }
    if (st == FT_OK)
        st = step(s, &s->failure);
    if (st == FT_OK)
        st = show(s, out, &s->failure);
    if (st != FT_OK && err)
        *err = s->failure;
    return st;
}

ft_status ft_steps_results(ft_steps *s, ft_results *out, ft_error *err)
{
    ft_status st = s->failure.status;
    if (st == FT_OK)
        st = ft_results_reset(out, 1, &s->failure);
    if (st == FT_OK)
        st = ft_cpu_query_finish(&s->query, &out->bytes, &s->failure);
    if (st != FT_OK) {
        if (err)
            *err = s->failure;
        return st;
    }
    out->offset[0] = 0;
    out->offset[1] = out->bytes.len;
    /* Worker 0 has taken over the results of all; the others go on with none. */
    for (uint32_t i = 1; i < s->n_workers; i++)
        ft_cpu_reset_results(&s->query, s->workers[i]);
    return FT_OK;
}
