/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU engine. A batch with a query for every thread is searched a query a thread;
 * with fewer, the whole team works on one query after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cpu.h"

enum {
    MAX_THREADS = 1024,
    TEAM_WORK = 4096 /* pairs of beam and proposal that are worth a team's barriers */
};

/* Where query q's record lies until the batch is complete. */
typedef struct record_place {
    uint32_t worker;
    uint64_t from, to;
} record_place;

typedef struct cpu_engine {
    ft_engine base;
    const ft_trie *trie;
    ft_code_memo memo;
    ft_root_parts root;
    ft_pool *pool;
    uint32_t n_threads;
    ft_cpu_worker **workers; /* n_threads */
    ft_cpu_query *queries;   /* n_threads: one each, or number 0 for the team */
    ft_buf *records;         /* n_threads */
    record_place *places;
    uint64_t cap_places;
    double *norm;
    uint64_t cap_norm;

    /* the batch in progress */
    const ft_batch *batch;
    const ft_search_params *params;
    ft_stats *stats;
    atomic_uint next_query;
    atomic_bool failed;
} cpu_engine;

void ft_cpu_close(ft_engine *engine)
{
    cpu_engine *e = (cpu_engine *)engine;
    ft_pool_close(e->pool);
    ft_code_memo_close(&e->memo);
    for (uint32_t i = 0; i < e->n_threads; i++) {
        if (e->workers && e->workers[i])
            ft_cpu_worker_free(e->workers[i]);
        if (e->workers)
            free(e->workers[i]);
        if (e->queries)
            ft_cpu_query_free(&e->queries[i]);
        if (e->records)
            ft_buf_free(&e->records[i]);
    }
    free(e->workers);
    free(e->queries);
    free(e->records);
    free(e->places);
    free(e->norm);
    free(e);
}

ft_status ft_cpu_open(ft_engine **out, const ft_engine_ops *ops,
                      const ft_cpu_policy *policy, const ft_index *index,
                      const ft_engine_options *options, ft_error *err)
{
    const uint32_t n = options->n_threads ? options->n_threads : ft_n_processors();
    if (n > MAX_THREADS)
        return ft_fail(err, FT_EINVAL, "%u threads are too many (at most %d)", n,
                       MAX_THREADS);
    cpu_engine *e = ft_new(cpu_engine, err);
    if (!e)
        return FT_ENOMEM;
    ft_status st = FT_ENOMEM;
    e->base.ops = ops;
    e->trie = ft_index_trie(index);
    e->n_threads = n;
    e->workers = ft_calloc(n, sizeof *e->workers, err);
    e->queries = ft_calloc(n, sizeof *e->queries, err);
    e->records = ft_calloc(n, sizeof *e->records, err);
    if (!e->workers || !e->queries || !e->records)
        goto fail;
    for (uint32_t i = 0; i < n; i++)
        if (!(e->workers[i] = ft_new(ft_cpu_worker, err)))
            goto fail;
    for (uint32_t i = 0; i < n; i++) {
        e->queries[i].policy = policy;
        st = policy->open ? policy->open(&e->queries[i], err) : FT_OK;
        if (st != FT_OK)
            goto fail;
    }
    ft_root_parts_make(&e->root, e->trie);
    st = ft_code_memo_open(&e->memo, e->trie, err);
    if (st == FT_OK)
        st = ft_pool_open(&e->pool, n, err);
    if (st != FT_OK)
        goto fail;
    *out = &e->base;
    return FT_OK;
fail:
    ft_cpu_close(&e->base);
    return st;
}

static void set_question(cpu_engine *e, ft_cpu_query *q, uint32_t number)
{
    const ft_batch *b = e->batch;
    const uint64_t at = (uint64_t)number * b->n_steps * b->n_proposals;
    q->trie = e->trie;
    q->memo = &e->memo;
    q->root = &e->root;
    q->params = e->params;
    q->norm = e->norm;
    q->tokens = b->tokens + at;
    q->logp = b->logp + at;
    q->n_steps = b->n_steps;
    q->n_proposals = b->n_proposals;
    q->stats = e->stats ? e->stats->steps + (uint64_t)number * b->n_steps : NULL;
}

/* Answer query `number` into records[place]. */
static ft_status finish(cpu_engine *e, ft_cpu_query *q, uint32_t number, uint32_t place,
                        ft_error *err)
{
    ft_buf *to = &e->records[place];
    const uint64_t from = to->len;
    const ft_status st = ft_cpu_query_finish(q, to, err);
    e->places[number] = (record_place){place, from, to->len};
    return st;
}

static void fail_worker(cpu_engine *e, ft_cpu_worker *w, ft_status st,
                        const ft_error *error)
{
    w->status = st;
    w->error = *error;
    atomic_store(&e->failed, true);
}

