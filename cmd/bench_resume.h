/* SPDX-License-Identifier: Apache-2.0
 *
 * The file that a run goes on with: its head is held against that of the run, and its
 * rows are what needs no measurement.
 */
#ifndef FT_CMD_BENCH_RESUME_H
#define FT_CMD_BENCH_RESUME_H

#include "bench_report.h"

typedef struct ft_bench_earlier {
    ft_buf lines;       /* the file as it stays, a zero in place of each newline */
    uint64_t rows;      /* where its rows begin */
    uint64_t n_rows;    /* of lines that are measurements */
    bool has_repeating; /* the file has rows that `lines` has not: to measure again */
} ft_bench_earlier;

/* Read the file, whose head must be the lines of `head`, which it spoils, but for what
 * passes: FT_EFORMAT. An empty file has nothing, not even that. What stands behind the
 * last whole line is left out. */
ft_status ft_bench_earlier_read(ft_bench_earlier *e, int fd, const char *name,
                                char *head, ft_error *err);

/* Write it as it stays. */
ft_status ft_bench_earlier_write(const ft_bench_earlier *e, ft_sink *out,
                                 ft_error *err);

/* The row whose first n_key cells are those of `row`; NULL: there is none. */
const char *ft_bench_earlier_find(const ft_bench_earlier *e, const ft_bench_row *row,
                                  uint32_t n_key);

void ft_bench_earlier_free(ft_bench_earlier *e);

#endif
