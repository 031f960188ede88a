/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid-wide search: any B, K, N and T, one query at a time, everything in device
 * memory. All blocks of a cooperative launch work on the query and meet at grid
 * barriers. Slower than the kernel of search.cuh where that fits, and the same answer.
 *
 * Candidates are appended to a buffer. A warp reserves room for all that an item of
 * work can make before it takes the item; when there is no room, the grid selects the
 * best B and goes on: nothing is dropped. The file is long because it is one kernel.
 */
#ifndef FT_GPU_WIDE_CUH
#define FT_GPU_WIDE_CUH

#include <cub/block/block_scan.cuh>

#include "question.h"
#include "select.cuh"
#include "views.cuh"

namespace ft
{

enum {
    WIDE_DIGIT = 11, /* bits a pass of a selection */
    WIDE_BINS = 1 << WIDE_DIGIT,
    WIDE_THREADS = 512,
    WIDE_ITEM = 256, /* pairs an item of work */
    WIDE_PROBES_PER_SEARCH = 12
};

struct wide_counters {
    unsigned long long n_items, next_item;
    unsigned long long n_candidates, reserved_candidates;
    unsigned long long n_findings, reserved_findings;
    unsigned long long n_kept, n_probes, n_admitted;
    unsigned long long need; /* of a selection */
    uint32_t border, whole;
    uint64_t record;
};

template <class View> struct wide_searcher {
    const View &view;
    const ft_gpu_question &q;
    const ft_gpu_wide &w;
    wide_counters &c;
    const uint64_t thread, n_threads; /* of the grid */
    uint32_t query;

    __device__ void sync() const
    {
        cooperative_groups::this_grid().sync();
    }

    __device__ bool leader() const
    {
        return thread == 0;
    }

    __device__ rank_key key_of(const ft_gpu_wide_item &i) const
    {
        return {i.value, order_of(view, place_of(view, i.node), i.step)};
    }

    __device__ void take_proposals(uint32_t step)
    {
        for (uint64_t i = thread; i <= w.slot_mask; i += n_threads) {
            w.slot_code[i] = FT_NO_TOKEN;
            w.slot_logp[i] = 0;
        }
        if (leader()) {
            c.next_item = 0;
            c.n_candidates = c.reserved_candidates = 0;
            c.reserved_findings = c.n_findings;
            c.n_probes = c.n_admitted = 0;
        }
        sync();
        const uint64_t at = ((uint64_t)query * q.n_steps + step) * q.n_proposals;
        for (uint64_t k = thread; k < q.n_proposals; k += n_threads) {
            const uint32_t token = q.tokens[at + k];
            const float logp = q.logp[at + k];
            uint32_t code = FT_NO_TOKEN;
            if (token != FT_NO_TOKEN && logp > q.token_threshold)
                code = view.code(token, step);
            w.codes[k] = code;
            if (code == FT_NO_TOKEN)
                continue;
            uint32_t slot = code * 0x9E3779B1u & w.slot_mask;
            for (;;) {
                const uint32_t was = atomicCAS(&w.slot_code[slot], FT_NO_TOKEN, code);
                if (was == FT_NO_TOKEN || was == code)
                    break;
                slot = (slot + 1) & w.slot_mask;
            }
            atomicMax(&w.slot_logp[slot], ft_float_key(logp));
            w.slot_proposal[slot] = (uint32_t)k;
        }
    }

    __device__ int64_t find_slot(uint32_t code) const
    {
        uint32_t slot = code * 0x9E3779B1u & w.slot_mask;
        for (;;) {
            const uint32_t there = w.slot_code[slot];
            if (there == code)
                return slot;
            if (there == FT_NO_TOKEN)
                return -1;
            slot = (slot + 1) & w.slot_mask;
        }
    }

    __device__ bool by_proposal(uint64_t n_children) const
    {
        return n_children / WIDE_PROBES_PER_SEARCH > q.n_proposals;
    }

    __device__ uint64_t pairs_of(uint64_t n_children) const
    {
        return by_proposal(n_children) ? q.n_proposals : n_children;
    }

    /* Child ranges, then (block 0) the items before each beam. */
    __device__ void count_items(uint64_t n_beams, uint32_t step)
    {
        for (uint64_t i = thread; i < n_beams; i += n_threads)
            w.children[i] = view.children(w.nodes[i], step);
        sync();
        if (blockIdx.x == 0) {
            __shared__
                typename cub::BlockScan<uint64_t, WIDE_THREADS>::TempStorage scan;
            uint64_t before = 0;
            for (uint64_t base = 0; base < n_beams; base += WIDE_THREADS) {
                const uint64_t i = base + threadIdx.x;
                uint64_t n = 0, ahead, total;
                if (i < n_beams)
                    n = (pairs_of(w.children[i].count) + WIDE_ITEM - 1) / WIDE_ITEM;
                cub::BlockScan<uint64_t, WIDE_THREADS>(scan).ExclusiveSum(n, ahead,
                                                                          total);
                if (i < n_beams)
                    w.items_before[i] = before + ahead;
                before += total;
                __syncthreads();
            }
            if (threadIdx.x == 0) {
                w.items_before[n_beams] = before;
                c.n_items = before;
            }
        }
        sync();
    }

    /* Pair number `pair` of a beam: the matched node and its slot. */
    __device__ uint64_t join(const ft_range &children, uint64_t pair, uint32_t step,
                             uint32_t *token, uint32_t *logp_key) const
    {
        const uint64_t at = ((uint64_t)query * q.n_steps + step) * q.n_proposals;
        if (by_proposal(children.count)) {
            const uint32_t code = w.codes[pair];
            if (code == FT_NO_TOKEN)
                return UINT64_MAX;
            const int64_t slot = find_slot(code);
            if (w.slot_proposal[slot] != pair)
                return UINT64_MAX;
            *token = q.tokens[at + pair];
            *logp_key = w.slot_logp[slot];
            return view.find(children, *token, step);
        }
        const uint64_t node = children.first + pair;
        const int64_t slot = find_slot(view.code_of(node, step));
        if (slot < 0)
            return UINT64_MAX;
        *token = q.tokens[at + w.slot_proposal[slot]];
        *logp_key = w.slot_logp[slot];
        return node;
    }

    static __device__ uint64_t take(unsigned long long *counter, bool yes)
    {
        const unsigned lanes = __ballot_sync(~0u, yes), lane = threadIdx.x % 32;
        unsigned long long base = 0;
        if (lane == 0 && lanes)
            base = atomicAdd(counter, (unsigned long long)__popc(lanes));
        base = __shfl_sync(~0u, base, 0);
        return base + __popc(lanes & ((1u << lane) - 1));
    }

    __device__ void work(uint64_t item, uint32_t step, uint64_t n_beams)
    {
        uint64_t lo = 0, hi = n_beams;
        while (hi - lo > 1) {
            const uint64_t mid = (lo + hi) / 2;
            if (w.items_before[mid] <= item)
                lo = mid;
            else
                hi = mid;
        }
        const ft_range children = w.children[lo];
        const uint64_t n_pairs = pairs_of(children.count);
        const uint64_t from = (item - w.items_before[lo]) * WIDE_ITEM;
        const float sigma = w.sums[lo];
        const bool last = step + 1 == q.n_steps;
        for (unsigned i = threadIdx.x % 32; i < WIDE_ITEM; i += 32) {
            const uint64_t pair = from + i;
            uint32_t token = 0, key = 0;
            uint64_t node = UINT64_MAX;
            float sum = 0;
            unsigned flags = 0;
            if (pair < n_pairs)
                node = join(children, pair, step, &token, &key);
            if (node != UINT64_MAX) {
                const float rho = __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
                if (ft_admit(sigma, rho, q.token_threshold, q.sentence_threshold,
                             &sum)) {
                    flags = view.flags(node, step);
                    if (q.stats)
                        atomicAdd(&c.n_admitted, 1ull);
                }
            }
            const bool as_beam = !last && (flags & FT_NODE_HAS_CHILDREN);
            const bool as_result = flags & FT_NODE_TERMINAL;
            const uint64_t a = take(&c.n_candidates, as_beam);
            if (as_beam)
                w.candidates[a] = {sum, node, token, (uint32_t)lo, step, 0};
            const uint64_t b = take(&c.n_findings, as_result);
            if (as_result)
                w.findings[b] = {
                    (double)sum * q.norm[step + 1], node, token, (uint32_t)lo, step, 0};
        }
        if (q.stats && threadIdx.x % 32 == 0) {
            const uint64_t left = n_pairs - from;
            atomicAdd(&c.n_probes, left < WIDE_ITEM ? left : WIDE_ITEM);
        }
    }

    /* Take items until there are none, or no room for what one more can make. */
    __device__ void work_on(uint32_t step, uint64_t n_beams)
    {
        for (;;) {
            unsigned long long item = ~0ull;
            if (threadIdx.x % 32 == 0) {
                const uint64_t a = atomicAdd(&c.reserved_candidates, WIDE_ITEM);
                const uint64_t b = atomicAdd(&c.reserved_findings, WIDE_ITEM);
                if (a + WIDE_ITEM <= w.cap_candidates &&
                    b + WIDE_ITEM <= w.cap_findings)
                    item = atomicAdd(&c.next_item, 1ull);
            }
            item = __shfl_sync(~0u, item, 0);
            if (item >= c.n_items)
                return;
            work(item, step, n_beams);
        }
    }

    __device__ bool agrees(const rank_key &k, const unsigned *found, int n) const
    {
        for (int p = 0; p < n; p++)
            if (digits<WIDE_DIGIT>::of(k, p) != found[p])
                return false;
        return true;
    }

    /* Drop all but the best `want` of *n items. */
    __device__ void select(ft_gpu_wide_item *items, unsigned long long *n_items,
                           uint64_t want)
    {
        const uint64_t n = *n_items;
        __shared__ unsigned found[digits<WIDE_DIGIT>::PASSES];
        __shared__ uint32_t mine[WIDE_BINS];
        if (n <= want)
            return; /* the same for all: nobody writes *n_items before the next barrier
                     */
        int pass = 0;
        if (leader()) {
            c.need = want;
            c.whole = 0;
            c.n_kept = 0;
        }
        do {
            for (uint64_t i = thread; i < WIDE_BINS; i += n_threads)
                w.bins[i] = 0;
            for (uint32_t i = threadIdx.x; i < WIDE_BINS; i += blockDim.x)
                mine[i] = 0;
            sync();
            for (uint64_t i = thread; i < n; i += n_threads) {
                const rank_key k = key_of(items[i]);
                if (agrees(k, found, pass))
                    atomicAdd(&mine[WIDE_BINS - 1 - digits<WIDE_DIGIT>::of(k, pass)],
                              1u);
            }
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < WIDE_BINS; i += blockDim.x)
                if (mine[i])
                    atomicAdd(&w.bins[i], mine[i]);
            sync();
            if (leader()) {
                uint64_t ahead = 0;
                uint32_t b = 0;
                for (; ahead + w.bins[b] < c.need; b++)
                    ahead += w.bins[b];
                c.border = b;
                c.whole = w.bins[b] == c.need - ahead;
                c.need -= ahead;
            }
            sync();
            if (threadIdx.x == 0)
                found[pass] = WIDE_BINS - 1 - c.border;
            __syncthreads();
            pass++;
        } while (!c.whole);

        /* All that share the digits stay, and all that beat them. */
        for (uint64_t base = thread - threadIdx.x % 32; base < n; base += n_threads) {
            const uint64_t i = base + threadIdx.x % 32;
            bool stays = false;
            if (i < n) {
                const rank_key k = key_of(items[i]);
                int p = 0;
                while (p < pass && digits<WIDE_DIGIT>::of(k, p) == found[p])
                    p++;
                stays = p == pass || digits<WIDE_DIGIT>::of(k, p) > found[p];
            }
            const uint64_t at = take(&c.n_kept, stays);
            if (stays)
                w.kept[at] = items[i];
        }
        sync();
        for (uint64_t i = thread; i < want; i += n_threads)
            items[i] = w.kept[i];
        if (leader())
            *n_items = want;
        sync();
    }

