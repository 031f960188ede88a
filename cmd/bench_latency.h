/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FT_CMD_BENCH_LATENCY_H
#define FT_CMD_BENCH_LATENCY_H

#include "options.h"

/* ft-bench latency: one query at a time through several systems, side by side. */
int ft_bench_latency(const ft_subcommand *self, int argc, char **argv);

#endif
