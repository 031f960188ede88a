/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the queries of a grid, a line an answer:
 *
 *     query TAB value TAB tokens [TAB ...]
 *
 * where `tokens` is a key, its tokens split by blanks.
 */
#ifndef FT_CMD_BENCH_ANSWERS_H
#define FT_CMD_BENCH_ANSWERS_H

#include "ft.h"

typedef struct ft_answer {
    uint64_t query, line;
    double value;
    const uint32_t *tokens; /* n of them */
    uint32_t n;
} ft_answer;

typedef struct ft_answers {
    ft_answer *v; /* by query, then by tokens; no two are equal in both */
    uint64_t n;
    uint32_t *tokens;
} ft_answers;

/* Read `path`. With `values`, those must be numbers; else they may be anything, and are
 * 0 here. */
ft_status ft_answers_read(ft_answers *out, const char *path, bool values,
                          ft_error *err);

/* Those of a query: *n of them, from the one returned on; NULL where there are none. */
const ft_answer *ft_answers_of(const ft_answers *a, uint64_t query, uint64_t *n);
void ft_answers_free(ft_answers *a);

#endif
