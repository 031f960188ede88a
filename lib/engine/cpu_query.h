/* SPDX-License-Identifier: Apache-2.0
 *
 * One query on the CPU, searched by a team of one or more workers (SPEC: search; paper
 * Algorithm 1). Within a step the team shares out the beams; the last who runs out of
 * them prunes. Proposals do not wait for beams: the team takes in those of as many
 * positions at the same time as it has members that have a processor, whenever none is
 * left.
 */
#ifndef FT_ENGINE_CPU_QUERY_H
#define FT_ENGINE_CPU_QUERY_H

#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/pool.h"
#include "engine/proposals.h"
#include "engine/root_parts.h"
#include "engine/topset.h"

enum {
    FT_CPU_RUN = 1024,        /* labels decoded at a time */
    FT_CPU_RUNS = 128,        /* runs probed together, at most */
    FT_CPU_PENDING = FT_MANY, /* candidates whose nodes are looked at together */
    FT_CPU_CHUNK = 64,        /* items taken at a time, at most */
    FT_CPU_AHEAD = 16,        /* positions prepared together, at most */
    FT_CPU_POSITIONS = FT_CPU_AHEAD + 1 /* and the one that is searched */
};

/* A match that may enter, before its node has been looked at. */
typedef struct ft_cpu_match {
    uint64_t node;
    float sum;
    uint32_t beam, token;
} ft_cpu_match;

/* A run of children of a beam: edge number e of those that are probed together leads to
 * node `origin` + e. */
typedef struct ft_cpu_run {
    uint64_t origin;
    uint32_t beam;
    float sigma;
} ft_cpu_run;

/* What each thread owns. */
typedef struct ft_cpu_worker {
    ft_topset beams, results;
    _Atomic double beams_part, results_part; /* their part_bounds, for the others */
    ft_proposals own; /* of the beam in hand, where each beam has its own */
    uint64_t n_probes, n_candidates;
    ft_status status;
    ft_error error;
    float bar; /* sums below it are hopeless */

    /* The step's filter less the proposals that are hopeless by now: once something is
     * left out, `good` has the first n_good of the list. */
    const uint64_t *filter;
    uint32_t n_good;
    uint64_t good[FT_FILTER_WORDS];
    uint32_t n_pending;
    ft_cpu_match pending[FT_CPU_PENDING];
    uint32_t labels[FT_CPU_RUN]; /* the baselines' */

    /* Runs that are to be probed together. */
    uint32_t n_runs, n_edges;
    ft_range ranges[FT_CPU_RUNS];
    ft_cpu_run runs[FT_CPU_RUNS];
    ft_hits hits;
} ft_cpu_worker;

/* How beam i of the frontier after a step came about. */
typedef struct ft_cpu_trace {
    uint32_t parent; /* beam of the frontier before */
    uint32_t token;
} ft_cpu_trace;

typedef struct ft_cpu_query ft_cpu_query;

/* How a step is done; the rest (scheduling, frontier, backtrace, output) is shared by
 * all CPU systems. */
typedef struct ft_cpu_policy {
    /* Make room for `state`, once a query slot; may be NULL. */
    ft_status (*open)(ft_cpu_query *q, ft_error *err);
    void (*close)(ft_cpu_query *q);

    /* Take in the proposals of position `step`. The n_together positions before it
     * may be in use, and others be prepared at the same time. */
    ft_status (*prepare)(ft_cpu_query *q, uint32_t step, ft_error *err);

    /* Worker w's share of the step: take items until there are none (ft_cpu_take), and
     * leave candidates in w->beams and w->results. */
    void (*expand)(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step);

    /* Leave the best B beams of the step in workers[0]->beams, and nothing else. */
    ft_status (*prune)(ft_cpu_query *q, ft_error *err);
} ft_cpu_policy;

/* The production policy: join by cost, bounded selection. */
extern const ft_cpu_policy ft_cpu_policy_default;

/* The same where each beam has its own proposals (engine/steps.h). */
extern const ft_cpu_policy ft_cpu_policy_own;

/* prune of both: the frontier comes best first. */
ft_status ft_cpu_prune_sorted(ft_cpu_query *q, ft_error *err);

struct ft_cpu_query {
    const ft_cpu_policy *policy;
    void *state; /* the policy's own */

    /* the question, set by the caller */
    const ft_trie *trie;
    const ft_code_memo *memo;
    const ft_root_parts *root;
    const ft_search_params *params;
    const double *norm; /* n_steps + 1 */
    const uint32_t *tokens;
    const float *logp;
    uint32_t n_steps, n_proposals;
    ft_step_stats *stats; /* n_steps, or NULL */

    /* the team */
    ft_cpu_worker *const *workers;
    uint32_t n_workers;
    ft_pool *pool; /* NULL for a team of one */

    /* the frontier */
    uint64_t *nodes;
    float *sigmas;
    uint64_t n_beams, cap_beams;
    uint32_t step;
    atomic_uint_fast64_t next_item;
    uint64_t n_slices; /* items a beam */
    bool done;

    /* Positions before next_position are prepared, or somebody is at it; n_ahead are to
     * be, which only the leader changes, between two steps. */
    atomic_uint_fast64_t next_position;
    uint64_t n_ahead;
    uint32_t n_together; /* that are prepared together */

    /* trace[trace_at[t] + i]: beam i of the frontier after step t */
    ft_cpu_trace *trace;
    uint64_t n_trace, cap_trace;
    uint64_t *trace_at;
    uint64_t cap_trace_at;

    atomic_bool prepare_failed; /* whoever sets it says why */
    ft_status prepare_status;
    ft_error prepare_error;
};

/* Where a position's proposals are, of FT_CPU_POSITIONS places. No more are in use than
 * it takes: proposals may be many, and what is used again soon is in the cache. */
static inline uint32_t ft_cpu_place(const ft_cpu_query *q, uint32_t step)
{
    return step % (q->n_together + 1);
}

/* What a worker knows of the beam that it extends. */
typedef struct ft_cpu_extension {
    const ft_cpu_query *q;
    ft_cpu_worker *w;
    uint32_t step, beam;
    float sigma;
    bool last; /* nothing goes on after this step */
} ft_cpu_extension;

/* A part of the work on one beam. */
typedef struct ft_cpu_item {
    ft_cpu_extension x;
    uint64_t slice;    /* of the query's n_slices */
    ft_range children; /* the policy's to fill */
} ft_cpu_item;

/* Take the next items of the step. Returns how many, 0 when there are no more or the
 * worker has failed. */
uint32_t ft_cpu_take(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step,
                     ft_cpu_item items[FT_CPU_CHUNK]);

/* The first failure of a worker stays. */
static inline void ft_cpu_note(ft_cpu_worker *w, ft_status st)
{
    if (w->status == FT_OK)
        w->status = st;
}

/* Prepare for ft_cpu_query_run; called once, by one thread. */
ft_status ft_cpu_query_start(ft_cpu_query *q, ft_error *err);

/* Search to the end. Failures are in the workers' status. */
void ft_cpu_query_run(ft_cpu_query *q);

/* The same by hand: step 0, 1, ... until q->done. */
void ft_cpu_query_step(ft_cpu_query *q, uint32_t step);

/* Empty a worker's results. */
void ft_cpu_reset_results(const ft_cpu_query *q, ft_cpu_worker *w);

/* Append the wire record of the results to *out; called once, by one thread. */
ft_status ft_cpu_query_finish(ft_cpu_query *q, ft_buf *out, ft_error *err);

void ft_cpu_query_free(ft_cpu_query *q);
void ft_cpu_worker_free(ft_cpu_worker *w);

#endif
