/* SPDX-License-Identifier: Apache-2.0
 *
 * Systems are rows: what is measured is an engine of the engine table and the layout
 * that belongs to it, under a name of its own.
 */
#ifndef FT_CMD_BENCH_SYSTEMS_H
#define FT_CMD_BENCH_SYSTEMS_H

#include "ft.h"
#include "options.h"

typedef struct ft_bench_system {
    const char *name, *engine; /* engine: NULL of what is not searched */
    const char *layouts;       /* that it is meant for, split by blanks; NULL: any */
    const char *what;          /* for people */
    bool one_thread;
    bool superset;  /* its results are not the others', they contain them */
    bool ablation;  /* of the paper's kernel: a row of `ft-bench ablation` */
    bool on_device; /* ft_bench_system_find sets it */
} ft_bench_system;

/* The rows; a NULL name ends them. */
extern const ft_bench_system ft_bench_systems[];

/* The system of that name, or an engine's name as a system of any layout. FT_EINVAL: it
 * is neither, or not searched. */
ft_status ft_bench_system_find(ft_bench_system *out, const char *name, ft_error *err);

/* Is the index of a layout that the system is meant for? */
bool ft_bench_system_wants(const ft_bench_system *s, const char *layout);

/* ft-bench systems */
int ft_bench_list_systems(const ft_subcommand *self, int argc, char **argv);

#endif
