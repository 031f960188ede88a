/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench gen-grid: proposal grids drawn from an index.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_fill.h"
#include "bench_gen.h"
#include "bench_numbers.h"
#include "common.h"
#include "workload/gridgen.h"

enum { MAX_PRESETS = 8, FILL_QUERIES = 20 };

typedef struct gen_grid {
    const char *output, *index_path, *head_list;
    uint32_t preset, n_queries;
    ft_bench_numbers heads; /* a grid each; none: the preset's */
    uint64_t first;
    bool half, fill;
    ft_gridgen_params p;
    ft_index *index;
    ft_gridgen *gen;
    ft_batch query; /* one */
} gen_grid;

static int parse(gen_grid *o, int argc, char **argv)
{
    const char *presets[MAX_PRESETS] = {NULL};
    for (uint32_t i = 0; i + 1 < MAX_PRESETS; i++)
        presets[i] = ft_gridgen_preset_name(i);
    const ft_option rows[] = {
        {FT_OPT_STRING, 'o', "output", &o->output, "FILE",
         "write the grid to FILE, all or nothing"},
        {FT_OPT_ENUM, 'p', "preset", &o->preset, "NAME", "kind of grid",
         .choices = presets},
        {FT_OPT_U32, 'n', "queries", &o->n_queries, "N", "make N queries", .min = 1,
         .max = UINT32_MAX},
        {FT_OPT_U32, 't', "steps", &o->p.n_steps, "T", "T positions a query", .min = 1,
         .max = FT_MAX_KEY_TOKENS},
        {FT_OPT_U32, 'k', "proposals", &o->p.n_proposals, "K", "K tokens a position",
         .min = 1, .max = 1 << 20},
        {FT_OPT_STRING, 0, "head", &o->head_list, "R[,R...]",
         "R tokens of a position from paths near each other; a grid for each R"},
        {FT_OPT_DOUBLE, 0, "slope", &o->p.slope, "X",
         "log-probs fall by X as the rank grows e-fold", .min = 0, .max = 16},
        {FT_OPT_DOUBLE, 0, "jitter", &o->p.jitter, "X", "and stray by X, either way",
         .min = 0, .max = 16},
        {FT_OPT_U64, 's', "seed", &o->p.seed, "N", "another seed, another grid"},
        {FT_OPT_U64, 0, "first", &o->first, "N", "start with query number N"},
        {FT_OPT_FLAG, 0, "half", &o->half, NULL, "log-probs in binary16"},
        {FT_OPT_FLAG, 0, "fill", &o->fill, NULL,
         "search the first 20 and say how full the beam is"},
        FT_OPTIONS_END};
    const ft_command c = {.program = "ft-bench",
                          .subcommand = "gen-grid",
                          .summary = "draw proposal grids from an index",
                          .operands = "INDEX",
                          .options = rows,
                          .min_operands = 1,
                          .max_operands = 1};
    ft_operands operands;
    const int rc = ft_command_parse(&c, argc, argv, &operands);
    if (rc != FT_GO_ON)
        return rc;
    o->index_path = operands.v[0];
    const uint32_t k = o->p.n_proposals;
    if (o->head_list && !ft_bench_numbers_parse(&o->heads, o->head_list, 0, k))
        return ft_command_usage(
            &c,
            "option '--head': '%s' is not numbers from 0 to %u (K), such as 0,%u,%u",
            o->head_list, k, k / 2, k);
    if (o->heads.n > 1 && !(o->output && strstr(o->output, "{}")))
        return ft_command_usage(&c, "several heads need an output such as 'r{}.ftg'");
    return FT_GO_ON;
}

static ft_status complete(gen_grid *o, ft_error *err)
{
    ft_gridgen_params d;
    const ft_status st = ft_gridgen_preset(&d, ft_gridgen_preset_name(o->preset), err);
    if (st == FT_OK) {
        o->p.paths = d.paths;
        o->p.head = d.head;
    }
    return st;
}

static ft_status make_room(const gen_grid *o, uint32_t n_queries, ft_batch *b,
                           ft_error *err)
{
    uint64_t values = (uint64_t)o->p.n_steps * o->p.n_proposals;
    if (!ft_mul_ok(values, n_queries, &values))
        values = UINT64_MAX;
    b->n_queries = n_queries;
    b->n_steps = o->p.n_steps;
    b->n_proposals = o->p.n_proposals;
    b->ids = ft_calloc(n_queries, sizeof *b->ids, err);
    b->tokens = ft_calloc(values, sizeof *b->tokens, err);
    b->logp = ft_calloc(values, sizeof *b->logp, err);
    return b->ids && b->tokens && b->logp ? FT_OK : FT_ENOMEM;
}

