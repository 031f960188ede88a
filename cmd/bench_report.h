/* SPDX-License-Identifier: Apache-2.0
 *
 * What measurements print: facts about the run, then a row a measurement, as a table
 * for people, as TSV or as one JSON object. A row is written whole and at once, so that
 * an interrupt keeps what has been measured; a TSV file can be gone on with.
 */
#ifndef FT_CMD_BENCH_REPORT_H
#define FT_CMD_BENCH_REPORT_H

#include "ft.h"
#include "options.h"

enum {
    FT_BENCH_MAX_COLUMNS = 32,
    FT_BENCH_CELL_BYTES = 256,
    FT_BENCH_FACT_BYTES = 1024
};

typedef enum ft_bench_format {
    FT_BENCH_TABLE,
    FT_BENCH_TSV,
    FT_BENCH_JSON,
    FT_BENCH_BY_OUTPUT /* a table for a terminal, else TSV */
} ft_bench_format;

typedef enum ft_bench_kind { FT_BENCH_TEXT, FT_BENCH_NUMBER } ft_bench_kind;

typedef struct ft_bench_column {
    const char *name; /* NULL: the column behind the last */
    ft_bench_kind kind;
    int width; /* of a table's column, at least */
} ft_bench_column;

/* What the command line says of the output. */
typedef struct ft_bench_output {
    const char *path;  /* NULL: standard output */
    uint32_t format;   /* ft_bench_format */
    bool resume, json; /* json: the same as the format */
    ft_list notes;     /* free its items */
    uint32_t device;   /* the GPU that the header speaks of */
} ft_bench_output;

/* The rows of an option table that fill it. */
extern const char *const ft_bench_formats[];
#define FT_BENCH_OUTPUT_ROWS(o)                                                        \
    {FT_OPT_ENUM,                                                                      \
     'f',                                                                              \
     "format",                                                                         \
     &(o)->format,                                                                     \
     "NAME",                                                                           \
     "form of the output (default: table on a terminal, else tsv)",                    \
     .choices = ft_bench_formats},                                                     \
        {FT_OPT_FLAG, 0, "json", &(o)->json, NULL, "the same as -f json"},             \
        {FT_OPT_STRING, 'o',    "output",                                              \
         &(o)->path,    "FILE", "write to FILE, a row as soon as it is measured"},     \
        {FT_OPT_FLAG,  0,    "resume",                                                 \
         &(o)->resume, NULL, "go on with FILE: what it has is not measured again"},    \
    {                                                                                  \
        FT_OPT_LIST, 0, "note", &(o)->notes, "TEXT",                                   \
            "put TEXT into the header (may be repeated)"                               \
    }

/* Statuses that start so are of rows that --resume measures again. */
#define FT_BENCH_FAILED "failed:"
#define FT_BENCH_UNAVAILABLE "unavailable:"
#define FT_BENCH_INTERRUPTED "interrupted"

/* Usage errors of the above, and an output that is an input, "FILE" or "SYSTEM=FILE":
 * FT_GO_ON or the status to exit with. */
int ft_bench_output_check(const ft_command *c, const ft_bench_output *o,
                          const ft_operands *inputs);

/* The same of a file that an option names; NULL: it is not given. */
int ft_bench_output_check_file(const ft_command *c, const ft_bench_output *o,
                               const char *input);

typedef struct ft_bench_report ft_bench_report;

/* A report of `command` ("latency"). Two rows whose first n_key cells are equal are one
 * measurement. The facts of the machine and of this build are in. */
ft_status ft_bench_report_open(ft_bench_report **out, const ft_bench_output *o,
                               const char *command, const ft_bench_column *columns,
                               uint32_t n_key, ft_error *err);

/* One more fact for the header: "grid", "8 steps of 1000 proposals ...". */
void ft_bench_report_fact(ft_bench_report *r, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* All facts are there: open the output, write the header or compare it with that of the
 * file to go on with, and read the rows of that. */
ft_status ft_bench_report_begin(ft_bench_report *r, ft_error *err);

/* A row's cells in the order of the columns; "-" is none. */
typedef struct ft_bench_row {
    char cells[FT_BENCH_MAX_COLUMNS][FT_BENCH_CELL_BYTES];
    uint32_t n;
} ft_bench_row;

void ft_bench_cell(ft_bench_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* n cells "-" more. */
void ft_bench_no_cells(ft_bench_row *row, uint32_t n);

/* The status of the row of this key in the file to go on with; NULL: it has none. */
const char *ft_bench_report_status(const ft_bench_report *r, const ft_bench_row *row);

static inline bool ft_bench_report_has(const ft_bench_report *r,
                                       const ft_bench_row *row)
{
    return ft_bench_report_status(r, row) != NULL;
}

/* Write a row; cells that are missing are "-". */
ft_status ft_bench_report_row(ft_bench_report *r, const ft_bench_row *row,
                              ft_error *err);

/* End and close; returns st or the first failure of these. Rows whose last cell, the
 * status, starts with "failed:" are one; so is a report whose rows all start with
 * "unavailable:" (FT_EUNAVAILABLE). r may be NULL. */
ft_status ft_bench_report_close(ft_bench_report *r, ft_status st, ft_error *err);

#endif
