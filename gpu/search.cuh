/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernel: one launch runs all steps of a batch (paper Algorithm 1). A team
 * of one or more thread blocks takes a query from a queue and keeps it to the end:
 * proposals hashed in shared memory, (beam, child) pairs shared out over the whole
 * team, exact selection, results, backtrace, wire record. Where B, K or N are beyond
 * ROOM, the grid-wide kernel of wide.cuh does the same.
 *
 * Beams lie best first, about. A step of many pairs takes those of the first beams,
 * looks how good the B-th best is by then, and drops what cannot reach that.
 *
 * Beams' pairs go to the warps in three ways: in turns of 32 (walk_turns), for latency
 * two turns at a time and the last without a queue (walk_in_haste), for throughput in
 * runs that are dealt out (walk_runs). For latency steps of few pairs go another way: a
 * thread a pair, from the edge to the beam of the next step (step_at_once); and where
 * the frontier narrows, the blocks of a team take such steps each on its own, to the
 * end (go_apart).
 *
 * What a step costs is mostly how many instructions follow each other in a warp, and
 * how many different ones: loops that run once or twice are not unrolled, and what is
 * seldom needed stands apart (noinline), so that little is spilled and the common way
 * stays short. Both together were worth about a sixth of the time.
 *
 * Assumes: blockDim.x = THREADS, a multiple of 32; grid a multiple of the cluster;
 * K, B, N <= ROOM. The file is long because all of it is the one kernel.
 */
#ifndef FT_GPU_SEARCH_CUH
#define FT_GPU_SEARCH_CUH

#include <cuda_pipeline.h>

#include "block_memory.cuh"

