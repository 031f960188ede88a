/* SPDX-License-Identifier: Apache-2.0
 *
 * A position's proposals in a block's shared memory, found by what the trie's edges
 * store. A code's hash is a bit of a map; the bit's rank leads to the few proposals
 * that share it. Most strangers meet a bit that is not set, and go at one access.
 *
 * To fill it: clear, barrier, mark, barrier, number, barrier, insert, barrier.
 */
#ifndef FT_GPU_POSITION_CUH
#define FT_GPU_POSITION_CUH

#include <cub/block/block_scan.cuh>

#include "lib.h"
#include "team.cuh"

namespace ft
{

static __device__ inline float key_float(uint32_t key)
{
    return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

constexpr int log2_of(unsigned n)
{
    return n == 1 ? 0 : 1 + log2_of(n / 2);
}

template <int THREADS, int ROOM> struct position {
    enum {
        WORDS = ROOM > THREADS ? ROOM : THREADS,
        EACH = WORDS / THREADS,
        SHIFT = 32 - log2_of(32 * WORDS) /* of a hash, to a bit's number */
    };
    static_assert(WORDS % THREADS == 0, "whole threads");

    struct entry {
        uint32_t code;
        float logp;
    };

    uint32_t map[WORDS];
    uint16_t before[WORDS]; /* bits set in the words before */
    uint32_t head[ROOM];    /* first proposal of each set bit, by rank; END */
    entry entries[ROOM];    /* by proposal */
    uint16_t next[ROOM];    /* with the same bit */
    uint32_t tokens[ROOM];
    uint32_t best, worst; /* keys of the log-probs */

    enum : uint32_t { END = 0xffff };

    static __device__ uint32_t bit_of(uint32_t code)
    {
        return (code * 0x9E3779B1u) >> SHIFT;
    }

    __device__ void clear()
    {
        for (int i = threadIdx.x; i < WORDS; i += THREADS)
            map[i] = 0;
        for (int i = threadIdx.x; i < ROOM; i += THREADS)
            head[i] = END;
        if (threadIdx.x == 0) {
            best = 0;
            worst = ~0u;
        }
    }

    __device__ void mark(uint32_t code)
    {
        const uint32_t bit = bit_of(code);
        atomicOr(&map[bit / 32], 1u << bit % 32);
    }

    /* All threads call it. */
    __device__ void number(
        typename cub::BlockScan<uint32_t, THREADS>::TempStorage &scan)
    {
        uint32_t n[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++)
            n[i] = __popc(map[threadIdx.x * EACH + i]);
        cub::BlockScan<uint32_t, THREADS>(scan).ExclusiveSum(n, n);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            before[threadIdx.x * EACH + i] = (uint16_t)n[i];
    }

    __device__ void insert(uint32_t k, uint32_t token, uint32_t code, float logp)
    {
        tokens[k] = token;
        entries[k] = {code, logp};
        if (code != FT_NO_TOKEN)
            next[k] = (uint16_t)atomicExch(&head[rank(bit_of(code))], k);
    }

    __device__ uint32_t rank(uint32_t bit) const
    {
        return before[bit / 32] + __popc(map[bit / 32] & ((1u << bit % 32) - 1));
    }

    __device__ bool may_have(uint32_t code) const
    {
        const uint32_t bit = bit_of(code);
        return map[bit / 32] >> bit % 32 & 1;
    }

    /* The first proposal with the code and the highest log-prob of all that have it;
     * END if there is none. The code's bit is set. */
    __device__ uint32_t find(uint32_t code, float *logp) const
    {
        uint32_t first = END;
        *logp = 0;
        for (uint32_t k = head[rank(bit_of(code))]; k != END; k = next[k]) {
            const entry e = entries[k];
            if (e.code != code)
                continue;
            *logp = first == END ? e.logp : fmaxf(*logp, e.logp);
            first = min(first, k);
        }
        return first;
    }
};

} // namespace ft

#endif