static ft_status write_queries(gen_grid *o, ft_sink *out, ft_error *err)
{
    const ft_grid_shape shape = {.n_steps = o->p.n_steps,
                                 .n_proposals = o->p.n_proposals,
                                 .vocab = ft_index_trie(o->index)->max_token + 1,
                                 .half = o->half,
                                 .n_queries = o->n_queries};
    const ft_batch *b = &o->query;
    ft_status st = ft_grid_write_header(out, &shape, err);
    for (uint64_t i = 0; st == FT_OK && i < o->n_queries; i++) {
        ft_gridgen_query(o->gen, o->first + i, b->tokens, b->logp);
        st = ft_grid_write(out, &shape, 0, b->tokens, b->logp, err);
        if (i % 16 == 0 && ft_progress_due())
            ft_progress("%llu of %u queries", (unsigned long long)i, o->n_queries);
    }
    return st;
}

/* What the grid does to the beam: the same on any engine. One thread: what a team
 * probes depends on who is first. */
static ft_status say_fill(gen_grid *o, ft_error *err)
{
    const uint32_t n = o->n_queries < FILL_QUERIES ? o->n_queries : FILL_QUERIES;
    const uint64_t values = (uint64_t)o->p.n_steps * o->p.n_proposals;
    const ft_engine_options options = {.n_threads = 1};
    const ft_search_params params = FT_SEARCH_DEFAULTS;
    ft_results results = {.n_queries = 0};
    ft_stats stats = {NULL};
    ft_engine *engine = NULL;
    ft_batch sample = {.n_queries = 0}, *b = &sample;
    ft_status st = make_room(o, n, b, err);
    if (st == FT_OK) {
        stats.steps = ft_calloc((uint64_t)n * b->n_steps, sizeof *stats.steps, err);
        st = stats.steps ? FT_OK : FT_ENOMEM;
    }
    for (uint32_t q = 0; st == FT_OK && q < n; q++)
        ft_gridgen_query(o->gen, o->first + q, b->tokens + q * values,
                         b->logp + q * values);
    if (st == FT_OK)
        st = ft_engine_open(&engine, "cpu", o->index, &options, err);
    if (st == FT_OK)
        st = ft_engine_search(engine, b, &params, &results, &stats, err);
    if (st == FT_OK)
        ft_bench_say_fill(&stats, n, b->n_steps, b->n_proposals);
    ft_engine_close(engine);
    ft_results_free(&results);
    ft_batch_free(b);
    free(stats.steps);
    return st;
}

/* The output's name with the head in place of "{}". */
static ft_status name_output(const gen_grid *o, char **name, ft_error *err)
{
    const char *gap = o->output ? strstr(o->output, "{}") : NULL;
    *name = NULL;
    if (!gap || !o->heads.n)
        return FT_OK;
    const size_t bytes = strlen(o->output) + 16;
    *name = ft_calloc(bytes, 1, err);
    if (!*name)
        return FT_ENOMEM;
    snprintf(*name, bytes, "%.*s%u%s", (int)(gap - o->output), o->output, o->p.head,
             gap + 2);
    return FT_OK;
}

/* One grid, with o->p.head. */
static ft_status make_grid(gen_grid *o, ft_error *err)
{
    ft_sink *out = NULL;
    char *name;
    ft_status st = name_output(o, &name, err);
    if (st == FT_OK && ft_same_file(o->index_path, name ? name : o->output))
        st = ft_fail(err, FT_EINVAL, "'%s' is also the output", o->index_path);
    if (st == FT_OK)
        st = ft_gridgen_open(&o->gen, ft_index_trie(o->index), &o->p, err);
    if (st == FT_OK)
        st = ft_output_open(&out, name ? name : o->output, FT_OUTPUT_BINARY, err);
    if (st == FT_OK)
        st = write_queries(o, out, err);
    st = ft_output_close(out, st, err);
    ft_progress_end();
    if (st == FT_OK && o->fill) {
        if (name)
            ft_say("%s:", name);
        st = say_fill(o, err);
    }
    ft_gridgen_close(o->gen);
    o->gen = NULL;
    free(name);
    return st;
}

static ft_status run(gen_grid *o, ft_error *err)
{
    ft_status st = complete(o, err);
    if (st == FT_OK)
        st = ft_index_open(&o->index, o->index_path, FT_VERIFY_FULL, 0, err);
    if (st == FT_OK)
        st = make_room(o, 1, &o->query, err);
    if (st == FT_OK && !o->heads.n)
        st = make_grid(o, err);
    for (uint32_t i = 0; st == FT_OK && i < o->heads.n; i++) {
        o->p.head = o->heads.v[i];
        st = make_grid(o, err);
    }
    ft_batch_free(&o->query);
    ft_index_close(o->index);
    return st;
}

int ft_bench_gen_grid(const ft_subcommand *self, int argc, char **argv)
{
    gen_grid o = {.n_queries = 100};
    ft_error err;
    (void)self;
    /* Every preset has the same shape and log-probs: these are the defaults. */
    ft_status st = ft_gridgen_preset(&o.p, ft_gridgen_preset_name(0), &err);
    if (st == FT_OK) {
        const int rc = parse(&o, argc, argv);
        if (rc == FT_GO_ON)
            st = run(&o, &err);
        free(o.heads.v);
        if (rc != FT_GO_ON)
            return rc;
    }
    return ft_finish(st, &err);
}