namespace ft
{

enum {
    PROBES_PER_SEARCH = 32, /* children that are probed rather than searched */
    SAMPLE = 4,             /* one pair in so many is done before the next look */
    RANKERS = 4             /* lanes that find a result's rank */
};

template <class View, class Mem, bool TIMED> struct searcher {
    enum { THREADS = Mem::THREADS, EACH = Mem::EACH, BINS = Mem::BINS };
    enum { UNROLL_FEED = Mem::SHARING ? Mem::FEED_EACH : 1 };
    typedef bin_scale<BINS> scale;

    const View &view;
    const ft_gpu_question &q;
    Mem &m;
    const team all;
    ft_gpu_trace *trace; /* [step][beam], of all steps but the last; see trace_of() */
    uint32_t query;
    double norm;                         /* of results of this step */
    uint32_t first_pair[Mem::LANE_EACH]; /* the pairs before the lane's beams */
    bool roomy;                          /* HASTY: for what a short step may find */
    uint32_t apart_from; /* beams after this step are numbered by near_place() */
    long long lap_at;    /* TIMED: the leading thread's clock at the last lap */
    unsigned long long laps[FT_N_PHASES];

    /* The leading thread's time since the last lap goes to a phase (paper D.4). */
    __device__ void lap(ft_phase phase)
    {
        if (!TIMED || threadIdx.x || all.rank)
            return;
        const long long now = clock64();
        laps[phase] += (unsigned long long)(now - lap_at);
        lap_at = now;
    }

    __device__ finding *findings() const
    {
        if (!Mem::SPARING)
            return m.findings;
        finding *all_blocks =
            static_cast<finding *>(__builtin_assume_aligned(q.findings, 16));
        return all_blocks + blockIdx.x * Mem::FINDINGS;
    }

    /* Of the frontier after `step` steps. */
    __device__ beam *beams(uint32_t step) const
    {
        return m.beams[step % Mem::FRONTIERS];
    }

    __device__ uint32_t *n_candidates(uint32_t step) const
    {
        return &m.n_candidates[Mem::HASTY ? step % 3 : 0];
    }

    __device__ uint32_t *pairs(uint32_t step) const
    {
        return m.pairs[Mem::HASTY ? step % 2 : 0];
    }

    __device__ position<Mem::ROOM> &proposals(uint32_t step) const
    {
        return m.proposals[Mem::HASTY || Mem::SHARING ? step % 2 : 0];
    }

    __device__ uint32_t *tokens_ahead(uint32_t step) const
    {
        return m.tokens_ahead[step % Mem::AHEAD];
    }

    __device__ uint32_t *raw_ahead() const
    {
        return Mem::SPARING ? m.raw : m.raw_ahead;
    }

    __device__ float *logp_ahead(uint32_t step) const
    {
        return m.logp_ahead[step % Mem::AHEAD];
    }

    /* A position's proposals are on their way to shared memory AHEAD steps ahead, what
     * the trie has for their tokens one step ahead, or, where a block is sparing, while
     * the step's beams are chosen. Each feeder takes its own. */
    __device__ void fetch_proposals(uint32_t step)
    {
        const uint64_t at = ((uint64_t)query * q.n_steps + step) * q.n_proposals;
        if (step < q.n_steps)
#pragma unroll 1
            for (uint32_t k = threadIdx.x - Mem::SETTLERS; k < q.n_proposals;
                 k += Mem::FEEDERS) {
                __pipeline_memcpy_async(&tokens_ahead(step)[k], q.tokens + at + k, 4);
                __pipeline_memcpy_async(&logp_ahead(step)[k], q.logp + at + k, 4);
            }
        __pipeline_commit();
    }

    /* The tokens are there. */
    __device__ void fetch_codes(uint32_t step)
    {
        if (step < q.n_steps)
#pragma unroll 1
            for (uint32_t k = threadIdx.x - Mem::SETTLERS; k < q.n_proposals;
                 k += Mem::FEEDERS)
                fetch_code_of(view, tokens_ahead(step)[k], step, &raw_ahead()[k]);
        __pipeline_commit();
    }

    static __device__ bool feeds()
    {
        return threadIdx.x >= Mem::SETTLERS;
    }

    /* A barrier of the feeders alone. */
    static __device__ void feeders_sync()
    {
        second_barrier(Mem::FEEDERS);
    }

    /* The feeders make the bins ready, which were read before. */
    __device__ void clear_all_bins()
    {
        const unsigned me = threadIdx.x - Mem::SETTLERS;
#pragma unroll 1
        for (unsigned i = me; i < BINS; i += Mem::FEEDERS)
            m.select.bins[i] = m.select.ends[i] = 0;
        if (me == 0)
            m.candidate_cut = m.finding_cut = BINS;
    }

    /* What the feeders do between two steps: the proposals of position `step` take the
     * place of earlier ones, which nobody in the block needs any more; the next ones
     * are sent for. */
    __device__ void feed(uint32_t step)
    {
        feed_now(step);
        feed_ahead(step);
    }

    __device__ void feed_now(uint32_t step)
    {
        const uint32_t *tokens = tokens_ahead(step);
        const float *logp = logp_ahead(step);
        const unsigned me = threadIdx.x - Mem::SETTLERS;
        uint32_t best = 0, worst = ~0u;
        position<Mem::ROOM> &to = proposals(step);
        to.clear(me, Mem::FEEDERS);
        __pipeline_wait_prior(0);
        feeders_sync();
#pragma unroll UNROLL_FEED
        for (int i = 0; i < Mem::FEED_EACH; i++) {
            const uint32_t k = me + i * Mem::FEEDERS;
            if (k >= q.n_proposals)
                continue;
            uint32_t code = FT_NO_TOKEN;
            if (tokens[k] != FT_NO_TOKEN && logp[k] > q.token_threshold)
                code = fetched_code_of(view, tokens[k], step, raw_ahead()[k]);
            to.insert(k, tokens[k], code, logp[k]);
            if (code == FT_NO_TOKEN)
                continue;
            if (Mem::HASTY && step == 0)
                fetch_top_of(view, code);
            const uint32_t key = ft_float_key(logp[k]);
            best = max(best, key);
            worst = min(worst, key);
        }
        best = warp_max(best);
        worst = ~warp_max(~worst);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&to.best, best);
            atomicMin(&to.worst, worst);
        }
    }

    __device__ void feed_ahead(uint32_t step)
    {
        if (Mem::AHEAD > 1)
            fetch_codes(step + 1);
        fetch_proposals(step + Mem::AHEAD);
    }

    /* Few children are probed, many are searched: by cost, per beam. */
    __device__ bool by_proposal(uint32_t n_children) const
    {
        return n_children / PROBES_PER_SEARCH > q.n_proposals;
    }

    /* Pairs of a beam with children. */
    __device__ uint32_t pairs_of(uint32_t n_children) const
    {
        return by_proposal(n_children) ? q.n_proposals : n_children;
    }

    /* Of beams of the step, by whole warps: keys. */
    __device__ void note_sums(uint32_t step, uint32_t best, uint32_t worst)
    {
        best = warp_max(best);
        worst = ~warp_max(~worst);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&m.best_sum[step % 2], best);
            atomicMin(&m.worst_sum[step % 2], worst);
        }
    }

    /* The pairs before each beam, N beams a thread: scan(sum, &total) sums over those
     * that call; and the beams' best and worst sum. */
    template <int N, class Scan>
    __device__ void count_pairs(uint32_t step, uint32_t n_beams, const Scan &scan)
    {
        const uint32_t first = threadIdx.x * N;
        uint32_t n[N], best = 0, worst = ~0u, sum = 0, total;
#pragma unroll
        for (int i = 0; i < N; i++) {
            n[i] = 0;
            if (first + i >= n_beams)
                continue;
            const beam b = beams(step)[first + i];
            n[i] = pairs_of(b.n_children);
            sum += n[i];
            const uint32_t key = ft_float_key(b.sum);
            best = max(best, key);
            worst = min(worst, key);
        }
        uint32_t before = scan(sum, &total);
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (first + i < n_beams)
                m.pairs[0][first + i] = before;
            before += n[i];
        }
        note_sums(step, best, worst);
        if (threadIdx.x == 0)
            m.pairs[0][n_beams] = total;
    }

    /* The pairs of the first n_beams beams. HASTY: each warp counts for itself,
     * which spares them all a barrier. */
    __device__ uint32_t total_pairs(uint32_t step, uint32_t n_beams)
    {
        if constexpr (!Mem::HASTY)
            return m.pairs[0][n_beams];
        return count_by_lanes(pairs(step), n_beams);
    }

    /* The same, of beams that have so many pairs each, by each warp: sets first_pair.
     */
    __device__ uint32_t count_by_lanes(const uint32_t *pairs, uint32_t n_beams)
    {
        const unsigned first = threadIdx.x % 32 * Mem::LANE_EACH;
        uint32_t n[Mem::LANE_EACH], sum = 0;
        memcpy(n, __builtin_assume_aligned(&pairs[first], 16), sizeof n);
#pragma unroll
        for (int i = 0; i < Mem::LANE_EACH; i++) {
            n[i] = first + i < n_beams ? n[i] : 0;
            sum += n[i];
        }
        const uint32_t to = warp_sum_to(sum);
        uint32_t at = to - sum;
#pragma unroll
        for (int i = 0; i < Mem::LANE_EACH; i++) {
            first_pair[i] = first + i < n_beams ? at : ~0u;
            at += n[i];
        }
        return __shfl_sync(~0u, to, 31);
    }

    /* Make ready for a step whose beams are there. A barrier of the team lies behind.
     * HASTY: what is reset here was read before that, and is used behind the next. */
    __device__ void begin_step(uint32_t step, uint32_t n_beams)
    {
        enum {
            WARP_EACH = Mem::LANE_EACH
        }; /* so few beams are one warp's, which needs no barrier */
        if (threadIdx.x == 0) {
            *n_candidates(step + Mem::HASTY) = 0;
            m.n_kept = m.n_border = m.select.n_list = 0;
            if (!Mem::HASTY) {
                m.best_sum[(step + 1) % 2] = 0;
                m.worst_sum[(step + 1) % 2] = ~0u;
            }
        }
        if (Mem::HASTY) {
            scout(step, n_beams);
            return;
        }
        if (n_beams > 32 * WARP_EACH)
            count_pairs<EACH>(step, n_beams, [&](uint32_t sum, uint32_t *total) {
                return sum_before(m.select.warp_sums, sum, total);
            });
        else if (threadIdx.x < 32)
            count_pairs<WARP_EACH>(step, n_beams, [](uint32_t sum, uint32_t *total) {
                const uint32_t to = warp_sum_to(sum);
                *total = __shfl_sync(~0u, to, 31);
                return to - sum;
            });
        __syncthreads();
    }

    /* Sums of the step in bins. */
    __device__ scale sum_scale(uint32_t step, uint32_t n_beams) const
    {
        uint32_t high, low;
        if constexpr (Mem::HASTY) {
            high = 0;
            low = ~0u;
#pragma unroll
            for (int i = 0; i < Mem::LANE_EACH; i++) {
                const uint32_t b = threadIdx.x % 32 + 32 * i;
                if (b >= n_beams)
                    continue;
                const uint32_t key = ft_float_key(beams(step)[b].sum);
                high = max(high, key);
                low = min(low, key);
            }
            high = warp_max(high);
            low = ~warp_max(~low);
        } else {
            high = m.best_sum[step % 2];
            low = m.worst_sum[step % 2];
        }
        const float best = key_float(high) + key_float(proposals(step).best);
        const float worst = key_float(low) + key_float(proposals(step).worst);
        return scale::over(best, fmaxf(worst, q.sentence_threshold));
    }

    /* HASTY: what is stored of the beams' children is two accesses away. The scouts,
     * who have few pairs or none in a short step, go ahead. */
    __device__ void scout(uint32_t step, uint32_t n_beams) const
    {
        const uint32_t b = threadIdx.x - (uint32_t)(Mem::SETTLERS - Mem::ROOM);
        if (b >= Mem::ROOM || b >= n_beams)
            return;
        const beam at = beams(step)[b];
        if (!by_proposal(at.n_children))
            fetch_visit_of(view, at.first, step);
    }

    /* The child of a hub with a token, as a place among its children; FT_NO_TOKEN if
     * there is none. Stands apart, as make_room() does. */
    static __device__ __noinline__ uint32_t search_hub(const View &view, uint64_t first,
                                                       uint32_t n_children,
                                                       uint32_t token, uint32_t step)
    {
        const uint64_t node = view.find({first, n_children}, token, step);
        return node == UINT64_MAX ? FT_NO_TOKEN : (uint32_t)(node - first);
    }

    /* The beam of pair `x`, for the whole warp; 32 places are looked at at a time. */
    __device__ uint32_t beam_of(uint32_t x, uint32_t n_beams) const
    {
        const unsigned lane = threadIdx.x % 32;
        uint32_t lo = 0, n = n_beams;
#pragma unroll 1
        while (n > 32) {
            const uint32_t each = (n + 31) / 32, at = lo + lane * each;
            const bool below = lane * each < n && m.pairs[0][at] <= x;
            const uint32_t i = __popc(__ballot_sync(~0u, below)) - 1;
            lo += i * each;
            n = min(each, n - i * each);
        }
        const bool below = lane < n && m.pairs[0][lo + lane] <= x;
        return lo + __popc(__ballot_sync(~0u, below)) - 1;
    }

    /* The beam of pair x + lane, and its child; the first pair's and child 0 where that
     * is not below `to`. */
    __device__ uint32_t locate(uint32_t x, uint32_t to, uint32_t n_beams,
                               uint32_t *child) const
    {
        if constexpr (Mem::HASTY)
            return locate_by_lanes(x, to, child);
        /* Every beam has a pair: a bit for each beam that begins behind x. */
        const unsigned lane = threadIdx.x % 32, to_lane = (2u << lane) - 1;
        const bool there = x + lane < to;
        const uint32_t first = beam_of(x, n_beams), next = first + 1 + lane;
        const uint32_t start = next < n_beams ? m.pairs[0][next] - x : ~0u;
        const unsigned starts = warp_or(start < 32 ? 1u << start : 0);
        const uint32_t mine = first + __popc(starts & to_lane);
        *child = there ? x + lane - m.pairs[0][mine] : 0;
        return there ? mine : first;
    }

    /* The same where count_by_lanes() has counted. */
    __device__ uint32_t locate_by_lanes(uint32_t x, uint32_t to, uint32_t *child) const
    {
        const unsigned lane = threadIdx.x % 32, to_lane = (2u << lane) - 1;
        const bool there = x + lane < to;
        uint32_t n = 0, own = 0, bits = 0;
#pragma unroll
        for (int i = 0; i < Mem::LANE_EACH; i++) {
            const bool starts = first_pair[i] > x;
            n += !starts;
            own = starts ? own : first_pair[i];
            bits |= first_pair[i] - x - 1 < 31 ? 2u << (first_pair[i] - x - 1) : 0;
        }
        const uint32_t first = warp_sum(n) - 1, at = warp_max(own);
        const unsigned here = warp_or(bits) & to_lane;
        *child = !there ? 0 : here ? __clz(here) + lane - 31 : x + lane - at;
        return there ? first + __popc(here) : first;
    }

    /* What is stored on the edge of a pair; a hub's child is a proposal's number. */
    __device__ uint32_t code_at(const beam &b, uint32_t child, uint32_t step,
                                bool all_flags, unsigned *hint) const
    {
        const unsigned asks =
            (all_flags ? ASK_FLAGS : 0) | (Mem::HASTY || Mem::SHARING ? ASK_AHEAD : 0);
        if constexpr (Mem::JOINS > 1) { /* no branch: accesses overlap */
            const bool hub = by_proposal(b.n_children);
            const uint32_t code =
                edge_of(view, b.first + (hub ? 0 : child), step, asks, hint);
            const uint32_t proposed = proposals(step).entries[hub ? child : 0].code;
            *hint = hub ? (unsigned)SEARCH_HUB : *hint;
            return hub ? proposed : code;
        }
        if (by_proposal(b.n_children)) {
            *hint = SEARCH_HUB;
            return proposals(step).entries[child].code;
        }
        return edge_of(view, b.first + child, step, asks, hint);
    }

    __device__ bool may_match(uint32_t code, unsigned hint, uint32_t step) const
    {
        return hint == SEARCH_HUB ? code != FT_NO_TOKEN
                                  : proposals(step).may_have(code);
    }

    /* Those of the pairs x .. x + 31, below `to`, that may match, a lane each; and of
     * N - 1 more of the warp's runs. */
    template <int N>
    __device__ void join(uint32_t x, uint32_t to, uint32_t step, uint32_t n_beams,
                         bool all_flags, queued (&e)[N], bool (&match)[N]) const
    {
        const unsigned lane = threadIdx.x % 32;
        const uint32_t round = THREADS * all.size;
        uint32_t of[N];
        unsigned hint[N];
        if (N > 1)
            __builtin_assume(step > 0);
#pragma unroll
        for (int i = 0; i < N; i++)
            of[i] = locate(x + i * round, to, n_beams, &e[i].child);
#pragma unroll
        for (int i = 0; i < N; i++)
            e[i].code =
                code_at(beams(step)[of[i]], e[i].child, step, all_flags, &hint[i]);
#pragma unroll
        for (int i = 0; i < N; i++) {
            match[i] = x + i * round + lane < to && may_match(e[i].code, hint[i], step);
            e[i].beam_hint = of[i] | hint[i] << 16;
        }
    }

    template <int N>
    static __device__ void push(queued *queue, uint32_t *n_queued, const queued (&e)[N],
                                const bool (&match)[N])
    {
        const unsigned lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const unsigned lanes = __ballot_sync(~0u, match[i]);
            if (match[i])
                queue[*n_queued + __popc(lanes & ((1u << lane) - 1))] = e[i];
            *n_queued += __popc(lanes);
        }
        __syncwarp();
    }

    /* The last 32 queued pairs or fewer; whether the lane has one. */
    static __device__ bool pop(const queued *queue, uint32_t *n_queued, queued *e)
    {
        const unsigned lane = threadIdx.x % 32;
        const uint32_t n = min(*n_queued, 32u);
        *n_queued -= n;
        if (lane < n)
            *e = queue[*n_queued + lane];
        return lane < n;
    }

    /* May a warp look at 32 matches? All of the block's may have asked at the same
     * time. */
    __device__ bool has_room(uint32_t step) const
    {
        const volatile Mem &now = m;
        const bool room =
            now.n_candidates[Mem::HASTY ? step % 3 : 0] + THREADS <= Mem::CANDIDATES &&
            now.n_findings + THREADS <= Mem::FINDINGS;
        return __shfl_sync(~0u, room, 0);
    }

    /* Look at pairs, a lane each where there is one: keep what is admitted and not
     * hopeless as candidate, finding or both. */
    __device__ void look(queued e, bool there, uint32_t step, const scale &bins)
    {
        lap(FT_PHASE_EXPANSION);
        const unsigned lane = threadIdx.x % 32;
        bool as_beam = false, as_result = false;
        int bin = 0;
        uint64_t node = 0;
        const position<Mem::ROOM> &proposed = proposals(step);
        uint32_t proposal = proposed.END, token = 0;
        float logp = 0, sum = 0;
        if (there)
            proposal = proposed.find(e.code, &logp);
        const uint32_t parent = e.beam_hint & 0xffff;
        unsigned hint = e.beam_hint >> 16;
        bool admitted = proposal != proposed.END;
        const beam b = beams(step)[parent];
        if (admitted && hint == SEARCH_HUB) {
            hint = EDGE_UNKNOWN;
            admitted = proposal == e.child; /* else another one stands for the token */
            if (admitted)
                e.child = search_hub(view, b.first, b.n_children,
                                     proposed.tokens[proposal], step);
            admitted = admitted && e.child != FT_NO_TOKEN;
        }
        if (admitted) {
            admitted =
                ft_admit(b.sum, logp, q.token_threshold, q.sentence_threshold, &sum);
            node = b.first + e.child;
        }
        if (admitted) {
            bin = bins.bin(sum);
            as_beam = step + 1 < q.n_steps && bin <= m.candidate_cut;
            as_result = bin <= m.finding_cut && (double)sum * norm >= m.finding_bound;
            if (as_beam || as_result) {
                token = proposed.tokens[proposal];
                const unsigned flags = flags_of(view, node, step, hint);
                as_beam = as_beam && (flags & FT_NODE_HAS_CHILDREN);
                as_result = as_result && (flags & FT_NODE_TERMINAL);
            }
        }
        if (q.stats) {
            const unsigned n_admitted = __popc(__ballot_sync(~0u, admitted));
            if (lane == 0)
                atomicAdd(&m.n_admitted, (unsigned long long)n_admitted);
        }
        uint32_t c, f;
        take_places(n_candidates(step), as_beam, &c, &m.n_findings, as_result, &f);
        if (as_beam) {
            fetch_children_of(view, node, step + 1);
            m.candidates[c] = {sum, e.child, token, parent};
            atomicAdd(&m.select.bins[bin], 1u);
        }
        if (as_result) {
            findings()[f] = finding::of(sum, token, place_of(view, node), step, parent);
            atomicAdd(&m.select.ends[bin], 1u);
        }
        __syncwarp(); /* the queue may be filled again */
        lap(FT_PHASE_VALIDATION);
    }

    /* A warp's share of the pairs below `to`, from pair *x on: the team's warps take
     * turns, since neighbours are alike. True: it stopped for lack of room. */
    __device__ bool walk_turns(uint32_t *x, uint32_t to, uint32_t step,
                               uint32_t n_beams, const scale &bins, bool all_flags,
                               queued *queue, uint32_t *n_queued)
    {
        for (;;) {
            const uint32_t least = *x < to ? 32 : 1;
            while (*n_queued >= least) {
                if (!has_room(step))
                    return true;
                queued e = {};
                const bool there = pop(queue, n_queued, &e);
                look(e, there, step, bins);
            }
            if (*x >= to)
                return false;
            queued e[1];
            bool there[1];
            join(*x, to, step, n_beams, all_flags, e, there);
            push(queue, n_queued, e, there);
            *x += THREADS * all.size;
        }
    }

    /* The same in haste: runs are joined together, and a lone one needs no queue. */
    __device__ bool walk_in_haste(uint32_t *x, uint32_t to, uint32_t step,
                                  uint32_t n_beams, const scale &bins, bool all_flags,
                                  queued *queue, uint32_t *n_queued)
    {
        const uint32_t round = THREADS * all.size;
        for (;;) {
            queued e[1] = {};
            bool there[1];
            if (*n_queued >= (*x < to ? 32 : 1)) {
                if (!has_room(step))
                    return true;
                there[0] = pop(queue, n_queued, e);
            } else if (*x >= to) {
                return false;
            } else if (step > 0 && *x + round < to) {
                queued more[Mem::JOINS];
                bool match[Mem::JOINS];
                join(*x, to, step, n_beams, all_flags, more, match);
                push(queue, n_queued, more, match);
                *x += Mem::JOINS * round;
                continue;
            } else {
                join(*x, to, step, n_beams, all_flags, e, there);
                *x += round;
                if (*x < to || *n_queued > 0 || !has_room(step)) {
                    push(queue, n_queued, e, there);
                    continue;
                }
                if (!__any_sync(~0u, there[0]))
                    return false;
            }
            look(e[0], there[0], step, bins);
        }
    }

    /* The beam of pair x + lane, and its child, as locate() has it; *first is the beam
     * of pair x, and becomes that of pair x + 32. */
    __device__ uint32_t locate_next(uint32_t x, uint32_t to, uint32_t n_beams,
                                    uint32_t *first, uint32_t *child) const
    {
        const unsigned lane = threadIdx.x % 32;
        const uint32_t next = *first + 1 + lane;
        const uint32_t start = next < n_beams ? m.pairs[0][next] - x : ~0u;
        const unsigned starts = warp_or(start < 32 ? 1u << start : 0);
        const uint32_t mine = *first + __popc(starts & ((2u << lane) - 1));
        const bool there = x + lane < to;
        *child = there ? x + lane - m.pairs[0][mine] : 0;
        const uint32_t of = there ? mine : *first;
        *first += __popc(__ballot_sync(~0u, start <= 32));
        return of;
    }

    /* Queue those of the run's next 32 pairs that may match. ALL: ask for all flags. */
    template <bool ALL>
    __device__ void join_run(pair_run &r, queued *queue, uint32_t *n_queued)
    {
        queued e[1];
        uint32_t first = r.first;
        if (first == pair_run::NO_BEAM)
            first = beam_of(r.x, r.n_beams);
        const uint32_t of = locate_next(r.x, r.to, r.n_beams, &first, &e[0].child);
        const beam &b = beams(r.step)[of];
        unsigned hint = SEARCH_HUB;
        if (by_proposal(b.n_children))
            e[0].code = proposals(r.step).entries[e[0].child].code;
        else if (ALL)
            e[0].code = edge_of(view, b.first + e[0].child, r.step, ASK_FLAGS, &hint);
        else
            e[0].code = lean_edge_of(view, b.first + e[0].child, r.level, &hint);
        e[0].beam_hint = of | hint << 16;
        const bool match[1] = {r.x + threadIdx.x % 32 < r.to &&
                               may_match(e[0].code, hint, r.step)};
        push(queue, n_queued, e, match);
        if (threadIdx.x % 32 == 0) {
            r.x += 32;
            r.first = first;
            if (r.x >= r.end)
                take_run(r);
        }
        __syncwarp();
    }

    /* Runs are dealt out as warps ask for them. */
    __device__ void take_run(pair_run &r)
    {
        r.x = atomicAdd(&m.n_dealt, r.length);
        r.end = r.x + r.length;
        r.first = pair_run::NO_BEAM;
    }

    /* The same, run after run. */
    __device__ bool walk_runs(pair_run &r, const scale &bins, queued *queue,
                              uint32_t *n_queued)
    {
        for (;;) {
            const bool more = r.x < r.to;
            while (*n_queued >= (more ? 32 : 1)) {
                if (!has_room(r.step))
                    return true;
                queued e = {};
                const bool there = pop(queue, n_queued, &e);
                look(e, there, r.step, bins);
            }
            if (!more)
                return false;
            if (r.all_flags)
                join_run<true>(r, queue, n_queued);
            else
                join_run<false>(r, queue, n_queued);
        }
    }

    /* The step's pairs from .. to - 1 are to be dealt out. */
    __device__ void begin_runs(uint32_t from, uint32_t to, uint32_t step,
                               uint32_t n_beams, bool all_flags)
    {
        const uint32_t length =
            to - from > LONG_ROUNDS * THREADS ? LONG_RUN : SHORT_RUN;
        pair_run &mine = m.runs[threadIdx.x / 32];
        if (threadIdx.x == 0)
            m.n_dealt = from;
        __syncthreads();
        if (threadIdx.x % 32 == 0) {
            mine = {0,      0,        to, 0, n_beams, step, level_of(view, step),
                    length, all_flags};
            take_run(mine);
        }
        __syncwarp();
    }

    /* This block's share of the step's pairs from .. to - 1. */
    __device__ void expand(uint32_t from, uint32_t to, uint32_t step, uint32_t n_beams,
                           const scale &bins, bool all_flags)
    {
        const unsigned warp = threadIdx.x / 32;
        queued *queue = m.queue[warp];
        uint32_t n_queued = 0, x = from + (warp * all.size + all.rank) * 32;
        const auto walk = [&] {
            if constexpr (Mem::SPARING)
                return walk_runs(m.runs[warp], bins, queue, &n_queued);
            else if constexpr (Mem::HASTY)
                return walk_in_haste(&x, to, step, n_beams, bins, all_flags, queue,
                                     &n_queued);
            else
                return walk_turns(&x, to, step, n_beams, bins, all_flags, queue,
                                  &n_queued);
        };
        if constexpr (Mem::SPARING)
            begin_runs(from, to, step, n_beams, all_flags);
        while (__syncthreads_or(walk()))
            make_room(view, q, m, step, bins);
        if (q.stats && threadIdx.x == 0 && all.rank == 0)
            m.n_probes += to - from;
        lap(FT_PHASE_EXPANSION);
    }

    /* Keys of this block's candidates and findings, by number. */
    struct candidate_keys {
        const View &view;
        const candidate *items;
        const beam *beams;

        __device__ rank_key operator()(uint32_t i) const
        {
            const candidate c = items[i];
            return {c.sum, place_of(view, beams[c.beam].first + c.child)};
        }
    };

    struct finding_keys {
        const View &view;
        const finding *items;
        const double *norm;

        __device__ rank_key operator()(uint32_t i) const
        {
            const finding f = items[i];
            return {(double)f.sum * norm[f.step() + 1],
                    order_of(view, f.node(), f.step())};
        }
    };

    /* Close the ranks of the items that stay. */
    template <int CAP, class Item, class Get>
    __device__ void keep(Item *items, uint32_t n, const verdict<BINS> &v,
                         uint32_t *n_items, const Get &get)
    {
        enum { MINE = (CAP + THREADS - 1) / THREADS };
        Item mine[MINE];
        bool stays[MINE];
#pragma unroll
        for (int j = 0; j < MINE; j++) {
            const uint32_t i = threadIdx.x + j * THREADS;
            stays[j] = i < n && v.keeps(get(i));
            if (stays[j])
                mine[j] = items[i];
        }
        __syncthreads();
        if (threadIdx.x == 0)
            *n_items = 0;
        __syncthreads();
#pragma unroll
        for (int j = 0; j < MINE; j++) {
            const uint32_t at = take_place(n_items, stays[j]);
            if (stays[j])
                items[at] = mine[j];
        }
        __syncthreads();
    }

    /* Keep the best B of this block's candidates; its bins count what stays. */
    __device__ void trim_candidates(uint32_t step, const scale &bins)
    {
        const uint32_t n = *n_candidates(step);
        const candidate_keys get = {view, m.candidates, beams(step)};
        if (threadIdx.x == 0)
            m.select.n_list = 0;
        const verdict<BINS> v = select_best<false, false>(
            team{0, 1}, m.select, m.select.bins, bins, n, q.beam, get);
        keep<Mem::CANDIDATES>(m.candidates, n, v, n_candidates(step), get);
        clear_bins(m.select.bins, m.select);
        if (threadIdx.x == 0)
            m.candidate_cut = min(m.candidate_cut, v.bin);
        __syncthreads();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < *n_candidates(step); i += THREADS)
            atomicAdd(&m.select.bins[bins.bin(m.candidates[i].sum)], 1u);
    }

    /* The best and worst score of this block's n findings. Those of none are there, and
     * a barrier lies behind. */
    __device__ void note_scores(uint32_t n, const finding_keys &get)
    {
        uint32_t best = 0, worst = ~0u;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const uint32_t key = ft_float_key((float)get(i).value);
            best = max(best, key);
            worst = min(worst, key);
        }
        best = warp_max(best);
        worst = ~warp_max(~worst);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&m.best_score, best);
            atomicMin(&m.worst_score, worst);
        }
    }

    /* Keep the best N of this block's findings; what is worse is hopeless from now on.
     */
    __device__ void trim_findings()
    {
        const uint32_t n = m.n_findings;
        uint32_t *bins = m.select.place;
        const finding_keys get = {view, findings(), q.norm};
        note_scores(n, get);
        clear_bins(bins, m.select);
        __syncthreads();
        const scale scores =
            scale::over(key_float(m.best_score), key_float(m.worst_score));
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            atomicAdd(&bins[scores.bin((float)get(i).value)], 1u);
        __syncthreads();
        const verdict<BINS> v = select_best<false, false>(team{0, 1}, m.select, bins,
                                                          scores, n, q.n_results, get);
        keep<Mem::FINDINGS>(findings(), n, v, &m.n_findings, get);
        uint32_t worst = ~0u;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < m.n_findings; i += THREADS)
            worst = min(worst, ft_float_key(__double2float_rd(get(i).value)));
        worst = ~warp_max(~worst);
        if (threadIdx.x == 0) {
            m.worst_score = ~0u;
            m.select.n_list = 0;
        }
        __syncthreads();
        if (threadIdx.x % 32 == 0)
            atomicMin(&m.worst_score, worst);
        __syncthreads();
        if (threadIdx.x == 0) {
            m.finding_bound = key_float(m.worst_score);
            m.best_score = 0;
            m.worst_score = ~0u;
        }
    }

    /* Trim what is nearly full. Seldom needed, so it stands apart: its registers and
     * its code would be in the way of what every query needs. */
    static __device__ __noinline__ void make_room(const View &view,
                                                  const ft_gpu_question &q, Mem &m,
                                                  uint32_t step, scale bins)
    {
        searcher s = {view, q, m, team{0, 1}};
        const bool candidates = *s.n_candidates(step) + THREADS > Mem::CANDIDATES;
        const bool findings = m.n_findings + THREADS > Mem::FINDINGS;
        __syncthreads();
        if (candidates)
            s.trim_candidates(step, bins);
        __syncthreads();
        if (findings)
            s.trim_findings();
        __syncthreads();
    }

    /* A part of the pairs is done: cut off what can be neither beam nor result any
     * more. Returns how many beams are left. */
    __device__ uint32_t limit(uint32_t step, uint32_t n_beams, const scale &bins)
    {
        if (threadIdx.x == 0)
            m.n_alive = 0;
        share_bins(all, m.select, m.select.bins);
        find_border<false>(all, m.select, m.select.bins, q.beam, no_note());
        const int as_beam = step + 1 < q.n_steps ? (int)m.select.border : -1;
        all.sync();
        share_bins(all, m.select, m.select.ends);
        find_border<false>(all, m.select, m.select.ends, q.n_results, no_note());
        const int most = max(as_beam, (int)m.select.border);
        if (threadIdx.x == 0) {
            m.candidate_cut = min(m.candidate_cut, as_beam);
            m.finding_cut = (int)m.select.border;
        }
        const float best = key_float(proposals(step).best);
        uint32_t alive = 0;
#pragma unroll 1
        for (uint32_t b = threadIdx.x; b < n_beams; b += THREADS)
            if (bins.bin(beams(step)[b].sum + best) <= most)
                alive = b + 1;
        alive = warp_max(alive);
        if (threadIdx.x % 32 == 0)
            atomicMax(&m.n_alive, alive);
        all.sync(); /* all have read the bins */
        return m.n_alive;
    }

    /* From so many pairs on a look at the bound may pay. */
    __device__ uint32_t few_pairs() const
    {
        return (all.size > 1 ? 32 : 64) * THREADS * all.size;
    }

    /* All pairs of the step, `total`, that are worth it. */
    __device__ void extend(uint32_t step, uint32_t n_beams, uint32_t total,
                           const scale &bins)
    {
        const uint32_t round = THREADS * all.size;
        /* Asked for of many pairs, most flags would be asked for in vain. */
        const bool all_flags = total <= 2 * round;
        const uint32_t few = few_pairs();
        uint32_t done = 0, to = total / (SAMPLE * SAMPLE);
        for (;;) {
            to = total - done < few ? total : max(to, done + round);
            expand(done, to, step, n_beams, bins, all_flags);
            done = to;
            if (done == total)
                return;
            n_beams = limit(step, n_beams, bins);
            lap(FT_PHASE_PRUNING);
            total = total_pairs(step, n_beams);
            if (done >= total)
                return;
            to = min(total, SAMPLE * done);
        }
    }

    __device__ ft_gpu_trace *trace_of(uint32_t step, uint32_t at) const
    {
        const uint32_t n = max(q.beam, (uint32_t)Mem::TRACE_BEAMS);
        return &trace[(uint64_t)step * n + at];
    }

    /* Beam `at` of the frontier after this step came from candidate c. */
    __device__ void note_trace(uint32_t step, uint32_t at, const candidate &c)
    {
        *trace_of(step, at) = {c.token, c.beam};
    }

    /* Beam `at` of the frontier after this step, in every block. */
    __device__ void put_beam(uint32_t step, uint32_t at, const beam &b)
    {
        uint4 bits; /* two accesses take twice as long on the way to another block */
        memcpy(&bits, &b, sizeof bits);
#pragma unroll 1
        for (unsigned to = 0; to < all.size; to++)
            *all.at(reinterpret_cast<uint4 *>(&beams(step + 1)[at]), to) = bits;
        if constexpr (Mem::HASTY)
            pairs(step + 1)[at] = pairs_of(b.n_children);
    }

    /* SHARING: contender number `at`, in every block. */
    __device__ void put_contender(uint32_t at, const rank_key &k, const contender &c)
    {
#pragma unroll 1
        for (unsigned to = 0; to < all.size; to++) {
            all.at(m.select.list, to)[at] = k;
            all.at(m.contenders, to)[at] = c;
        }
    }

    /* SHARING: the best contenders take the frontier's places from `sure` on. A barrier
     * of the team lies behind. */
    __device__ void settle_contenders(uint32_t step, uint32_t sure)
    {
        rank_list(m.select, m.select.inside,
                  [&](uint32_t i, const rank_key &, uint32_t rank) {
                      const uint32_t at = sure + rank;
                      if (at >= q.beam)
                          return;
                      beams(step + 1)[at] = m.contenders[i].b;
                      if (all.rank == 0)
                          *trace_of(step, at) = m.contenders[i].from;
                  });
        __syncthreads();
    }

    /* Candidate i becomes beam `at` of the next frontier, in every block; from place
     * `sure` on, a contender. Where there is one frontier only, it waits in the
     * candidate's place until nobody needs the old one. */
    __device__ void settle(uint32_t i, uint32_t at, uint32_t step, uint32_t sure)
    {
        const candidate c = m.candidates[i];
        const uint64_t node = beams(step)[c.beam].first + c.child;
        const ft_range r = view.children(node, step + 1);
        fetch_edges_of(view, r.first, step + 1);
        const beam b = {r.first, (uint32_t)r.count, c.sum};
        if constexpr (Mem::FRONTIERS == 1) {
            note_trace(step, at, c);
            memcpy(&m.candidates[i], &b, sizeof b);
        } else if (Mem::SHARING && at >= sure) {
            put_contender(at - sure, {c.sum, place_of(view, node)},
                          {b, {c.token, c.beam}});
        } else {
            put_beam(step, at, b);
        }
    }

    enum : uint32_t { ALL_SURE = ~0u };

    /* Of the team's candidates the best B stay: m.kept is this block's, best bin first
     * over the team. Those from the place that is returned on are contenders, and too
     * many; ALL_SURE: there are none. */
    __device__ uint32_t choose(uint32_t step, const scale &bins)
    {
        const candidate_keys get = {view, m.candidates, beams(step)};
        const uint32_t n = *n_candidates(step);
        const verdict<BINS> v = select_best<true, Mem::SHARING>(
            all, m.select, m.select.bins, bins, n, q.beam, get);
#pragma unroll 1
        for (uint32_t base = 0; base < n; base += THREADS) {
            const uint32_t i = base + threadIdx.x;
            uint32_t at = 0;
            bool stays = false;
            if (i < n) {
                const rank_key k = get(i);
                const int bin = bins.bin((float)k.value);
                stays = v.keeps(k);
                if (stays)
                    at = v.on_border(k)
                             ? v.above + m.select.n_before + atomicAdd(&m.n_border, 1u)
                             : atomicAdd(&m.select.place[bin], 1u);
            }
            const uint32_t mine = take_place(&m.n_kept, stays);
            if (stays)
                m.kept[mine] = i | at << 16;
        }
        __syncthreads();
        return v.spare ? v.above : (uint32_t)ALL_SURE;
    }

    /* The team's best B candidates become the frontier of every block, about best
     * first; while some threads wait for their children, the others make ready the next
     * position's proposals, unless that is done. Returns how many. Where all candidates
     * stay, their order is left as it is, but for the first step's, whose children can
     * be many. SHARING: where not all of the border bin stays, its candidates become
     * contenders, and after the barrier each block finds the same best of them. */
    __device__ uint32_t prune(uint32_t step, const scale &bins, bool fed = false)
    {
        uint32_t total = *n_candidates(step);
        if (Mem::AHEAD == 1 && feeds()) {
            __pipeline_wait_prior(0);
            fetch_codes(step + 1);
        }
        if (all.size > 1)
            share_bins(all, m.select, m.select.bins);
        lap(FT_PHASE_SYNC);
        const bool all_stay = all.size == 1 && step > 0 && total <= q.beam;
        uint32_t sure = ALL_SURE;
        if (!all_stay)
            sure = choose(step, bins);
        if (all.size > 1)
            total = m.select.total;
        lap(FT_PHASE_PRUNING);
        const uint32_t n = all_stay ? *n_candidates(step) : m.n_kept;
        /* Candidate, and place in the frontier. */
        const auto kept = [&](uint32_t i) -> uint32_t {
            return all_stay ? i | i << 16 : m.kept[i];
        };
        if (Mem::HASTY)
            roomy = m.n_findings + Mem::SETTLERS <= Mem::FINDINGS;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            settle(kept(i) & 0xffff, kept(i) >> 16, step, sure);
        if (feeds()) {
            clear_all_bins();
            if (!fed)
                feed_now(step + 1);
            if (!fed && !Mem::SHARING)
                feed_ahead(step + 1);
        }
        lap(FT_PHASE_EXPANSION);
        all.arrive();
        if (Mem::SHARING && feeds())
            feed_ahead(step + 1);
        if constexpr (Mem::FRONTIERS > 1) {
#pragma unroll 1
            for (uint32_t i = threadIdx.x; i < n; i += THREADS)
                if (!Mem::SHARING || kept(i) >> 16 < sure)
                    note_trace(step, kept(i) >> 16, m.candidates[kept(i) & 0xffff]);
        }
        all.wait();
        if constexpr (Mem::FRONTIERS == 1) {
#pragma unroll 1
            for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
                beam b;
                memcpy(&b, &m.candidates[kept(i) & 0xffff], sizeof b);
                beams(step + 1)[kept(i) >> 16] = b;
            }
            __syncthreads();
        }
        lap(FT_PHASE_SYNC);
        if (Mem::SHARING && sure != ALL_SURE) {
            settle_contenders(step, sure);
            lap(FT_PHASE_PRUNING);
        }
        return min(total, q.beam);
    }

    /* A pair that was looked at. */
    struct looked {
        bool as_beam, as_result;
        float sum;
        uint32_t child, token;
        uint64_t node;
        ft_range children; /* as_beam */
    };

    /* Look at a child of beam b, where there is one: all of the edge at once. A hub's
     * child is a proposal's number. Whether any of the warp's was admitted. */
    __device__ bool look_at_once(const beam &b, uint32_t child, bool there,
                                 uint32_t step, looked *l)
    {
        const position<Mem::ROOM> &proposed = proposals(step);
        if (by_proposal(b.n_children)) {
            float logp;
            there =
                there && proposed.find(proposed.entries[child].code, &logp) == child;
            child = there ? search_hub(view, b.first, b.n_children,
                                       proposed.tokens[child], step)
                          : FT_NO_TOKEN;
            there = child != FT_NO_TOKEN;
            child = there ? child : 0;
        }
        const uint64_t node = b.first + child;
        const auto seen = visit_of(view, node, step);
        bool admitted = there && proposed.may_have(seen.code);
        lap(FT_PHASE_EXPANSION);
        if (!__any_sync(~0u, admitted))
            return false;
        float logp = 0, sum = 0;
        uint32_t proposal = proposed.END;
        if (admitted)
            proposal = proposed.find(seen.code, &logp);
        admitted = proposal != proposed.END &&
                   ft_admit(b.sum, logp, q.token_threshold, q.sentence_threshold, &sum);
        *l = {false, false, sum, child, 0, node, {0, 0}};
        if (admitted) {
            const unsigned flags = seen.flags(view, node, step);
            l->token = proposed.tokens[proposal];
            l->as_beam = step + 1 < q.n_steps && (flags & FT_NODE_HAS_CHILDREN);
            l->as_result =
                (flags & FT_NODE_TERMINAL) && (double)sum * norm >= m.finding_bound;
            if (l->as_beam)
                l->children = seen.children(view, node, step);
        }
        if (q.stats && admitted)
            atomicAdd(&m.n_admitted, 1ull);
        return true;
    }

    /* HASTY: what is found becomes a beam of the next step at once, in the place where
     * it is put down as a candidate. Returns whether there may be no room for the next
     * step's results. */
    __device__ bool put_at_once(const looked &l, uint32_t parent, uint32_t step)
    {
        uint32_t c, f;
        take_places(n_candidates(step), l.as_beam, &c, &m.n_findings, l.as_result, &f);
        if (l.as_beam) {
            const candidate found = {l.sum, l.child, l.token, parent};
            m.candidates[c] = found;
            if (c < q.beam) {
                fetch_edges_of(view, l.children.first, step + 1);
                put_beam(step, c,
                         {l.children.first, (uint32_t)l.children.count, l.sum});
                note_trace(step, c, found);
            }
        }
        if (l.as_result)
            findings()[f] =
                finding::of(l.sum, l.token, place_of(view, l.node), step, parent);
        lap(FT_PHASE_VALIDATION);
        return l.as_result && f + 1 + Mem::SETTLERS > Mem::FINDINGS;
    }

    /* HASTY: a step of so few pairs that a settler has one at most. Meanwhile the
     * feeders make ready the next position's proposals, so that the step takes one
     * barrier where all candidates stay. Returns how many beams there are then. */
    __device__ uint32_t step_at_once(uint32_t step, uint32_t n_beams, uint32_t n_pairs)
    {
        const bool last = step + 1 == q.n_steps;
        const uint32_t x = threadIdx.x / 32 * 32;
        bool tight = false;
        if (feeds()) {
            if (!last)
                feed(step + 1);
        } else if (x < n_pairs) {
            uint32_t child;
            const uint32_t parent = locate_by_lanes(x, n_pairs, &child);
            looked l;
            if (look_at_once(beams(step)[parent], child, x + threadIdx.x % 32 < n_pairs,
                             step, &l))
                tight = put_at_once(l, parent, step);
        }
        roomy = !__syncthreads_or(tight);
        lap(FT_PHASE_SYNC);
        if (q.stats && threadIdx.x == 0)
            m.n_probes += n_pairs;
        const uint32_t n = last ? 0 : *n_candidates(step);
        /* The first step's can have many children: see prune(). */
        if (n <= q.beam && (step > 0 || total_pairs(step + 1, n) < few_pairs()))
            return n;
        const scale bins = sum_scale(step, n_beams);
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            atomicAdd(&m.select.bins[bins.bin(m.candidates[i].sum)], 1u);
        __syncthreads();
        return prune(step, bins, true);
    }

    /* SHARING: the place in the team's trace of beam `at` of this block's own. */
    __device__ uint32_t near_place(uint32_t at) const
    {
        return all.rank * Mem::NEAR + at;
    }

    /* SHARING: pairs x .. x + 31 of a step apart; what is found is this block's own.
     * `first`: the step is the first one apart, whose beams are all blocks'. */
    __device__ void look_apart(uint32_t x, uint32_t n_pairs, uint32_t step,
                               uint32_t n_beams, bool first)
    {
        uint32_t child;
        const uint32_t parent = first ? locate(x, n_pairs, n_beams, &child)
                                      : locate_by_lanes(x, n_pairs, &child);
        const beam b = first ? beams(step)[parent] : m.near[step % 2].beams[parent];
        looked l;
        if (!look_at_once(b, child, x + threadIdx.x % 32 < n_pairs, step, &l))
            return;
        uint32_t c, f;
        take_places(&m.n_near[step % 3], l.as_beam, &c, &m.n_findings, l.as_result, &f);
        if (l.as_beam && c < Mem::NEAR) {
            auto &next = m.near[(step + 1) % 2];
            fetch_edges_of(view, l.children.first, step + 1);
            next.beams[c] = {l.children.first, (uint32_t)l.children.count, l.sum};
            next.pairs[c] = pairs_of((uint32_t)l.children.count);
            *trace_of(step, near_place(c)) = {l.token,
                                              first ? parent : near_place(parent)};
        }
        if (l.as_result)
            findings()[f] =
                finding::of(l.sum, l.token, place_of(view, l.node), step, parent);
        lap(FT_PHASE_VALIDATION);
    }

    /* SHARING: as long as all that is found stays, no block needs to know what others
     * found: from this step on each keeps its own, to the end and without a barrier of
     * the team. Returns the most beams that it had after a step; all could stay if the
     * team's sum is not above B. NOT_APART: this block has no room. The frontier of all
     * blocks is left as it is. */
    enum : uint32_t { NOT_APART = 1 << 16 };

    /* Where the frontier narrows: will it hardly become too wide? */
    __device__ bool goes_apart(uint32_t step, uint32_t n_pairs) const
    {
        enum { FEW_STEPS = 4 };
        return 2 * n_pairs <= q.beam ||
               (q.n_steps - step <= FEW_STEPS && n_pairs <= Mem::SETTLERS * all.size);
    }

    __device__ uint32_t go_apart(uint32_t step, uint32_t n_beams, uint32_t n_pairs)
    {
        uint32_t blocks = all.size, rank = all.rank, most = 0;
        uint32_t n_findings = m.n_findings; /* at most */
        uint32_t mine = (n_pairs - 1) / (32 * blocks) * 32 + 32;
        bool first = true;
        if (threadIdx.x == 0)
            m.n_near[step % 3] = 0;
        __syncthreads();
        for (;; step++) {
            const bool last = step + 1 == q.n_steps;
            n_findings += mine;
            if (mine > Mem::NEAR_PAIRS || n_findings > Mem::FINDINGS)
                return NOT_APART;
            norm = q.norm[step + 1];
            if (threadIdx.x == 0)
                m.n_near[(step + 1) % 3] = 0; /* a barrier behind its last readers */
            if (!feeds()) {
#pragma unroll 1
                for (uint32_t x = (threadIdx.x / 32 * blocks + rank) * 32; x < n_pairs;
                     x += Mem::SETTLERS * blocks)
                    look_apart(x, n_pairs, step, n_beams, first);
            } else if (!last) {
                feed(step + 1);
            }
            __syncthreads();
            lap(FT_PHASE_SYNC);
            n_beams = last ? 0 : m.n_near[step % 3];
            if (n_beams > Mem::NEAR)
                return NOT_APART;
            most = max(most, n_beams);
            if (n_beams == 0)
                return most;
            n_pairs = mine = count_by_lanes(m.near[(step + 1) % 2].pairs, n_beams);
            blocks = 1;
            rank = 0;
            first = false;
        }
    }

    /* SHARING: what was found apart is forgotten, and the step's proposals are made
     * ready again. */
    __device__ void come_back(uint32_t step, uint32_t n_findings)
    {
        if (threadIdx.x == 0) {
            m.n_findings = n_findings;
            m.best_score = 0;
            m.worst_score = ~0u;
        }
        if (feeds()) {
            __pipeline_wait_prior(0); /* what was sent for apart, to the same places */
            fetch_proposals(step);
            fetch_proposals(step + 1);
            __pipeline_wait_prior(0);
            fetch_codes(step);
            feed(step);
        }
        norm = q.norm[step + 1];
        all.sync();
    }

    __device__ void note_stats(uint32_t step, uint32_t n_beams, uint32_t n_kept,
                               long long start)
    {
        if (!q.stats || threadIdx.x)
            return;
        ft_gpu_step_stats *s = &q.stats[(uint64_t)query * q.n_steps + step];
        atomicAdd(&s->probes, m.n_probes);
        atomicAdd(&s->candidates, m.n_admitted);
        m.n_probes = m.n_admitted = 0;
        if (all.rank == 0) {
            s->beams = n_beams;
            s->kept = n_kept;
            s->cycles = (unsigned long long)(clock64() - start);
        }
    }

    struct result {
        double score;
        uint64_t node;
        uint32_t token;
        uint16_t step, beam;
    };
    static_assert(sizeof(result) * (Mem::ROOM + Mem::CONTENDERS) <=
                      sizeof(m.candidates),
                  "reused");

    /* A barrier of the team, behind which each has the sums of all, and the best and
     * the worst. */
    __device__ report meet(uint32_t most_beams)
    {
        const uint32_t n = m.n_findings;
        note_scores(n, {view, findings(), q.norm});
        __syncthreads();
        report mine = {n, m.best_score, m.worst_score, most_beams};
        if constexpr (Mem::SHARING) {
            const unsigned lane = threadIdx.x % 32;
            if (threadIdx.x < all.size)
                all.at(m.reports, threadIdx.x)[all.rank] = mine;
            all.sync();
            mine = lane < all.size ? m.reports[lane] : report{0, 0, ~0u, 0};
            mine = {warp_sum(mine.n_findings), warp_max(mine.best),
                    ~warp_max(~mine.worst), warp_sum(mine.most_beams)};
        }
        return mine;
    }

    /* The team's best N findings, best bin first: each block gets a slice of them,
     * whole bins, by place into its `best`. Returns how many; the last bin has *spare
     * more: its worst are to go. */
    __device__ uint32_t gather_results(const report &of_all, result *best,
                                       scale *scores, uint32_t *spare)
    {
        const finding_keys get = {view, findings(), q.norm};
        const uint32_t n = m.n_findings;
        *scores = scale::over(key_float(of_all.best), key_float(of_all.worst));
        /* The last step had no candidates, so the bins are clear. */
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            atomicAdd(&m.select.bins[scores->bin((float)get(i).value)], 1u);
        share_bins(all, m.select, m.select.bins);
        const uint32_t n_best = min(of_all.n_findings, q.n_results);
        enum { OWNER_AT = 24 }; /* above a place */
        const auto owner = [&](uint32_t place) {
            return all.size > 1 ? place * all.size / n_best : 0;
        };
        const auto note = [&](int bin, uint32_t place) {
            if (place >= n_best)
                return;
            m.select.place[bin] |= owner(place) << OWNER_AT;
            if (owner(place) == all.rank)
                atomicMin(&m.slice_from, place);
            else if (owner(place) > all.rank)
                atomicMin(&m.slice_to, place);
        };
        const verdict<BINS> v = select_best<true, Mem::SHARING>(
            all, m.select, m.select.bins, *scores, n, q.n_results, get, note);
        *spare = v.spare;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const finding f = findings()[i];
            const rank_key k = get(i);
            if (!v.keeps(k))
                continue;
            uint32_t at =
                v.on_border(k)
                    ? (v.above + m.select.n_before + atomicAdd(&m.n_border, 1u)) |
                          owner(v.above) << OWNER_AT
                    : atomicAdd(&m.select.place[scores->bin((float)k.value)], 1u);
            const uint32_t to = at >> OWNER_AT;
            at &= (1u << OWNER_AT) - 1;
            const uint32_t beam =
                f.step() > apart_from ? near_place(f.beam()) : f.beam();
            all.at(best, to)[at] = {k.value, k.node, f.token, (uint16_t)f.step(),
                                    (uint16_t)beam};
        }
        all.sync();
        return n_best;
    }

    /* The place of result i among those from .. to - 1, of which it is one: its bin's
     * neighbours are compared. RANKERS neighbouring lanes share the work. */
    __device__ int rank_of(const result *best, int i, int from, int to,
                           const scale &scores) const
    {
        const int part = threadIdx.x % RANKERS;
        int ahead = 0, better = 0;
        if (i < to) {
            const rank_key mine = {best[i].score, best[i].node};
            const int bin = scores.bin((float)mine.value);
#pragma unroll 1
            for (int j = i - 1 - part;
                 j >= from && scores.bin((float)best[j].score) == bin; j -= RANKERS) {
                ahead++;
                better += before({best[j].score, best[j].node}, mine);
            }
#pragma unroll 1
            for (int j = i + 1 + part;
                 j < to && scores.bin((float)best[j].score) == bin; j += RANKERS)
                better += before({best[j].score, best[j].node}, mine);
        }
        int rank = better - ahead;
#pragma unroll
        for (int d = 1; d < RANKERS; d *= 2)
            rank += __shfl_xor_sync(~0u, rank, d);
        return i + rank;
    }

    /* Order the results and write the record: paper Appendix D.3. Ascending, so the
     * best is the last. Returns the team's ticket. After this no block touches
     * another's memory. */
    __device__ uint32_t answer(const report &of_all)
    {
        __pipeline_wait_prior(0); /* for what a query that ends early had sent for */
        result *best = reinterpret_cast<result *>(m.candidates);
        scale scores;
        uint32_t spare;
        const uint32_t n = gather_results(of_all, best, &scores, &spare);
        const uint32_t ticket = *all.at(&m.ticket, 0);
        lap(FT_PHASE_PRUNING);
        const uint32_t to = min(m.slice_to, n), from = min(m.slice_from, to);
        const uint32_t end = from < to && to == n ? n + spare : to;
        uint32_t *order = m.pairs[0], *lengths = m.kept; /* of the slice, ascending */
#pragma unroll 1
        for (uint32_t base = from; base < end; base += THREADS / RANKERS) {
            const uint32_t i = base + threadIdx.x / RANKERS;
            const uint32_t rank = rank_of(best, i, from, end, scores);
            if (i < end && rank < to && threadIdx.x % RANKERS == 0) {
                lengths[to - 1 - rank] = best[i].step + 1;
                order[to - 1 - rank] = i;
            }
        }
        __syncthreads();
        uint32_t length[EACH], sum = 0, total;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t at = threadIdx.x * EACH + i;
            length[i] = at < to - from ? lengths[at] : 0;
            sum += length[i];
        }
        uint32_t tokens_before = sum_before(m.select.warp_sums, sum, &total);
        uint32_t n_tokens = total, earlier = 0; /* worse ones' */
        if (all.size > 1) {
            if (threadIdx.x < all.size)
                all.at(m.tokens_of, threadIdx.x)[all.rank] = total;
            all.sync();
            const unsigned lane = threadIdx.x % 32;
            const uint32_t of = lane < all.size ? m.tokens_of[lane] : 0;
            n_tokens = warp_sum(of);
            earlier = warp_sum(lane > all.rank ? of : 0);
        }
        tokens_before += earlier;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t at = threadIdx.x * EACH + i;
            if (at < to - from)
                lengths[at] = tokens_before; /* from now on */
            tokens_before += length[i];
        }
        __syncthreads();
        const uint64_t record = query * q.record_bytes;
        const uint64_t bytes = 8 + 16ull * n + 4ull * n_tokens;
        ft_gpu_record *told = &q.records[query * all.size + all.rank];
        if (!Mem::TELLS && threadIdx.x == 0)
            *told = {record, bytes};
        write_record(q.out + record, best, n, n - to, to - from, order, lengths,
                     earlier, total);
        if (Mem::TELLS && threadIdx.x == 0) { /* a barrier of the block lies behind */
            told->at = record;
            __threadfence_system();
            told->bytes = bytes;
        }
        lap(FT_PHASE_SYNC);
        return ticket;
    }

    /* Results number first .. first + n_mine - 1 of n, over the bus in whole lines:
     * their tokens, n_tokens from number `before` on, are put together in the memory of
     * the proposals, part after part. */
    __device__ void write_record(uint8_t *record, const result *best, uint32_t n,
                                 uint32_t first, uint32_t n_mine, const uint32_t *order,
                                 const uint32_t *tokens_before, uint32_t before,
                                 uint32_t n_tokens)
    {
        enum { PART = sizeof(m.proposals) / 4 };
        double *scores = reinterpret_cast<double *>(record + 8);
        uint64_t *ends = reinterpret_cast<uint64_t *>(record + 8 + 8ull * n);
        uint32_t *tokens = reinterpret_cast<uint32_t *>(record + 8 + 16ull * n);
        uint32_t *part = reinterpret_cast<uint32_t *>(&m.proposals);
        if (all.rank == 0 && threadIdx.x == 0)
            *reinterpret_cast<uint64_t *>(record) = n;
#pragma unroll 1
        for (uint32_t done = 0; done < n_tokens; done += PART) {
#pragma unroll 1
            for (uint32_t i = threadIdx.x; i < n_mine; i += THREADS) {
                const result &f = best[order[i]];
                const uint32_t at = tokens_before[i];
                if (done == 0) {
                    scores[first + i] = f.score;
                    ends[first + i] = at + f.step + 1;
                }
                if (at - before + f.step < done || at - before >= done + PART)
                    continue;
                uint32_t token = f.token, beam = f.beam;
#pragma unroll 1
                for (uint32_t t = f.step;; t--) {
                    const uint32_t to = at - before + t - done; /* wraps below 0 */
                    if (to < PART)
                        part[to] = token;
                    if (t == 0)
                        break;
                    const ft_gpu_trace from = *trace_of(t - 1, beam);
                    token = from.token;
                    beam = from.beam;
                }
            }
            __syncthreads();
#pragma unroll 1
            for (uint32_t i = threadIdx.x; i < min((uint32_t)PART, n_tokens - done);
                 i += THREADS)
                tokens[before + done + i] = part[i];
            __syncthreads();
        }
    }

    /* Answer query `number`; returns the number of the team's next. */
    __device__ uint32_t run(uint32_t number)
    {
        query = number;
        if (TIMED && threadIdx.x == 0)
            lap_at = clock64();
        if (feeds()) {
            fetch_proposals(0);
            if (Mem::AHEAD > 1)
                fetch_proposals(1);
        }
        all.arrive(); /* shared memory of a block exists once it runs */
        if (threadIdx.x == 0) {
            if (all.rank == 0)
                m.ticket = atomicAdd(q.next_ticket, 1u);
            const ft_range r = view.children(0, 0);
            m.beams[0][0] = {r.first, (uint32_t)r.count, 0};
            *n_candidates(0) = 0;
            m.n_probes = m.n_admitted = 0;
            m.n_findings = 0;
            m.finding_bound = -INFINITY;
            m.best_sum[0] = 0;
            m.worst_sum[0] = ~0u;
            if (Mem::HASTY)
                pairs(0)[0] = pairs_of((uint32_t)r.count);
            m.best_score = 0;
            m.worst_score = ~0u;
            m.slice_from = m.slice_to = ~0u;
        }
        if (feeds()) {
            __pipeline_wait_prior(0);
            fetch_codes(0);
            clear_all_bins();
            feed(0);
        }
        all.wait();
        roomy = true;
        apart_from = ~0u;
        uint32_t n_beams = 1, n_before = 0, pairs_before = 0;
        bool may_part = Mem::SHARING && !q.stats;
        report of_all;
        bool met = false;
        for (uint32_t step = 0; step < q.n_steps && n_beams; step++) {
            const long long start = clock64();
            norm = q.norm[step + 1];
            begin_step(step, n_beams);
            lap(FT_PHASE_SYNC);
            const uint32_t n_pairs = total_pairs(step, n_beams);
            uint32_t n_kept = 0;
            const bool narrows = n_beams < n_before && n_pairs < pairs_before;
            if constexpr (Mem::SHARING)
                if (may_part && narrows && goes_apart(step, n_pairs)) {
                    const uint32_t n_findings = m.n_findings;
                    of_all = meet(go_apart(step, n_beams, n_pairs));
                    met = of_all.most_beams <= q.beam;
                    if (met) {
                        apart_from = step;
                        break;
                    }
                    may_part = false;
                    come_back(step, n_findings);
                }
            if (Mem::HASTY && n_pairs <= Mem::SETTLERS && roomy) {
                n_kept = step_at_once(step, n_beams, n_pairs);
            } else {
                const scale bins = sum_scale(step, n_beams);
                extend(step, n_beams, n_pairs, bins);
                if (step + 1 < q.n_steps)
                    n_kept = prune(step, bins);
            }
            note_stats(step, n_beams, n_kept, start);
            if (Mem::HASTY && q.stats)
                __syncthreads(); /* before the next step counts */
            n_before = n_beams;
            pairs_before = n_pairs;
            n_beams = n_kept;
        }
        if (!met)
            of_all = meet(0);
        const uint32_t ticket = answer(of_all);
        if (TIMED && threadIdx.x == 0 && all.rank == 0)
            for (int i = 0; i < FT_N_PHASES; i++) {
                q.phases[(uint64_t)query * FT_N_PHASES + i] = laps[i];
                laps[i] = 0;
            }
        return gridDim.x / all.size + ticket - q.first_ticket;
    }
};

/* BLOCKS: that a multiprocessor is to hold. CLUSTER: teams may be of several blocks. */
template <class View, class Mem, int BLOCKS, bool CLUSTER, bool TIMED>
__global__ void __launch_bounds__(Mem::THREADS, BLOCKS)
    search(const __grid_constant__ View view, const __grid_constant__ ft_gpu_question q)
{
    FT_BLOCK_MEMORY(raw);
    Mem &m = *reinterpret_cast<Mem *>(raw);
    begin_second_barrier(Mem::FEEDERS);
    const team all = CLUSTER ? team::whole() : team::alone();
    const uint32_t number = blockIdx.x / all.size;
    ft_gpu_trace *trace = Mem::HASTY && q.n_steps <= Mem::TRACED + 1
                              ? m.trace
                              : q.trace + (uint64_t)number * q.n_steps *
                                              max(q.beam, (uint32_t)Mem::TRACE_BEAMS);
    searcher<View, Mem, TIMED> s = {view, q, m, all, trace};
    for (uint32_t query = number; query < q.n_queries;)
        query = s.run(query);
}

} // namespace ft

#endif
