/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench quality: what a beam finds, whatever it takes (paper Table 1). Three
 * yardsticks: the best keys of all, found by a beam so wide that nothing is pruned; the
 * key that each query is after; and scores of keys from elsewhere.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_answers.h"
#include "bench_commands.h"
#include "bench_search.h"
#include "common.h"

enum {
    N_RECALLS = 2,
    N_FOUND = 4,
    MOST_BEST = 200,     /* the widest cutoff of a recall */
    MOST_RESULTS = 1000, /* and of all */
    FIRST_BEAM = 1 << 10,
    WIDEST_BEAM = 1 << 22,
    PART = 64 /* queries a call */
};

/* Of recalls and precisions, and of targets. */
static const uint64_t best_cutoffs[N_RECALLS] = {100, MOST_BEST};
static const uint64_t found_cutoffs[N_FOUND] = {1, 10, 100, MOST_RESULTS};

/* Of one system at one beam, over the queries. */
typedef struct sums {
    double recall[N_RECALLS], found[N_FOUND], precision[N_RECALLS];
    double score_diff; /* the largest */
    uint32_t n_done;   /* queries that the above are of, the first ones */
    bool has_row;      /* in the file that is gone on with */
    bool ended;        /* it does not run, or has failed */
    char status[FT_BENCH_CELL_BYTES];
} sums;

/* The results of the query at hand, by their tokens. */
typedef struct rank_table {
    const ft_record *record;
    uint32_t *slots; /* rank + 1 (the best: 1), or 0 */
    uint64_t mask, cap;
} rank_table;

typedef struct quality {
    ft_answers targets, scores;
    ft_buf best;       /* wire records of the exhaustive search */
    uint64_t *best_at; /* n_queries + 1; NULL: not searched yet */
    bool *is_exact;    /* n_queries */
    rank_table ranks;
} quality;

static uint64_t hash_key(const uint8_t *tokens, uint64_t n)
{
    uint64_t h = n;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t token;
        memcpy(&token, tokens + 4 * i, sizeof token);
        h = (h ^ token) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 32;
    }
    return h;
}

/* Result `rank` (0 is the best): its tokens as they lie in the record. */
static const uint8_t *result_at(const ft_record *r, uint64_t rank, uint64_t *n)
{
    const uint64_t i = r->n - 1 - rank, from = ft_record_end(r, i - 1);
    *n = ft_record_end(r, i) - from;
    return r->tokens + 4 * from;
}

static ft_status rank_results(rank_table *t, const ft_record *r, ft_error *err)
{
    uint64_t n_slots = 4;
    while (n_slots < 2 * r->n)
        n_slots *= 2;
    void *slots = t->slots;
    const ft_status st = ft_reserve(&slots, &t->cap, n_slots, sizeof *t->slots, err);
    t->slots = slots;
    if (st != FT_OK)
        return st;
    memset(t->slots, 0, n_slots * sizeof *t->slots);
    t->mask = n_slots - 1;
    t->record = r;
    for (uint64_t rank = 0; rank < r->n; rank++) {
        uint64_t n;
        const uint8_t *key = result_at(r, rank, &n);
        uint64_t i = hash_key(key, n) & t->mask;
        while (t->slots[i])
            i = (i + 1) & t->mask;
        t->slots[i] = (uint32_t)rank + 1;
    }
    return FT_OK;
}

/* The rank of a key among the results, or UINT64_MAX. */
static uint64_t rank_of(const rank_table *t, const void *tokens, uint64_t n)
{
    for (uint64_t i = hash_key(tokens, n) & t->mask; t->slots[i];
         i = (i + 1) & t->mask) {
        uint64_t n_there;
        const uint8_t *there = result_at(t->record, t->slots[i] - 1, &n_there);
        if (n_there == n && memcmp(there, tokens, 4 * n) == 0)
            return t->slots[i] - 1;
    }
    return UINT64_MAX;
}

/* Of the best k keys that there are, how many are among the first k results. */
static void add_recall(const rank_table *t, const ft_record *best, sums *sum)
{
    for (int c = 0; c < N_RECALLS; c++) {
        const uint64_t k = best_cutoffs[c], n_best = best->n < k ? best->n : k;
        uint64_t n_met = 0;
        for (uint64_t rank = 0; rank < n_best; rank++) {
            uint64_t n;
            const uint8_t *key = result_at(best, rank, &n);
            n_met += rank_of(t, key, n) < k;
        }
        sum->recall[c] += n_best ? (double)n_met / (double)n_best : 1.0;
    }
}

static void add_found(const rank_table *t, const ft_answer *targets, uint64_t n,
                      sums *sum)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t rank = rank_of(t, targets[i].tokens, targets[i].n);
        for (int c = 0; c < N_FOUND; c++)
            sum->found[c] += rank < found_cutoffs[c];
    }
}

