/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact selection of the best `want` of the items that a team holds in shared memory,
 * in the order of base/score.h. One histogram over linear bins finds the bin that holds
 * the border; its few items are ranked by counting. Where that bin is crowded (ties),
 * passes over the bits of value and node narrow it down first.
 */
#ifndef FT_GPU_SELECT_CUH
#define FT_GPU_SELECT_CUH

#include <cub/block/block_scan.cuh>

#include "lib.h"
#include "team.cuh"

namespace ft
{

enum { SELECT_BINS = 2048, SELECT_DIGIT = 11, SELECT_LIST = 512 };

struct rank_key {
    double value;
    uint64_t node;
};

static __device__ inline bool before(const rank_key &a, const rank_key &b)
{
    return ft_result_better(a.value, a.node, b.value, b.node);
}

/* Monotone unsigned key of a double that is not NaN, the best highest. */
static __device__ inline uint64_t double_key(double d)
{
    const uint64_t u = (uint64_t)__double_as_longlong(d + 0.0);
    return u >> 63 ? ~u : u | (uint64_t)1 << 63;
}

/* Value and node as 128 bits, the best highest, cut into digits from the top. */
enum { SELECT_PASSES = 12 };

static __device__ inline unsigned digit_of(const rank_key &k, int pass)
{
    /* Six digits of 11 bits cover the value's 64 bits, six the node's 64. */
    const int at = pass % 6, low = at == 5 ? 0 : 64 - SELECT_DIGIT * (at + 1);
    const uint64_t bits = pass < 6 ? double_key(k.value) : ~k.node;
    const unsigned width = at == 5 ? 64 - 5 * SELECT_DIGIT : SELECT_DIGIT;
    return (unsigned)(bits >> low) & ((1u << width) - 1);
}

struct bin_scale {
    float best, scale;

    /* Linear bins from `best_` down to `worst`; all in one bin where that is no range.
     */
    static __device__ bin_scale over(float best_, float worst)
    {
        const float width = best_ - worst;
        const float s = (SELECT_BINS - 1) / width;
        return {best_, width > 0 && isfinite(width) && isfinite(s) ? s : 0.0f};
    }

    __device__ int bin(float value) const
    {
        return scale == 0.0f ? 0 : min((int)((best - value) * scale), SELECT_BINS - 1);
    }
};

/* Which items stay. */
struct verdict {
    bin_scale bins;
    int bin;        /* items of better bins stay, of worse ones go */
    bool whole_bin; /* the border bin's items all stay */
    rank_key worst; /* else: those not behind this one */

    __device__ bool keeps(const rank_key &k) const
    {
        const int b = bins.bin((float)k.value);
        return b < bin || (b == bin && (whole_bin || !before(worst, k)));
    }

    static __device__ verdict everything()
    {
        return {{0, 0}, 1, true, {0, 0}};
    }
};

template <int THREADS> struct select_memory {
    uint32_t bins[SELECT_BINS];
    rank_key list[SELECT_LIST];
    rank_key *list_copy; /* SELECT_LIST of the block's own, set once */
    rank_key worst;
    uint32_t n_list, border, above, inside;
    typename cub::BlockScan<uint32_t, THREADS>::TempStorage scan;
};

template <int THREADS> static __device__ void clear_bins(select_memory<THREADS> &m)
{
    for (int i = threadIdx.x; i < SELECT_BINS; i += THREADS)
        m.bins[i] = 0;
    if (threadIdx.x == 0)
        m.n_list = 0;
}

/* With all blocks' bins counted: the first bin by which at least `want` items have been
 * met (m.border), how many are in better bins (m.above), and in it (m.inside). */
template <int THREADS>
static __device__ void find_border(const team &t, select_memory<THREADS> &m,
                                   uint32_t want)
{
    enum { EACH = SELECT_BINS / THREADS };
    uint32_t count[EACH], sum = 0, ahead;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        uint32_t of[MAX_TEAM];
#pragma unroll
        for (unsigned r = 0; r < MAX_TEAM; r++)
            of[r] = r < t.size ? t.at(m.bins, r)[threadIdx.x * EACH + i] : 0;
        count[i] = of[0] + of[1] + of[2] + of[3];
        sum += count[i];
    }
    cub::BlockScan<uint32_t, THREADS>(m.scan).ExclusiveSum(sum, ahead);
    if (ahead < want && ahead + sum >= want) {
        int i = 0;
        for (; ahead + count[i] < want; i++)
            ahead += count[i];
        m.border = threadIdx.x * EACH + i;
        m.above = ahead;
        m.inside = count[i];
    }
    __syncthreads();
}

/* Rank the border items by counting: `need` of them stay; sets m.worst to the last. */
template <int THREADS, class Visit>
static __device__ void rank_border(const team &t, select_memory<THREADS> &m,
                                   uint32_t need, const Visit &visit)
{
    visit([&](const rank_key &k) {
        const uint32_t at = atomicAdd(t.at(&m.n_list, 0), 1u);
        t.at(m.list, 0)[at] = k;
    });
    t.sync();
    const uint32_t n = *t.at(&m.n_list, 0);
    for (uint32_t i = threadIdx.x; i < n; i += THREADS)
        m.list_copy[i] = t.at(m.list, 0)[i];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
        uint32_t rank = 0;
        for (uint32_t j = 0; j < n; j++)
            rank += before(m.list_copy[j], m.list_copy[i]);
        if (rank == need - 1)
            m.worst = m.list_copy[i];
    }
    __syncthreads();
}

/* Which of the team's items are its best `want`, where it has more. get(i) is the key
 * of this block's item i < n. Bins are clear, and n and all items are settled, with a
 * barrier of the team since. Every thread of the team gets the same verdict; no thread
 * reads bins or list of another block after the caller's next team barrier. */
template <int THREADS, class Get>
static __device__ verdict select_best(const team &t, select_memory<THREADS> &m,
                                      bin_scale bins, uint32_t n, uint32_t want,
                                      const Get &get)
{
    for (uint32_t i = threadIdx.x; i < n; i += THREADS)
        atomicAdd(&m.bins[bins.bin((float)get(i).value)], 1u);
    t.sync();
    find_border(t, m, want);
    verdict v = {bins, (int)m.border, m.inside == want - m.above, {0, 0}};
    uint32_t need = want - m.above, inside = m.inside;
    if (v.whole_bin)
        return v;

    /* `on` says whether an item agrees with the digits found so far. */
    unsigned digits[SELECT_PASSES];
    int pass = 0;
    const auto on = [&](const rank_key &k) {
        if (v.bins.bin((float)k.value) != v.bin)
            return false;
        for (int p = 0; p < pass; p++)
            if (digit_of(k, p) != digits[p])
                return false;
        return true;
    };
    while (inside > SELECT_LIST) {
        t.sync(); /* all have read the bins */
        clear_bins(m);
        t.sync();
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const rank_key k = get(i);
            if (on(k))
                atomicAdd(&m.bins[SELECT_BINS - 1 - digit_of(k, pass)], 1u);
        }
        t.sync();
        find_border(t, m, need);
        digits[pass++] = SELECT_BINS - 1 - m.border;
        need -= m.above;
        inside = m.inside;
    }
    rank_border(t, m, need, [&](const auto &take) {
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const rank_key k = get(i);
            if (on(k))
                take(k);
        }
    });
    v.worst = m.worst;
    return v;
}

} // namespace ft

#endif
