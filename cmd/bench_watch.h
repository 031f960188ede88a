/* SPDX-License-Identifier: Apache-2.0
 *
 * A search cannot be broken off, on a GPU least of all. One that does not come back is
 * watched by a thread that then ends the process, once what is known has been said.
 */
#ifndef FT_CMD_BENCH_WATCH_H
#define FT_CMD_BENCH_WATCH_H

#include "ft.h"

typedef struct ft_bench_watch ft_bench_watch;

/* Where a search takes longer than `limit` seconds, but for those in which the process
 * was stopped, give_up(arg) is called by the watching thread, and the process ends with
 * what it returns. */
ft_status ft_bench_watch_open(ft_bench_watch **out, double limit,
                              int (*give_up)(void *arg), void *arg, ft_error *err);

/* Around a search; w may be NULL: it is not watched then. `end` does not return where
 * the search has been given up. */
void ft_bench_watch_begin(ft_bench_watch *w);
void ft_bench_watch_end(ft_bench_watch *w);
void ft_bench_watch_close(ft_bench_watch *w);

#endif
