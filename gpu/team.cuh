/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread blocks that work on one query: a cluster (compute capability 9.0 and up),
 * which shares memory and barriers, or a single block. Host code launches clusters only
 * where there are any.
 */
#ifndef FT_GPU_TEAM_CUH
#define FT_GPU_TEAM_CUH

#include <cooperative_groups.h>
#include <stdint.h>

#include "machine.cuh"

namespace ft
{

enum { MAX_TEAM = 16 }; /* blocks */

struct team {
    unsigned rank, size; /* of this block, in blocks */

    static __device__ team whole()
    {
#if __CUDA_ARCH__ >= 900
        const auto cluster = cooperative_groups::this_cluster();
        return {cluster.block_rank(), cluster.num_blocks()};
#else
        return {0, 1};
#endif
    }

    static __device__ team alone()
    {
        return {0, 1};
    }

    /* A barrier of all threads; what was written to shared or device memory before it
     * is seen by the team after it. */
    __device__ void sync() const
    {
        arrive();
        wait();
    }

    /* The same in two halves. A cluster's first half waits for all writes before it,
     * those to device memory too, which take long: they are better made in between. */
    __device__ void arrive() const
    {
#if __CUDA_ARCH__ >= 900
        if (size > 1)
            cooperative_groups::this_cluster().barrier_arrive();
#endif
    }

    __device__ void wait() const
    {
#if __CUDA_ARCH__ >= 900
        if (size > 1) {
            cooperative_groups::this_cluster().barrier_wait();
            return;
        }
#endif
        __syncthreads();
    }

    /* The same shared variable in block `of` of the team. */
    template <class T> __device__ T *at(T *mine, unsigned of) const
    {
#if __CUDA_ARCH__ >= 900
        if (size > 1)
            return in_block(mine, of);
#endif
        return mine;
    }
};

constexpr int log2_of(unsigned n)
{
    return n == 1 ? 0 : 1 + log2_of(n / 2);
}

/* Add `yes` lanes' worth to *counter with one atomic a warp; returns the lane's own
 * place. All lanes of the warp call it. */
static __device__ inline uint32_t take_place(uint32_t *counter, bool yes)
{
    const unsigned lanes = __ballot_sync(~0u, yes);
    const unsigned lane = threadIdx.x % 32;
    uint32_t base = 0;
    if (lane == 0 && lanes)
        base = atomicAdd(counter, __popc(lanes));
    base = __shfl_sync(~0u, base, 0);
    return base + __popc(lanes & ((1u << lane) - 1));
}

/* The same for two counters, whose latencies overlap. */
static __device__ inline void take_places(uint32_t *counter_a, bool a, uint32_t *at_a,
                                          uint32_t *counter_b, bool b, uint32_t *at_b)
{
    const unsigned lanes_a = __ballot_sync(~0u, a), lanes_b = __ballot_sync(~0u, b);
    const unsigned lane = threadIdx.x % 32, below = (1u << lane) - 1;
    uint32_t base = 0;
    if (lane < 2)
        base =
            atomicAdd(lane ? counter_b : counter_a, __popc(lane ? lanes_b : lanes_a));
    *at_a = __shfl_sync(~0u, base, 0) + __popc(lanes_a & below);
    *at_b = __shfl_sync(~0u, base, 1) + __popc(lanes_b & below);
}

static __device__ inline unsigned warp_or(unsigned v)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(~0u, v);
#else
    for (int step = 16; step; step /= 2)
        v |= __shfl_xor_sync(~0u, v, step);
    return v;
#endif
}

static __device__ inline uint32_t warp_sum(uint32_t v)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(~0u, v);
#else
    for (int step = 16; step; step /= 2)
        v += __shfl_xor_sync(~0u, v, step);
    return v;
#endif
}

/* The lane's value and those of the lanes below. */
static __device__ inline uint32_t warp_sum_to(uint32_t v)
{
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned d = 1; d < 32; d *= 2) {
        const uint32_t below = __shfl_up_sync(~0u, v, d);
        v += lane >= d ? below : 0;
    }
    return v;
}

/* The sum of a block's values in the threads before, by all threads; *total of all,
 * if asked for. One barrier; between two calls lies another. */
template <int WARPS>
static __device__ inline uint32_t sum_before(uint32_t (&sums)[WARPS], uint32_t v,
                                             uint32_t *total)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t to = warp_sum_to(v);
    if (lane == 31)
        sums[warp] = to;
    __syncthreads();
    const uint32_t of = lane < WARPS ? sums[lane] : 0;
    if (total)
        *total = warp_sum(of);
    return warp_sum(lane < warp ? of : 0) + to - v;
}

static __device__ inline uint32_t warp_max(uint32_t v)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(~0u, v);
#else
    for (int step = 16; step; step /= 2)
        v = max(v, __shfl_xor_sync(~0u, v, step));
    return v;
#endif
}

} // namespace ft

#endif
