/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact selection of the best `want` of the items that a team holds in shared memory,
 * in the order of base/score.h. A histogram over linear bins, filled as items are
 * appended, says in which bin the border lies; that bin's few items are ranked by
 * counting. Where it is crowded (ties), passes over the bits of value and node narrow
 * it down first.
 */
#ifndef FT_GPU_SELECT_CUH
#define FT_GPU_SELECT_CUH

#include "lib.h"
#include "team.cuh"

namespace ft
{

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

/* Value and node as 128 bits, the best highest, cut into digits of BITS from the top.
 */
template <int BITS> struct digits {
    enum { EACH = (64 + BITS - 1) / BITS, PASSES = 2 * EACH };

    static __device__ unsigned of(const rank_key &k, int pass)
    {
        const int at = pass % EACH;
        const int low = at == EACH - 1 ? 0 : 64 - BITS * (at + 1);
        const unsigned width = at == EACH - 1 ? 64 - (EACH - 1) * BITS : BITS;
        const uint64_t bits = pass < EACH ? double_key(k.value) : ~k.node;
        return (unsigned)(bits >> low) & ((1u << width) - 1);
    }
};

template <int BINS> struct bin_scale {
    float best, scale;

    /* Linear bins from `best_` down to `worst`; all in one bin where that is no range.
     */
    static __device__ bin_scale over(float best_, float worst)
    {
        const float width = best_ - worst;
        const float s = __fdividef(BINS - 1, width);
        return {best_, width > 0 && isfinite(width) && isfinite(s) ? s : 0.0f};
    }

    /* The better, the lower. */
    __device__ int bin(float value) const
    {
        return scale == 0.0f ? 0 : min((int)((best - value) * scale), BINS - 1);
    }
};

/* Which items stay. */
template <int BINS> struct verdict {
    bin_scale<BINS> bins;
    int bin;        /* items of better bins stay, of worse ones go */
    uint32_t above; /* how many are in better bins */
    bool whole_bin; /* the border bin's items all stay */
    rank_key worst; /* else: those not behind this one */
    uint32_t spare; /* whole_bin: so many of its items are yet to go, the worst */

    __device__ bool on_border(const rank_key &k) const
    {
        return !whole_bin && bins.bin((float)k.value) == bin;
    }

    __device__ bool keeps(const rank_key &k) const
    {
        const int b = bins.bin((float)k.value);
        return b < bin || (b == bin && (whole_bin || !before(worst, k)));
    }
};

/* TEAM: there may be other blocks. */
template <int THREADS, int BINS, bool TEAM> struct select_memory {
    enum { LIST = BINS / 4, DIGIT_BITS = log2_of(BINS) };

    uint32_t bins[BINS];            /* of items */
    uint32_t ends[BINS];            /* of those that end keys */
    uint32_t sums[TEAM ? BINS : 1]; /* of all blocks' bins; above, of those of lower
                                       rank */
    __align__(16) uint16_t of[TEAM ? MAX_TEAM : 1][TEAM ? BINS : 8]; /* each block's */
    uint32_t place[BINS]; /* where this block's next item of the bin goes */
    rank_key list[LIST];
    rank_key worst;
    uint32_t n_list, border, above, inside, total;
    uint32_t n_before; /* of the border items that stay, those of lower ranks */
    uint32_t n_stay[TEAM ? MAX_TEAM : 1];
    uint32_t warp_sums[THREADS / 32];
};

template <int THREADS, int BINS, bool TEAM>
static __device__ void clear_bins(uint32_t *bins, select_memory<THREADS, BINS, TEAM> &m)
{
#pragma unroll 1
    for (int i = threadIdx.x; i < BINS; i += THREADS)
        bins[i] = 0;
    if (threadIdx.x == 0)
        m.n_list = 0;
}

/* A barrier of the team, behind which each thread of a block has the sums of all
 * blocks' bins that it will ask for: every block gets every block's. Sums end at
 * SUM_MASK, more than anybody wants. Between two calls lies another barrier. */
enum { SUM_BITS = 16, SUM_MASK = (1 << SUM_BITS) - 1 };

template <int THREADS, int BINS, bool TEAM>
static __device__ void share_bins(const team &t, select_memory<THREADS, BINS, TEAM> &m,
                                  const uint32_t *bins)
{
    enum { PACK = 16 / sizeof m.of[0][0], PACKS = BINS / PACK };
    if (!TEAM || t.size == 1) {
        t.sync();
        return;
    }
    static_assert(!TEAM || BINS == THREADS, "a bin a thread");
    __syncthreads();
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < t.size * PACKS; i += THREADS) {
        const unsigned to = i / PACKS, at = i % PACKS * PACK;
        uint32_t v[PACK / 2];
#pragma unroll
        for (unsigned k = 0; k < PACK / 2; k++)
            v[k] = min(bins[at + 2 * k], (uint32_t)SUM_MASK) |
                   min(bins[at + 2 * k + 1], (uint32_t)SUM_MASK) << SUM_BITS;
        *t.at((uint4 *)&m.of[t.rank][at], to) = {v[0], v[1], v[2], v[3]};
    }
    t.sync();
    uint32_t sum = 0, lower = 0;
#pragma unroll 8
    for (unsigned r = 0; r < t.size; r++) {
        const uint32_t n = m.of[r][threadIdx.x];
        lower += r < t.rank ? n : 0;
        sum += n;
    }
    m.sums[threadIdx.x] = min(sum, (uint32_t)SUM_MASK) | min(lower, (uint32_t)SUM_MASK)
                                                             << SUM_BITS;
}

