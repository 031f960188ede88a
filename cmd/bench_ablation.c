/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench ablation: the first system's time and that of others beside it, and the work
 * that each does, a query (paper, section 4.6 and Appendix J).
 */
#include <stdlib.h>

#include "bench_commands.h"
#include "bench_measure.h"
#include "common.h"

enum { N_TIMES = 4, N_COUNTERS = 4 };

/* The counters of a query, the mean of *n_done, or no cells and what is wrong. */
static ft_status add_counters(ft_bench_row *row, ft_bench_search *s, ft_bench_entry *e,
                              uint32_t *n_done, ft_error *err)
{
    const uint64_t n_steps = s->batch.n_steps;
    const uint64_t n = s->batch.n_queries * n_steps;
    ft_stats stats = {.steps = ft_calloc(n, sizeof *stats.steps, err)};
    uint64_t sums[N_COUNTERS] = {0};
    double spent = 0;
    const ft_status st = stats.steps
                             ? ft_bench_stats_pass(s, e, &stats, &spent, n_done, err)
                             : FT_ENOMEM;
    for (uint64_t i = 0; st == FT_OK && i < *n_done * n_steps; i++) {
        sums[0] += stats.steps[i].beams;
        sums[1] += stats.steps[i].probes;
        sums[2] += stats.steps[i].candidates;
        sums[3] += stats.steps[i].kept;
    }
    for (int i = 0; i < N_COUNTERS; i++)
        ft_bench_cell(row, st == FT_OK ? "%.1f" : "-", (double)sums[i] / *n_done);
    free(stats.steps);
    return st;
}

static void add_times(ft_bench_row *row, const ft_bench_summary *r,
                      const ft_bench_timing *base)
{
    ft_bench_ms_cell(row, r->mean);
    ft_bench_ms_cell(row, r->p95);
    if (base->n_samples) {
        ft_bench_cell(row, "%.2f", r->mean / base->summary.mean);
        ft_bench_cell(row, "%.2f", r->p95 / base->summary.p95);
    } else {
        ft_bench_no_cells(row, 2);
    }
}

static ft_status figures(ft_bench_row *row, ft_bench_search *s,
                         const ft_bench_timing *t, const ft_bench_timing *base,
                         ft_error *err)
{
    ft_status st = FT_OK;
    ft_error why;
    uint32_t n_counted = s->batch.n_queries;
    (void)err;
    ft_bench_cell(row, "%u", s->batch.n_queries);
    ft_bench_cell(row, "%u", t->n_passes);
    if (t->n_samples)
        add_times(row, &t->summary, base);
    else
        ft_bench_no_cells(row, N_TIMES);
    if (t->n_samples && !t->hangs)
        st = add_counters(row, s, t->entry, &n_counted, &why);
    else
        ft_bench_no_cells(row, N_COUNTERS);
    ft_bench_cell(row, "%.1f", s->fill);
    ft_bench_digest_cell(row, s, t);
    if (st == FT_OK && n_counted < s->batch.n_queries && ft_signal_deferred())
        ft_bench_cell(row, "%s: %u of %u passes; counters of %u", FT_BENCH_INTERRUPTED,
                      t->n_passes, s->n_passes, n_counted);
    else if (st == FT_OK && n_counted < s->batch.n_queries)
        ft_bench_cell(row, "%s; counters of %u", t->status, n_counted);
    else if (st == FT_OK)
        ft_bench_cell(row, "%s", t->status);
    else
        ft_bench_cell(row, st == FT_EUNAVAILABLE ? "no counters: %s" : "failed: %s",
                      why.message);
    return FT_OK;
}

static ft_status measure(ft_bench_search *s, ft_error *err)
{
    return ft_bench_measure(s, 1, figures, err);
}

int ft_bench_ablation(const ft_subcommand *self, int argc, char **argv)
{
    static const ft_bench_column columns[] = {
        {"system", FT_BENCH_TEXT, 17},   {"layout", FT_BENCH_TEXT, 12},
        {"threads", FT_BENCH_NUMBER},    {"beam", FT_BENCH_NUMBER, 5},
        {"queries", FT_BENCH_NUMBER},    {"passes", FT_BENCH_NUMBER},
        {"mean_ms", FT_BENCH_NUMBER, 9}, {"p95_ms", FT_BENCH_NUMBER, 9},
        {"mean_times", FT_BENCH_NUMBER}, {"p95_times", FT_BENCH_NUMBER},
        {"beams", FT_BENCH_NUMBER, 8},   {"probes", FT_BENCH_NUMBER, 10},
        {"candidates", FT_BENCH_NUMBER}, {"kept", FT_BENCH_NUMBER, 8},
        {"fill", FT_BENCH_NUMBER, 5},    {"digest", FT_BENCH_TEXT, 16},
        {"status", FT_BENCH_TEXT},       {NULL}};
    static const ft_bench_method method = {.columns = columns,
                                           .n_key = 4,
                                           .n_passes = 10,
                                           .has_ablations = true,
                                           .options = ft_bench_clock_options,
                                           .measure = measure};
    return ft_bench_search_run(self, argc, argv, &method);
}
