/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_watch.h"
#include "common.h"

/* A search that takes as many time limits, or as many seconds, is given up. */
enum { PATIENCE = 10, LEAST_SECONDS = 2 };

/* What its status ends with then. */
static const char given_up[] = ", given up";

/* Measurements side by side. */
typedef struct bench_group {
    ft_bench_search *s;
    ft_bench_figures *figures;
    ft_bench_timing timings[FT_BENCH_MAX_SYSTEMS * FT_BENCH_N_FEEDS];
    uint32_t n;
    uint32_t pass;            /* that is under way */
    ft_bench_timing *running; /* whose it is */
} bench_group;

/* Of a failure that is one system's alone. FT_ENOMEM as well: another needs less. */
static void end_with(ft_bench_timing *t, ft_status st, const ft_error *err)
{
    t->over = true;
    t->n_samples = t->n_passes = 0;
    snprintf(t->status, sizeof t->status, "%s: %.200s",
             st == FT_EUNAVAILABLE ? "unavailable" : "failed", err->message);
}

static uint32_t first_of(const ft_bench_timing *t, uint32_t call)
{
    return call * t->n_batch;
}

static ft_batch call_batch(const ft_bench_search *s, const ft_bench_timing *t,
                           uint32_t call)
{
    const uint32_t first = first_of(t, call), left = s->batch.n_queries - first;
    return ft_bench_part(&s->batch, first, left < t->n_batch ? left : t->n_batch);
}

static void load_all(const ft_bench_search *s, ft_bench_timing *t)
{
    ft_error err;
    ft_status st = FT_OK;
    t->loaded = ft_calloc(t->n_calls, sizeof *t->loaded, &err);
    if (!t->loaded)
        st = FT_ENOMEM;
    for (uint32_t c = 0; c < t->n_calls && st == FT_OK; c++) {
        const ft_batch part = call_batch(s, t, c);
        st = ft_engine_load(t->entry->engine, &part, &t->loaded[c], &err);
    }
    if (st != FT_OK)
        end_with(t, st, &err);
}

static ft_status prepare(const ft_bench_search *s, ft_bench_timing *t, ft_error *err)
{
    const uint32_t n = s->batch.n_queries;
    t->n_calls = n / t->n_batch + (n % t->n_batch != 0);
    t->seconds =
        ft_calloc(2 * (uint64_t)t->n_calls * s->n_passes, sizeof *t->seconds, err);
    if (!t->seconds)
        return FT_ENOMEM;
    if (!t->entry->engine) {
        t->over = true;
        snprintf(t->status, sizeof t->status, "%s", t->entry->status);
    } else if (t->feed != FT_BENCH_HOST) {
        load_all(s, t);
    }
    return FT_OK;
}

static void free_timing(ft_bench_timing *t)
{
    for (uint32_t c = 0; t->loaded && c < t->n_calls; c++)
        ft_engine_unload(t->entry->engine, t->loaded[c]);
    free(t->loaded);
    free(t->seconds);
}

/* The clock stops before the results are compared. Results that are to stay on the
 * device are not there then. */
static ft_status call(const ft_bench_search *s, const ft_bench_timing *t, uint32_t c,
                      bool stay, double *seconds, ft_error *err)
{
    ft_bench_entry *e = t->entry;
    const ft_batch part = call_batch(s, t, c);
    uint32_t wrong = first_of(t, c);
    e->results.n_queries = 0; /* those of the call before are no answer */
    ft_bench_watch_begin(s->watch);
    const double start = ft_seconds();
    const ft_status st =
        t->loaded
            ? ft_engine_search_loaded(e->engine, t->loaded[c], &s->params,
                                      stay ? NULL : &e->results, err)
            : ft_engine_search(e->engine, &part, &s->params, &e->results, NULL, err);
    *seconds = ft_seconds() - start;
    ft_bench_watch_end(s->watch);
    if (st == FT_OK && !stay &&
        (e->results.n_queries != part.n_queries ||
         !ft_bench_is_right(s, e, first_of(t, c), &wrong)))
        return ft_fail(err, FT_EFORMAT, "wrong results, query %u", wrong);
    return st;
}

static void stop_at_interrupt(const ft_bench_search *s, ft_bench_timing *t)
{
    t->over = true;
    snprintf(t->status, sizeof t->status, "%s: %u of %u passes", FT_BENCH_INTERRUPTED,
             t->n_passes, s->n_passes);
}

