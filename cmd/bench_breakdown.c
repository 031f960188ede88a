/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench breakdown: where a query's time goes, by the paper's four phases (section
 * 4.3, Appendix D.4), out of an instrumented kernel.
 */
#include <stdlib.h>

#include "bench_commands.h"
#include "bench_measure.h"
#include "common.h"

enum { N_FIGURES = 1 + FT_N_PHASES };

/* Mean seconds a query of each phase over *n_passes passes, after one that is thrown
 * away: all of them, or those that the time limit or an interrupt leaves whole. */
static ft_status measure_phases(ft_bench_search *s, ft_bench_entry *e,
                                double mean[FT_N_PHASES], uint32_t *n_passes,
                                ft_error *err)
{
    const uint64_t n = s->batch.n_queries;
    ft_stats stats = {.phases = ft_calloc(n * FT_N_PHASES, sizeof(double), err)};
    ft_status st = stats.phases ? FT_OK : FT_ENOMEM;
    double spent = 0;
    uint32_t n_done = 0, pass = 0;
    bool stops = false;
    for (; pass <= s->n_passes && st == FT_OK && !stops; pass++) {
        st = ft_bench_stats_pass(s, e, &stats, &spent, &n_done, err);
        stops = (s->time_limit > 0 && spent > s->time_limit) || ft_signal_deferred();
        if (st != FT_OK || n_done < n || pass == 0)
            continue;
        for (uint64_t i = 0; i < n * FT_N_PHASES; i++)
            mean[i % FT_N_PHASES] += stats.phases[i] / (double)n;
        *n_passes = pass;
    }
    for (int i = 0; i < FT_N_PHASES; i++)
        mean[i] /= *n_passes ? *n_passes : 1;
    if (st == FT_OK && *n_passes == 0)
        st = ft_fail(err, FT_EUNAVAILABLE, "%u of %u queries in %g s%s", n_done,
                     s->batch.n_queries, s->time_limit, pass == 1 ? ", not warm" : "");
    free(stats.phases);
    return st;
}

static void add_status(ft_bench_row *row, const ft_bench_search *s,
                       const ft_bench_entry *e, uint32_t n_passes, ft_status st,
                       const ft_error *err)
{
    if (!e->engine)
        ft_bench_cell(row, "%s", e->status);
    else if (!e->engine->ops->has_phases)
        ft_bench_cell(row, "unavailable: engine %s has no instrumented form",
                      e->system.engine);
    else if (st != FT_OK)
        ft_bench_cell(row, st == FT_EUNAVAILABLE ? "%s" : "failed: %s", err->message);
    else if (n_passes < s->n_passes && ft_signal_deferred())
        ft_bench_cell(row, "%s: %u of %u passes", FT_BENCH_INTERRUPTED, n_passes,
                      s->n_passes);
    else if (n_passes < s->n_passes)
        ft_bench_cell(row, "%u of %u passes in %g s", n_passes, s->n_passes,
                      s->time_limit);
    else
        ft_bench_cell(row, e->system.superset ? "ok, superset" : "ok");
}

/* Returns how many whole passes the figures are of. */
static uint32_t add_cells(ft_bench_row *row, ft_bench_search *s, ft_bench_entry *e)
{
    double mean[FT_N_PHASES] = {0}, total = 0;
    uint32_t n_passes = 0;
    ft_status st = FT_OK;
    ft_error err;
    if (e->engine && e->engine->ops->has_phases)
        st = measure_phases(s, e, mean, &n_passes, &err);
    ft_bench_cell(row, "%u", s->batch.n_queries);
    ft_bench_cell(row, "%u", n_passes);
    for (int i = 0; i < FT_N_PHASES; i++)
        total += mean[i];
    if (st == FT_OK && total > 0) {
        ft_bench_ms_cell(row, total);
        for (int i = 0; i < FT_N_PHASES; i++)
            ft_bench_cell(row, "%.1f", 100.0 * mean[i] / total);
    } else {
        ft_bench_no_cells(row, N_FIGURES);
    }
    ft_bench_cell(row, "%.1f", s->fill);
    add_status(row, s, e, n_passes, st, &err);
    return n_passes;
}

static ft_status measure(ft_bench_search *s, ft_error *err)
{
    ft_status st = FT_OK;
    for (uint32_t i = 0; i < s->n_entries && st == FT_OK; i++) {
        ft_bench_row row;
        ft_bench_entry_cells(&row, s, &s->entries[i]);
        if (ft_bench_report_has(s->report, &row))
            continue;
        st = ft_bench_expect(s, err);
        if (st != FT_OK)
            break;
        ft_defer_signals(true);
        if (add_cells(&row, s, &s->entries[i]) || !ft_signal_deferred())
            st = ft_bench_report_row(s->report, &row, err);
        ft_defer_signals(false);
    }
    return st;
}

int ft_bench_breakdown(const ft_subcommand *self, int argc, char **argv)
{
    static const ft_bench_column columns[] = {
        {"system", FT_BENCH_TEXT, 17},       {"layout", FT_BENCH_TEXT, 12},
        {"threads", FT_BENCH_NUMBER},        {"beam", FT_BENCH_NUMBER, 5},
        {"queries", FT_BENCH_NUMBER},        {"passes", FT_BENCH_NUMBER},
        {"total_ms", FT_BENCH_NUMBER, 9},    {"expansion_pct", FT_BENCH_NUMBER},
        {"validation_pct", FT_BENCH_NUMBER}, {"pruning_pct", FT_BENCH_NUMBER},
        {"sync_pct", FT_BENCH_NUMBER},       {"fill", FT_BENCH_NUMBER, 5},
        {"status", FT_BENCH_TEXT},           {NULL}};
    static const ft_bench_method method = {.columns = columns,
                                           .n_key = 4,
                                           .n_passes = 1,
                                           .options = ft_bench_clock_options,
                                           .measure = measure};
    return ft_bench_search_run(self, argc, argv, &method);
}