/* The mean score of the first k results, or of all where there are fewer, as the paper
 * has it; a key without a score has 0. */
static void add_precision(const rank_table *t, const ft_answer *scores, uint64_t n,
                          sums *sum)
{
    for (int c = 0; c < N_RECALLS; c++) {
        const uint64_t n_results = t->record->n;
        const uint64_t k = n_results < best_cutoffs[c] ? n_results : best_cutoffs[c];
        double total = 0;
        for (uint64_t i = 0; i < n; i++)
            if (rank_of(t, scores[i].tokens, scores[i].n) < k)
                total += scores[i].value;
        sum->precision[c] += k ? total / (double)k : 0.0;
    }
}

static void add_score_diff(const ft_record *a, const ft_record *b, sums *sum)
{
    for (uint64_t i = 1; i <= a->n && i <= b->n; i++) {
        const double x = ft_record_score(a, a->n - i), y = ft_record_score(b, b->n - i);
        if (x != y) /* infinities may be equal */
            sum->score_diff = fmax(sum->score_diff, fabs(x - y));
    }
}

static ft_status view(ft_record *r, const ft_results *results, uint32_t q,
                      ft_error *err)
{
    const uint64_t at = results->offset[q];
    uint64_t used;
    return ft_record_view(r, results->bytes.data + at, results->offset[q + 1] - at,
                          &used, err);
}

/* Results of query number q, which is `i` of the part at hand. */
static ft_status add_query(const ft_bench_search *s, const ft_bench_entry *e,
                           const ft_bench_entry *first, uint32_t q, uint32_t i,
                           sums *sum, ft_error *err)
{
    quality *o = s->state;
    ft_record record, other, best;
    uint64_t n, used;
    ft_status st = view(&record, &e->results, i, err);
    if (st == FT_OK)
        st = view(&other, &first->results, i, err);
    if (st == FT_OK)
        st = ft_record_view(&best, o->best.data + o->best_at[q],
                            o->best_at[q + 1] - o->best_at[q], &used, err);
    if (st == FT_OK)
        st = rank_results(&o->ranks, &record, err);
    if (st != FT_OK)
        return st;
    add_recall(&o->ranks, &best, sum);
    const ft_answer *a = ft_answers_of(&o->targets, s->batch.ids[q], &n);
    add_found(&o->ranks, a, n, sum);
    a = ft_answers_of(&o->scores, s->batch.ids[q], &n);
    if (n)
        add_precision(&o->ranks, a, n, sum);
    add_score_diff(&record, &other, sum);
    return FT_OK;
}

/* The best keys of one query: a step that keeps fewer than the beam has pruned nothing,
 * and where none has, all keys of the grid have been seen. */
static ft_status search_all(ft_bench_search *s, ft_engine *engine, uint32_t q,
                            ft_step_stats *steps, ft_results *results, ft_error *err)
{
    quality *o = s->state;
    const ft_batch one = ft_bench_part(&s->batch, q, 1);
    ft_stats stats = {.steps = steps};
    ft_search_params params = s->params;
    bool exact = false;
    ft_status st = FT_OK;
    params.n_results = MOST_BEST;
    for (params.beam = FIRST_BEAM; st == FT_OK && !exact; params.beam *= 4) {
        st = ft_engine_search(engine, &one, &params, results, &stats, err);
        exact = st == FT_OK;
        for (uint32_t t = 0; t < one.n_steps; t++)
            exact = exact && steps[t].kept < params.beam;
        if (params.beam == WIDEST_BEAM)
            break;
    }
    if (st == FT_OK)
        st = ft_buf_append(&o->best, results->bytes.data, results->bytes.len, err);
    o->best_at[q + 1] = o->best.len;
    o->is_exact[q] = exact;
    return st;
}

static ft_status find_best(ft_bench_search *s, ft_error *err)
{
    quality *o = s->state;
    const uint32_t n = s->batch.n_queries;
    const ft_engine_options options = {.n_threads = s->n_threads};
    ft_results results = {.n_queries = 0};
    ft_engine *engine = NULL;
    ft_step_stats *steps = ft_calloc(s->batch.n_steps, sizeof *steps, err);
    o->best_at = ft_calloc(n + UINT64_C(1), sizeof *o->best_at, err);
    o->is_exact = ft_calloc(n, sizeof *o->is_exact, err);
    ft_status st = steps && o->best_at && o->is_exact ? FT_OK : FT_ENOMEM;
    if (st == FT_OK)
        st = ft_engine_open(&engine, "cpu", s->entries[0].index, &options, err);
    for (uint32_t q = 0; q < n && st == FT_OK; q++) {
        if (ft_progress_due())
            ft_progress("all keys: %u of %u queries", q, n);
        st = search_all(s, engine, q, steps, &results, err);
    }
    ft_progress_end();
    ft_engine_close(engine);
    ft_results_free(&results);
    free(steps);
    return st;
}

