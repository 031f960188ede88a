/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernel: one launch runs all steps of a batch (paper Algorithm 1). A team
 * of one or more thread blocks takes a query from a queue and keeps it to the end:
 * proposals hashed in shared memory, (beam, child) pairs shared out over the whole
 * team, exact selection, results, backtrace, wire record. Where B, K or N are beyond
 * ROOM, the grid-wide kernel of wide.cuh does the same.
 *
 * Assumes: blockDim.x = THREADS, a multiple of 32; grid a multiple of the cluster;
 * K, B, N <= ROOM. The file is long because all of it is the one kernel.
 */
#ifndef FT_GPU_SEARCH_CUH
#define FT_GPU_SEARCH_CUH

#include "question.h"
#include "select.cuh"

namespace ft
{

enum { PROBES_PER_SEARCH = 12 }; /* children that are probed rather than searched */

static __device__ inline uint32_t slot_hash(uint32_t code)
{
    return code * 0x9E3779B1u;
}

struct candidate { /* of the step: 16 bytes, one access */
    float sum;
    uint32_t node_low;
    uint16_t beam, proposal;
    uint32_t node_high;
};

struct finding { /* a result */
    double score;
    uint64_t node;
    uint32_t token;
    uint16_t step, beam;
};

struct queued {     /* a match that is still to be looked at */
    uint32_t child; /* place among its parent's children */
    uint16_t beam, slot;
};

enum {
    PAIRS = 2,
    QUEUE = 32 * (PAIRS + 1)
}; /* pairs a thread and round; a warp's queue */

template <int THREADS, int ROOM> struct memory {
    enum {
        SLOTS = 2 * ROOM,
        CANDIDATES = ROOM + PAIRS * THREADS,
        FINDINGS = ROOM + PAIRS * THREADS,
        EACH = (ROOM + THREADS - 1) / THREADS
    };
    static_assert(sizeof(finding) * ROOM <= sizeof(candidate) * CANDIDATES, "reused");

    candidate candidates[CANDIDATES]; /* at the end: the team's best results */
    finding findings[FINDINGS];
    uint64_t nodes[ROOM]; /* the frontier, the same in every block of the team */
    uint64_t first[ROOM]; /* children of each beam */
    float sums[ROOM];
    uint32_t n_children[ROOM];
    uint32_t pairs_before[ROOM + 1];
    uint32_t slot_code[SLOTS];     /* hash of the position's proposals */
    uint32_t slot_logp[SLOTS];     /* ft_float_key of the highest */
    uint32_t slot_proposal[SLOTS]; /* the first of the token's */
    uint32_t tokens[ROOM], codes[ROOM];
    union {
        queued queue[THREADS / 32][QUEUE];
        rank_key list_copy[SELECT_LIST]; /* matches are parked meanwhile */
    };
    uint16_t lengths[ROOM];
    uint32_t n_candidates, n_findings;
    uint32_t n_kept[2]; /* by the step's parity; block 0's count */
    uint32_t best_logp, worst_logp, best_sum, worst_sum; /* keys, of this step */
    uint64_t candidate_bound, finding_bound;             /* keys; below: hopeless */
    uint32_t query;
    uint64_t record; /* place of the wire record */
    unsigned long long n_probes, n_admitted;
    select_memory<THREADS> select;
};

static __device__ inline float key_float(uint32_t key)
{
    return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

template <class View, int THREADS, int ROOM> struct searcher {
    typedef memory<THREADS, ROOM> mem;

    const View &view;
    const ft_gpu_question &q;
    mem &m;
    const team all;
    uint8_t *scratch; /* the record, before it goes over the bus */

    __device__ rank_key key_of(const candidate &c) const
    {
        return {c.sum, (uint64_t)c.node_high << 32 | c.node_low};
    }

    /* Empty what a step fills. A barrier of the block follows before it is filled. */
    __device__ void clear_step(unsigned parity)
    {
        for (int i = threadIdx.x; i < mem::SLOTS; i += THREADS) {
            m.slot_code[i] = FT_NO_TOKEN;
            m.slot_logp[i] = 0;
            m.slot_proposal[i] = ~0u;
        }
        clear_bins(m.select);
        if (threadIdx.x == 0) {
            m.n_candidates = 0;
            m.n_kept[parity] = 0;
            m.candidate_bound = 0;
            m.best_logp = m.best_sum = 0;
            m.worst_logp = m.worst_sum = ~0u;
            m.n_probes = m.n_admitted = 0;
        }
    }

    /* A thread's slots of a position: tokens and log-probs are asked for a step ahead.
     */
    struct slots {
        uint32_t token[mem::EACH], code[mem::EACH];
        float logp[mem::EACH];
    };

    __device__ void fetch_proposals(uint32_t step, slots *p) const
    {
        const uint64_t at = ((uint64_t)m.query * q.n_steps + step) * q.n_proposals;
#pragma unroll
        for (int i = 0; i < mem::EACH; i++) {
            const uint32_t k = threadIdx.x + i * THREADS;
            const bool there = step < q.n_steps && k < q.n_proposals;
            p->token[i] = there ? q.tokens[at + k] : FT_NO_TOKEN;
            p->logp[i] = there ? q.logp[at + k] : 0;
        }
    }

    /* Codes among the children of level `step`; FT_NO_TOKEN: not admitted. */
    __device__ void fetch_codes(uint32_t step, slots *p) const
    {
#pragma unroll
        for (int i = 0; i < mem::EACH; i++) {
            const bool there =
                p->token[i] != FT_NO_TOKEN && p->logp[i] > q.token_threshold;
            p->code[i] = there ? view.code(p->token[i], step) : FT_NO_TOKEN;
        }
    }

    /* Hash the position's proposals by their codes; of a token's several slots the best
     * counts. */
    __device__ void take_proposals(const slots &p)
    {
        uint32_t best = 0, worst = ~0u;
#pragma unroll
        for (int i = 0; i < mem::EACH; i++) {
            const uint32_t k = threadIdx.x + i * THREADS, code = p.code[i];
            if (k >= q.n_proposals)
                continue;
            m.tokens[k] = p.token[i];
            m.codes[k] = code;
            if (code == FT_NO_TOKEN)
                continue;
            const uint32_t key = ft_float_key(p.logp[i]);
            best = max(best, key);
            worst = min(worst, key);
            uint32_t slot = slot_hash(code) & (mem::SLOTS - 1);
            for (;;) {
                const uint32_t was = atomicCAS(&m.slot_code[slot], FT_NO_TOKEN, code);
                if (was == FT_NO_TOKEN || was == code)
                    break;
                slot = (slot + 1) & (mem::SLOTS - 1);
            }
            atomicMax(&m.slot_logp[slot], key);
            atomicMin(&m.slot_proposal[slot], k); /* the same in every block */
        }
        best = warp_max(best);
        worst = ~warp_max(~worst);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&m.best_logp, best);
            atomicMin(&m.worst_logp, worst);
        }
    }

