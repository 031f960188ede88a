/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench_fill.h"
#include "bench_machine.h"
#include "common.h"
#include "grid_input.h"
#include "workload/key_digest.h"

enum { MAX_QUERIES = 13000, REFERENCE_QUERIES = 64, MAX_BEAM = 16777216 };

/* Eight bytes at a time: it runs between timed calls. */
static uint64_t digest_of(const uint8_t *data, uint64_t bytes)
{
    const uint64_t prime = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t h = bytes * prime, word;
    for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
        memcpy(&word, data, sizeof word);
        h = (h ^ word) * prime;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, data, bytes);
    h = (h ^ word) * prime;
    return h ^ h >> 32;
}

void ft_bench_file_fact(ft_bench_search *s, const char *name, const char *path,
                        const char *more)
{
    enum { CHUNK = 1 << 16 };
    struct stat info;
    uint8_t bytes[CHUNK];
    uint64_t digest = 0;
    FILE *f =
        stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "re") : NULL;
    if (!f) {
        ft_bench_report_fact(s->report, name, "%s%s", path, more);
        return;
    }
    for (size_t n; (n = fread(bytes, 1, CHUNK, f)) > 0;)
        digest = digest << 7 ^ digest >> 57 ^ digest_of(bytes, n);
    fclose(f); /* whoever takes the file's data tells what is wrong with it */
    ft_bench_report_fact(s->report, name, "%s%s, digest %016" PRIx64, path, more,
                         digest);
}

static uint64_t record_digest(const ft_results *r, uint32_t q)
{
    return digest_of(r->bytes.data + r->offset[q], r->offset[q + 1] - r->offset[q]);
}

ft_batch ft_bench_part(const ft_batch *all, uint32_t first, uint32_t n)
{
    const uint64_t at = (uint64_t)first * all->n_steps * all->n_proposals;
    ft_batch part = *all;
    part.n_queries = n;
    part.ids += first;
    part.tokens += at;
    part.logp += at;
    return part;
}

bool ft_bench_is_right(const ft_bench_search *s, const ft_bench_entry *e,
                       uint32_t first, uint32_t *wrong)
{
    const ft_results *r = &e->results;
    for (uint32_t q = 0; q < r->n_queries && !e->system.superset; q++)
        if (record_digest(r, q) != s->expected[first + q]) {
            *wrong = first + q;
            return false;
        }
    return true;
}

void ft_bench_entry_cells(ft_bench_row *row, const ft_bench_search *s,
                          const ft_bench_entry *e)
{
    row->n = 0;
    ft_bench_cell(row, "%s", e->system.name);
    ft_bench_cell(row, "%s", ft_index_layout(e->index));
    if (e->system.on_device)
        ft_bench_cell(row, "-");
    else
        ft_bench_cell(row, "%u", e->system.one_thread ? 1 : s->n_threads);
    ft_bench_cell(row, "%u", s->params.beam);
}

/* What every system must give, from a file of wire records. */
static ft_status read_expected(ft_bench_search *s, ft_error *err)
{
    ft_stream *in = NULL;
    ft_buf bytes = {.len = 0};
    ft_record record;
    bool more = true;
    ft_status st = ft_stream_open(&in, s->expect_path, err);
    for (uint32_t q = 0; q < s->batch.n_queries && st == FT_OK; q++) {
        st = ft_record_read(in, q, &bytes, &record, &more, err);
        if (st == FT_OK && !more)
            st = ft_fail(err, FT_EFORMAT, "%s: results of %u queries, not of %u",
                         s->expect_path, q, s->batch.n_queries);
        if (st == FT_OK)
            s->expected[q] = digest_of(bytes.data, bytes.len);
    }
    ft_buf_free(&bytes);
    ft_stream_close(in);
    return st;
}

static double mean_fill(const ft_bench_search *s, const ft_step_stats *steps)
{
    const uint32_t T = s->batch.n_steps, last = T <= 7 ? T : 7;
    double beams = 0, n = 0;
    for (uint64_t q = 0; q < s->batch.n_queries; q++)
        for (uint32_t t = 1; t < last; t++, n++)
            beams += (double)steps[q * T + t].beams;
    return n ? 100.0 * beams / n / s->params.beam : 0.0;
}

/* Digests of the reference's results (unless they are given), and its step counters. */
static ft_status search_reference(ft_bench_search *s, ft_engine *engine,
                                  ft_step_stats *steps, ft_error *err)
{
    ft_results results = {.n_queries = 0};
    ft_status st = FT_OK;
    for (uint32_t q = 0, n; q < s->batch.n_queries && st == FT_OK; q += n) {
        n = s->batch.n_queries - q;
        n = n < REFERENCE_QUERIES ? n : REFERENCE_QUERIES;
        const ft_batch part = ft_bench_part(&s->batch, q, n);
        ft_stats stats = {.steps = steps + (uint64_t)q * part.n_steps};
        st = ft_engine_search(engine, &part, &s->params, &results, &stats, err);
        for (uint32_t i = 0; i < n && st == FT_OK && !s->expect_path; i++)
            s->expected[q + i] = record_digest(&results, i);
        if (ft_progress_due())
            ft_progress("beam %u: reference, %u of %u queries", s->params.beam, q,
                        s->batch.n_queries);
    }
    ft_results_free(&results);
    return st;
}

