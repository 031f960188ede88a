/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies in host memory by several threads: grids into pinned memory and results out of
 * it. A thread moves less than the bus does.
 */
#ifndef FT_GPU_COPY_H
#define FT_GPU_COPY_H

#include "lib.h"

extern "C" {
#include "engine/pool.h"
}

typedef struct ft_copy {
    void *to;
    const void *from;
    uint64_t bytes;
} ft_copy;

/* Copies that wait to be made. */
typedef struct ft_copies {
    ft_copy *list;
    uint64_t n, cap;
} ft_copies;

ft_status ft_copies_add(ft_copies *c, void *to, const void *from, uint64_t bytes,
                        ft_error *err);

/* Make them all; the list is empty then. */
void ft_copies_run(ft_copies *c, ft_pool *pool);

#endif