    __device__ int find_slot(uint32_t code) const
    {
        uint32_t slot = slot_hash(code) & (mem::SLOTS - 1);
        for (;;) {
            const uint32_t c = m.slot_code[slot];
            if (c == code)
                return (int)slot;
            if (c == FT_NO_TOKEN)
                return -1;
            slot = (slot + 1) & (mem::SLOTS - 1);
        }
    }

    /* Few children are probed, many are searched: by cost, per beam. */
    __device__ bool by_proposal(uint32_t n_children) const
    {
        return n_children / PROBES_PER_SEARCH > q.n_proposals;
    }

    /* Child ranges of all beams, and the pairs before each. */
    __device__ void count_pairs(uint32_t n_beams, uint32_t step)
    {
        uint32_t n[mem::EACH], best = 0, worst = ~0u;
        for (int i = 0; i < mem::EACH; i++) {
            const uint32_t beam = threadIdx.x * mem::EACH + i;
            n[i] = 0;
            if (beam >= n_beams)
                continue;
            const ft_range r = view.children(m.nodes[beam], step);
            m.first[beam] = r.first;
            m.n_children[beam] = (uint32_t)r.count;
            n[i] = by_proposal((uint32_t)r.count) ? q.n_proposals : (uint32_t)r.count;
            const uint32_t key = ft_float_key(m.sums[beam]);
            best = max(best, key);
            worst = min(worst, key);
        }
        best = warp_max(best);
        worst = ~warp_max(~worst);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&m.best_sum, best);
            atomicMin(&m.worst_sum, worst);
        }
        uint32_t total;
        cub::BlockScan<uint32_t, THREADS>(m.select.scan).ExclusiveSum(n, n, total);
        for (int i = 0; i < mem::EACH; i++) {
            const uint32_t beam = threadIdx.x * mem::EACH + i;
            if (beam < n_beams)
                m.pairs_before[beam] = n[i];
        }
        if (threadIdx.x == 0)
            m.pairs_before[n_beams] = total;
    }

    /* The beams that pairs first .. first + 31 are of, a lane each. The warp looks at
     * 32 places at a time; every beam has a pair, so a bit for each beam's first pair
     * tells them apart. Lanes beyond the last pair get the last beam. */
    __device__ uint32_t beam_of(uint32_t first, uint32_t n_beams) const
    {
        const unsigned lane = threadIdx.x % 32;
        uint32_t lo = 0, n = n_beams;
        while (n > 32) {
            const uint32_t each = (n + 31) / 32, at = lo + lane * each;
            const bool below = lane * each < n && m.pairs_before[at] <= first;
            const uint32_t step = __popc(__ballot_sync(~0u, below)) - 1;
            lo += step * each;
            n = min(each, n - step * each);
        }
        const bool below = lane < n && m.pairs_before[lo + lane] <= first;
        lo += __popc(__ballot_sync(~0u, below)) - 1;
        const uint32_t next = lo + 1 + lane;
        const uint32_t starts =
            next < n_beams ? m.pairs_before[next] - first : 32; /* 1 and up */
        unsigned mask = starts < 32 ? 1u << starts : 0;
        for (int step = 16; step; step /= 2)
            mask |= __shfl_xor_sync(~0u, mask, step);
        return lo + __popc(mask & (2u << lane) - 1);
    }

    /* Proposal number i among the children of a hub. */
    __device__ bool search_hub(uint32_t beam, uint32_t i, uint32_t step,
                               queued *found) const
    {
        const uint32_t code = m.codes[i];
        if (code == FT_NO_TOKEN)
            return false;
        const int slot = find_slot(code);
        if (m.slot_proposal[slot] != i) /* a token's several slots count once */
            return false;
        const ft_range children = {m.first[beam], m.n_children[beam]};
        const uint64_t node = view.find(children, m.tokens[i], step);
        *found = {(uint32_t)(node - children.first), (uint16_t)beam, (uint16_t)slot};
        return node != UINT64_MAX;
    }

    /* Join PAIRS pairs a thread from x on, THREADS apart, below `to`: those that match
     * go to the warp's queue. The loads of the pairs overlap. */
    __device__ void join(uint32_t x, uint32_t to, uint32_t n_beams, uint32_t step,
                         queued *queue, uint32_t *n_queued) const
    {
        uint32_t beam[PAIRS], child[PAIRS], code[PAIRS];
        bool hub[PAIRS];
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            const uint32_t first = x - threadIdx.x % 32 + i * THREADS;
            const uint32_t at = min(x + i * THREADS, to - 1); /* spare lanes repeat */
            beam[i] = beam_of(min(first, to - 1), n_beams);
            beam[i] = at == x + i * THREADS ? beam[i] : 0;
            child[i] = at == x + i * THREADS ? at - m.pairs_before[beam[i]] : 0;
            hub[i] = by_proposal(m.n_children[beam[i]]);
        }
