/* SPDX-License-Identifier: Apache-2.0
 *
 * FlashTrie's kernel as the paper has it (Algorithm 1): one cooperative launch searches
 * a batch, all steps of it. The grid is split into fixed partitions, one a query; in a
 * partition a block of 512 threads takes a beam, a thread a proposal. A View is the
 * constraint, a Match the inner loop (Appendix J).
 *
 * What the paper leaves open, and the contract does not: a position's proposals are a
 * set, so they are sorted by token first, and of a token's several the best is kept;
 * nodes that end a key and have children go both ways; ties.
 */
#ifndef FT_GPU_PAPER_COOPERATIVE_CUH
#define FT_GPU_PAPER_COOPERATIVE_CUH

#include "extension.cuh"

namespace ft::paper
{

/* Bitonic sort by a block, n a power of two. */
static __device__ void sort_by_block(uint64_t *keys, uint32_t n)
{
    for (uint32_t size = 2; size <= n; size *= 2)
        for (uint32_t stride = size / 2; stride; stride /= 2) {
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < n / 2; i += THREADS) {
                const uint32_t a = 2 * i - (i & (stride - 1)), b = a + stride;
                const uint64_t x = keys[a], y = keys[b];
                if ((x > y) == !(a & size)) {
                    keys[a] = y;
                    keys[b] = x;
                }
            }
        }
    __syncthreads();
}