ft_status ft_bench_expect(ft_bench_search *s, ft_error *err)
{
    if (s->has_expected)
        return FT_OK;
    const uint32_t n = s->batch.n_queries;
    const ft_engine_options options = {.n_threads = s->n_threads};
    ft_engine *engine = NULL;
    ft_step_stats *steps =
        ft_calloc((uint64_t)n * s->batch.n_steps, sizeof *steps, err);
    ft_status st = steps ? FT_OK : FT_ENOMEM;
    if (st == FT_OK)
        st = ft_engine_open(&engine, "cpu", s->entries[0].index, &options, err);
    if (st == FT_OK && s->expect_path)
        st = read_expected(s, err);
    if (st == FT_OK)
        st = search_reference(s, engine, steps, err);
    ft_progress_end();
    if (st == FT_OK) {
        s->digest = digest_of((const uint8_t *)s->expected, n * sizeof *s->expected);
        s->fill = mean_fill(s, steps);
        s->has_expected = true;
        if (!ft_is_quiet())
            ft_bench_say_fill(&(ft_stats){.steps = steps}, n, s->batch.n_steps,
                              s->params.beam);
    }
    ft_engine_close(engine);
    free(steps);
    return st;
}

static ft_status open_index(ft_bench_search *s, ft_bench_entry *e, const char *path,
                            ft_error *err)
{
    for (ft_bench_entry *other = s->entries; other < e; other++)
        if (strcmp(ft_index_name(other->index), path) == 0) {
            e->index = other->index;
            return FT_OK;
        }
    ft_status st = ft_index_open(&e->index, path, FT_VERIFY_FULL, s->n_threads, err);
    if (st != FT_OK)
        return st;
    e->owns_index = true;
    const ft_trie *t = ft_index_trie(e->index);
    const ft_trie *first = ft_index_trie(s->entries[0].index);
    if (t->n_keys != first->n_keys || t->depth != first->depth ||
        t->max_token != first->max_token)
        return ft_fail(err, FT_EINVAL, "%s: is not the library of %s", path,
                       ft_index_name(s->entries[0].index));
    return FT_OK;
}

static ft_status add_entry(ft_bench_search *s, const char *name, const char *path,
                           ft_error *err)
{
    if (s->n_entries == FT_BENCH_MAX_SYSTEMS)
        return ft_fail(err, FT_EINVAL, "more than %d systems", FT_BENCH_MAX_SYSTEMS);
    ft_bench_entry *e = &s->entries[s->n_entries];
    ft_status st = ft_bench_system_find(&e->system, name, err);
    if (st == FT_OK)
        st = open_index(s, e, path, err);
    if (e->index)
        s->n_entries++;
    if (st != FT_OK)
        return st;
    if (!ft_bench_system_wants(&e->system, ft_index_layout(e->index)))
        ft_say("warning: %s is meant for layout %.*s, and %s is %s", name,
               (int)strcspn(e->system.layouts, " "), e->system.layouts, path,
               ft_index_layout(e->index));
    const ft_engine_options options = {.n_threads =
                                           e->system.one_thread ? 1 : s->n_threads,
                                       .device = s->output.device};
    ft_error why;
    st = ft_engine_open(&e->engine, e->system.engine, e->index, &options, &why);
    if (st != FT_OK)
        snprintf(e->status, sizeof e->status, "unavailable: %.200s", why.message);
    return FT_OK;
}

/* SYSTEM=INDEX; INDEX alone, where a method has ablations, is all of them. */
static ft_status open_operand(ft_bench_search *s, char *operand, ft_error *err)
{
    char *path = strchr(operand, '=');
    ft_status st = FT_OK;
    if (path) {
        *path++ = '\0';
        return add_entry(s, operand, path, err);
    }
    for (const ft_bench_system *b = ft_bench_systems; b->name && st == FT_OK; b++)
        if (b->ablation)
            st = add_entry(s, b->name, operand, err);
    return st;
}