    __device__ void expand(uint32_t step, uint64_t n_beams)
    {
        for (;;) {
            work_on(step, n_beams);
            sync();
            const bool done = c.next_item >= c.n_items;
            sync();
            if (done)
                return;
            select(w.candidates, &c.n_candidates, q.beam);
            select(w.findings, &c.n_findings, q.n_results);
            if (leader()) {
                c.reserved_candidates = c.n_candidates;
                c.reserved_findings = c.n_findings;
            }
            sync();
        }
    }

    __device__ uint64_t prune(uint32_t step)
    {
        select(w.candidates, &c.n_candidates, q.beam);
        const uint64_t n = c.n_candidates;
        for (uint64_t i = thread; i < n; i += n_threads) {
            const ft_gpu_wide_item &item = w.candidates[i];
            w.nodes[i] = item.node;
            w.sums[i] = (float)item.value;
            q.trace[(uint64_t)step * q.beam + i] = {item.token, item.beam};
        }
        sync();
        return n;
    }

    /* Bitonic sort of the findings, the worst first; pads are worse than any. */
    __device__ void sort(uint64_t n)
    {
        uint64_t room = 1;
        while (room < n)
            room *= 2;
        for (uint64_t i = n + thread; i < room; i += n_threads)
            w.findings[i].step = ~0u;
        sync();
        for (uint64_t size = 2; size <= room; size *= 2)
            for (uint64_t stride = size / 2; stride; stride /= 2) {
                for (uint64_t i = thread; i < room; i += n_threads) {
                    const uint64_t j = i ^ stride;
                    if (j <= i)
                        continue;
                    const ft_gpu_wide_item a = w.findings[i], b = w.findings[j];
                    const bool a_pad = a.step == ~0u, b_pad = b.step == ~0u;
                    const bool a_first =
                        a_pad || b_pad ? b_pad && !a_pad : before(key_of(b), key_of(a));
                    const bool b_first =
                        a_pad || b_pad ? a_pad && !b_pad : before(key_of(a), key_of(b));
                    const bool up = !(i & size);
                    if (up ? b_first : a_first) {
                        w.findings[i] = b;
                        w.findings[j] = a;
                    }
                }
                sync();
            }
    }

