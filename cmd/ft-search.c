/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-search: an index and proposal grids in, the best keys out. See ft-search(1).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "options.h"
#include "search_input.h"

enum { MAX_ENGINES = 32, MAX_BEAM = 1 << 24, MAX_BATCH = 1 << 20, MAX_THREADS = 1024 };
enum { MAX_GPUS = 1024, NO_GPU = MAX_GPUS }; /* --gpu was not given */

typedef struct search {
    /* what the command line says */
    const char *output, *stats_path;
    const char *engines[MAX_ENGINES + 2]; /* "auto", the rows, NULL */
    uint32_t engine_name, n_threads, batch_size, format, gpu, n_slots;
    ft_search_params params;
    bool no_verify;
    ft_operands operands; /* INDEX [GRID...] */

    /* what is open */
    ft_index *index;
    ft_engine *engine;
    ft_sink *out, *stats_out;
    search_input *input;
    ft_results results;
    ft_stats stats;
    uint64_t cap_steps;
    uint64_t n_queries; /* answered, over all grids */
    double started, seconds_searching;
} search;

/* Whoever names a GPU wants no other engine. */
static bool choose_gpu(search *s)
{
    const bool automatic = s->engine_name == 0;
    for (uint32_t i = 0; automatic && s->engines[i]; i++)
        if (strcmp(s->engines[i], "cuda") == 0)
            s->engine_name = i;
    return strcmp(s->engines[s->engine_name], "cuda") == 0;
}

static int parse(search *s, int argc, char **argv)
{
    static const char *const formats[] = {
        [FT_WIRE] = "wire", [FT_TSV] = "tsv", [FT_JSONL] = "jsonl", NULL};
    s->engines[0] = "auto";
    for (uint32_t i = 0; i < MAX_ENGINES && ft_engine_row(i); i++)
        s->engines[i + 1] = ft_engine_row(i)->name;
    const ft_option rows[] = {
        {FT_OPT_STRING, 'o', "output", &s->output, "FILE",
         "write the results to FILE, under its name when they are whole"},
        {FT_OPT_U32, 'b', "beam", &s->params.beam, "B",
         "keep the B best prefixes a step [K of the grid]", .min = 1, .max = MAX_BEAM},
        {FT_OPT_U32, 'n', "results", &s->params.n_results, "N",
         "give the N best keys [B]", .min = 1, .max = MAX_BEAM},
        {FT_OPT_DOUBLE, 'a', "alpha", &s->params.alpha, "A",
         "exponent of the length normalisation [5]", .min = -FT_MAX_ALPHA,
         .max = FT_MAX_ALPHA},
        {FT_OPT_FLOAT, 0, "token-threshold", &s->params.token_threshold, "X",
         "admit proposals above X only [-inf]", .min = -INFINITY, .max = INFINITY},
        {FT_OPT_FLOAT, 0, "sentence-threshold", &s->params.sentence_threshold, "X",
         "admit prefixes with sums above X only [-inf]", .min = -INFINITY,
         .max = INFINITY},
        {FT_OPT_ENUM, 'e', "engine", &s->engine_name, "NAME", "what searches [auto]",
         .choices = s->engines},
        {FT_OPT_U32, 0, "gpu", &s->gpu, "N", "search on GPU number N, from 0 on",
         .min = 0, .max = MAX_GPUS - 1},
        {FT_OPT_U32, 0, "slots", &s->n_slots, "N",
         "parts of a batch on their way through a GPU at a time [15]", .min = 1,
         .max = FT_MAX_SLOTS},
        {FT_OPT_U32, 'j', "threads", &s->n_threads, "N",
         "threads; 0: as many as there are processors [0]", .min = 0,
         .max = MAX_THREADS},
        {FT_OPT_U32, 0, "batch", &s->batch_size, "N",
         "answer up to N queries at a time [64]", .min = 1, .max = MAX_BATCH},
        {FT_OPT_ENUM, 'f', "format", &s->format, "NAME", "form of the results [wire]",
         .choices = formats},
        {FT_OPT_STRING, 0, "stats", &s->stats_path, "FILE",
         "write what each step of each query did to FILE (TSV)"},
        {FT_OPT_FLAG, 0, "no-verify", &s->no_verify, NULL,
         "trust the index: check its header only"},
        FT_OPTIONS_END};
    const ft_command c = {.program = "ft-search",
                          .summary = "find the best keys of an index in proposal grids",
                          .operands = "INDEX [GRID...]",
                          .options = rows,
                          .min_operands = 1,
                          .max_operands = FT_ANY_OPERANDS};
    const int rc = ft_command_parse(&c, argc, argv, &s->operands);
    const bool to_stdout = !s->output || strcmp(s->output, "-") == 0;
    if (rc == FT_GO_ON && to_stdout && s->stats_path && strcmp(s->stats_path, "-") == 0)
        return ft_command_usage(
            &c, "results and --stats cannot both go to standard output: use -o");
    if (rc == FT_GO_ON && !to_stdout && s->stats_path &&
        strcmp(s->stats_path, s->output) == 0)
        return ft_command_usage(&c, "results and --stats cannot both go to '%s'",
                                s->output);
    for (uint32_t i = 0; rc == FT_GO_ON && i < s->operands.n; i++)
        if (ft_same_file(s->operands.v[i], s->output) ||
            ft_same_file(s->operands.v[i], s->stats_path))
            return ft_command_usage(&c, "'%s' is also the output", s->operands.v[i]);
    if (rc == FT_GO_ON && s->gpu != NO_GPU && !choose_gpu(s))
        return ft_command_usage(&c, "--gpu goes with --engine cuda");
    if (rc == FT_GO_ON && s->n_slots && s->engine_name != 0 && !choose_gpu(s))
        return ft_command_usage(&c, "--slots goes with --engine cuda");
    return rc;
}

