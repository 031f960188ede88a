/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FT_CMD_BENCH_FILL_H
#define FT_CMD_BENCH_FILL_H

#include "ft.h"

/* Say, on standard error, means over the queries: how full the beam was when it entered
 * each step, in percent of `beam`, with the mean over steps 1 to 6; and how many probes
 * each step took (ft_step_stats). */
void ft_bench_say_fill(const ft_stats *stats, uint32_t n_queries, uint32_t n_steps,
                       uint32_t beam);

#endif
