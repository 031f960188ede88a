/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench latency: one query at a time, through each system in turn, in one run. The
 * window is the paper's (Appendix E): from the call with a grid in host memory to its
 * results in host memory. One warm-up pass is discarded; the timed passes are pooled.
 * Every system's results must be those of the first, byte for byte.
 */
#include "bench_latency.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "baseline/baseline.h"
#include "common.h"
#include "grid_input.h"

enum { MAX_SYSTEMS = 16 };

typedef struct bench_system {
    const char *engine_name; /* "cpu", "marisa-opt", ... */
    ft_index *index;
    ft_engine *engine;
    double *seconds; /* n_passes * n_queries */
    ft_results results;
    uint64_t digest; /* of the results of a pass */
} bench_system;

typedef struct bench_latency {
    ft_search_params params;
    uint32_t n_threads, n_passes, n_most;
    ft_batch batch;
    bench_system systems[MAX_SYSTEMS];
    uint32_t n_systems;
} bench_latency;

static uint64_t fnv(uint64_t digest, const uint8_t *data, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        digest = (digest ^ data[i]) * UINT64_C(0x100000001b3);
    return digest;
}

/* "engine=index" */
static ft_status open_system(bench_latency *o, char *operand, ft_error *err)
{
    char *path = strchr(operand, '=');
    if (!path || path == operand)
        return ft_fail(err, FT_EINVAL, "'%s' is not ENGINE=INDEX", operand);
    if (o->n_systems == MAX_SYSTEMS)
        return ft_fail(err, FT_EINVAL, "more than %d systems", MAX_SYSTEMS);
    *path++ = 0;
    bench_system *s = &o->systems[o->n_systems++];
    s->engine_name = operand;
    ft_status st = ft_index_open(&s->index, path, FT_VERIFY_FULL, o->n_threads, err);
    const ft_engine_options options = {.n_threads = o->n_threads};
    if (st == FT_OK)
        st = ft_engine_open(&s->engine, s->engine_name, s->index, &options, err);
    if (st == FT_OK) {
        s->seconds = ft_calloc((uint64_t)o->n_passes * o->batch.n_queries,
                               sizeof *s->seconds, err);
        st = s->seconds ? FT_OK : FT_ENOMEM;
    }
    return st;
}

static ft_batch query_of(const ft_batch *all, uint32_t q)
{
    const uint64_t at = (uint64_t)q * all->n_steps * all->n_proposals;
    ft_batch one = *all;
    one.n_queries = 1;
    one.ids += q;
    one.tokens += at;
    one.logp += at;
    return one;
}