/* Each member takes the next query and searches it alone. */
static void queries_job(void *arg, uint32_t member)
{
    cpu_engine *e = arg;
    ft_cpu_query *q = &e->queries[member];
    for (;;) {
        const uint32_t number = atomic_fetch_add(&e->next_query, 1);
        if (number >= e->batch->n_queries || atomic_load(&e->failed))
            return;
        set_question(e, q, number);
        q->workers = &e->workers[member];
        q->n_workers = 1;
        q->pool = NULL;
        ft_error error = {0};
        ft_status st = ft_cpu_query_start(q, &error);
        if (st == FT_OK) {
            ft_cpu_query_run(q);
            st = finish(e, q, number, member, &error);
        }
        if (st != FT_OK) {
            fail_worker(e, e->workers[member], st, &error);
            return;
        }
    }
}

static ft_status search_as_team(cpu_engine *e, ft_error *err)
{
    ft_cpu_query *q = &e->queries[0];
    for (uint32_t number = 0; number < e->batch->n_queries; number++) {
        set_question(e, q, number);
        q->workers = e->workers;
        q->n_workers = e->n_threads;
        q->pool = e->pool;
        ft_status st = ft_cpu_query_start(q, err);
        if (st != FT_OK)
            return st;
        ft_cpu_query_run(q);
        st = finish(e, q, number, 0, err);
        if (st != FT_OK)
            return st;
    }
    return FT_OK;
}

static ft_status search_side_by_side(cpu_engine *e, ft_error *err)
{
    atomic_store(&e->next_query, 0);
    atomic_store(&e->failed, false);
    for (uint32_t i = 0; i < e->n_threads; i++)
        e->workers[i]->status = FT_OK;
    ft_pool_share(e->pool, queries_job, e);
    for (uint32_t i = 0; i < e->n_threads; i++)
        if (e->workers[i]->status != FT_OK) {
            *err = e->workers[i]->error;
            return e->workers[i]->status;
        }
    return FT_OK;
}

/* The records in the order of the queries. */
static ft_status gather(cpu_engine *e, ft_results *out, ft_error *err)
{
    for (uint32_t i = 0; i < e->batch->n_queries; i++) {
        const record_place *p = &e->places[i];
        out->offset[i] = out->bytes.len;
        const ft_status st = ft_buf_append(
            &out->bytes, e->records[p->worker].data + p->from, p->to - p->from, err);
        if (st != FT_OK)
            return st;
    }
    out->offset[e->batch->n_queries] = out->bytes.len;
    return FT_OK;
}

ft_status ft_cpu_search(ft_engine *engine, const ft_batch *batch,
                        const ft_search_params *params, ft_results *out,
                        ft_stats *stats, ft_error *err)
{
    cpu_engine *e = (cpu_engine *)engine;
    ft_error ignored;
    err = err ? err : &ignored;
    e->batch = batch;
    e->params = params;
    e->stats = stats && stats->steps ? stats : NULL;
    if (e->stats)
        memset(stats->steps, 0,
               sizeof *stats->steps * batch->n_queries * batch->n_steps);
    void *norm = e->norm, *places = e->places;
    ft_status st = ft_reserve(&norm, &e->cap_norm, (uint64_t)batch->n_steps + 1,
                              sizeof *e->norm, err);
    e->norm = norm;
    if (st == FT_OK)
        st = ft_reserve(&places, &e->cap_places, batch->n_queries, sizeof *e->places,
                        err);
    e->places = places;
    if (st == FT_OK)
        st = ft_results_reset(out, batch->n_queries, err);
    if (st != FT_OK)
        return st;
    ft_norm_table(params->alpha, batch->n_steps, e->norm);
    for (uint32_t i = 0; i < e->n_threads; i++)
        e->records[i].len = 0;
    const bool team = batch->n_queries < e->n_threads &&
                      (uint64_t)params->beam * batch->n_proposals >= TEAM_WORK;
    st = team ? search_as_team(e, err) : search_side_by_side(e, err);
    return st == FT_OK ? gather(e, out, err) : st;
}

static ft_status open_default(ft_engine **out, const ft_index *index,
                              const ft_engine_options *options, ft_error *err)
{
    return ft_cpu_open(out, &ft_engine_cpu, &ft_cpu_policy_default, index, options,
                       err);
}

static ft_status steps(ft_steps **out, ft_engine *engine,
                       const ft_search_params *params, ft_error *err)
{
    cpu_engine *e = (cpu_engine *)engine;
    const ft_steps_means means = {.policy = &ft_cpu_policy_own,
                                  .trie = e->trie,
                                  .memo = &e->memo,
                                  .root = &e->root,
                                  .pool = e->n_threads > 1 ? e->pool : NULL,
                                  .n_workers = e->n_threads};
    return ft_steps_new(out, &means, params, err);
}

const ft_engine_ops ft_engine_cpu = {
    .name = "cpu",
    .summary = "CPU threads: join by cost, bounded selection",
    .open = open_default,
    .search = ft_cpu_search,
    .close = ft_cpu_close,
    .steps = steps,
};