/* Queries q .. q + n - 1 through all systems, or, at an interrupt, the first of them.
 * What a system fails with is its status. */
static ft_status measure_part(ft_bench_search *s, uint32_t q, uint32_t n, sums *all,
                              ft_error *err)
{
    const ft_batch part = ft_bench_part(&s->batch, q, n);
    const ft_bench_entry *first = NULL;
    ft_status st = FT_OK;
    for (uint32_t k = 0; k < s->n_entries && st == FT_OK && !ft_signal_deferred();
         k++) {
        ft_bench_entry *e = &s->entries[k];
        sums *sum = &all[k];
        ft_error why;
        uint32_t wrong;
        if (sum->ended)
            continue;
        if (ft_engine_search(e->engine, &part, &s->params, &e->results, NULL, &why) !=
            FT_OK) {
            snprintf(sum->status, sizeof sum->status, "failed: %.200s", why.message);
            sum->ended = true;
            continue;
        }
        if (!ft_bench_is_right(s, e, q, &wrong)) {
            snprintf(sum->status, sizeof sum->status,
                     "failed: query %" PRIu64 ": results differ from the reference",
                     s->batch.ids[wrong]);
            sum->ended = true;
            continue;
        }
        first = first ? first : e;
        for (uint32_t i = 0; i < n && st == FT_OK; i++)
            st = add_query(s, e, first, q + i, i, sum, err);
        sum->n_done = q + n;
    }
    return st;
}

static void share_cells(ft_bench_row *row, const double *total, int n, uint64_t of)
{
    for (int c = 0; c < n; c++)
        if (of && isfinite(total[c]))
            ft_bench_cell(row, "%.4f", total[c] / (double)of);
        else /* scores may add up to infinity, which is no number of JSON's */
            ft_bench_cell(row, "-");
}

/* Of the first n queries: how many are exact, targets, and queries with scores. */
static void count(const ft_bench_search *s, uint32_t n, uint32_t *n_exact,
                  uint64_t *n_targets, uint64_t *n_scored)
{
    const quality *o = s->state;
    *n_exact = 0;
    *n_targets = *n_scored = 0;
    for (uint32_t q = 0; q < n; q++) {
        uint64_t targets, scores;
        ft_answers_of(&o->targets, s->batch.ids[q], &targets);
        ft_answers_of(&o->scores, s->batch.ids[q], &scores);
        *n_exact += o->is_exact[q];
        *n_targets += targets;
        *n_scored += scores > 0;
    }
}

static void add_figures(ft_bench_row *row, const ft_bench_search *s,
                        const ft_bench_entry *e, const sums *sum)
{
    const uint32_t n = sum->ended ? s->batch.n_queries : sum->n_done;
    uint32_t n_exact;
    uint64_t n_targets, n_scored;
    count(s, n, &n_exact, &n_targets, &n_scored);
    ft_bench_cell(row, "%u", n);
    ft_bench_cell(row, "%.4f", (double)n_exact / n);
    if (sum->ended) {
        ft_bench_no_cells(row, 2 * N_RECALLS + N_FOUND + 2);
    } else {
        const bool alike = !e->system.superset && isfinite(sum->score_diff);
        share_cells(row, sum->recall, N_RECALLS, n);
        share_cells(row, sum->found, N_FOUND, n_targets);
        share_cells(row, sum->precision, N_RECALLS, n_scored);
        ft_bench_cell(row, alike ? "%.9g" : "-", sum->score_diff);
        ft_bench_cell(
            row, e->system.superset || n < s->batch.n_queries ? "-" : "%016" PRIx64,
            s->digest);
    }
    if (!sum->ended && n < s->batch.n_queries)
        ft_bench_cell(row, "%s: %u of %u queries", FT_BENCH_INTERRUPTED, n,
                      s->batch.n_queries);
    else
        ft_bench_cell(row, "%s", sum->status);
}

/* Which rows are to be measured; how many. */
static uint32_t choose(const ft_bench_search *s, sums *all)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n_entries; k++) {
        const ft_bench_entry *e = &s->entries[k];
        ft_bench_row row;
        ft_bench_entry_cells(&row, s, e);
        all[k] = (sums){.has_row = ft_bench_report_has(s->report, &row),
                        .ended = !e->engine};
        snprintf(all[k].status, sizeof all[k].status, "%s",
                 e->engine ? "ok" : e->status);
        n += !all[k].has_row;
    }
    return n;
}

