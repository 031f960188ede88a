/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench throughput: queries a second over sizes of batches (paper, Appendix E).
 */
#include <math.h>
#include <string.h>

#include "bench_commands.h"
#include "bench_measure.h"

static ft_status figures(ft_bench_row *row, ft_bench_search *s,
                         const ft_bench_timing *t, const ft_bench_timing *base,
                         ft_error *err)
{
    enum { N_FIGURES = 4 };
    const ft_bench_summary *r = &t->summary;
    (void)base;
    (void)err;
    ft_bench_cell(row, "%u", s->batch.n_queries);
    ft_bench_cell(row, "%u", t->n_passes);
    if (t->n_samples) {
        ft_bench_cell(row, isnan(r->rate) ? "-" : "%.1f", r->rate);
        ft_bench_cell(row, isnan(r->rate_sd) ? "-" : "%.1f", r->rate_sd);
        ft_bench_ms_cell(row, r->mean);
        ft_bench_ms_cell(row, r->p95);
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
    ft_status st = FT_OK;
    for (uint32_t i = 0; i < s->batches.n && st == FT_OK; i++)
        st = ft_bench_measure(s, s->batches.v[i], figures, err);
    return st;
}

static void options(ft_bench_search *s, ft_option *rows)
{
    const ft_option own[] = {{FT_OPT_STRING, 0, "batches", &s->batches_text, "LIST",
                              "with each of these numbers of queries a call"}};
    s->batches_text = "1,4,8";
    ft_bench_clock_options(s, rows);
    memcpy(rows + FT_BENCH_CLOCK_OPTIONS, own, sizeof own);
}

int ft_bench_throughput(const ft_subcommand *self, int argc, char **argv)
{
    static const ft_bench_column columns[] = {
        {"system", FT_BENCH_TEXT, 17},      {"layout", FT_BENCH_TEXT, 12},
        {"threads", FT_BENCH_NUMBER},       {"beam", FT_BENCH_NUMBER, 5},
        {"batch", FT_BENCH_NUMBER, 5},      {"feed", FT_BENCH_TEXT, 11},
        {"queries", FT_BENCH_NUMBER},       {"passes", FT_BENCH_NUMBER},
        {"queries_per_s", FT_BENCH_NUMBER}, {"sd_per_s", FT_BENCH_NUMBER, 9},
        {"mean_call_ms", FT_BENCH_NUMBER},  {"p95_call_ms", FT_BENCH_NUMBER},
        {"fill", FT_BENCH_NUMBER, 5},       {"digest", FT_BENCH_TEXT, 16},
        {"status", FT_BENCH_TEXT},          {NULL}};
    static const ft_bench_method method = {.columns = columns,
                                           .n_key = 6,
                                           .n_passes = 4,
                                           .has_batches = true,
                                           .options = options,
                                           .measure = measure};
    return ft_bench_search_run(self, argc, argv, &method);
}