static ft_status open_outputs(search *s, ft_error *err)
{
    ft_status st =
        ft_output_open(&s->out, s->output,
                       s->format == FT_WIRE ? FT_OUTPUT_BINARY : FT_OUTPUT_TEXT, err);
    if (st == FT_OK && s->stats_path)
        st = ft_output_open(&s->stats_out, s->stats_path, FT_OUTPUT_TEXT, err);
    if (st == FT_OK && s->stats_out)
        st = ft_sink_printf(
            s->stats_out, err,
            "query\tstep\tbeams\tprobes\tcandidates\tkept\tseconds\tform\n");
    return st;
}

static ft_status open_index(search *s, ft_error *err)
{
    const ft_engine_options options = {.n_threads = s->n_threads,
                                       .device = s->gpu == NO_GPU ? 0 : s->gpu,
                                       .n_slots = s->n_slots};
    const ft_verify verify = s->no_verify ? FT_VERIFY_NONE : FT_VERIFY_FULL;
    const char *path = s->operands.v[0];
    const double start = ft_seconds();
    ft_status st = ft_index_open(&s->index, path, verify, s->n_threads, err);
    if (st == FT_OK)
        st = ft_engine_open(&s->engine, s->engines[s->engine_name], s->index, &options,
                            err);
    if (st == FT_OK && ft_is_verbose()) {
        const ft_trie *t = ft_index_trie(s->index);
        ft_say("%s: %s layout, %llu keys, %llu nodes; engine %s; open after %.2f ms",
               path, ft_index_layout(s->index), (unsigned long long)t->n_keys,
               (unsigned long long)t->n_nodes, ft_engine_name(s->engine),
               1e3 * (ft_seconds() - start));
    }
    return st;
}

static uint64_t key_number(void *arg, const uint32_t *tokens, uint32_t n)
{
    const ft_trie *t = arg;
    const uint64_t node = ft_trie_walk(t, tokens, n);
    return node == UINT64_MAX ? UINT64_MAX : ft_trie_key_number(t, node);
}

static ft_status write_text(search *s, const ft_batch *batch, ft_error *err)
{
    const ft_trie *t = ft_index_trie(s->index);
    ft_status st = FT_OK;
    for (uint64_t q = 0; st == FT_OK && q < s->results.n_queries; q++) {
        const uint64_t at = s->results.offset[q];
        uint64_t used;
        ft_record record;
        st = ft_record_view(&record, s->results.bytes.data + at,
                            s->results.offset[q + 1] - at, &used, err);
        if (st == FT_OK)
            st = ft_record_write(s->out, (ft_results_format)s->format, batch->ids[q],
                                 &record, t->has_ids ? key_number : NULL, (void *)t,
                                 err);
    }
    return st;
}

/* A reader of statistics that leaves is a failure: the results are not with it. */
static ft_status stats_status(ft_status st)
{
    return st == FT_EPIPE ? FT_EIO : st;
}

static ft_status write_stats(search *s, const ft_batch *batch, ft_error *err)
{
    static const char *const forms[FT_N_FORMS] = {"threads", "cluster", "block",
                                                  "grid"};
    const ft_step_stats *step = s->stats.steps;
    for (uint32_t q = 0; q < batch->n_queries; q++)
        for (uint32_t t = 0; t < batch->n_steps; t++, step++) {
            const ft_status st = ft_sink_printf(
                s->stats_out, err, "%llu\t%u\t%llu\t%llu\t%llu\t%llu\t%.9f\t%s\n",
                (unsigned long long)batch->ids[q], t, (unsigned long long)step->beams,
                (unsigned long long)step->probes, (unsigned long long)step->candidates,
                (unsigned long long)step->kept, step->seconds, forms[step->form]);
            if (st != FT_OK)
                return stats_status(st);
        }
    return stats_status(ft_sink_flush(s->stats_out, err));
}

