/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock: searches timed by the paper's protocol (Appendix E). One warm-up pass over
 * the queries is thrown away, the passes after it are pooled; the window is from the
 * call with grids in memory to its results in memory.
 */
#ifndef FT_CMD_BENCH_MEASURE_H
#define FT_CMD_BENCH_MEASURE_H

#include "bench_search.h"

typedef enum ft_bench_feed {
    FT_BENCH_HOST,        /* grids and results in the host's memory */
    FT_BENCH_DEVICE,      /* grids in the engine's memory, results in the host's */
    FT_BENCH_DEVICE_ONLY, /* both in the engine's; a pass for them follows */
    FT_BENCH_N_FEEDS
} ft_bench_feed;

/* Of the samples, in seconds a call; and queries a second of whole passes. A deviation
 * is across passes, and NAN of one. */
typedef struct ft_bench_summary {
    double mean, sd, p50, p90, p95, p99;
    double rate, rate_sd;
} ft_bench_summary;

/* One system, timed. A pass is n_calls calls of n_batch queries; the last may have
 * fewer. */
typedef struct ft_bench_timing {
    ft_bench_entry *entry;
    ft_bench_feed feed;
    uint32_t n_batch, n_calls;
    ft_loaded **loaded; /* n_calls; NULL where the host feeds */
    double *seconds;    /* n_passes * n_calls, and as much room to sort them */
    uint32_t n_passes;  /* timed, whole ones */
    uint64_t n_samples; /* calls of those, or else of the pass cut short; 0: none */
    uint32_t n_of_pass; /* calls of the pass under way, or the last one */
    uint64_t n_done;    /* calls, those of the warm-up as well */
    double spent;       /* seconds in calls */
    bool over;          /* before all passes were */
    bool hangs;         /* in a search: nothing more can be asked of it */
    bool has_row;       /* in the file that is gone on with */
    ft_bench_summary summary; /* where there are samples */
    char status[FT_BENCH_CELL_BYTES];
} ft_bench_timing;

/* Add a method's figures behind the cells that name the measurement. `base` is the
 * first system of this beam. */
typedef ft_status ft_bench_figures(ft_bench_row *row, ft_bench_search *s,
                                   const ft_bench_timing *t,
                                   const ft_bench_timing *base, ft_error *err);

/* The options of a clock: passes and time limit. */
enum { FT_BENCH_CLOCK_OPTIONS = 2 };
void ft_bench_clock_options(ft_bench_search *s, ft_option *rows);

/* Time all systems side by side, a pass of each, then the next, n_batch queries a call;
 * and write their rows. What the file gone on with has is left out, but not the first
 * system where others are compared with it. Methods with batches also feed from the
 * device where an engine can. */
ft_status ft_bench_measure(ft_bench_search *s, uint32_t n_batch,
                           ft_bench_figures *figures, ft_error *err);

/* Cells: milliseconds, "-" for NAN; and the digest of all results, where all have been
 * compared. */
void ft_bench_ms_cell(ft_bench_row *row, double seconds);
void ft_bench_digest_cell(ft_bench_row *row, const ft_bench_search *s,
                          const ft_bench_timing *t);

/* One pass over the queries, one at a time, with counters or phases, which ends at the
 * time limit and at an interrupt; *n_done of them, at least one. *spent grows by what
 * it takes. */
ft_status ft_bench_stats_pass(const ft_bench_search *s, ft_bench_entry *e,
                              ft_stats *stats, double *spent, uint32_t *n_done,
                              ft_error *err);

#endif
