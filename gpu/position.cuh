/* SPDX-License-Identifier: Apache-2.0
 *
 * A position's proposals in a block's shared memory, found by what the trie's edges
 * store. A code's hash is a bit of a map and, with fewer bits, the head of a chain of
 * the proposals that share it. Most strangers meet a bit that is not set, and go at one
 * access.
 *
 * To fill it: clear, barrier, insert, barrier.
 */
#ifndef FT_GPU_POSITION_CUH
#define FT_GPU_POSITION_CUH

#include "lib.h"
#include "team.cuh"

namespace ft
{

static __device__ inline float key_float(uint32_t key)
{
    return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

template <int ROOM> struct position {
    enum {
        WORDS = ROOM,
        HEADS = 2 * ROOM,
        BIT_SHIFT = 32 - log2_of(32 * WORDS), /* of a hash, to a bit's number */
        HEAD_SHIFT = 32 - log2_of(HEADS)
    };
    static_assert(1 << log2_of(ROOM) == ROOM, "a power of two");

    struct entry {
        uint32_t code;
        float logp;
    };

    __align__(16) uint32_t map[WORDS];
    __align__(16) uint32_t head[HEADS]; /* first proposal; END */
    entry entries[ROOM];                /* by proposal */
    uint16_t next[ROOM];                /* with the same head */
    uint32_t tokens[ROOM];
    uint32_t best, worst; /* keys of the log-probs */

    enum : uint32_t { END = 0xffff };

    static __device__ uint32_t hash(uint32_t code)
    {
        return code * 0x9E3779B1u;
    }

    /* Threads 0 .. n_threads - 1 call it with their numbers. */
    __device__ void clear(unsigned thread, unsigned n_threads)
    {
        uint4 *maps = reinterpret_cast<uint4 *>(map);
        uint4 *heads = reinterpret_cast<uint4 *>(head);
#pragma unroll 1
        for (unsigned i = thread; i < WORDS / 4; i += n_threads)
            maps[i] = {0, 0, 0, 0};
#pragma unroll 1
        for (unsigned i = thread; i < HEADS / 4; i += n_threads)
            heads[i] = {END, END, END, END};
        if (thread == 0) {
            best = 0;
            worst = ~0u;
        }
    }

    __device__ void insert(uint32_t k, uint32_t token, uint32_t code, float logp)
    {
        tokens[k] = token;
        entries[k] = {code, logp};
        if (code == FT_NO_TOKEN)
            return;
        const uint32_t h = hash(code), bit = h >> BIT_SHIFT;
        atomicOr(&map[bit / 32], 1u << bit % 32);
        next[k] = (uint16_t)atomicExch(&head[h >> HEAD_SHIFT], k);
    }

    __device__ bool may_have(uint32_t code) const
    {
        const uint32_t bit = hash(code) >> BIT_SHIFT;
        return map[bit / 32] >> bit % 32 & 1;
    }

    /* The first proposal with the code and the highest log-prob of all that have it;
     * END if there is none. */
    __device__ uint32_t find(uint32_t code, float *logp) const
    {
        uint32_t first = END;
        *logp = 0;
#pragma unroll 1
        for (uint32_t k = head[hash(code) >> HEAD_SHIFT]; k != END; k = next[k]) {
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