#pragma unroll
        for (int i = 0; i < PAIRS; i++)
            code[i] = view.code_of(m.first[beam[i]] + (hub[i] ? 0 : child[i]), step);
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            queued found = {child[i], (uint16_t)beam[i], 0};
            bool match = x + i * THREADS < to;
            if (match && hub[i]) {
                match = search_hub(beam[i], child[i], step, &found);
            } else if (match) {
                const int slot = find_slot(code[i]);
                found.slot = (uint16_t)slot;
                match = slot >= 0;
            }
            const unsigned lanes = __ballot_sync(~0u, match), lane = threadIdx.x % 32;
            if (match)
                queue[*n_queued + __popc(lanes & ((1u << lane) - 1))] = found;
            *n_queued += __popc(lanes);
        }
        __syncwarp();
    }

    /* Look at the last n <= 32 queued matches, a lane each: admit them, and keep each
     * as candidate, finding or both. */
    __device__ void look(const queued *queue, uint32_t n, uint32_t step)
    {
        const bool last = step + 1 == q.n_steps;
        const unsigned lane = threadIdx.x % 32;
        bool as_beam = false, as_result = false;
        queued e = {0, 0, 0};
        uint64_t node = 0;
        float sum = 0;
        double score = 0;
        bool admitted = lane < n;
        if (admitted) {
            e = queue[lane];
            node = m.first[e.beam] + e.child;
            admitted = ft_admit(m.sums[e.beam], key_float(m.slot_logp[e.slot]),
                                q.token_threshold, q.sentence_threshold, &sum);
        }
        if (admitted) {
            score = (double)sum * q.norm[step + 1];
            as_beam = !last && double_key(sum) >= m.candidate_bound;
            as_result = double_key(score) >= m.finding_bound;
            if (as_beam || as_result) {
                const unsigned flags = view.flags(node, step);
                as_beam = as_beam && (flags & FT_NODE_HAS_CHILDREN);
                as_result = as_result && (flags & FT_NODE_TERMINAL);
            }
        }
        if (q.stats) {
            const unsigned n_admitted = __popc(__ballot_sync(~0u, admitted));
            if (lane == 0)
                atomicAdd(&m.n_admitted, (unsigned long long)n_admitted);
        }
        const uint32_t c = take_place(&m.n_candidates, as_beam);
        if (as_beam)
            m.candidates[c] = {sum, (uint32_t)node, e.beam,
                               (uint16_t)m.slot_proposal[e.slot],
                               (uint32_t)(node >> 32)};
        const uint32_t f = take_place(&m.n_findings, as_result);
        if (as_result)
            m.findings[f] = {score, node, m.tokens[m.slot_proposal[e.slot]],
                             (uint16_t)step, e.beam};
    }

    /* Keep the best B of this block's candidates, so that there is room to go on. */
    __device__ void trim_candidates()
    {
        const uint32_t n = m.n_candidates;
        const auto get = [&](uint32_t i) { return key_of(m.candidates[i]); };
        if (n <= q.beam)
            return;
        const verdict v = select_here(n, q.beam, get);
        keep_here<mem::CANDIDATES>(m.candidates, n, v, &m.n_candidates,
                                   &m.candidate_bound, get);
    }

    __device__ void trim_findings()
    {
        const uint32_t n = m.n_findings;
        const auto get = [&](uint32_t i) {
            return rank_key{m.findings[i].score, m.findings[i].node};
        };
        if (n <= q.n_results)
            return;
        const verdict v = select_here(n, q.n_results, get);
        keep_here<mem::FINDINGS>(m.findings, n, v, &m.n_findings, &m.finding_bound,
                                 get);
    }

    /* Least and largest value of n items of this block as keys. */
    template <class Get>
    __device__ void value_range(uint32_t n, const Get &get, uint32_t *best,
                                uint32_t *worst) const
    {
        *best = 0;
        *worst = ~0u;
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const uint32_t key = ft_float_key((float)get(i).value);
            *best = max(*best, key);
            *worst = min(*worst, key);
        }
        *best = warp_max(*best);
        *worst = ~warp_max(~*worst);
    }

    /* Selection by this block alone, in the middle of a step. */
    template <class Get>
    __device__ verdict select_here(uint32_t n, uint32_t want, const Get &get)
    {
        __shared__ uint32_t best, worst;
        clear_bins(m.select);
        if (threadIdx.x == 0) {
            best = 0;
            worst = ~0u;
        }
        uint32_t mine_best, mine_worst;
        value_range(n, get, &mine_best, &mine_worst);
        __syncthreads();
        if (threadIdx.x % 32 == 0) {
            atomicMax(&best, mine_best);
            atomicMin(&worst, mine_worst);
        }
        __syncthreads();
        const bin_scale bins = bin_scale::over(key_float(best), key_float(worst));
        return select_best(team::alone(), m.select, bins, n, want, get);
    }

    /* Close the ranks of the items that stay; *bound becomes the worst of them. */
    template <int CAP, class Item, class Get>
    __device__ void keep_here(Item *items, uint32_t n, const verdict &v,
                              uint32_t *n_items, uint64_t *bound, const Get &get)
    {
        enum { EACH = (CAP + THREADS - 1) / THREADS };
        Item mine[EACH];
        bool stays[EACH];
        unsigned long long worst = ~0ull;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const uint32_t i = threadIdx.x + j * THREADS;
            stays[j] = i < n && v.keeps(get(i));
            if (stays[j]) {
                mine[j] = items[i];
                worst = min(worst, (unsigned long long)double_key(get(i).value));
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            *n_items = 0;
            *bound = ~0ull;
        }
        __syncthreads();
        if (worst != ~0ull)
            atomicMin((unsigned long long *)bound, worst);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const uint32_t at = take_place(n_items, stays[j]);
            if (stays[j])
                items[at] = mine[j];
        }
        clear_bins(m.select);
        __syncthreads();
    }

    /* May a warp look at 32 matches? All of the block's may have asked at the same
     * time. */
    __device__ bool has_room() const
    {
        const volatile mem &now = m;
        const bool room = now.n_candidates + THREADS <= mem::CANDIDATES &&
                          now.n_findings + THREADS <= mem::FINDINGS;
        return __shfl_sync(~0u, room, 0);
    }

    /* Look at queued matches, as long as there are `least` and there is room. */
    __device__ void drain(const queued *queue, uint32_t *n_queued, uint32_t least,
                          uint32_t step)
    {
        while (*n_queued >= least && has_room()) {
            const uint32_t n = min(*n_queued, 32u);
            *n_queued -= n;
            look(queue + *n_queued, n, step);
        }
    }

    /* Trim what is nearly full. */
    __device__ void make_room()
    {
        const bool candidates = m.n_candidates + THREADS > mem::CANDIDATES;
        const bool findings = m.n_findings + THREADS > mem::FINDINGS;
        __syncthreads();
        if (candidates)
            trim_candidates();
        if (findings)
            trim_findings();
    }

    /* Make room while matches wait. A trim uses the queues' memory, so they go to
     * registers meanwhile. */
    __device__ void wait_for_room(queued *queue, uint32_t n_queued)
    {
        const unsigned lane = threadIdx.x % 32;
        queued parked[QUEUE / 32];
#pragma unroll
        for (int i = 0; i < QUEUE / 32; i++)
            parked[i] = queue[lane + 32 * i];
        __syncthreads();
        make_room();
        __syncthreads();
#pragma unroll
        for (int i = 0; i < QUEUE / 32; i++)
            if (lane + 32 * i < n_queued)
                queue[lane + 32 * i] = parked[i];
        __syncwarp();
    }

    /* This block's share of the step's pairs: candidates and findings appended. */
    __device__ void expand(uint32_t step, uint32_t n_beams)
    {
        const uint64_t total = m.pairs_before[n_beams];
        const uint32_t from = (uint32_t)(total * all.rank / all.size);
        const uint32_t to = (uint32_t)(total * (all.rank + 1) / all.size);
        queued *queue = m.queue[threadIdx.x / 32];
        uint32_t n_queued = 0;
        for (uint32_t base = from;; base += PAIRS * THREADS) {
            const bool more =
                base < to; /* at the end, all that is queued is looked at */
            if (more)
                join(base + threadIdx.x, to, n_beams, step, queue, &n_queued);
            drain(queue, &n_queued, more ? 32 : 1, step);
            while (__syncthreads_or(n_queued >= (more ? 32 : 1))) {
                wait_for_room(queue, n_queued);
                drain(queue, &n_queued, more ? 32 : 1, step);
            }
            if (!more)
                break;
        }
        if (q.stats && threadIdx.x == 0)
            m.n_probes = to - from;
        __syncthreads();
    }

    /* The team's best B candidates become the frontier of every block. */
    __device__ uint32_t prune(uint32_t step, ft_gpu_trace *trace)
    {
        const unsigned parity = step & 1;
        const auto get = [&](uint32_t i) { return key_of(m.candidates[i]); };
        all.sync();
        uint32_t of[MAX_TEAM];
#pragma unroll
        for (unsigned r = 0; r < MAX_TEAM; r++)
            of[r] = r < all.size ? *all.at(&m.n_candidates, r) : 0;
        const uint32_t total = of[0] + of[1] + of[2] + of[3];
        const uint32_t n = m.n_candidates;
        verdict v = verdict::everything();
        if (total > q.beam) {
            const float best = key_float(m.best_sum) + key_float(m.best_logp);
            const float worst = fmaxf(key_float(m.worst_sum) + key_float(m.worst_logp),
                                      q.sentence_threshold);
            v = select_best(all, m.select, bin_scale::over(best, worst), n, q.beam,
                            get);
        }
        for (uint32_t base = 0; base < n; base += THREADS) {
            const uint32_t i = base + threadIdx.x;
            candidate c;
            bool stays = i < n;
            if (stays) {
                c = m.candidates[i];
                stays = total <= q.beam || v.keeps(key_of(c));
            }
            const uint32_t at = take_place(all.at(&m.n_kept[parity], 0), stays);
            if (!stays)
                continue;
            for (unsigned r = 0; r < all.size; r++) {
                all.at(m.nodes, r)[at] = key_of(c).node;
                all.at(m.sums, r)[at] = c.sum;
            }
            trace[(uint64_t)step * q.beam + at] = {m.tokens[c.proposal], c.beam};
        }
        all.sync();
        return *all.at(&m.n_kept[parity], 0);
    }

    __device__ void note_stats(uint32_t step, uint32_t n_beams, uint32_t n_kept,
                               long long start)
    {
        if (!q.stats || threadIdx.x)
            return;
        ft_gpu_step_stats *s = &q.stats[(uint64_t)m.query * q.n_steps + step];
        atomicAdd(&s->probes, m.n_probes);
        atomicAdd(&s->candidates, m.n_admitted);
        if (all.rank == 0) {
            s->beams = n_beams;
            s->kept = n_kept;
            s->cycles = (unsigned long long)(clock64() - start);
        }
    }

    /* The team's best N findings, in every block's `best` (in no order). Returns how
     * many. */
    __device__ uint32_t gather_findings(finding *best)
    {
        const auto get = [&](uint32_t i) {
            return rank_key{m.findings[i].score, m.findings[i].node};
        };
        uint32_t key_best, key_worst, total = 0;
        const uint32_t n = m.n_findings;
        all.sync(); /* all have read the last step's counts */
        clear_step(0);
        __syncthreads();
        value_range(n, get, &key_best, &key_worst);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&m.best_sum, key_best);
            atomicMin(&m.worst_sum, key_worst);
        }
        all.sync();
        key_best = 0;
        key_worst = ~0u;
        for (unsigned r = 0; r < all.size; r++) {
            total += *all.at(&m.n_findings, r);
            key_best = max(key_best, *all.at(&m.best_sum, r));
            key_worst = min(key_worst, *all.at(&m.worst_sum, r));
        }
        verdict v = verdict::everything();
        if (total > q.n_results)
            v = select_best(all, m.select,
                            bin_scale::over(key_float(key_best), key_float(key_worst)),
                            n, q.n_results, get);
        for (uint32_t base = 0; base < n; base += THREADS) {
            const uint32_t i = base + threadIdx.x;
            const bool stays = i < n && (total <= q.n_results || v.keeps(get(i)));
            const uint32_t at = take_place(all.at(&m.n_kept[0], 0), stays);
            if (stays)
                for (unsigned r = 0; r < all.size; r++)
                    all.at(best, r)[at] = m.findings[i];
        }
        all.sync();
        return *all.at(&m.n_kept[0], 0);
    }

    /* Order the results by counting, reserve the record and write it: paper Appendix
     * D.3. Ascending, so the best is the last. */
    __device__ void answer(const ft_gpu_trace *trace)
    {
        finding *best = reinterpret_cast<finding *>(m.candidates);
        const uint32_t n = gather_findings(best);
        const uint32_t step = THREADS * all.size;
        for (uint32_t i = all.rank * THREADS + threadIdx.x; i < n; i += step) {
            const rank_key mine = {best[i].score, best[i].node};
            uint32_t place = 0;
            for (uint32_t j = 0; j < n; j++)
                place += before(mine, {best[j].score, best[j].node});
            for (unsigned r = 0; r < all.size; r++) {
                all.at(m.lengths, r)[place] = best[i].step + 1;
                all.at(m.pairs_before, r)[place] = i; /* the finding of this place */
            }
        }
        all.sync();

        uint32_t length[mem::EACH], total;
        for (int i = 0; i < mem::EACH; i++) {
            const uint32_t place = threadIdx.x * mem::EACH + i;
            length[i] = place < n ? m.lengths[place] : 0;
        }
        cub::BlockScan<uint32_t, THREADS>(m.select.scan)
            .ExclusiveSum(length, length, total);
        for (int i = 0; i < mem::EACH; i++) {
            const uint32_t place = threadIdx.x * mem::EACH + i;
            if (place < n)
                m.n_children[place] = length[i]; /* tokens before this result's */
        }
        const uint64_t bytes = 8 + 16ull * n + 4ull * total;
        if (all.rank == 0 && threadIdx.x == 0) {
            /* Records lie at multiples of 8. */
            const uint64_t at = atomicAdd(q.out_used, (bytes + 7) / 8 * 8) - q.out_base;
            for (unsigned r = 0; r < all.size; r++)
                *all.at(&m.record, r) = at;
            q.records[m.query] = {at, bytes};
        }
        all.sync();
        write_record(best, n, trace);
        all.sync();
        /* Over the bus in whole lines. */
        const uint64_t *from = reinterpret_cast<const uint64_t *>(scratch);
        uint64_t *to = reinterpret_cast<uint64_t *>(q.out + m.record);
        for (uint64_t i = all.rank * THREADS + threadIdx.x; i < (bytes + 7) / 8;
             i += step)
            to[i] = from[i];
    }

    __device__ void write_record(const finding *best, uint32_t n,
                                 const ft_gpu_trace *trace) const
    {
        uint8_t *record = scratch;
        double *scores = reinterpret_cast<double *>(record + 8);
        uint64_t *ends = reinterpret_cast<uint64_t *>(record + 8 + 8ull * n);
        uint32_t *tokens = reinterpret_cast<uint32_t *>(record + 8 + 16ull * n);
        if (all.rank == 0 && threadIdx.x == 0)
            *reinterpret_cast<uint64_t *>(record) = n;
        for (uint32_t place = all.rank * THREADS + threadIdx.x; place < n;
             place += THREADS * all.size) {
            const finding &f = best[m.pairs_before[place]];
            const uint32_t at = m.n_children[place];
            scores[place] = f.score;
            ends[place] = at + f.step + 1;
            uint32_t token = f.token, beam = f.beam;
            for (uint32_t t = f.step;; t--) {
                tokens[at + t] = token;
                if (t == 0)
                    break;
                const ft_gpu_trace from = trace[(uint64_t)(t - 1) * q.beam + beam];
                token = from.token;
                beam = from.beam;
            }
        }
    }

    __device__ void run(ft_gpu_trace *trace)
    {
        if (threadIdx.x == 0) {
            m.nodes[0] = 0;
            m.sums[0] = 0;
            m.n_findings = 0;
            m.finding_bound = 0;
        }
        uint32_t n_beams = 1;
        slots proposals;
        fetch_proposals(0, &proposals);
        for (uint32_t step = 0; step < q.n_steps && n_beams; step++) {
            const long long start = clock64();
            fetch_codes(step, &proposals);
            clear_step(step & 1);
            __syncthreads();
            count_pairs(n_beams, step);
            take_proposals(proposals);
            fetch_proposals(step + 1, &proposals);
            __syncthreads();
            expand(step, n_beams);
            const uint32_t n_kept = step + 1 < q.n_steps ? prune(step, trace) : 0;
            note_stats(step, n_beams, n_kept, start);
            n_beams = n_kept;
        }
        __syncthreads();
        answer(trace);
    }
};

