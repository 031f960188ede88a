/* SPDX-License-Identifier: Apache-2.0
 *
 * Work in a process of its own: so that its peak memory is known, and it can be ended.
 */
#ifndef FT_CMD_BENCH_CHILD_H
#define FT_CMD_BENCH_CHILD_H

#include "ft.h"

typedef struct ft_bench_usage {
    double seconds;      /* from start to end */
    uint64_t peak_bytes; /* of resident memory */
    bool late;           /* ended at the limit */
} ft_bench_usage;

/* Memory that a child shares: zeroed; NULL with FT_ENOMEM in *err. */
void *ft_bench_share(size_t bytes, ft_error *err);
void ft_bench_unshare(void *shared, size_t bytes);

/* Run `work`, which may exec and otherwise returns true where all went well; at most
 * `limit` seconds, 0: any. FT_EIO: it did not, or it died. */
ft_status ft_bench_child(bool (*work)(void *arg), void *arg, double limit,
                         ft_bench_usage *usage, ft_error *err);

/* A file without a name in `folder`, which is gone when nobody has it open; its path is
 * good in this process and its children. */
typedef struct ft_bench_scratch {
    int fd;
    char path[64];
} ft_bench_scratch;

ft_status ft_bench_scratch_open(ft_bench_scratch *s, const char *folder, ft_error *err);
void ft_bench_scratch_close(ft_bench_scratch *s);

#endif