/* With all blocks' bins counted and shared: the first bin by which at least `want`
 * items have been met (m.border; BINS if there are fewer), how many are in better bins
 * (m.above), and in it (m.inside). PLACE: also of all bins (m.total), and m.place, by
 * which the team's items, put down bin by bin and block by block, lie best bin first;
 * then note(bin, items in better ones) is called for each bin with items, by one thread
 * of each block. Between two calls lies a barrier of the team. */
template <bool PLACE, int THREADS, int BINS, bool TEAM, class Note>
static __device__ void find_border(const team &t, select_memory<THREADS, BINS, TEAM> &m,
                                   uint32_t *bins, uint32_t want, const Note &note)
{
    enum { EACH = BINS / THREADS };
    static_assert(BINS % THREADS == 0, "whole threads");
    const bool many = TEAM && t.size > 1;
    uint32_t count[EACH], earlier[EACH], sum = 0, ahead;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int bin = threadIdx.x * EACH + i;
        count[i] = many ? m.sums[bin] & SUM_MASK : bins[bin];
        earlier[i] = many ? m.sums[bin] >> SUM_BITS : 0;
        sum += count[i];
    }
    if (threadIdx.x == 0) {
        m.border = BINS;
        m.above = m.inside = m.n_before = 0;
    }
    uint32_t total;
    ahead = sum_before(m.warp_sums, sum, &total);
    if (PLACE) {
        if (threadIdx.x == 0)
            m.total = total;
        uint32_t at = ahead;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int bin = threadIdx.x * EACH + i;
            m.place[bin] = at + earlier[i];
            if (count[i])
                note(bin, at);
            at += count[i];
        }
    }
    if (ahead < want && ahead + sum >= want) {
        int i = 0;
#pragma unroll 1
        for (; ahead + count[i] < want; i++)
            ahead += count[i];
        m.border = threadIdx.x * EACH + i;
        m.above = ahead;
        m.inside = count[i];
    }
    __syncthreads();
}

struct no_note {
    __device__ void operator()(int, uint32_t) const
    {
    }
};

/* Rank the n items of the list by counting: note(number, item, rank) is called for each
 * by one thread of the block. */
template <int THREADS, int BINS, bool TEAM, class Note>
static __device__ void rank_list(const select_memory<THREADS, BINS, TEAM> &m,
                                 uint32_t n, const Note &note)
{
    const unsigned lane = threadIdx.x % 32;
#pragma unroll 1
    for (uint32_t i = threadIdx.x / 32; i < n; i += THREADS / 32) {
        const rank_key mine = m.list[i];
        uint32_t rank = 0;
#pragma unroll 1
        for (uint32_t j = lane; j < n; j += 32)
            rank += before(m.list[j], mine);
        rank = warp_sum(rank);
        if (lane == 0)
            note(i, mine, rank);
    }
}

/* Rank the `inside` border items: `need` of them stay; sets m.worst to the last. Every
 * block has the list of all. */
template <int THREADS, int BINS, bool TEAM, class Visit>
static __device__ void rank_border(const team &t, select_memory<THREADS, BINS, TEAM> &m,
                                   uint32_t inside, uint32_t need, const Visit &visit)
{
    const uint32_t lower = TEAM && t.size > 1 ? m.sums[m.border] >> SUM_BITS : 0;
    visit([&](const rank_key &k) {
        const uint32_t at = lower + atomicAdd(&m.n_list, 1u);
#pragma unroll 1
        for (unsigned r = 0; r < t.size; r++)
            t.at(m.list, r)[at] = k;
    });
    t.sync();
    rank_list(m, inside, [&](uint32_t i, const rank_key &mine, uint32_t rank) {
        if (rank == need - 1)
            m.worst = mine;
        if (TEAM && rank < need && i + 1 <= lower)
            atomicAdd(&m.n_before, 1u);
    });
    __syncthreads();
}

