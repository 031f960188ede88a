/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands share that search a grid through systems: `GRID SYSTEM=INDEX...`.
 * One library, one grid, one set of parameters for all of them; every result is held
 * against a reference, so that nothing fast and wrong is a row.
 */
#ifndef FT_CMD_BENCH_SEARCH_H
#define FT_CMD_BENCH_SEARCH_H

#include "bench_numbers.h"
#include "bench_report.h"
#include "bench_systems.h"

enum { FT_BENCH_MAX_SYSTEMS = 24, FT_BENCH_MAX_OWN_OPTIONS = 4 };

/* One operand SYSTEM=INDEX. */
typedef struct ft_bench_entry {
    ft_bench_system system;
    ft_index *index;
    bool owns_index;   /* else an entry before has it, of the same file */
    ft_engine *engine; /* NULL: it cannot run here */
    ft_results results;
    char status[FT_BENCH_CELL_BYTES]; /* and this says why */
} ft_bench_entry;

typedef struct ft_bench_search ft_bench_search;

/* A command is a row of this kind. */
typedef struct ft_bench_method {
    const ft_bench_column *columns;
    uint32_t n_key;     /* columns that name a measurement */
    uint32_t n_passes;  /* the default */
    bool has_batches;   /* measures with each of batches */
    bool has_ablations; /* an operand may be an index alone */

    /* Put its own options, FT_BENCH_MAX_OWN_OPTIONS at most, behind the common ones. */
    void (*options)(ft_bench_search *s, ft_option *rows);

    /* Before the report begins, once grid and systems are there. May be NULL. */
    ft_status (*open)(ft_bench_search *s, ft_error *err);

    /* Measure all entries at params.beam and give the rows. Failures that concern an
     * entry alone are its rows' status. */
    ft_status (*measure)(ft_bench_search *s, ft_error *err);
    void (*close)(ft_bench_search *s); /* may be NULL */
} ft_bench_method;

struct ft_bench_search {
    const ft_bench_method *method;
    void *state;             /* the method's own */
    ft_search_params params; /* with the beam at hand */
    uint32_t n_threads, n_passes, n_most;
    double time_limit; /* seconds of a measurement; 0: none */
    const char *expect_path, *targets_path, *scores_path;
    const char *beams_text, *batches_text; /* as they are given */
    ft_bench_numbers beams, batches;
    ft_bench_output output;
    ft_batch batch; /* all queries */
    ft_bench_entry entries[FT_BENCH_MAX_SYSTEMS];
    uint32_t n_entries;
    ft_bench_report *report;
    struct ft_bench_watch *watch; /* of timed searches; NULL: they take as they like */
    uint32_t n_groups, group;     /* of measurements, for the time left */

    /* At the beam at hand, once ft_bench_expect has been called. */
    uint64_t *expected; /* digest of each query's record */
    uint64_t digest;    /* of these */
    double fill;        /* of the beam, percent, mean over steps 1 to 6 */
    bool has_expected;
};

/* The whole command. */
int ft_bench_search_run(const ft_subcommand *self, int argc, char **argv,
                        const ft_bench_method *method);

/* Search with the reference, unless that is done for this beam; and say how full the
 * beam is. The reference is engine cpu on the first index, or the file that was given.
 */
ft_status ft_bench_expect(ft_bench_search *s, ft_error *err);

/* Queries first .. first + n - 1 of the batch. */
ft_batch ft_bench_part(const ft_batch *all, uint32_t first, uint32_t n);

/* Are these the results expected of queries first ...? False: *wrong is the query. */
bool ft_bench_is_right(const ft_bench_search *s, const ft_bench_entry *e,
                       uint32_t first, uint32_t *wrong);

/* The cells system, layout, threads, beam of an entry. */
void ft_bench_entry_cells(ft_bench_row *row, const ft_bench_search *s,
                          const ft_bench_entry *e);

/* A fact of the header: the file's name, more about it, and what says whether it is the
 * same file to a run that goes on; a pipe, which can be read once, is its name. */
void ft_bench_file_fact(ft_bench_search *s, const char *name, const char *path,
                        const char *more);

#endif
