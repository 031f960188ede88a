/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations that only grow: the search path allocates when it meets a larger shape,
 * and never again.
 */
#ifndef FT_GPU_ROOM_H
#define FT_GPU_ROOM_H

#include "cuda.h"

typedef struct ft_gpu_room {
    void *memory;
    void *mapped; /* of pinned memory: the device's address */
    uint64_t bytes;
} ft_gpu_room;

/* Room for `bytes` in device memory, or in pinned host memory that kernels can use;
 * what was in it is lost. FT_ENOMEM says how much is free and what needs less. */
ft_status ft_room_on_device(ft_gpu_room *r, uint64_t bytes, ft_error *err);
ft_status ft_room_pinned(ft_gpu_room *r, uint64_t bytes, ft_error *err);

void ft_room_free_on_device(ft_gpu_room *r);
void ft_room_free_pinned(ft_gpu_room *r);

#endif