/* One pass over all queries; `seconds` NULL: the warm-up, which takes the digest. */
static ft_status run_pass(const bench_latency *o, bench_system *s, double *seconds,
                          ft_error *err)
{
    if (!seconds)
        s->digest = UINT64_C(0xcbf29ce484222325);
    for (uint32_t q = 0; q < o->batch.n_queries; q++) {
        const ft_batch one = query_of(&o->batch, q);
        const double start = ft_seconds();
        const ft_status st =
            ft_engine_search(s->engine, &one, &o->params, &s->results, NULL, err);
        if (st != FT_OK)
            return st;
        if (seconds)
            seconds[q] = ft_seconds() - start;
        else
            s->digest = fnv(s->digest, s->results.bytes.data, s->results.bytes.len);
    }
    return FT_OK;
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Mean and its spread over passes, then percentiles of the pooled samples, in ms. */
static ft_status report(const bench_latency *o, const bench_system *s, double *mean_ms,
                        ft_sink *out, ft_error *err)
{
    const uint64_t n = o->batch.n_queries, all = n * o->n_passes;
    double mean = 0, least = 0, most = 0;
    for (uint32_t p = 0; p < o->n_passes; p++) {
        double sum = 0;
        for (uint64_t q = 0; q < n; q++)
            sum += s->seconds[p * n + q];
        mean += sum / (double)all;
        least = p == 0 || sum < least ? sum : least;
        most = p == 0 || sum > most ? sum : most;
    }
    qsort(s->seconds, all, sizeof *s->seconds, by_value);
    static const double at[] = {0.5, 0.9, 0.95, 0.99};
    *mean_ms = 1e3 * mean;
    ft_status st = ft_sink_printf(
        out, err, "%s\t%s\t%u\t%" PRIu64 "\t%u\t%.4f\t%.4f\t%.4f", s->engine_name,
        ft_index_layout(s->index), o->n_threads, n, o->n_passes, 1e3 * mean,
        1e3 * least / (double)n, 1e3 * most / (double)n);
    for (int i = 0; i < 4 && st == FT_OK; i++) {
        const uint64_t place = (uint64_t)(at[i] * (double)all);
        st = ft_sink_printf(out, err, "\t%.4f",
                            1e3 * s->seconds[place < all ? place : all - 1]);
    }
    return st == FT_OK ? ft_sink_printf(out, err, "\t%016" PRIx64 "\n", s->digest) : st;
}

static ft_status report_all(const bench_latency *o, ft_error *err)
{
    ft_sink *out = NULL;
    ft_status st = ft_output_open(&out, NULL, FT_OUTPUT_TEXT, err);
    if (st != FT_OK)
        return st;
    double first_ms = 0, ms;
    st = ft_sink_printf(out, err,
                        "engine\tlayout\tthreads\tqueries\tpasses\tmean_ms\tleast_ms\t"
                        "most_ms\tp50_ms\tp90_ms\tp95_ms\tp99_ms\tdigest\n");
    for (uint32_t i = 0; i < o->n_systems && st == FT_OK; i++) {
        st = report(o, &o->systems[i], &ms, out, err);
        if (i == 0)
            first_ms = ms;
        else if (!ft_is_quiet())
            ft_say("%s takes %.2f times as long as %s", o->systems[i].engine_name,
                   ms / first_ms, o->systems[0].engine_name);
    }
    return ft_output_close(out, st, err);
}

static ft_status measure(bench_latency *o, ft_error *err)
{
    ft_status st = FT_OK;
    for (uint32_t i = 0; i < o->n_systems && st == FT_OK; i++) {
        st = run_pass(o, &o->systems[i], NULL, err);
        if (st == FT_OK && o->systems[i].digest != o->systems[0].digest)
            st = ft_fail(err, FT_EFORMAT, "%s and %s do not give the same results",
                         o->systems[i].engine_name, o->systems[0].engine_name);
    }
    for (uint32_t p = 0; p < o->n_passes; p++)
        for (uint32_t i = 0; i < o->n_systems && st == FT_OK; i++) {
            if (ft_progress_due())
                ft_progress("pass %u of %u: %s", p + 1, o->n_passes,
                            o->systems[i].engine_name);
            double *seconds = o->systems[i].seconds + (uint64_t)p * o->batch.n_queries;
            st = run_pass(o, &o->systems[i], seconds, err);
        }
    ft_progress_end();
    return st == FT_OK ? report_all(o, err) : st;
}

static ft_status read_grid(bench_latency *o, const ft_operands *operands, uint32_t *i,
                           ft_error *err)
{
    ft_grid *grid = NULL;
    ft_status st = ft_grid_input_open(&grid, operands, i, err);
    if (st == FT_OK)
        st = ft_grid_read(grid, &o->batch, o->n_most, false, 0, err);
    ft_grid_close(grid);
    if (st == FT_OK && o->batch.n_queries == 0)
        st = ft_fail(err, FT_EFORMAT, "%s: the grid holds no queries", operands->v[*i]);
    return st;
}

int ft_bench_latency(const ft_subcommand *self, int argc, char **argv)
{
    bench_latency o = {.params = FT_SEARCH_DEFAULTS, .n_passes = 10, .n_most = 13000};
    const ft_option rows[] = {
        {FT_OPT_U32, 'b', "beam", &o.params.beam, "N",
         "keep the N best prefixes (default: K)", .min = 1, .max = 16777216},
        {FT_OPT_U32, 'n', "results", &o.params.n_results, "N",
         "return the N best results (default: the beam)", .min = 1, .max = 16777216},
        {FT_OPT_DOUBLE, 'a', "alpha", &o.params.alpha, "X", "length normalisation",
         .min = -FT_MAX_ALPHA, .max = FT_MAX_ALPHA},
        {FT_OPT_FLOAT, 0, "token-threshold", &o.params.token_threshold, "X",
         "admit log-probs above X", .min = -__builtin_inf(), .max = __builtin_inf()},
        {FT_OPT_FLOAT, 0, "sentence-threshold", &o.params.sentence_threshold, "X",
         "admit sums above X", .min = -__builtin_inf(), .max = __builtin_inf()},
        {FT_OPT_U32, 'j', "threads", &o.n_threads, "N",
         "threads (default: the processors)", .min = 1, .max = 1024},
        {FT_OPT_U32, 0, "passes", &o.n_passes, "N", "timed passes after one warm-up",
         .min = 1, .max = 100000},
        {FT_OPT_U32, 0, "queries", &o.n_most, "N",
         "use the first N queries of the grid", .min = 1, .max = 100000000},
        FT_OPTIONS_END};
    const ft_command command = {.program = "ft-bench",
                                .subcommand = self->name,
                                .summary = self->summary,
                                .operands = "GRID ENGINE=INDEX...",
                                .options = rows,
                                .min_operands = 2,
                                .max_operands = FT_ANY_OPERANDS};
    ft_operands operands;
    const int go = ft_command_parse(&command, argc, argv, &operands);
    if (go != FT_GO_ON)
        return go;
    ft_error err = {0};
    uint32_t i = 0;
    ft_status st = ft_baseline_register(&err);
    if (st == FT_OK)
        st = read_grid(&o, &operands, &i, &err);
    for (i++; i < operands.n && st == FT_OK; i++)
        st = open_system(&o, operands.v[i], &err);
    if (st == FT_OK)
        st = measure(&o, &err);
    for (uint32_t s = 0; s < o.n_systems; s++) {
        ft_engine_close(o.systems[s].engine);
        ft_index_close(o.systems[s].index);
        ft_results_free(&o.systems[s].results);
        free(o.systems[s].seconds);
    }
    ft_batch_free(&o.batch);
    return ft_finish(st, &err);
}
