/* SPDX-License-Identifier: Apache-2.0
 *
 * Selection of the best `want` of n states by a partition (paper, Algorithm 5): blocks
 * sort tiles, keep the best `want` of each, and the sorted runs are merged in pairs
 * until one is left. Where `want` is beyond what half a tile holds (B > 1024: the
 * paper's other implementation, of which it tells nothing), tiles are kept whole and
 * runs grow until they are `want` long: a merge sort in device memory.
 *
 * A tile is the paper's 2 B rounded up to what the threads hold in registers: 1 to 4
 * items each, hence its dips near B = 512 and 768. A merge finds each item's rank among
 * the other run's by binary search, all threads of the partition at work on all pairs.
 */
#ifndef FT_GPU_PAPER_TOURNAMENT_CUH
#define FT_GPU_PAPER_TOURNAMENT_CUH

#include <cub/block/block_merge_sort.cuh>

#include "partition.cuh"

namespace ft::paper
{

enum { MAX_EACH = 4 }; /* items a thread */

template <int EACH> using tile_sort = cub::BlockMergeSort<ft_paper_item, THREADS, EACH>;

union tile_memory {
    typename tile_sort<1>::TempStorage one;
    typename tile_sort<2>::TempStorage two;
    typename tile_sort<3>::TempStorage three;
    typename tile_sort<4>::TempStorage four;
};

/* Pads, of score -inf and all alike, are behind all others: no state has that score. */
struct better {
    const ft_paper_state *states;

    __device__ bool operator()(const ft_paper_item &a, const ft_paper_item &b) const
    {
        if (a.score != b.score)
            return a.score > b.score;
        return a.state != b.state && states[a.state].order < states[b.state].order;
    }
};

struct tournament {
    partition &part;
    tile_memory &m;
    const ft_paper_state *states;
    ft_paper_item *items[2]; /* from and to */

    /* Phase 1: the best `keep` of each tile, in order, tile by tile. */
    template <int EACH>
    __device__ void sort_tiles(typename tile_sort<EACH>::TempStorage &storage,
                               uint32_t n, uint32_t keep)
    {
        const uint32_t tile = THREADS * EACH;
        for (uint32_t t = part.rank; (uint64_t)t * tile < n; t += part.size) {
            const uint32_t first = t * tile;
            ft_paper_item mine[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const uint32_t at = first + i * THREADS + threadIdx.x;
                mine[i] = {-INFINITY, ~0u, 0};
                if (at < n)
                    mine[i] = {states[at].score, at, 0};
            }
            tile_sort<EACH>(storage).Sort(mine, better{states});
            const uint32_t left = n - first, n_kept = left < keep ? left : keep;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const uint32_t at = threadIdx.x * EACH + i;
                if (at < n_kept)
                    items[0][(uint64_t)t * keep + at] = mine[i];
            }
            __syncthreads(); /* the storage is free again */
        }
    }

    /* Items of a run of n that go before x. */
    __device__ uint32_t rank_among(const ft_paper_item *run, uint32_t n,
                                   const ft_paper_item &x) const
    {
        const better before = {states};
        uint32_t lo = 0;
        while (n) {
            const uint32_t half = n / 2;
            const bool up = before(run[lo + half], x);
            lo += up ? half + 1 : 0;
            n = up ? n - half - 1 : half;
        }
        return lo;
    }

    /* Phase 2: merge runs of `length` in pairs, and keep `keep` of each pair. */
    __device__ void merge_pairs(uint32_t n, uint32_t length, uint32_t keep)
    {
        for (uint32_t i = part.thread(); i < n; i += part.n_threads()) {
            const uint32_t run = i / length;
            const uint64_t other = (uint64_t)(run ^ 1) * length;
            const uint32_t n_other = other >= n           ? 0
                                     : n - other < length ? (uint32_t)(n - other)
                                                          : length;
            const ft_paper_item x = items[0][i];
            const uint32_t at = i % length + rank_among(items[0] + other, n_other, x);
            if (at < keep)
                items[1][(uint64_t)(run / 2) * keep + at] = x;
        }
    }

    /* In order, the best first, `want` of them or all; every thread of the partition
     * calls this. */
    __device__ const ft_paper_item *best(uint32_t n, uint32_t want)
    {
        const uint32_t each = want > THREADS * MAX_EACH / 2
                                  ? MAX_EACH
                                  : (2 * want + THREADS - 1) / THREADS;
        const uint32_t tile = THREADS * each, keep = want < tile ? want : tile;
        if (each == 1)
            sort_tiles<1>(m.one, n, keep);
        else if (each == 2)
            sort_tiles<2>(m.two, n, keep);
        else if (each == 3)
            sort_tiles<3>(m.three, n, keep);
        else
            sort_tiles<4>(m.four, n, keep);
        part.sync();

        uint32_t left = n % tile < keep ? n % tile : keep;
        left += n / tile * keep;
        for (uint32_t length = keep; left > length;) {
            const uint64_t pair = 2 * (uint64_t)length;
            const uint32_t kept = pair < want ? (uint32_t)pair : want;
            merge_pairs(left, length, kept);
            part.sync();
            const uint32_t rest = (uint32_t)(left % pair);
            left = (uint32_t)(left / pair) * kept + (rest < kept ? rest : kept);
            length = kept;
            ft_paper_item *const from = items[0];
            items[0] = items[1];
            items[1] = from;
        }
        return items[0];
    }
};

} // namespace ft::paper

#endif