static ft_status read_grid(ft_bench_search *s, const ft_operands *operands, uint32_t *i,
                           ft_error *err)
{
    ft_grid *grid = NULL;
    ft_batch *b = &s->batch;
    const char *name = operands->v[*i];
    ft_status st = ft_grid_input_open(&grid, operands, i, err);
    if (st == FT_OK)
        st = ft_grid_read(grid, b, s->n_most, false, 0, err);
    ft_grid_close(grid);
    if (st == FT_OK && b->n_queries == 0)
        st = ft_fail(err, FT_EFORMAT, "%s: the grid holds no queries", name);
    for (uint32_t k = 0; k < s->batches.n && st == FT_OK; k++)
        if (s->batches.v[k] > b->n_queries)
            st = ft_fail(err, FT_EINVAL,
                         "%s: a batch of %u, and the grid has %u queries", name,
                         s->batches.v[k], b->n_queries);
    if (st != FT_OK)
        return st;
    const uint64_t n = (uint64_t)b->n_queries * b->n_steps * b->n_proposals;
    ft_bench_report_fact(s->report, "grid",
                         "%s: %u queries, %u steps, %u proposals, digest %016" PRIx64,
                         name, b->n_queries, b->n_steps, b->n_proposals,
                         digest_of((const uint8_t *)b->tokens, n * sizeof *b->tokens) ^
                             digest_of((const uint8_t *)b->logp, n * sizeof *b->logp));
    s->expected = ft_calloc(b->n_queries, sizeof *s->expected, err);
    return s->expected ? FT_OK : FT_ENOMEM;
}

static ft_status add_facts(ft_bench_search *s, ft_error *err)
{
    const ft_trie *t = ft_index_trie(s->entries[0].index);
    uint64_t digest;
    char results[32] = "as many results", passes[32] = "";
    const ft_status st = ft_library_digest(t, s->n_threads, &digest, err);
    if (st != FT_OK)
        return st;
    if (s->params.n_results)
        snprintf(results, sizeof results, "%u results", s->params.n_results);
    if (s->n_passes)
        snprintf(passes, sizeof passes, ", %u passes", s->n_passes);
    ft_bench_report_fact(s->report, "library",
                         "%" PRIu64 " keys, of %u tokens at most, below %" PRIu64
                         ", digest %016" PRIx64,
                         t->n_keys, t->depth, (uint64_t)t->max_token + 1, digest);
    ft_bench_report_fact(s->report, "search", "alpha %g, thresholds %g and %g, %s%s",
                         s->params.alpha, (double)s->params.token_threshold,
                         (double)s->params.sentence_threshold, results, passes);
    if (s->time_limit > 0)
        ft_bench_report_fact(s->report, "limit", "%g s a measurement", s->time_limit);
    if (s->expect_path)
        ft_bench_file_fact(s, "expect", s->expect_path, "");
    return FT_OK;
}

static ft_status measure_beams(ft_bench_search *s, ft_error *err)
{
    ft_status st = FT_OK;
    const uint32_t only = s->params.beam ? s->params.beam : s->batch.n_proposals;
    const uint32_t n_beams = s->beams.n ? s->beams.n : 1;
    s->n_groups = n_beams * (s->batches.n ? s->batches.n : 1);
    for (uint32_t i = 0; i < n_beams && st == FT_OK; i++) {
        s->params.beam = s->beams.n ? s->beams.v[i] : only;
        s->has_expected = false;
        st = s->method->measure(s, err);
    }
    return st;
}

static ft_status run(ft_bench_search *s, const char *name, const ft_operands *operands,
                     ft_error *err)
{
    const ft_bench_method *method = s->method;
    uint32_t i = 0;
    ft_status st = ft_bench_report_open(&s->report, &s->output, name, method->columns,
                                        method->n_key, err);
    if (st == FT_OK)
        st = read_grid(s, operands, &i, err);
    if (st == FT_OK && i + 1 == operands->n)
        st = ft_fail(err, FT_EINVAL, "no system is named");
    for (i++; i < operands->n && st == FT_OK; i++)
        st = open_operand(s, operands->v[i], err);
    if (st == FT_OK && method->open)
        st = method->open(s, err);
    if (st == FT_OK)
        st = add_facts(s, err);
    if (st == FT_OK)
        st = ft_bench_report_begin(s->report, err);
    return st == FT_OK ? measure_beams(s, err) : st;
}

static void close_all(ft_bench_search *s)
{
    if (s->method->close)
        s->method->close(s);
    for (uint32_t i = s->n_entries; i-- > 0;) {
        ft_bench_entry *e = &s->entries[i];
        ft_engine_close(e->engine);
        ft_results_free(&e->results);
        if (e->owns_index)
            ft_index_close(e->index);
    }
    ft_batch_free(&s->batch);
    free(s->expected);
    free(s->beams.v);
    free(s->batches.v);
    free(s->output.notes.items);
}