/* Sets m.n_before where the list was not of all border items: visit(count) calls
 * count() for each of this block's that stays. */
template <int THREADS, int BINS, bool TEAM, class Visit>
static __device__ void count_before(const team &t,
                                    select_memory<THREADS, BINS, TEAM> &m,
                                    const Visit &visit)
{
    __syncthreads();
    if (threadIdx.x == 0)
        m.n_list = m.n_before = 0;
    __syncthreads();
    visit([&] { atomicAdd(&m.n_list, 1u); });
    __syncthreads();
    if (threadIdx.x < t.size)
        t.at(m.n_stay, threadIdx.x)[t.rank] = m.n_list;
    t.sync();
    if (threadIdx.x < t.rank)
        atomicAdd(&m.n_before, m.n_stay[threadIdx.x]);
    __syncthreads();
}

/* The last to stay of the items in bin `border`, which is crowded with `inside` items:
 * passes over the bits of value and node narrow them down. Stands apart for the sake of
 * the common case. */
template <int THREADS, int BINS, bool TEAM, class Get>
static __device__ __noinline__ rank_key
worst_of_many(team t, select_memory<THREADS, BINS, TEAM> &m, uint32_t *bins,
              bin_scale<BINS> scale, int border, uint32_t inside, uint32_t n,
              uint32_t need, Get get)
{
    enum { BITS = m.DIGIT_BITS };
    unsigned found[digits<BITS>::PASSES];
    int pass = 0;
    /* Whether an item agrees with the digits found so far. */
    const auto on = [&](const rank_key &k) {
        if (scale.bin((float)k.value) != border)
            return false;
#pragma unroll 1
        for (int p = 0; p < pass; p++)
            if (digits<BITS>::of(k, p) != found[p])
                return false;
        return true;
    };
    while (inside > m.LIST) {
        t.sync(); /* all have read the bins */
        clear_bins(bins, m);
        t.sync();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const rank_key k = get(i);
            if (on(k))
                atomicAdd(&bins[BINS - 1 - digits<BITS>::of(k, pass)], 1u);
        }
        share_bins(t, m, bins);
        find_border<false>(t, m, bins, need, no_note());
        found[pass++] = BINS - 1 - m.border;
        need -= m.above;
        inside = m.inside;
    }
    rank_border(t, m, inside, need, [&](const auto &take) {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const rank_key k = get(i);
            if (on(k))
                take(k);
        }
    });
    if (TEAM && t.size > 1)
        count_before(t, m, [&](const auto &count) {
            for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
                const rank_key k = get(i);
                if (scale.bin((float)k.value) == border && !before(m.worst, k))
                    count();
            }
        });
    return m.worst;
}

/* Which of the team's items are its best `want`. get(i) is the key of this block's item
 * i < n, `bins` counts them by `scale`, and m.n_list is 0; all that is settled, with a
 * barrier of the team since. Every thread of the team gets the same verdict; no thread
 * writes to the list or reads the bins of another block after the caller's next team
 * barrier. The bins are used up. PLACE and note: see find_border. SPARE: where the
 * border bin has no more than LIST items, all of them stay, and the caller ranks them
 * and lets the worst v.spare go; this takes no barrier of the team. */
template <bool PLACE, bool SPARE, int THREADS, int BINS, bool TEAM, class Get,
          class Note = no_note>
static __device__ verdict<BINS> select_best(const team &t,
                                            select_memory<THREADS, BINS, TEAM> &m,
                                            uint32_t *bins,
                                            const bin_scale<BINS> &scale, uint32_t n,
                                            uint32_t want, const Get &get,
                                            const Note &note = Note())
{
    find_border<PLACE>(t, m, bins, want, note);
    verdict<BINS> v = {
        scale, (int)m.border, m.above, m.inside <= want - m.above, {0, 0}, 0};
    const uint32_t need = want - m.above, inside = m.inside;
    if (v.whole_bin)
        return v;

    if (inside > m.LIST) {
        v.worst = worst_of_many(t, m, bins, scale, v.bin, inside, n, need, get);
        return v;
    }
    if constexpr (SPARE) {
        v.whole_bin = true;
        v.spare = inside - need;
        return v;
    }
    rank_border(t, m, inside, need, [&](const auto &take) {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const rank_key k = get(i);
            if (scale.bin((float)k.value) == v.bin)
                take(k);
        }
    });
    v.worst = m.worst;
    return v;
}

} // namespace ft

#endif