static ft_status reserve_stats(search *s, const ft_batch *batch, ft_error *err)
{
    uint64_t n;
    ft_status st;
    if (!s->stats_out)
        return FT_OK;
    if (!ft_mul_ok(batch->n_queries, batch->n_steps, &n))
        return ft_fail(err, FT_ENOMEM, "--stats: batch too large");
    st = ft_reserve((void **)&s->stats.steps, &s->cap_steps, n, sizeof *s->stats.steps,
                    err);
    if (st == FT_OK)
        memset(s->stats.steps, 0, n * sizeof *s->stats.steps);
    return st;
}

/* Search the batch; its results are with the reader of our output when this returns. */
static ft_status answer(search *s, const ft_batch *batch, ft_error *err)
{
    const double start = ft_seconds();
    ft_status st = reserve_stats(s, batch, err);
    if (st == FT_OK)
        st = ft_engine_search(s->engine, batch, &s->params, &s->results,
                              s->stats_out ? &s->stats : NULL, err);
    s->seconds_searching += ft_seconds() - start;
    if (st == FT_OK && s->format == FT_WIRE)
        st = ft_sink_write(s->out, s->results.bytes.data, s->results.bytes.len, err);
    else if (st == FT_OK)
        st = write_text(s, batch, err);
    if (st == FT_OK)
        st = ft_sink_flush(s->out, err);
    if (st == FT_OK && s->stats_out)
        st = write_stats(s, batch, err);
    if (st != FT_OK)
        return st;
    s->n_queries += batch->n_queries;
    if (ft_progress_due())
        ft_progress("%llu queries, %.0f queries/s", (unsigned long long)s->n_queries,
                    (double)s->n_queries / (ft_seconds() - s->started));
    return FT_OK;
}

/* A bad grid is reported after its good queries have been answered. */
static ft_status answer_all(search *s, ft_error *err)
{
    const bool half = ft_engine_takes_half(s->engine);
    ft_status st = search_input_open(&s->input, &s->operands, s->batch_size, half, err);
    const ft_batch *batch;
    while (st == FT_OK) {
        const ft_status got = search_input_next(s->input, &batch, err);
        ft_error second;
        if (batch->n_queries)
            st = answer(s, batch, got == FT_OK ? err : &second);
        if (got != FT_OK || batch->n_queries == 0) {
            search_input_close(s->input);
            return got;
        }
    }
    return st;
}

/* After a failure the answers so far, which are whole, keep their file; without any, a
 * file that was there before stays. */
static ft_status close_output(const search *s, ft_sink *out, ft_status st,
                              ft_error *err)
{
    const bool keep = st == FT_OK || s->n_queries > 0;
    ft_error own;
    const ft_status closed = ft_output_close(out, keep ? FT_OK : st, &own);
    if (st != FT_OK || closed == FT_OK)
        return st;
    *err = own;
    return closed;
}

/* What there is to say in the end. */
static void sum_up(const search *s)
{
    char notes[256];
    ft_engine_notes(s->engine, notes, sizeof notes);
    if (notes[0])
        ft_say("%s: %s", ft_engine_name(s->engine), notes);
    ft_say("%llu queries in %.3f s, %.3f s of them searching",
           (unsigned long long)s->n_queries, ft_seconds() - s->started,
           s->seconds_searching);
}

static void release(search *s)
{
    ft_engine_close(s->engine);
    ft_index_close(s->index);
    ft_results_free(&s->results);
    free(s->stats.steps);
}

int main(int argc, char **argv)
{
    /* Static: a reader that is left behind keeps what it uses. */
    static search s = {.batch_size = 64, .gpu = NO_GPU, .params = FT_SEARCH_DEFAULTS};
    ft_error err;
    ft_status st;
    int rc;
    if (!ft_start("ft-search"))
        return FT_EXIT_FAILED;
    s.started = ft_seconds();
    rc = parse(&s, argc, argv);
    if (rc != FT_GO_ON)
        return rc;
    st = open_outputs(&s, &err);
    if (st == FT_OK)
        st = open_index(&s, &err);
    if (st == FT_OK)
        st = answer_all(&s, &err);
    st = close_output(&s, s.out, st, &err);
    st = close_output(&s, s.stats_out, st, &err);
    rc = ft_finish(st, &err);
    if (st == FT_OK && ft_is_verbose())
        sum_up(&s);
    release(&s);
    return rc;
}