    /* Ends of the results in order (block 0), and the record's place. */
    __device__ void place_record(uint64_t n)
    {
        if (blockIdx.x == 0) {
            __shared__
                typename cub::BlockScan<uint64_t, WIDE_THREADS>::TempStorage scan;
            uint64_t before = 0;
            for (uint64_t base = 0; base < n; base += WIDE_THREADS) {
                const uint64_t i = base + threadIdx.x;
                uint64_t length = i < n ? w.findings[i].step + 1 : 0, ahead, total;
                cub::BlockScan<uint64_t, WIDE_THREADS>(scan).ExclusiveSum(length, ahead,
                                                                          total);
                if (i < n)
                    w.items_before[i] = before + ahead;
                before += total;
                __syncthreads();
            }
            if (threadIdx.x == 0) {
                c.record = query * q.record_bytes;
                q.records[query] = {c.record, 8 + 16 * n + 4 * before};
            }
        }
        sync();
    }

    __device__ void answer()
    {
        select(w.findings, &c.n_findings, q.n_results);
        const uint64_t n = c.n_findings;
        sort(n);
        place_record(n);
        uint8_t *record = q.out + c.record;
        double *scores = reinterpret_cast<double *>(record + 8);
        uint64_t *ends = reinterpret_cast<uint64_t *>(record + 8 + 8 * n);
        uint32_t *tokens = reinterpret_cast<uint32_t *>(record + 8 + 16 * n);
        if (leader())
            *reinterpret_cast<uint64_t *>(record) = n;
        for (uint64_t i = thread; i < n; i += n_threads) {
            const ft_gpu_wide_item &f = w.findings[i];
            const uint64_t at = w.items_before[i];
            scores[i] = f.value;
            ends[i] = at + f.step + 1;
            uint32_t token = f.token, beam = f.beam;
            for (uint32_t t = f.step;; t--) {
                tokens[at + t] = token;
                if (t == 0)
                    break;
                const ft_gpu_trace from = q.trace[(uint64_t)(t - 1) * q.beam + beam];
                token = from.token;
                beam = from.beam;
            }
        }
        sync();
    }