/* How far it got, as the paper says of MARISA-Int (Appendix H). */
static void stop_at_limit(const ft_bench_search *s, ft_bench_timing *t, bool warm_up,
                          double limit)
{
    const uint64_t done = t->n_samples * t->n_batch, all = s->batch.n_queries;
    t->over = true;
    if (t->n_passes)
        snprintf(t->status, sizeof t->status, "%u of %u passes in %g s", t->n_passes,
                 s->n_passes, limit);
    else
        snprintf(t->status, sizeof t->status, "%llu of %llu queries in %g s%s",
                 (unsigned long long)(done < all ? done : all), (unsigned long long)all,
                 limit, warm_up ? ", not warm" : "");
}

/* Seconds until all is done, if what follows takes as long as what was; below 0 where
 * something has not been tried yet. */
static double seconds_left(const ft_bench_search *s, const ft_bench_timing *timings,
                           uint32_t n)
{
    double left = 0, group = 0;
    for (const ft_bench_timing *t = timings; t < timings + n; t++) {
        if (t->n_done == 0 && !t->over)
            return -1;
        double all = t->spent;
        if (!t->over)
            all *= (double)t->n_calls * (s->n_passes + 1) / (double)t->n_done;
        if (s->time_limit > 0 && all > s->time_limit)
            all = s->time_limit;
        group += all;
        left += all > t->spent ? all - t->spent : 0;
    }
    return left + group * (s->n_groups - s->group - 1);
}

static void show_progress(const ft_bench_search *s, const ft_bench_timing *timings,
                          uint32_t n, const ft_bench_timing *t, uint32_t pass)
{
    const double left = seconds_left(s, timings, n);
    char what[32] = "warm-up", time[48] = "";
    if (pass)
        snprintf(what, sizeof what, "pass %u of %u", pass, s->n_passes);
    if (left >= 0)
        snprintf(time, sizeof time, left < 120 ? ", %.0f s left" : ", %.0f min left",
                 left < 120 ? left : left / 60);
    ft_progress("beam %u, batch %u, %s: %s%s", s->params.beam, t->n_batch, what,
                t->entry->system.name, time);
}

/* Once more the first n calls, whose results stayed on the device, for the results. */
static void compare_calls(const ft_bench_search *s, ft_bench_timing *t, uint32_t n)
{
    ft_error err;
    double seconds;
    ft_status st = FT_OK;
    for (uint32_t c = 0; c < n && st == FT_OK; c++)
        st = call(s, t, c, false, &seconds, &err);
    if (st != FT_OK)
        end_with(t, st, &err);
}

/* Those of whole passes, or else of the pass under way. */
static void count_samples(ft_bench_timing *t)
{
    t->n_samples = t->n_passes ? (uint64_t)t->n_passes * t->n_calls : t->n_of_pass;
}

