/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid-wide search: any B, K, N and T, one query at a time, everything in device
 * memory. All blocks of a cooperative launch work on the query and meet at grid
 * barriers, of which a step has four, and two more where not all candidates stay.
 * Slower than the kernel of search.cuh where that fits, and the same answer.
 *
 * The warps share out runs of (beam, child) pairs; what they find is appended to lists.
 * No more pairs are looked at than could all be appended; then the grid selects the
 * best and goes on: nothing is dropped. The file is long because it is one kernel.
 */
#ifndef FT_GPU_WIDE_CUH
#define FT_GPU_WIDE_CUH

#include "position.cuh"
#include "question.h"
#include "select.cuh"
#include "views.cuh"

namespace ft
{

enum {
    WIDE_THREADS = 512,
    WIDE_WARPS = WIDE_THREADS / 32,
    WIDE_BINS = FT_GPU_WIDE_BINS,
    WIDE_EACH = WIDE_BINS / WIDE_THREADS,
    WIDE_DIGIT = log2_of(WIDE_BINS), /* bits a pass over the digits of keys */
    WIDE_RUN = 256,                  /* pairs that a warp takes at a time, at most */
    WIDE_PROBES_PER_SEARCH = 12
};

/* Of a list that is appended to: how many, and keys of the best and worst value that
 * ever were in it, as a float. */
struct wide_list {
    unsigned long long n;
    uint32_t best, worst;
};

struct wide_counters {
    wide_list candidates, findings;
    unsigned long long n_kept, n_ranked;
    unsigned long long n_admitted;
};
static_assert(sizeof(wide_counters) <= FT_GPU_COUNTER_BYTES, "room");

/* What a block has in shared memory. */
struct wide_block {
    uint32_t bins[WIDE_BINS]; /* its own; then of all, those of better bins */
    uint64_t sums[WIDE_WARPS];
    unsigned found[digits<WIDE_DIGIT>::PASSES];
    uint32_t border, above, inside; /* as in select.cuh */
};

template <class View> struct wide_searcher {
    typedef bin_scale<WIDE_BINS> scale;

    const View &view;
    const ft_gpu_question &q;
    const ft_gpu_wide &w;
    wide_counters &c;
    wide_block &m;
    const uint64_t thread, n_threads; /* of the grid */
    uint32_t query;
    uint32_t n_counts; /* of counts in bins so far */

    __device__ wide_searcher(const View &view_, const ft_gpu_question &q_,
                             const ft_gpu_wide &w_, wide_block &m_)
        : view(view_), q(q_), w(w_), c(*static_cast<wide_counters *>(w_.counters)),
          m(m_), thread((uint64_t)blockIdx.x * WIDE_THREADS + threadIdx.x),
          n_threads((uint64_t)gridDim.x * WIDE_THREADS), query(0), n_counts(0)
    {
    }

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

    /* The sum of a block's values in the threads before, and of all. */
    __device__ uint64_t sum_before(uint64_t v, uint64_t *total)
    {
        const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        uint64_t to = v, before = 0, all = 0;
#pragma unroll
        for (unsigned d = 1; d < 32; d *= 2) {
            const uint64_t below = __shfl_up_sync(~0u, to, d);
            to += lane >= d ? below : 0;
        }
        __syncthreads(); /* the last sums have been read */
        if (lane == 31)
            m.sums[warp] = to;
        __syncthreads();
#pragma unroll
        for (unsigned i = 0; i < WIDE_WARPS; i++) {
            const uint64_t sum = m.sums[i];
            before += i < warp ? sum : 0;
            all += sum;
        }
        *total = all;
        return before + to - v;
    }

    /* For each i < n put(i, sum of of(j) over the j < i); returns the sum of all. There
     * is a grid barrier within, and another has to follow. */
    template <class Of, class Put>
    __device__ uint64_t scan(uint64_t n, const Of &of, const Put &put)
    {
        const uint64_t part = (n + gridDim.x - 1) / gridDim.x;
        const uint64_t from = min(n, blockIdx.x * part), to = min(n, from + part);
        const uint64_t each = (to - from + WIDE_THREADS - 1) / WIDE_THREADS;
        const uint64_t first = min(to, from + threadIdx.x * each);
        const uint64_t end = min(to, first + each);
        uint64_t sum = 0, total, earlier = 0, all = 0;
        for (uint64_t i = first; i < end; i++)
            sum += of(i);
        uint64_t at = sum_before(sum, &total);
        if (threadIdx.x == 0)
            w.block_sums[blockIdx.x] = total;
        sync();
        for (unsigned b = threadIdx.x; b < gridDim.x; b += WIDE_THREADS) {
            const uint64_t of_block = w.block_sums[b];
            earlier += b < blockIdx.x ? of_block : 0;
            all += of_block;
        }
        sum_before(earlier, &earlier);
        sum_before(all, &all);
        at += earlier;
        for (uint64_t i = first; i < end; i++) {
            put(i, at);
            at += of(i);
        }
        return all;
    }

    __device__ void clear_slots()
    {
        for (uint64_t i = thread; i <= w.slot_mask; i += n_threads) {
            w.slot_code[i] = FT_NO_TOKEN;
            w.slot_logp[i] = 0;
        }
    }

    __device__ void take_proposals(uint32_t step)
    {
        const uint64_t at = ((uint64_t)query * q.n_steps + step) * q.n_proposals;
        for (uint64_t k = thread; k < q.n_proposals; k += n_threads) {
            const uint32_t token = q.tokens[at + k];
            const float logp = q.logp[at + k];
            uint32_t code = FT_NO_TOKEN;
            if (token != FT_NO_TOKEN && logp > q.token_threshold)
                code = view.code(token, step);
            w.codes[k] = code;
            w.tokens[k] = token;
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
            atomicExch(&w.slot_proposal[slot], (uint32_t)k); /* any of the token's */
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

    /* Pair number `pair` of a beam: the matched node and its slot. */
    __device__ uint64_t join(const ft_range &children, uint64_t pair, uint32_t step,
                             uint32_t *token, uint32_t *logp_key) const
    {
        if (by_proposal(children.count)) {
            const uint32_t code = w.codes[pair];
            if (code == FT_NO_TOKEN)
                return UINT64_MAX;
            const int64_t slot = find_slot(code);
            if (w.slot_proposal[slot] != pair)
                return UINT64_MAX;
            *token = w.tokens[pair];
            *logp_key = w.slot_logp[slot];
            return view.find(children, *token, step);
        }
        const uint64_t node = children.first + pair;
        const int64_t slot = find_slot(view.code_of(node, step));
        if (slot < 0)
            return UINT64_MAX;
        *token = w.tokens[w.slot_proposal[slot]];
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

    /* By whole warps: the item goes to the list where a lane has one. */
    static __device__ void append(wide_list *list, ft_gpu_wide_item *items, bool yes,
                                  const ft_gpu_wide_item &item)
    {
        if (!__any_sync(~0u, yes))
            return;
        const uint64_t at = take(&list->n, yes);
        if (yes)
            items[at] = item;
        const uint32_t key = ft_float_key((float)item.value);
        const uint32_t best = warp_max(yes ? key : 0);
        const uint32_t worst = ~warp_max(yes ? ~key : 0);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&list->best, best);
            atomicMin(&list->worst, worst);
        }
    }

    /* The beam of pair x, for the whole warp; 32 places are looked at at a time. */
    __device__ uint64_t beam_of(uint64_t x, uint64_t n_beams) const
    {
        const unsigned lane = threadIdx.x % 32;
        uint64_t lo = 0, n = n_beams;
        while (n > 32) {
            const uint64_t each = (n + 31) / 32, at = lo + lane * each;
            const bool below = lane * each < n && w.before[at] <= x;
            const uint64_t i = __popc(__ballot_sync(~0u, below)) - 1;
            lo += i * each;
            n = min(each, n - i * each);
        }
        const bool below = lane < n && w.before[lo + lane] <= x;
        return lo + __popc(__ballot_sync(~0u, below)) - 1;
    }

    /* A warp's run of pairs x .. to - 1, a lane each of 32 at a time. */
    __device__ void work(uint64_t x, uint64_t to, uint32_t step, uint64_t n_beams)
    {
        const unsigned lane = threadIdx.x % 32;
        const bool last = step + 1 == q.n_steps;
        uint64_t first = beam_of(x, n_beams);
        for (; x < to; x += 32) {
            /* Every beam has a pair: a bit for each beam that begins behind x. */
            const uint64_t next = first + 1 + lane;
            const uint64_t start = next < n_beams ? w.before[next] - x : UINT64_MAX;
            const unsigned starts = warp_or(start < 32 ? 1u << start : 0);
            const uint64_t beam = first + __popc(starts & ((2u << lane) - 1));
            first += __popc(__ballot_sync(~0u, start <= 32));
            uint32_t token = 0, key = 0;
            uint64_t node = UINT64_MAX;
            float sum = 0;
            unsigned flags = 0;
            if (x + lane < to)
                node = join(w.children[beam], x + lane - w.before[beam], step, &token,
                            &key);
            const bool admitted =
                node != UINT64_MAX &&
                ft_admit(w.sums[beam], key_float(key), q.token_threshold,
                         q.sentence_threshold, &sum);
            if (admitted)
                flags = view.flags(node, step);
            if (q.stats) {
                const unsigned lanes = __ballot_sync(~0u, admitted);
                if (lane == 0)
                    atomicAdd(&c.n_admitted, (unsigned long long)__popc(lanes));
            }
            const uint32_t parent = (uint32_t)beam;
            append(&c.candidates, w.candidates, !last && (flags & FT_NODE_HAS_CHILDREN),
                   {sum, node, token, parent, step, 0});
            append(&c.findings, w.findings, flags & FT_NODE_TERMINAL,
                   {(double)sum * q.norm[step + 1], node, token, parent, step, 0});
        }
    }

    /* Count those of n items for which bin(i) is one: then m.bins, m.border, m.above
     * and m.inside say how they lie, and which bin has number `need` of them. There is
     * a grid barrier within, and another has to lie between two calls. */
    template <class Bin>
    __device__ void count_bins(uint64_t n, uint64_t need, const Bin &bin)
    {
        uint32_t *bins = w.bins + n_counts % 2 * WIDE_BINS; /* clear */
        uint32_t *next = w.bins + ++n_counts % 2 * WIDE_BINS;
        for (uint64_t i = thread; i < WIDE_BINS; i += n_threads)
            next[i] = 0;
        for (unsigned i = threadIdx.x; i < WIDE_BINS; i += WIDE_THREADS)
            m.bins[i] = 0;
        __syncthreads();
        for (uint64_t i = thread; i < n; i += n_threads) {
            const int b = bin(i);
            if (b >= 0)
                atomicAdd(&m.bins[b], 1u);
        }
        __syncthreads();
        for (unsigned i = threadIdx.x; i < WIDE_BINS; i += WIDE_THREADS)
            if (m.bins[i])
                atomicAdd(&bins[i], m.bins[i]);
        sync();
        uint32_t count[WIDE_EACH], sum = 0;
        uint64_t total;
#pragma unroll
        for (int i = 0; i < WIDE_EACH; i++) {
            count[i] = bins[threadIdx.x * WIDE_EACH + i];
            sum += count[i];
        }
        uint32_t above = (uint32_t)sum_before(sum, &total);
#pragma unroll
        for (int i = 0; i < WIDE_EACH; i++) {
            const uint32_t b = threadIdx.x * WIDE_EACH + i;
            m.bins[b] = above;
            if (above < need && above + count[i] >= need) {
                m.border = b;
                m.above = above;
                m.inside = count[i];
            }
            above += count[i];
        }
        __syncthreads();
    }

    /* By a whole warp: how many of ranked[from .. to - 1] go before k. */
    __device__ uint64_t count_before(uint64_t from, uint64_t to,
                                     const rank_key &k) const
    {
        uint32_t n = 0;
        for (uint64_t j = from + threadIdx.x % 32; j < to; j += 32)
            n += before({w.ranked[j].value, w.ranked[j].node}, k);
        return warp_sum(n);
    }

    /* keep(at, item) for the best `want` of the list, at < want all different. Bins say
     * which lie near the border; the digits of their keys narrow those down where they
     * are too many, and the last few are ranked. A grid barrier lies before, and has to
     * follow. */
    template <class Keep>
    __device__ void select(const ft_gpu_wide_item *items, const wide_list &list,
                           uint64_t want, const Keep &keep)
    {
        const uint64_t n = list.n;
        if (n <= want) {
            for (uint64_t i = thread; i < n; i += n_threads)
                keep(i, items[i]);
            return;
        }
        const scale bins = scale::over(key_float(list.best), key_float(list.worst));
        if (leader())
            c.n_kept = c.n_ranked = 0;
        count_bins(n, want,
                   [&](uint64_t i) { return bins.bin((float)items[i].value); });
        const int border = (int)m.border;
        uint64_t need = want - m.above, inside = m.inside;
        int pass = 0; /* digits that are known of the worst that stays */
        while (inside > w.cap_ranked) {
            sync(); /* see count_bins() */
            count_bins(n, need, [&](uint64_t i) {
                const rank_key k = key_of(items[i]);
                if (bins.bin((float)k.value) != border || digits_found(k, pass) < pass)
                    return -1;
                return WIDE_BINS - 1 - (int)digits<WIDE_DIGIT>::of(k, pass);
            });
            if (threadIdx.x == 0)
                m.found[pass] = WIDE_BINS - 1 - m.border;
            need -= m.above;
            inside = m.inside;
            pass++;
            __syncthreads();
        }
        for (uint64_t base = thread - threadIdx.x % 32; base < n; base += n_threads) {
            const uint64_t i = base + threadIdx.x % 32;
            bool stays = false, near = false;
            rank_key k = {0, 0};
            if (i < n) {
                const int bin = bins.bin((float)items[i].value);
                stays = bin < border;
                if (bin == border) {
                    k = key_of(items[i]);
                    const int p = digits_found(k, pass);
                    near = p == pass;
                    stays = p < pass && digits<WIDE_DIGIT>::of(k, p) > m.found[p];
                }
            }
            const uint64_t at = take(&c.n_kept, stays);
            if (stays)
                keep(at, items[i]);
            const uint64_t r = take(&c.n_ranked, near);
            if (near)
                w.ranked[r] = {k.value, k.node, (uint32_t)i, 0};
        }
        sync();
        for (uint64_t i = thread / 32; i < inside; i += n_threads / 32) {
            const ft_gpu_wide_rank mine = w.ranked[i];
            const uint64_t rank = count_before(0, inside, {mine.value, mine.node});
            if (threadIdx.x % 32 == 0 && rank < need)
                keep(want - need + rank, items[mine.item]);
        }
    }

    /* How many of the first n digits are those found. */
    __device__ int digits_found(const rank_key &k, int n) const
    {
        int p = 0;
        while (p < n && digits<WIDE_DIGIT>::of(k, p) == m.found[p])
            p++;
        return p;
    }

    /* Drop all but the best `want` of a list. A grid barrier lies before and behind. */
    __device__ void trim(ft_gpu_wide_item *items, wide_list *list, uint64_t want)
    {
        if (list->n <= want)
            return; /* the same for all: nobody changes it before the next barrier */
        select(items, *list, want,
               [&](uint64_t at, const ft_gpu_wide_item &item) { w.kept[at] = item; });
        sync();
        for (uint64_t i = thread; i < want; i += n_threads)
            items[i] = w.kept[i];
        if (leader())
            list->n = want;
        sync();
    }

    /* All pairs of the step. A grid barrier lies before and behind. */
    __device__ void expand(uint32_t step, uint64_t n_beams, uint64_t n_pairs,
                           uint64_t n_findings)
    {
        const uint64_t n_warps = n_threads / 32;
        const uint64_t share = (n_pairs / n_warps + 31) / 32 * 32;
        const uint64_t run = min(max(share, (uint64_t)32), (uint64_t)WIDE_RUN);
        uint64_t n_candidates = 0;
        for (uint64_t done = 0; done < n_pairs;) {
            const uint64_t room =
                min(w.cap_candidates - n_candidates, w.cap_findings - n_findings);
            const uint64_t to = done + min(n_pairs - done, room / run * run);
            for (uint64_t x = done + thread / 32 * run; x < to; x += n_warps * run)
                work(x, min(x + run, to), step, n_beams);
            sync();
            done = to;
            if (done == n_pairs)
                return;
            trim(w.candidates, &c.candidates, q.beam);
            trim(w.findings, &c.findings, q.n_results);
            n_candidates = c.candidates.n;
            n_findings = c.findings.n;
            sync();
        }
    }

    /* The best B candidates become the next frontier. Returns how many. */
    __device__ uint64_t prune(uint32_t step)
    {
        const uint64_t n = min(c.candidates.n, (unsigned long long)q.beam);
        clear_slots();
        select(w.candidates, c.candidates, q.beam,
               [&](uint64_t at, const ft_gpu_wide_item &item) {
                   w.children[at] = view.children(item.node, step + 1);
                   w.sums[at] = (float)item.value;
                   q.trace[(uint64_t)step * q.beam + at] = {item.token, item.beam};
               });
        sync();
        return n;
    }

    /* w.order becomes the numbers of the n results in w.kept, the worst first: put down
     * by bins, each is ranked among those of its own. */
    __device__ void sort(uint64_t n)
    {
        const scale bins =
            scale::over(key_float(c.findings.best), key_float(c.findings.worst));
        uint32_t *taken = w.bins + 2 * WIDE_BINS;
        for (uint64_t i = thread; i < WIDE_BINS; i += n_threads)
            taken[i] = 0;
        count_bins(n, 0, [&](uint64_t i) { return bins.bin((float)w.kept[i].value); });
        for (uint64_t i = thread; i < n; i += n_threads) {
            const rank_key k = key_of(w.kept[i]);
            const int b = bins.bin((float)k.value);
            w.ranked[m.bins[b] + atomicAdd(&taken[b], 1u)] = {k.value, k.node,
                                                              (uint32_t)i, 0};
        }
        sync();
        for (uint64_t i = thread / 32; i < n; i += n_threads / 32) {
            const ft_gpu_wide_rank mine = w.ranked[i];
            const int b = bins.bin((float)mine.value);
            const uint64_t from = m.bins[b], to = b + 1 < WIDE_BINS ? m.bins[b + 1] : n;
            const uint64_t rank =
                from + count_before(from, to, {mine.value, mine.node});
            if (threadIdx.x % 32 == 0)
                w.order[n - 1 - rank] = mine.item;
        }
        sync();
    }

    /* Write result number i, whose tokens begin at number `at`: paper Appendix D.3. */
    __device__ void write_result(uint8_t *record, uint64_t n, uint64_t i,
                                 uint64_t at) const
    {
        double *scores = reinterpret_cast<double *>(record + 8);
        uint64_t *ends = reinterpret_cast<uint64_t *>(record + 8 + 8 * n);
        uint32_t *tokens = reinterpret_cast<uint32_t *>(record + 8 + 16 * n);
        const ft_gpu_wide_item &f = w.kept[w.order[i]];
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

    __device__ void answer()
    {
        const uint64_t n = min(c.findings.n, (unsigned long long)q.n_results);
        select(w.findings, c.findings, q.n_results,
               [&](uint64_t at, const ft_gpu_wide_item &item) { w.kept[at] = item; });
        sync();
        sort(n);
        const uint64_t at = query * q.record_bytes;
        const uint64_t n_tokens = scan(
            n, [&](uint64_t i) { return (uint64_t)w.kept[w.order[i]].step + 1; },
            [&](uint64_t i, uint64_t before) {
                write_result(q.out + at, n, i, before);
            });
        if (leader()) {
            *reinterpret_cast<uint64_t *>(q.out + at) = n;
            q.records[query] = {at, 8 + 16 * n + 4 * n_tokens};
        }
        sync();
    }

    __device__ void note_stats(uint32_t step, uint64_t n_beams, uint64_t n_pairs,
                               uint64_t n_kept, long long start)
    {
        if (q.stats && leader())
            q.stats[(uint64_t)query * q.n_steps + step] = {
                n_beams, n_pairs, c.n_admitted, n_kept,
                (unsigned long long)(clock64() - start)};
    }

    /* All lists empty, all bins clear. A grid barrier has to follow. */
    __device__ void begin()
    {
        for (uint64_t i = thread; i < 2 * WIDE_BINS; i += n_threads)
            w.bins[i] = 0;
        if (leader())
            c.candidates = c.findings = {0, 0, ~0u};
    }

    __device__ void run()
    {
        begin();
        clear_slots();
        if (leader()) {
            w.children[0] = view.children(0, 0);
            w.sums[0] = 0;
        }
        sync();
        uint64_t n_beams = 1;
        for (uint32_t step = 0; step < q.n_steps && n_beams; step++) {
            const long long start = clock64();
            if (leader()) {
                c.candidates = {0, 0, ~0u};
                c.n_admitted = 0;
            }
            take_proposals(step);
            const uint64_t n_findings = c.findings.n;
            const uint64_t n_pairs = scan(
                n_beams, [&](uint64_t i) { return pairs_of(w.children[i].count); },
                [&](uint64_t i, uint64_t before) { w.before[i] = before; });
            sync();
            expand(step, n_beams, n_pairs, n_findings);
            const uint64_t n_kept = step + 1 < q.n_steps ? prune(step) : 0;
            note_stats(step, n_beams, n_pairs, n_kept, start);
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
    FT_BLOCK_MEMORY(raw);
    wide_searcher<View> s(view, q, w, *reinterpret_cast<wide_block *>(raw));
    for (uint32_t i = 0; i < q.n_queries; i++) {
        s.query = q.first_query + i;
        s.run();
    }
}

} // namespace ft

#endif