static int check_lists(ft_bench_search *s, const ft_command *c,
                       const ft_operands *operands)
{
    const struct {
        const char *name, *text;
        ft_bench_numbers *numbers;
    } lists[] = {{"beams", s->beams_text, &s->beams},
                 {"batches", s->batches_text, &s->batches}};
    for (int i = 0; i < 2; i++)
        if (lists[i].text &&
            !ft_bench_numbers_parse(lists[i].numbers, lists[i].text, 1, MAX_BEAM))
            return ft_command_usage(c,
                                    "option '--%s': '%s' is not numbers such as 1,8,64",
                                    lists[i].name, lists[i].text);
    if (s->beams.n && s->params.beam)
        return ft_command_usage(c, "--beam and --beams exclude each other");
    if (s->expect_path && s->beams.n > 1)
        return ft_command_usage(c, "--expect goes with a single beam");
    for (uint32_t i = 1; i < operands->n; i++)
        if (operands->v[i][0] == '=' ||
            (!strchr(operands->v[i], '=') && !s->method->has_ablations))
            return ft_command_usage(c, "'%s' is not SYSTEM=INDEX", operands->v[i]);
    const char *const files[] = {s->expect_path, s->targets_path, s->scores_path};
    int rc = ft_bench_output_check(c, &s->output, operands);
    for (int i = 0; i < 3 && rc == FT_GO_ON; i++)
        rc = ft_bench_output_check_file(c, &s->output, files[i]);
    return rc;
}

static int parse(ft_bench_search *s, const ft_subcommand *self, int argc, char **argv,
                 ft_operands *operands)
{
    const double infinity = __builtin_inf();
    ft_search_params *p = &s->params;
    const ft_option common[] = {
        {FT_OPT_U32, 'b', "beam", &p->beam, "N",
         "keep the N best prefixes (default: K)", .min = 1, .max = MAX_BEAM},
        {FT_OPT_STRING, 0, "beams", &s->beams_text, "LIST",
         "with each of these beams: 100,200"},
        {FT_OPT_U32, 'n', "results", &p->n_results, "N",
         "return the N best results (default: the beam; of quality: 1000)", .min = 1,
         .max = MAX_BEAM},
        {FT_OPT_DOUBLE, 'a', "alpha", &p->alpha, "X", "length normalisation",
         .min = -FT_MAX_ALPHA, .max = FT_MAX_ALPHA},
        {FT_OPT_FLOAT, 0, "token-threshold", &p->token_threshold, "X",
         "admit log-probs above X", .min = -infinity, .max = infinity},
        {FT_OPT_FLOAT, 0, "sentence-threshold", &p->sentence_threshold, "X",
         "admit sums above X", .min = -infinity, .max = infinity},
        {FT_OPT_U32, 'j', "threads", &s->n_threads, "N",
         "threads of the host (default: the processors)", .min = 1, .max = 1024},
        {FT_OPT_U32, 0, "gpu", &s->output.device, "N", "number of the GPU",
         .max = 1023},
        {FT_OPT_U32, 0, "queries", &s->n_most, "N",
         "use the first N queries of the grid", .min = 1, .max = 100000000},
        {FT_OPT_STRING, 0, "expect", &s->expect_path, "FILE",
         "results that all must give, in wire form (default: those of engine cpu)"},
        FT_BENCH_OUTPUT_ROWS(&s->output)};
    enum { N_COMMON = sizeof common / sizeof *common };
    ft_option rows[N_COMMON + FT_BENCH_MAX_OWN_OPTIONS + 1] = {{FT_OPT_END}};
    memcpy(rows, common, sizeof common);
    s->method->options(s, rows + N_COMMON);
    const ft_command c = {.program = "ft-bench",
                          .subcommand = self->name,
                          .summary = self->summary,
                          .operands = s->method->has_ablations
                                          ? "GRID INDEX|SYSTEM=INDEX..."
                                          : "GRID SYSTEM=INDEX...",
                          .options = rows,
                          .min_operands = 2,
                          .max_operands = FT_ANY_OPERANDS};
    const int rc = ft_command_parse(&c, argc, argv, operands);
    return rc == FT_GO_ON ? check_lists(s, &c, operands) : rc;
}

int ft_bench_search_run(const ft_subcommand *self, int argc, char **argv,
                        const ft_bench_method *method)
{
    ft_bench_search s = {.method = method,
                         .params = FT_SEARCH_DEFAULTS,
                         .n_threads = ft_machine_processors(),
                         .n_passes = method->n_passes,
                         .n_most = MAX_QUERIES,
                         .output = {.format = FT_BENCH_BY_OUTPUT}};
    ft_operands operands;
    int rc = parse(&s, self, argc, argv, &operands);
    if (rc == FT_GO_ON) {
        ft_error err;
        ft_status st = run(&s, self->name, &operands, &err);
        st = ft_bench_report_close(s.report, st, &err);
        rc = ft_finish(st, &err);
    }
    close_all(&s);
    return rc;
}
