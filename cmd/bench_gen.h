/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands of ft-bench that make workloads.
 */
#ifndef FT_CMD_BENCH_GEN_H
#define FT_CMD_BENCH_GEN_H

#include "options.h"

int ft_bench_gen_keys(const ft_subcommand *self, int argc, char **argv);
int ft_bench_gen_grid(const ft_subcommand *self, int argc, char **argv);

#endif