/* Pass 0 is the warm-up: its times stay only where nothing follows them. */
static void run_pass(bench_group *g, ft_bench_timing *t, uint32_t pass)
{
    const ft_bench_search *s = g->s;
    double *seconds = t->seconds + (uint64_t)(pass ? pass - 1 : 0) * t->n_calls;
    const bool stay = t->feed == FT_BENCH_DEVICE_ONLY && pass > 0;
    bool late = false;
    ft_error err;
    g->running = t;
    g->pass = pass;
    t->n_of_pass = 0;
    while (t->n_of_pass < t->n_calls && !late && !ft_signal_deferred()) {
        double *const spent = &seconds[t->n_of_pass];
        if (ft_progress_due())
            show_progress(s, g->timings, g->n, t, pass);
        const ft_status st = call(s, t, t->n_of_pass, stay, spent, &err);
        if (st != FT_OK) {
            end_with(t, st, &err);
            return;
        }
        t->spent += *spent;
        t->n_of_pass++;
        t->n_done++;
        late = s->time_limit > 0 && t->spent > s->time_limit;
    }
    const bool whole = t->n_of_pass == t->n_calls;
    t->n_passes += pass && whole;
    count_samples(t);
    if (late && !(whole && pass == s->n_passes))
        stop_at_limit(s, t, pass == 0, s->time_limit);
    else if (ft_signal_deferred() && !(whole && pass == s->n_passes))
        stop_at_interrupt(s, t);
    if (stay)
        compare_calls(s, t, t->n_of_pass);
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Nearest rank. */
static double percentile(const double *sorted, uint64_t n, double p)
{
    const uint64_t rank = (uint64_t)ceil(p * (double)n);
    return sorted[rank ? rank - 1 : 0];
}

static double pass_seconds(const ft_bench_timing *t, uint32_t pass)
{
    double sum = 0;
    for (uint64_t c = 0; c < t->n_calls; c++)
        sum += t->seconds[(uint64_t)pass * t->n_calls + c];
    return sum;
}

/* Which query a percentile of single queries is, for whoever asks why. */
static void say_slow(const ft_bench_search *s, const ft_bench_timing *t, double p99)
{
    uint64_t i = 0;
    while (t->seconds[i] != p99)
        i++;
    ft_say("%s, beam %u: p99 is %.4f ms, query %" PRIu64, t->entry->system.name,
           s->params.beam, 1e3 * p99, s->batch.ids[i % t->n_calls]);
}

static void summarise(const ft_bench_search *s, ft_bench_timing *t)
{
    const uint32_t n_queries = s->batch.n_queries;
    double *sorted = t->seconds + (uint64_t)t->n_calls * s->n_passes;
    ft_bench_summary *r = &t->summary;
    const uint64_t n = t->n_samples;
    double mean_squares = 0, rate_squares = 0;
    *r = (ft_bench_summary){.sd = NAN, .rate = NAN, .rate_sd = NAN};
    for (uint64_t i = 0; i < n; i++)
        r->mean += t->seconds[i] / (double)n;
    if (t->n_passes)
        r->rate = 0;
    for (uint32_t p = 0; p < t->n_passes; p++)
        r->rate += n_queries / pass_seconds(t, p) / t->n_passes;
    for (uint32_t p = 0; p < t->n_passes; p++) {
        const double seconds = pass_seconds(t, p);
        mean_squares += pow(seconds / t->n_calls - r->mean, 2);
        rate_squares += pow(n_queries / seconds - r->rate, 2);
    }
    if (t->n_passes > 1) {
        r->sd = sqrt(mean_squares / (t->n_passes - 1));
        r->rate_sd = sqrt(rate_squares / (t->n_passes - 1));
    }
    memcpy(sorted, t->seconds, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    r->p50 = percentile(sorted, n, 0.5);
    r->p90 = percentile(sorted, n, 0.9);
    r->p95 = percentile(sorted, n, 0.95);
    r->p99 = percentile(sorted, n, 0.99);
    if (t->n_batch == 1 && ft_is_verbose())
        say_slow(s, t, r->p99);
}

static void key_cells(ft_bench_row *row, const ft_bench_search *s,
                      const ft_bench_timing *t)
{
    static const char *const feeds[] = {"host", "device", "device-only"};
    ft_bench_entry_cells(row, s, t->entry);
    if (s->method->has_batches) {
        ft_bench_cell(row, "%u", t->n_batch);
        ft_bench_cell(row, "%s", feeds[t->feed]);
    }
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* The timings to make; returns how many. */
static uint32_t choose(ft_bench_search *s, uint32_t n_batch, ft_bench_timing *timings)
{
    uint32_t n = 0, n_wanted = 0;
    for (uint32_t i = 0; i < s->n_entries; i++) {
        ft_bench_entry *e = &s->entries[i];
        const bool loads = s->method->has_batches && e->engine && e->engine->ops->load;
        for (uint32_t f = 0; f < (loads ? FT_BENCH_N_FEEDS : 1); f++) {
            ft_bench_timing t = {
                .entry = e, .n_batch = n_batch, .feed = (ft_bench_feed)f};
            ft_bench_row row;
            key_cells(&row, s, &t);
            const char *had = ft_bench_report_status(s->report, &row);
            t.has_row = had;
            t.over = had && ends_with(had, given_up); /* it would not come back again */
            n_wanted += !t.has_row;
            if (!t.has_row || (s->method->has_ablations && i == 0))
                timings[n++] = t;
        }
    }
    return n_wanted ? n : 0;
}

static void run_passes(bench_group *g)
{
    ft_bench_timing *const end = g->timings + g->n;
    for (uint32_t pass = 0; pass <= g->s->n_passes; pass++)
        for (ft_bench_timing *t = g->timings; t < end; t++)
            if (!t->over)
                run_pass(g, t, pass);
    ft_progress_end();
    for (ft_bench_timing *t = g->timings; t < end; t++) {
        if (!t->over)
            snprintf(t->status, sizeof t->status,
                     t->entry->system.superset ? "ok, superset" : "ok");
        if (t->n_samples)
            summarise(g->s, t);
    }
}

static ft_status write_row(bench_group *g, const ft_bench_timing *t, ft_error *err)
{
    ft_bench_row row;
    key_cells(&row, g->s, t);
    const ft_status st = g->figures(&row, g->s, t, &g->timings[0], err);
    return st == FT_OK ? ft_bench_report_row(g->s->report, &row, err) : st;
}

static double longest_search(const ft_bench_search *s)
{
    return fmax(PATIENCE * s->time_limit, LEAST_SECONDS);
}

/* The row of the system whose search does not come back. What was measured beside it
 * has no row yet; a run that goes on with the file measures it. */
static int give_up(void *arg)
{
    bench_group *g = arg;
    ft_bench_search *s = g->s;
    ft_bench_timing *t = g->running, *base = &g->timings[0];
    const double limit = longest_search(s);
    ft_error err;
    ft_status st = FT_OK;
    t->hangs = true;
    count_samples(t);
    stop_at_limit(s, t, g->pass == 0, limit);
    strcat(t->status, given_up); /* of numbers: there is room */
    if (t->n_samples)
        summarise(s, t);
    if (base != t && base->n_samples)
        summarise(s, base);
    if (!t->has_row)
        st = write_row(g, t, &err);
    st = ft_bench_report_close(s->report, st, &err);
    ft_say("%s, beam %u: a search has not come back in %g s, so all ends here; "
           "--resume goes on without it",
           t->entry->system.name, s->params.beam, limit);
    if (st != FT_OK)
        ft_finish(st, &err);
    return FT_EXIT_FAILED;
}

static ft_status run_watched(bench_group *g, ft_error *err)
{
    ft_bench_search *s = g->s;
    const ft_status st =
        s->time_limit > 0
            ? ft_bench_watch_open(&s->watch, longest_search(s), give_up, g, err)
            : FT_OK;
    if (st == FT_OK)
        run_passes(g);
    ft_bench_watch_close(s->watch);
    s->watch = NULL;
    return st;
}

void ft_bench_clock_options(ft_bench_search *s, ft_option *rows)
{
    const ft_option own[FT_BENCH_CLOCK_OPTIONS] = {
        {FT_OPT_U32, 0, "passes", &s->n_passes, "N", "timed passes after one warm-up",
         .min = 1, .max = 100000},
        {FT_OPT_DOUBLE, 0, "time-limit", &s->time_limit, "S",
         "seconds that a measurement may take (default: any)", .min = 1e-9,
         .max = 1e9}};
    memcpy(rows, own, sizeof own);
}

ft_status ft_bench_measure(ft_bench_search *s, uint32_t n_batch,
                           ft_bench_figures *figures, ft_error *err)
{
    bench_group g = {.s = s, .figures = figures};
    g.n = choose(s, n_batch, g.timings);
    ft_status st = g.n ? ft_bench_expect(s, err) : FT_OK;
    for (uint32_t i = 0; i < g.n && st == FT_OK; i++)
        st = prepare(s, &g.timings[i], err);
    ft_defer_signals(true);
    if (st == FT_OK && g.n)
        st = run_watched(&g, err);
    for (uint32_t i = 0; i < g.n && st == FT_OK; i++)
        if (!g.timings[i].has_row && (!ft_signal_deferred() || g.timings[i].n_passes))
            st = write_row(&g, &g.timings[i], err);
    ft_defer_signals(false);
    for (uint32_t i = 0; i < g.n; i++)
        free_timing(&g.timings[i]);
    s->group++;
    return st;
}

void ft_bench_ms_cell(ft_bench_row *row, double seconds)
{
    ft_bench_cell(row, isnan(seconds) ? "-" : "%.4f", 1e3 * seconds);
}

void ft_bench_digest_cell(ft_bench_row *row, const ft_bench_search *s,
                          const ft_bench_timing *t)
{
    if (t->entry->system.superset || t->n_done < t->n_calls || t->n_samples == 0)
        ft_bench_cell(row, "-");
    else
        ft_bench_cell(row, "%016" PRIx64, s->digest);
}

ft_status ft_bench_stats_pass(const ft_bench_search *s, ft_bench_entry *e,
                              ft_stats *stats, double *spent, uint32_t *n_done,
                              ft_error *err)
{
    const uint32_t n = s->batch.n_queries, n_steps = s->batch.n_steps;
    uint32_t wrong;
    for (uint32_t q = *n_done = 0; q < n; *n_done = ++q) {
        const ft_batch one = ft_bench_part(&s->batch, q, 1);
        ft_stats of = {NULL, NULL};
        if (stats->steps)
            of.steps = stats->steps + (uint64_t)q * n_steps;
        if (stats->phases)
            of.phases = stats->phases + (uint64_t)q * FT_N_PHASES;
        const bool late = s->time_limit > 0 && *spent > s->time_limit;
        if (q && (late || ft_signal_deferred()))
            return FT_OK;
        const double start = ft_seconds();
        const ft_status st =
            ft_engine_search(e->engine, &one, &s->params, &e->results, &of, err);
        *spent += ft_seconds() - start;
        if (st != FT_OK)
            return st;
        if (!ft_bench_is_right(s, e, q, &wrong))
            return ft_fail(err, FT_EFORMAT, "wrong results, query %u", wrong);
        if (ft_progress_due())
            ft_progress("beam %u: %s, query %u of %u", s->params.beam, e->system.name,
                        q, n);
    }
    return FT_OK;
}