template <class View, int THREADS, int ROOM>
__global__ void __launch_bounds__(THREADS)
    search(const __grid_constant__ View view, const __grid_constant__ ft_gpu_question q)
{
    extern __shared__ __align__(16) unsigned char raw[];
    memory<THREADS, ROOM> &m = *reinterpret_cast<memory<THREADS, ROOM> *>(raw);
    const team all = team::whole();
    if (threadIdx.x == 0)
        m.select.list_copy = m.list_copy;
    all.sync(); /* shared memory of a block exists once it runs */
    uint8_t *scratch = q.scratch + (blockIdx.x / all.size) * q.scratch_bytes;
    searcher<View, THREADS, ROOM> s = {view, q, m, all, scratch};
    ft_gpu_trace *trace =
        q.trace + (uint64_t)(blockIdx.x / all.size) * q.n_steps * q.beam;
    for (;;) {
        if (all.rank == 0 && threadIdx.x == 0) {
            const uint32_t next = atomicAdd(q.next_ticket, 1u) - q.first_ticket;
            for (unsigned r = 0; r < all.size; r++)
                *all.at(&m.query, r) = next;
        }
        all.sync();
        if (m.query >= q.n_queries)
            return; /* nobody touches this block's memory any more */
        s.run(trace);
        all.sync();
    }
}

} // namespace ft

#endif