    __device__ void note_stats(uint32_t step, uint64_t n_beams, uint64_t n_kept,
                               long long start)
    {
        if (q.stats && leader())
            q.stats[(uint64_t)query * q.n_steps + step] = {
                n_beams, c.n_probes, c.n_admitted, n_kept,
                (unsigned long long)(clock64() - start)};
    }

    __device__ void run()
    {
        if (leader()) {
            w.nodes[0] = 0;
            w.sums[0] = 0;
            c.n_findings = 0;
        }
        sync();
        uint64_t n_beams = 1;
        for (uint32_t step = 0; step < q.n_steps && n_beams; step++) {
            const long long start = clock64();
            take_proposals(step);
            count_items(n_beams, step);
            expand(step, n_beams);
            const uint64_t n_kept = step + 1 < q.n_steps ? prune(step) : 0;
            note_stats(step, n_beams, n_kept, start);
            n_beams = n_kept;
        }
        answer();
    }
};

template <class View>
__global__ void __launch_bounds__(WIDE_THREADS)
    search_wide(const __grid_constant__ View view,
                const __grid_constant__ ft_gpu_question q,
                const __grid_constant__ ft_gpu_wide w)
{
    const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    wide_counters &c = *static_cast<wide_counters *>(w.counters);
    wide_searcher<View> s = {view, q, w, c, thread, (uint64_t)gridDim.x * blockDim.x,
                             0};
    for (uint32_t query = 0; query < q.n_queries; query++) {
        s.query = query;
        s.run();
    }
}

} // namespace ft

#endif