template <class View, class Match, bool Timed> struct searcher {
    const View &view;
    const ft_paper_question &q;
    block_memory &m;
    partition part;
    extension<View, Timed> x;
    stopwatch<Timed> watch; /* of the query's phases */
    uint32_t query;
    uint32_t turn;    /* which of m.children is in use */
    uint32_t n_found; /* in `selected` after the last step */

    __device__ uint64_t *proposals_at(uint32_t step) const
    {
        return m.slot.proposals + (uint64_t)step * q.n_sorted;
    }

    /* The proposals of a position by token; those that cannot be meant get -inf, which
     * no threshold admits. */
    __device__ void sort_proposals(uint32_t step)
    {
        const uint64_t at = ((uint64_t)query * q.n_steps + step) * q.n_proposals;
        uint64_t *const out = proposals_at(step);
        uint64_t *const keys = q.n_sorted <= SORTED_IN_BLOCK ? m.proposals : out;
        for (uint32_t k = threadIdx.x; k < q.n_sorted; k += THREADS)
            keys[k] = k < q.n_proposals && q.tokens[at + k] != FT_NO_TOKEN
                          ? pack_proposal(q.tokens[at + k], q.logp[at + k])
                          : pack_proposal(FT_NO_TOKEN, -INFINITY);
        sort_by_block(keys, q.n_sorted);
        for (uint32_t k = threadIdx.x; k < q.n_proposals; k += THREADS) {
            const uint32_t token = proposal_token(keys[k]);
            const bool again = k && proposal_token(keys[k - 1]) == token;
            const bool none = token == FT_NO_TOKEN || again;
            if (none || !view.proposes(token, step))
                out[k] = pack_proposal(token, -INFINITY); /* the token stays */
            else if (out != keys)
                out[k] = keys[k];
        }
        __syncthreads();
    }

    /* Take up beam number `beam` of n. Its rank is how many sequences of the frontier
     * go before its own. */
    __device__ void take_up(uint32_t beam, uint32_t n)
    {
        const ft_paper_slot &s = m.slot;
        const uint64_t order = s.orders[beam];
        x.beam = beam;
        x.node = s.nodes[beam];
        x.sum = s.sums[beam];
        turn ^= 1;
        if (threadIdx.x < 32 && !view.in_link(x.node)) {
            const ft_range children = view.children_by_warp(x.node);
            if (threadIdx.x == 0)
                m.children[turn] = children;
        }
        x.rank = 0;
        for (uint32_t base = 0; base < n; base += THREADS) {
            const uint32_t i = base + threadIdx.x;
            x.rank += __syncthreads_count(i < n && s.orders[i] < order);
        }
        x.children = m.children[turn];
        x.watch.charge(FT_PHASE_EXPANSION);
    }

    /* Algorithm 2. */
    __device__ void extend_in_link()
    {
        arrival a;
        uint32_t token;
        float sum;
        const uint32_t next = view.next_token(x.node, &a);
        if (threadIdx.x == 0)
            x.n_probes++;
        for (uint32_t k = threadIdx.x; k < q.n_proposals; k += THREADS) {
            if (proposal_token(x.proposals[k]) != next)
                continue;
            x.watch.charge(FT_PHASE_EXPANSION);
            if (x.admits(k, &token, &sum)) /* of equal tokens only the first is */
                x.append(token, sum, a);
        }
        x.watch.charge(FT_PHASE_EXPANSION);
    }

    /* The step's two passes (Appendix D.1). */
    __device__ void expand(uint32_t step, uint32_t n_beams)
    {
        const ft_paper_slot &s = m.slot;
        x.step = step;
        x.proposals = proposals_at(step);
        x.n_probes = x.n_candidates = 0;
        x.watch.start();
        if constexpr (View::TAILS)
            for (uint32_t b = part.rank; b < n_beams; b += part.size)
                if (view.in_link(s.nodes[b])) {
                    take_up(b, n_beams);
                    extend_in_link();
                }
        for (uint32_t b = part.rank; b < n_beams; b += part.size)
            if (!view.in_link(s.nodes[b])) {
                take_up(b, n_beams);
                Match::extend(x); /* Algorithm 3 */
            }
        if (q.stats) {
            atomicAdd(&s.counters->n_probes, (unsigned long long)x.n_probes);
            atomicAdd(&s.counters->n_candidates, (unsigned long long)x.n_candidates);
        }
    }

    __device__ const ft_paper_item *select(const ft_paper_state *states, uint32_t n,
                                           uint32_t want)
    {
        tournament t = {part, m.tiles, states, {m.slot.items[0], m.slot.items[1]}};
        return t.best(n, want);
    }

    /* Between the barriers around a step's expansion and the next one's. */
    __device__ void note(uint32_t step, uint32_t n_beams, uint32_t n_kept,
                         long long start)
    {
        ft_paper_counters *c = m.slot.counters;
        if (!q.stats || !part.leader())
            return;
        q.stats[(uint64_t)query * q.n_steps + step] = {
            n_beams, c->n_probes, c->n_candidates, n_kept,
            (unsigned long long)(clock64() - start)};
        c->n_probes = c->n_candidates = 0;
    }

    /* Trim `next` to the best B, which become the frontier. Returns how many. */
    __device__ uint32_t prune(uint32_t step, uint32_t n_beams, long long start)
    {
        const ft_paper_slot &s = m.slot;
        const uint32_t n = s.counters->n_next[step % 2];
        const uint32_t n_kept = n < q.beam ? n : q.beam;
        const ft_paper_item *best = n > q.beam ? select(s.next, n, q.beam) : NULL;
        watch.charge(FT_PHASE_PRUNING);
        for (uint32_t i = part.thread(); i < n_kept; i += part.n_threads()) {
            const ft_paper_state state = s.next[best ? best[i].state : i];
            s.nodes[i] = state.node;
            s.orders[i] = state.order;
            s.sums[i] = (float)state.score;
            s.history[(uint64_t)step * q.beam + i] = {(uint32_t)state.order,
                                                      state.parent};
        }
        n_found = s.counters->n_found;
        note(step, n_beams, n_kept, start);
        part.sync();
        return n_kept;
    }

    /* Before a step whose results might not fit in `selected`, keep the best N there.
     */
    __device__ void make_room(uint32_t n_beams)
    {
        const ft_paper_slot &s = m.slot;
        const uint32_t n = n_found;
        const uint64_t pairs = (uint64_t)n_beams * q.n_proposals;
        const uint64_t most = pairs < q.cap_next ? pairs : q.cap_next;
        if (n <= q.n_results || n + most <= q.cap_selected)
            return;
        const ft_paper_item *best = select(s.selected, n, q.n_results);
        for (uint32_t i = part.thread(); i < q.n_results; i += part.n_threads())
            s.next[i] = s.selected[best[i].state]; /* nobody needs them now */
        part.sync();
        for (uint32_t i = part.thread(); i < q.n_results; i += part.n_threads())
            s.selected[i] = s.next[i];
        n_found = q.n_results;
        if (part.leader())
            s.counters->n_found = n_found;
        part.sync();
    }

    /* The ends of n results in ascending order, and how long the record is. */
    __device__ void place_results(const ft_paper_item *best, uint32_t n)
    {
        const ft_paper_slot &s = m.slot;
        uint64_t before = 0;
        for (uint32_t base = 0; base < n; base += THREADS) {
            const uint32_t i = base + threadIdx.x;
            uint64_t end = 0, total;
            if (i < n)
                end = (s.selected[best[n - 1 - i].state].order >> 48) + 1;
            end_scan(m.scan).InclusiveSum(end, end, total);
            if (i < n)
                s.ends[i] = before + end;
            before += total;
            __syncthreads();
        }
        if (threadIdx.x == 0)
            q.record_bytes[query] = 8 + 16ull * n + 4 * before;
    }

    /* Sort `selected` and write the wire record (Appendix D.3: GenerateResult). */
    __device__ void answer()
    {
        const ft_paper_slot &s = m.slot;
        const uint32_t n = n_found < q.n_results ? n_found : q.n_results;
        const ft_paper_item *best = select(s.selected, n_found, q.n_results);
        watch.charge(FT_PHASE_PRUNING);
        if (part.rank == 0)
            place_results(best, n);
        part.sync();
        uint8_t *record = q.out + q.record_room * query;
        double *scores = (double *)(record + 8);
        uint64_t *ends = (uint64_t *)(record + 8 + 8ull * n);
        uint32_t *tokens = (uint32_t *)(record + 8 + 16ull * n);
        if (part.leader())
            *(uint64_t *)record = n;
        for (uint32_t i = part.thread(); i < n; i += part.n_threads()) {
            const ft_paper_state &r = s.selected[best[n - 1 - i].state];
            const uint32_t last = (uint32_t)(r.order >> 48);
            uint32_t *const sequence = tokens + (s.ends[i] - last - 1);
            scores[i] = r.score;
            ends[i] = s.ends[i];
            ft_gpu_trace at = {(uint32_t)r.order, r.parent};
            for (uint32_t t = last;; t--) {
                sequence[t] = at.token;
                if (t == 0)
                    break;
                at = s.history[(uint64_t)(t - 1) * q.beam + at.beam];
            }
        }
    }

    /* The slot's last query is out of use by all. Every block sorts some positions. */
    __device__ void begin()
    {
        const ft_paper_slot &s = m.slot;
        part.sync();
        for (uint32_t t = part.rank; t < q.n_steps; t += part.size)
            sort_proposals(t);
        if (part.leader()) {
            s.nodes[0] = s.orders[0] = 0;
            s.sums[0] = 0;
            s.counters->n_next[0] = s.counters->n_next[1] = 0;
            s.counters->n_found = 0;
            s.counters->n_probes = s.counters->n_candidates = 0;
        }
        part.sync();
    }

    __device__ void run()
    {
        uint32_t n_beams = 1;
        n_found = 0;
        watch.start();
        begin();
        for (uint32_t step = 0; step < q.n_steps && n_beams; step++) {
            const long long start = clock64();
            make_room(n_beams);
            if (part.leader()) /* of the step before: all have read it */
                m.slot.counters->n_next[(step + 1) % 2] = 0;
            watch.charge(FT_PHASE_SYNC);
            expand(step, n_beams);
            part.sync();
            watch.charge_split(x.watch);
            n_beams = prune(step, n_beams, start);
        }
        answer();
        watch.charge(FT_PHASE_SYNC);
        if (Timed && part.leader())
            watch.write(q.phases + (uint64_t)query * FT_N_PHASES);
    }
};

/* Assumes a cooperative launch of at least q.n_slots blocks of THREADS threads. */
template <class View, class Match, bool Timed>
__global__ void __launch_bounds__(THREADS, 2)
    search(const __grid_constant__ View view,
           const __grid_constant__ ft_paper_question q)
{
    __shared__ block_memory m;
    const uint32_t size = gridDim.x / q.n_slots, number = blockIdx.x / size;
    if (number >= q.n_slots)
        return; /* the rest of a grid that does not divide */
    if (threadIdx.x == 0)
        m.slot = q.slots[number];
    __syncthreads();
    const partition part = {number, blockIdx.x % size, size, &m.slot.counters->arrived,
                            0};
    searcher<View, Match, Timed> s = {view, q, m, part, {view, q, m}};
    for (s.query = number; s.query < q.n_queries; s.query += q.n_slots)
        s.run();
}

} // namespace ft::paper

#endif
