/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands of ft-bench that measure.
 */
#ifndef FT_CMD_BENCH_COMMANDS_H
#define FT_CMD_BENCH_COMMANDS_H

#include "options.h"

int ft_bench_latency(const ft_subcommand *self, int argc, char **argv);
int ft_bench_throughput(const ft_subcommand *self, int argc, char **argv);
int ft_bench_breakdown(const ft_subcommand *self, int argc, char **argv);
int ft_bench_ablation(const ft_subcommand *self, int argc, char **argv);
int ft_bench_quality(const ft_subcommand *self, int argc, char **argv);
int ft_bench_build(const ft_subcommand *self, int argc, char **argv);
int ft_bench_size(const ft_subcommand *self, int argc, char **argv);

#endif
