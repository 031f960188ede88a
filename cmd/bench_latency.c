/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench latency: one query a call.
 */
#include "bench_commands.h"
#include "bench_measure.h"

static ft_status figures(ft_bench_row *row, ft_bench_search *s,
                         const ft_bench_timing *t, const ft_bench_timing *base,
                         ft_error *err)
{
    enum { N_FIGURES = 6 };
    const ft_bench_summary *r = &t->summary;
    (void)base;
    (void)err;
    ft_bench_cell(row, "%u", s->batch.n_queries);
    ft_bench_cell(row, "%u", t->n_passes);
    if (t->n_samples) {
        ft_bench_ms_cell(row, r->mean);
        ft_bench_ms_cell(row, r->sd);
        ft_bench_ms_cell(row, r->p50);
        ft_bench_ms_cell(row, r->p90);
        ft_bench_ms_cell(row, r->p95);
        ft_bench_ms_cell(row, r->p99);
    } else {
        ft_bench_no_cells(row, N_FIGURES);
    }
    ft_bench_cell(row, "%.1f", s->fill);
    ft_bench_digest_cell(row, s, t);
    ft_bench_cell(row, "%s", t->status);
    return FT_OK;
}

static ft_status measure(ft_bench_search *s, ft_error *err)
{
    return ft_bench_measure(s, 1, figures, err);
}

int ft_bench_latency(const ft_subcommand *self, int argc, char **argv)
{
    static const ft_bench_column columns[] = {
        {"system", FT_BENCH_TEXT, 17},   {"layout", FT_BENCH_TEXT, 12},
        {"threads", FT_BENCH_NUMBER},    {"beam", FT_BENCH_NUMBER, 5},
        {"queries", FT_BENCH_NUMBER},    {"passes", FT_BENCH_NUMBER},
        {"mean_ms", FT_BENCH_NUMBER, 9}, {"sd_ms", FT_BENCH_NUMBER, 9},
        {"p50_ms", FT_BENCH_NUMBER, 9},  {"p90_ms", FT_BENCH_NUMBER, 9},
        {"p95_ms", FT_BENCH_NUMBER, 9},  {"p99_ms", FT_BENCH_NUMBER, 9},
        {"fill", FT_BENCH_NUMBER, 5},    {"digest", FT_BENCH_TEXT, 16},
        {"status", FT_BENCH_TEXT},       {NULL}};
    static const ft_bench_method method = {.columns = columns,
                                           .n_key = 4,
                                           .n_passes = 10,
                                           .options = ft_bench_clock_options,
                                           .measure = measure};
    return ft_bench_search_run(self, argc, argv, &method);
}