static ft_status measure(ft_bench_search *s, ft_error *err)
{
    quality *o = s->state;
    sums all[FT_BENCH_MAX_SYSTEMS];
    const uint32_t n = s->batch.n_queries;
    if (!choose(s, all))
        return FT_OK;
    ft_status st = o->best_at ? FT_OK : find_best(s, err);
    if (st == FT_OK)
        st = ft_bench_expect(s, err);
    ft_defer_signals(true);
    for (uint32_t q = 0; q < n && st == FT_OK && !ft_signal_deferred(); q += PART) {
        if (ft_progress_due())
            ft_progress("beam %u: %u of %u queries", s->params.beam, q, n);
        st = measure_part(s, q, n - q < PART ? n - q : PART, all, err);
    }
    ft_progress_end();
    for (uint32_t k = 0; k < s->n_entries && st == FT_OK; k++) {
        ft_bench_row row;
        if (all[k].has_row || (ft_signal_deferred() && !all[k].n_done))
            continue;
        ft_bench_entry_cells(&row, s, &s->entries[k]);
        add_figures(&row, s, &s->entries[k], &all[k]);
        st = ft_bench_report_row(s->report, &row, err);
    }
    ft_defer_signals(false);
    return st;
}

/* Read a file of answers, of which some are of the grid. */
static ft_status read_answers(ft_bench_search *s, const char *what, const char *path,
                              bool values, ft_answers *answers, ft_error *err)
{
    if (!path)
        return FT_OK;
    const ft_status st = ft_answers_read(answers, path, values, err);
    uint64_t n = 0;
    for (uint32_t q = 0; q < s->batch.n_queries && st == FT_OK && !n; q++)
        ft_answers_of(answers, s->batch.ids[q], &n);
    if (st == FT_OK && !n)
        return ft_fail(err, FT_EINVAL, "%s: no line is of a query of the grid", path);
    if (st == FT_OK) {
        char lines[32];
        snprintf(lines, sizeof lines, ": %" PRIu64 " lines", (uint64_t)answers->n);
        ft_bench_file_fact(s, what, path, lines);
    }
    return st;
}

static ft_status open_quality(ft_bench_search *s, ft_error *err)
{
    quality *o = s->state = ft_new(quality, err);
    if (!o)
        return FT_ENOMEM;
    if (!s->params.n_results)
        s->params.n_results = MOST_RESULTS;
    const ft_status st =
        read_answers(s, "targets", s->targets_path, false, &o->targets, err);
    return st == FT_OK
               ? read_answers(s, "scores", s->scores_path, true, &o->scores, err)
               : st;
}

static void close_quality(ft_bench_search *s)
{
    quality *o = s->state;
    if (!o)
        return;
    ft_answers_free(&o->targets);
    ft_answers_free(&o->scores);
    ft_buf_free(&o->best);
    free(o->best_at);
    free(o->is_exact);
    free(o->ranks.slots);
    free(o);
}

static void options(ft_bench_search *s, ft_option *rows)
{
    const ft_option own[] = {{FT_OPT_STRING, 0, "targets", &s->targets_path, "FILE",
                              "the keys that queries are after"},
                             {FT_OPT_STRING, 0, "scores", &s->scores_path, "FILE",
                              "scores of keys, for the precision"}};
    memcpy(rows, own, sizeof own);
}

int ft_bench_quality(const ft_subcommand *self, int argc, char **argv)
{
    static const ft_bench_column columns[] = {
        {"system", FT_BENCH_TEXT, 17},      {"layout", FT_BENCH_TEXT, 12},
        {"threads", FT_BENCH_NUMBER},       {"beam", FT_BENCH_NUMBER, 5},
        {"queries", FT_BENCH_NUMBER},       {"exact", FT_BENCH_NUMBER, 6},
        {"recall_100", FT_BENCH_NUMBER},    {"recall_200", FT_BENCH_NUMBER},
        {"found_1", FT_BENCH_NUMBER},       {"found_10", FT_BENCH_NUMBER},
        {"found_100", FT_BENCH_NUMBER},     {"found_1000", FT_BENCH_NUMBER},
        {"precision_100", FT_BENCH_NUMBER}, {"precision_200", FT_BENCH_NUMBER},
        {"score_diff", FT_BENCH_NUMBER},    {"digest", FT_BENCH_TEXT, 16},
        {"status", FT_BENCH_TEXT},          {NULL}};
    static const ft_bench_method method = {.columns = columns,
                                           .n_key = 4,
                                           .options = options,
                                           .open = open_quality,
                                           .measure = measure,
                                           .close = close_quality};
    return ft_bench_search_run(self, argc, argv, &method);
}
