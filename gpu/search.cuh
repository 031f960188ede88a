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

#include "position.cuh"
#include "question.h"
#include "select.cuh"
#include "views.cuh"

namespace ft
{

enum {
    PROBES_PER_SEARCH = 32, /* children that are probed rather than searched */
    QUEUE = 64,             /* matches of a warp that wait to be looked at */
    SETTLERS = 128,         /* threads of a block that do not feed: see prune() */
    SAMPLE = 4,             /* one pair in so many is done before the next look */
    RANKERS = 4             /* lanes that find a result's rank */
};

struct beam {
    uint64_t first; /* child */
    uint32_t n_children;
    float sum;
};

struct candidate { /* of the step: 16 bytes, one access */
    float sum;
    uint32_t child; /* place among its parent's children */
    uint32_t token;
    uint32_t beam;
};

struct finding { /* a result */
    float sum;
    uint32_t token;
    uint64_t node_step_beam; /* 38 bits of place_of: more nodes fit no device */

    enum { BEAM_BITS = 10, STEP_BITS = 16 };

    static __device__ finding of(float sum, uint32_t token, uint64_t node,
                                 uint32_t step, uint32_t beam)
    {
        return {sum, token, (node << STEP_BITS | step) << BEAM_BITS | beam};
    }

    __device__ uint32_t beam() const
    {
        return node_step_beam & ((1u << BEAM_BITS) - 1);
    }

    __device__ uint32_t step() const
    {
        return node_step_beam >> BEAM_BITS & ((1u << STEP_BITS) - 1);
    }

    __device__ uint64_t node() const
    {
        return node_step_beam >> (BEAM_BITS + STEP_BITS);
    }
};

/* A pair whose code passed the filter. */
struct queued {
    uint32_t child, code;
    uint32_t beam_hint; /* the edge's hint above the beam */
};

/* A hint: `child` is a proposal, the child is to be found. */
enum { SEARCH_HUB = EDGE_UNKNOWN + 1 };

template <int THREADS_, int ROOM_> struct memory {
    enum {
        THREADS = THREADS_,
        ROOM = ROOM_,
        WARPS = THREADS / 32,
        EACH = (ROOM + THREADS - 1) / THREADS, /* beams a thread */
        FEEDERS = THREADS - SETTLERS,
        FEED_EACH = (ROOM + FEEDERS - 1) / FEEDERS, /* proposals a feeder */
        BINS = ROOM > THREADS ? ROOM : THREADS,
        /* Room for what is kept, for all warps' next looks and as many again. */
        CANDIDATES = ROOM + 2 * THREADS,
        FINDINGS = ROOM + 2 * THREADS
    };
    static_assert(ROOM <= 1 << finding::BEAM_BITS && THREADS <= 1024, "fields, room");

    candidate candidates[CANDIDATES]; /* at the end: the team's best results */
    finding findings[FINDINGS];
    beam beams[2][ROOM]; /* the frontier, the same in every block; by step's parity */
    uint32_t pairs_before[ROOM + 1];
    position<ROOM> proposals;
    union {
        queued queue[WARPS][QUEUE];
        uint32_t kept[ROOM]; /* this block's: candidate, place in the frontier */
    };
    uint32_t tokens_ahead[2][ROOM], raw_ahead[ROOM];
    float logp_ahead[2][ROOM]; /* by the position's parity */
    select_memory<THREADS, BINS> select;
    uint32_t n_candidates, n_findings, n_kept;
    uint32_t n_border;                  /* block 0's: places of the border bin taken */
    uint32_t best_sum[2], worst_sum[2]; /* keys, of beams; by the step's parity */
    uint32_t best_score, worst_score;   /* keys, of all findings so far */
    uint32_t n_alive;
    int candidate_cut, finding_cut; /* bins behind these are hopeless */
    uint64_t finding_bound;         /* key of a score: below is hopeless */
    uint32_t slice_from, slice_to;  /* results that this block orders, by place */
    uint32_t candidates_of[MAX_TEAM];
    uint32_t tokens_of[MAX_TEAM]; /* in each block's slice */
    uint32_t ticket;              /* block 0's: of the team's next query */
    unsigned long long n_probes, n_admitted;
};

template <class View, class Mem, bool TIMED> struct searcher {
    enum { THREADS = Mem::THREADS, EACH = Mem::EACH, BINS = Mem::BINS };
    typedef bin_scale<BINS> scale;

    const View &view;
    const ft_gpu_question &q;
    Mem &m;
    const team all;
    ft_gpu_trace *trace; /* [step][beam] */
    uint32_t query;
    double norm;      /* of results of this step */
    long long lap_at; /* TIMED: the leading thread's clock at the last lap */
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

    /* A position's proposals are on their way to shared memory two steps ahead, what
     * the trie has for their tokens one step ahead. Each feeder takes its own. */
    __device__ void fetch_proposals(uint32_t step)
    {
        const uint64_t at = ((uint64_t)query * q.n_steps + step) * q.n_proposals;
        if (step < q.n_steps)
#pragma unroll 1
            for (uint32_t k = threadIdx.x - SETTLERS; k < q.n_proposals;
                 k += Mem::FEEDERS) {
                __pipeline_memcpy_async(&m.tokens_ahead[step % 2][k], q.tokens + at + k,
                                        4);
                __pipeline_memcpy_async(&m.logp_ahead[step % 2][k], q.logp + at + k, 4);
            }
        __pipeline_commit();
    }

    /* The tokens are there. */
    __device__ void fetch_codes(uint32_t step)
    {
        if (step < q.n_steps)
#pragma unroll 1
            for (uint32_t k = threadIdx.x - SETTLERS; k < q.n_proposals;
                 k += Mem::FEEDERS)
                fetch_code_of(view, m.tokens_ahead[step % 2][k], step, &m.raw_ahead[k]);
        __pipeline_commit();
    }

    static __device__ bool feeds()
    {
        return threadIdx.x >= SETTLERS;
    }

    /* A barrier of the feeders alone. */
    static __device__ void feeders_sync()
    {
        asm volatile("bar.sync 1, %0;" ::"r"((int)Mem::FEEDERS) : "memory");
    }

    /* What the feeders do between two steps: the proposals of position `step` take the
     * place of the last one's, which nobody in the block needs any more; the next ones
     * are sent for. */
    __device__ void feed(uint32_t step)
    {
        const uint32_t *tokens = m.tokens_ahead[step % 2];
        const float *logp = m.logp_ahead[step % 2];
        const unsigned me = threadIdx.x - SETTLERS;
        uint32_t best = 0, worst = ~0u;
        m.proposals.clear(me, Mem::FEEDERS);
        __pipeline_wait_prior(0);
        feeders_sync();
#pragma unroll 1
        for (int i = 0; i < Mem::FEED_EACH; i++) {
            const uint32_t k = me + i * Mem::FEEDERS;
            if (k >= q.n_proposals)
                continue;
            uint32_t code = FT_NO_TOKEN;
            if (tokens[k] != FT_NO_TOKEN && logp[k] > q.token_threshold)
                code = fetched_code_of(view, tokens[k], step, m.raw_ahead[k]);
            m.proposals.insert(k, tokens[k], code, logp[k]);
            if (code == FT_NO_TOKEN)
                continue;
            const uint32_t key = ft_float_key(logp[k]);
            best = max(best, key);
            worst = min(worst, key);
        }
        best = warp_max(best);
        worst = ~warp_max(~worst);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&m.proposals.best, best);
            atomicMin(&m.proposals.worst, worst);
        }
        fetch_codes(step + 1);
        fetch_proposals(step + 2);
    }

    /* Few children are probed, many are searched: by cost, per beam. */
    __device__ bool by_proposal(uint32_t n_children) const
    {
        return n_children / PROBES_PER_SEARCH > q.n_proposals;
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
            const beam b = m.beams[step % 2][first + i];
            n[i] = by_proposal(b.n_children) ? q.n_proposals : b.n_children;
            sum += n[i];
            const uint32_t key = ft_float_key(b.sum);
            best = max(best, key);
            worst = min(worst, key);
        }
        uint32_t before = scan(sum, &total);
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (first + i < n_beams)
                m.pairs_before[first + i] = before;
            before += n[i];
        }
        best = warp_max(best);
        worst = ~warp_max(~worst);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&m.best_sum[step % 2], best);
            atomicMin(&m.worst_sum[step % 2], worst);
        }
        if (threadIdx.x == 0)
            m.pairs_before[n_beams] = total;
    }

    /* Make ready for a step whose beams are there. A barrier of the team lies behind.
     */
    __device__ void begin_step(uint32_t step, uint32_t n_beams)
    {
        enum {
            WARP_EACH = 4
        }; /* so few beams are one warp's, which needs no barrier */
        clear_bins(m.select.bins, m.select);
        clear_bins(m.select.ends, m.select);
        if (threadIdx.x == 0) {
            m.n_candidates = m.n_kept = m.n_border = 0;
            m.best_sum[(step + 1) % 2] = 0;
            m.worst_sum[(step + 1) % 2] = ~0u;
            m.candidate_cut = m.finding_cut = BINS;
            m.n_probes = m.n_admitted = 0;
        }
        if (n_beams > 32 * WARP_EACH)
            count_pairs<EACH>(step, n_beams, [&](uint32_t sum, uint32_t *total) {
                uint32_t before;
                block_scan<THREADS>(m.select.scan).ExclusiveSum(sum, before, *total);
                return before;
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
    __device__ scale sum_scale(uint32_t step) const
    {
        const float best =
            key_float(m.best_sum[step % 2]) + key_float(m.proposals.best);
        const float worst =
            key_float(m.worst_sum[step % 2]) + key_float(m.proposals.worst);
        return scale::over(best, fmaxf(worst, q.sentence_threshold));
    }

    /* The beam of pair `x`, for the whole warp; 32 places are looked at at a time. */
    __device__ uint32_t beam_of(uint32_t x, uint32_t n_beams) const
    {
        const unsigned lane = threadIdx.x % 32;
        uint32_t lo = 0, n = n_beams;
#pragma unroll 1
        while (n > 32) {
            const uint32_t each = (n + 31) / 32, at = lo + lane * each;
            const bool below = lane * each < n && m.pairs_before[at] <= x;
            const uint32_t i = __popc(__ballot_sync(~0u, below)) - 1;
            lo += i * each;
            n = min(each, n - i * each);
        }
        const bool below = lane < n && m.pairs_before[lo + lane] <= x;
        return lo + __popc(__ballot_sync(~0u, below)) - 1;
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

    /* The beam of pair x + lane, and its child; the first pair's and child 0 where that
     * is not below `to`. */
    __device__ uint32_t locate(uint32_t x, uint32_t to, uint32_t n_beams,
                               uint32_t *child) const
    {
        /* Every beam has a pair: a bit for each beam that begins in these 32. */
        const unsigned lane = threadIdx.x % 32;
        const uint32_t first = beam_of(x, n_beams), next = first + 1 + lane;
        const uint32_t start = next < n_beams ? m.pairs_before[next] - x : ~0u;
        const unsigned starts = warp_or(start < 32 ? 1u << start : 0);
        const uint32_t mine = first + __popc(starts & ((2u << lane) - 1));
        const bool there = x + lane < to;
        *child = there ? x + lane - m.pairs_before[mine] : 0;
        return there ? mine : first;
    }

    /* What is stored on the edge of a pair; a hub's child is a proposal's number. */
    __device__ uint32_t code_at(const beam &b, uint32_t child, uint32_t step,
                                bool all_flags, unsigned *hint) const
    {
        if (by_proposal(b.n_children)) {
            *hint = SEARCH_HUB;
            return m.proposals.entries[child].code;
        }
        return edge_of(view, b.first + child, step, all_flags, hint);
    }

    __device__ bool may_match(uint32_t code, unsigned hint) const
    {
        return hint == SEARCH_HUB ? code != FT_NO_TOKEN : m.proposals.may_have(code);
    }

    /* Queue those of the pairs x .. x + 31, below `to`, that may match. */
    __device__ void join(uint32_t x, uint32_t to, uint32_t step, uint32_t n_beams,
                         bool all_flags, queued *queue, uint32_t *n_queued) const
    {
        const unsigned lane = threadIdx.x % 32;
        uint32_t child;
        unsigned hint;
        const uint32_t of = locate(x, to, n_beams, &child);
        const uint32_t code =
            code_at(m.beams[step % 2][of], child, step, all_flags, &hint);
        const bool match = x + lane < to && may_match(code, hint);
        const unsigned lanes = __ballot_sync(~0u, match);
        if (match)
            queue[*n_queued + __popc(lanes & ((1u << lane) - 1))] = {child, code,
                                                                     of | hint << 16};
        *n_queued += __popc(lanes);
        __syncwarp();
    }

    /* May a warp look at 32 matches? All of the block's may have asked at the same
     * time. */
    __device__ bool has_room() const
    {
        const volatile Mem &now = m;
        const bool room = now.n_candidates + THREADS <= Mem::CANDIDATES &&
                          now.n_findings + THREADS <= Mem::FINDINGS;
        return __shfl_sync(~0u, room, 0);
    }

    /* Look at the last 32 queued pairs or fewer, a lane each: keep what is admitted and
     * not hopeless as candidate, finding or both. */
    __device__ void look(const queued *queue, uint32_t *n_queued, uint32_t step,
                         const scale &bins)
    {
        lap(FT_PHASE_EXPANSION);
        const unsigned lane = threadIdx.x % 32;
        const uint32_t n = min(*n_queued, 32u);
        *n_queued -= n;
        queue += *n_queued;
        queued e = {0, 0, 0};
        bool as_beam = false, as_result = false;
        int bin = 0;
        uint64_t node = 0;
        uint32_t proposal = m.proposals.END, token = 0;
        float logp = 0, sum = 0;
        if (lane < n) {
            e = queue[lane];
            proposal = m.proposals.find(e.code, &logp);
        }
        const uint32_t parent = e.beam_hint & 0xffff;
        unsigned hint = e.beam_hint >> 16;
        bool admitted = proposal != m.proposals.END;
        const beam b = m.beams[step % 2][parent];
        if (admitted && hint == SEARCH_HUB) {
            hint = EDGE_UNKNOWN;
            admitted = proposal == e.child; /* else another one stands for the token */
            if (admitted)
                e.child = search_hub(view, b.first, b.n_children,
                                     m.proposals.tokens[proposal], step);
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
            as_result = bin <= m.finding_cut &&
                        double_key((double)sum * norm) >= m.finding_bound;
            if (as_beam || as_result) {
                token = m.proposals.tokens[proposal];
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
        take_places(&m.n_candidates, as_beam, &c, &m.n_findings, as_result, &f);
        if (as_beam) {
            fetch_children_of(view, node, step + 1);
            m.candidates[c] = {sum, e.child, token, parent};
            atomicAdd(&m.select.bins[bin], 1u);
        }
        if (as_result) {
            m.findings[f] = finding::of(sum, token, place_of(view, node), step, parent);
            atomicAdd(&m.select.ends[bin], 1u);
        }
        if (__any_sync(~0u, as_result)) {
            const uint32_t key = ft_float_key((float)((double)sum * norm));
            const uint32_t high = warp_max(as_result ? key : 0);
            const uint32_t low = ~warp_max(as_result ? ~key : 0);
            if (lane == 0) {
                atomicMax(&m.best_score, high);
                atomicMin(&m.worst_score, low);
            }
        }
        __syncwarp(); /* the queue may be filled again */
        lap(FT_PHASE_VALIDATION);
    }

    /* A warp's share of the pairs below `to`, from pair *x on. True: it stopped for
     * lack of room. */
    __device__ bool walk(uint32_t *x, uint32_t to, uint32_t step, uint32_t n_beams,
                         const scale &bins, bool all_flags, queued *queue,
                         uint32_t *n_queued)
    {
        for (;;) {
            const uint32_t least = *x < to ? 32 : 1;
            while (*n_queued >= least) {
                if (!has_room())
                    return true;
                look(queue, n_queued, step, bins);
            }
            if (*x >= to)
                return false;
            join(*x, to, step, n_beams, all_flags, queue, n_queued);
            *x += THREADS * all.size;
        }
    }

    /* This block's share of the step's pairs from .. to - 1: the team's warps take
     * turns, since neighbours are alike. */
    __device__ void expand(uint32_t from, uint32_t to, uint32_t step, uint32_t n_beams,
                           const scale &bins, bool all_flags)
    {
        const unsigned warp = threadIdx.x / 32;
        queued *queue = m.queue[warp];
        uint32_t n_queued = 0, x = from + (warp * all.size + all.rank) * 32;
        while (__syncthreads_or(
            walk(&x, to, step, n_beams, bins, all_flags, queue, &n_queued)))
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
        const uint32_t n = m.n_candidates;
        const candidate_keys get = {view, m.candidates, m.beams[step % 2]};
        if (threadIdx.x == 0)
            m.select.n_list = 0;
        const verdict<BINS> v = select_best<false>(team{0, 1}, m.select, m.select.bins,
                                                   bins, n, q.beam, get);
        keep<Mem::CANDIDATES>(m.candidates, n, v, &m.n_candidates, get);
        clear_bins(m.select.bins, m.select);
        if (threadIdx.x == 0)
            m.candidate_cut = min(m.candidate_cut, v.bin);
        __syncthreads();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < m.n_candidates; i += THREADS)
            atomicAdd(&m.select.bins[bins.bin(m.candidates[i].sum)], 1u);
    }

    /* Keep the best N of this block's findings. */
    __device__ void trim_findings()
    {
        __shared__ uint32_t best, worst;
        const uint32_t n = m.n_findings;
        uint32_t *bins = m.select.place;
        const finding_keys get = {view, m.findings, q.norm};
        clear_bins(bins, m.select);
        if (threadIdx.x == 0) {
            best = 0;
            worst = ~0u;
        }
        __syncthreads();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const uint32_t key = ft_float_key((float)get(i).value);
            atomicMax(&best, key);
            atomicMin(&worst, key);
        }
        __syncthreads();
        const scale scores = scale::over(key_float(best), key_float(worst));
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            atomicAdd(&bins[scores.bin((float)get(i).value)], 1u);
        __syncthreads();
        const verdict<BINS> v =
            select_best<false>(team{0, 1}, m.select, bins, scores, n, q.n_results, get);
        keep<Mem::FINDINGS>(m.findings, n, v, &m.n_findings, get);
        unsigned long long bound = ~0ull;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < m.n_findings; i += THREADS)
            bound = min(bound, (unsigned long long)double_key(get(i).value));
        if (threadIdx.x == 0) {
            m.finding_bound = ~0ull;
            m.select.n_list = 0;
        }
        __syncthreads();
        atomicMin((unsigned long long *)&m.finding_bound, bound);
    }

    /* Trim what is nearly full. Seldom needed, so it stands apart: its registers and
     * its code would be in the way of what every query needs. */
    static __device__ __noinline__ void make_room(const View &view,
                                                  const ft_gpu_question &q, Mem &m,
                                                  uint32_t step, scale bins)
    {
        searcher s = {view, q, m, team{0, 1}};
        const bool candidates = m.n_candidates + THREADS > Mem::CANDIDATES;
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
        all.sync();
        find_border<false>(all, m.select, m.select.bins, q.beam, no_note());
        const int as_beam = step + 1 < q.n_steps ? (int)m.select.border : -1;
        all.sync();
        find_border<false>(all, m.select, m.select.ends, q.n_results, no_note());
        const int most = max(as_beam, (int)m.select.border);
        if (threadIdx.x == 0) {
            m.candidate_cut = min(m.candidate_cut, as_beam);
            m.finding_cut = (int)m.select.border;
        }
        const float best = key_float(m.proposals.best);
        uint32_t alive = 0;
#pragma unroll 1
        for (uint32_t b = threadIdx.x; b < n_beams; b += THREADS)
            if (bins.bin(m.beams[step % 2][b].sum + best) <= most)
                alive = b + 1;
        alive = warp_max(alive);
        if (threadIdx.x % 32 == 0)
            atomicMax(&m.n_alive, alive);
        all.sync(); /* all have read the bins */
        return m.n_alive;
    }

    /* All pairs of the step that are worth it. */
    __device__ void extend(uint32_t step, uint32_t n_beams, const scale &bins)
    {
        uint32_t total = m.pairs_before[n_beams];
        const uint32_t round = THREADS * all.size;
        /* Asked for of many pairs, most flags would be asked for in vain. */
        const bool all_flags = total <= 2 * round;
        /* From so many pairs on a look at the bound pays. */
        const uint32_t few = (all.size > 1 ? 8 : 16) * round;
        uint32_t done = 0, to = total / (SAMPLE * SAMPLE);
        for (;;) {
            to = total - done < few ? total : max(to, done + round);
            expand(done, to, step, n_beams, bins, all_flags);
            done = to;
            if (done == total)
                return;
            n_beams = limit(step, n_beams, bins);
            lap(FT_PHASE_PRUNING);
            total = m.pairs_before[n_beams];
            if (done >= total)
                return;
            to = min(total, SAMPLE * done);
        }
    }

    /* Candidate i becomes beam `at` of the next frontier, in every block. */
    __device__ void settle(uint32_t i, uint32_t at, uint32_t step)
    {
        const candidate c = m.candidates[i];
        const ft_range r =
            view.children(m.beams[step % 2][c.beam].first + c.child, step + 1);
        fetch_edges_of(view, r.first, step + 1);
        const beam b = {r.first, (uint32_t)r.count, c.sum};
#pragma unroll 1
        for (unsigned to = 0; to < all.size; to++)
            all.at(m.beams[(step + 1) % 2], to)[at] = b;
    }

    /* Of the team's candidates the best B stay: m.kept is this block's, best bin first
     * over the team. */
    __device__ void choose(uint32_t step, const scale &bins)
    {
        const candidate_keys get = {view, m.candidates, m.beams[step % 2]};
        const uint32_t n = m.n_candidates;
        const verdict<BINS> v =
            select_best<true>(all, m.select, m.select.bins, bins, n, q.beam, get);
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
                             ? v.above + atomicAdd(all.at(&m.n_border, 0), 1u)
                             : atomicAdd(&m.select.place[bin], 1u);
            }
            const uint32_t mine = take_place(&m.n_kept, stays);
            if (stays)
                m.kept[mine] = i | at << 16;
        }
        __syncthreads();
    }

    /* The team's best B candidates become the frontier of every block, about best
     * first; while some threads wait for their children, the others make ready the next
     * position's proposals. Returns how many. Where all candidates stay, their order is
     * left as it is, but for the first step's, whose children can be many. */
    __device__ uint32_t prune(uint32_t step, const scale &bins)
    {
        __syncthreads();
        if (threadIdx.x < all.size)
            all.at(m.candidates_of, threadIdx.x)[all.rank] = m.n_candidates;
        all.sync();
        lap(FT_PHASE_SYNC);
        const unsigned lane = threadIdx.x % 32;
        const uint32_t of = lane < all.size ? m.candidates_of[lane] : 0;
        const uint32_t total = warp_sum(of);
        const uint32_t earlier = warp_sum(lane < all.rank ? of : 0);
        const bool all_stay = step > 0 && total <= q.beam;
        if (!all_stay)
            choose(step, bins);
        lap(FT_PHASE_PRUNING);
        const uint32_t n = all_stay ? m.n_candidates : m.n_kept;
        /* Candidate, and place in the frontier. */
        const auto kept = [&](uint32_t i) -> uint32_t {
            return all_stay ? i | (earlier + i) << 16 : m.kept[i];
        };
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            settle(kept(i) & 0xffff, kept(i) >> 16, step);
        if (feeds())
            feed(step + 1);
        lap(FT_PHASE_EXPANSION);
        all.arrive();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const candidate c = m.candidates[kept(i) & 0xffff];
            trace[(uint64_t)step * q.beam + (kept(i) >> 16)] = {c.token, c.beam};
        }
        all.wait();
        lap(FT_PHASE_SYNC);
        return min(total, q.beam);
    }

    __device__ void note_stats(uint32_t step, uint32_t n_beams, uint32_t n_kept,
                               long long start)
    {
        if (!q.stats || threadIdx.x)
            return;
        ft_gpu_step_stats *s = &q.stats[(uint64_t)query * q.n_steps + step];
        atomicAdd(&s->probes, m.n_probes);
        atomicAdd(&s->candidates, m.n_admitted);
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
    static_assert(sizeof(result) * Mem::ROOM <= sizeof(m.candidates), "reused");

    /* The team's best N findings, best bin first: each block gets a slice of them,
     * whole bins, by place into its `best`. Returns how many. */
    __device__ uint32_t gather_results(result *best, scale *scores)
    {
        const finding_keys get = {view, m.findings, q.norm};
        all.sync();
        const uint32_t n = m.n_findings;
        uint32_t high = 0, low = ~0u, total = 0;
        if (const unsigned r = threadIdx.x % 32; r < all.size) {
            total = *all.at(&m.n_findings, r);
            high = *all.at(&m.best_score, r);
            low = *all.at(&m.worst_score, r);
        }
        total = warp_sum(total);
        high = warp_max(high);
        low = ~warp_max(~low);
        *scores = scale::over(key_float(high), key_float(low));
        /* The last step had no candidates, so the bins are clear. */
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            atomicAdd(&m.select.bins[scores->bin((float)get(i).value)], 1u);
        all.sync();
        const uint32_t n_best = min(total, q.n_results);
        enum { OWNER_AT = 24 }; /* above a place */
        const auto owner = [&](uint32_t place) { return place * all.size / n_best; };
        const auto note = [&](int bin, uint32_t place) {
            if (place >= n_best)
                return;
            m.select.place[bin] |= owner(place) << OWNER_AT;
            if (owner(place) == all.rank)
                atomicMin(&m.slice_from, place);
            else if (owner(place) > all.rank)
                atomicMin(&m.slice_to, place);
        };
        const verdict<BINS> v = select_best<true>(all, m.select, m.select.bins, *scores,
                                                  n, q.n_results, get, note);
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const finding f = m.findings[i];
            const rank_key k = get(i);
            if (!v.keeps(k))
                continue;
            uint32_t at =
                v.on_border(k)
                    ? (v.above + atomicAdd(all.at(&m.n_border, 0), 1u)) |
                          owner(v.above) << OWNER_AT
                    : atomicAdd(&m.select.place[scores->bin((float)k.value)], 1u);
            const uint32_t to = at >> OWNER_AT;
            at &= (1u << OWNER_AT) - 1;
            all.at(best, to)[at] = {k.value, k.node, f.token, (uint16_t)f.step(),
                                    (uint16_t)f.beam()};
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
    __device__ uint32_t answer()
    {
        result *best = reinterpret_cast<result *>(m.candidates);
        scale scores;
        const uint32_t n = gather_results(best, &scores);
        const uint32_t ticket = *all.at(&m.ticket, 0);
        lap(FT_PHASE_PRUNING);
        const uint32_t to = min(m.slice_to, n), from = min(m.slice_from, to);
        uint32_t *order = m.pairs_before,
                 *lengths = m.kept; /* of the slice, ascending */
#pragma unroll 1
        for (uint32_t base = from; base < to; base += THREADS / RANKERS) {
            const uint32_t i = base + threadIdx.x / RANKERS;
            const uint32_t rank = rank_of(best, i, from, to, scores);
            if (i < to && threadIdx.x % RANKERS == 0) {
                lengths[to - 1 - rank] = best[i].step + 1;
                order[to - 1 - rank] = i;
            }
        }
        __syncthreads();
        uint32_t length[EACH], total;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t at = threadIdx.x * EACH + i;
            length[i] = at < to - from ? lengths[at] : 0;
        }
        block_scan<THREADS>(m.select.scan).ExclusiveSum(length, length, total);
        if (threadIdx.x < all.size)
            all.at(m.tokens_of, threadIdx.x)[all.rank] = total;
        all.sync();
        const unsigned lane = threadIdx.x % 32;
        const uint32_t of = lane < all.size ? m.tokens_of[lane] : 0;
        const uint32_t n_tokens = warp_sum(of);
        const uint32_t earlier = warp_sum(lane > all.rank ? of : 0); /* worse ones' */
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t at = threadIdx.x * EACH + i;
            if (at < to - from)
                lengths[at] = earlier + length[i]; /* the tokens before, from now on */
        }
        __syncthreads();
        const uint64_t record = query * q.record_bytes;
        if (all.rank == 0 && threadIdx.x == 0)
            q.records[query] = {record, 8 + 16ull * n + 4ull * n_tokens};
        write_record(q.out + record, best, n, n - to, to - from, order, lengths,
                     earlier, total);
        lap(FT_PHASE_SYNC);
        return ticket;
    }

    /* Results number first .. first + n_mine - 1 of n, over the bus in whole lines:
     * their tokens, n_tokens from number `before` on, are put together in the memory of
     * the findings, part after part. */
    __device__ void write_record(uint8_t *record, const result *best, uint32_t n,
                                 uint32_t first, uint32_t n_mine, const uint32_t *order,
                                 const uint32_t *tokens_before, uint32_t before,
                                 uint32_t n_tokens)
    {
        enum { PART = sizeof(m.findings) / 4 };
        double *scores = reinterpret_cast<double *>(record + 8);
        uint64_t *ends = reinterpret_cast<uint64_t *>(record + 8 + 8ull * n);
        uint32_t *tokens = reinterpret_cast<uint32_t *>(record + 8 + 16ull * n);
        uint32_t *part = reinterpret_cast<uint32_t *>(m.findings);
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
                    const ft_gpu_trace from = trace[(uint64_t)(t - 1) * q.beam + beam];
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
            fetch_proposals(1);
        }
        all.arrive(); /* shared memory of a block exists once it runs */
        if (threadIdx.x == 0) {
            if (all.rank == 0)
                m.ticket = atomicAdd(q.next_ticket, 1u);
            const ft_range r = view.children(0, 0);
            m.beams[0][0] = {r.first, (uint32_t)r.count, 0};
            m.n_findings = 0;
            m.finding_bound = 0;
            m.best_sum[0] = 0;
            m.worst_sum[0] = ~0u;
            m.best_score = 0;
            m.worst_score = ~0u;
            m.slice_from = m.slice_to = ~0u;
        }
        if (feeds()) {
            __pipeline_wait_prior(0);
            fetch_codes(0);
            feed(0);
        }
        all.wait();
        uint32_t n_beams = 1;
        for (uint32_t step = 0; step < q.n_steps && n_beams; step++) {
            const long long start = clock64();
            norm = q.norm[step + 1];
            begin_step(step, n_beams);
            lap(FT_PHASE_SYNC);
            const scale bins = sum_scale(step);
            extend(step, n_beams, bins);
            const uint32_t n_kept = step + 1 < q.n_steps ? prune(step, bins) : 0;
            note_stats(step, n_beams, n_kept, start);
            n_beams = n_kept;
        }
        const uint32_t ticket = answer();
        if (TIMED && threadIdx.x == 0 && all.rank == 0)
            for (int i = 0; i < FT_N_PHASES; i++) {
                q.phases[(uint64_t)query * FT_N_PHASES + i] = laps[i];
                laps[i] = 0;
            }
        return gridDim.x / all.size + ticket - q.first_ticket;
    }
};

/* BLOCKS: that a multiprocessor is to hold. CLUSTER: teams may be of several blocks. */
template <class View, int THREADS, int ROOM, int BLOCKS, bool CLUSTER, bool TIMED>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    search(const __grid_constant__ View view, const __grid_constant__ ft_gpu_question q)
{
    typedef memory<THREADS, ROOM> mem;
    extern __shared__ __align__(16) unsigned char raw[];
    mem &m = *reinterpret_cast<mem *>(raw);
    const team all = CLUSTER ? team::whole() : team::alone();
    const uint32_t number = blockIdx.x / all.size;
    searcher<View, mem, TIMED> s = {view, q, m, all,
                                    q.trace + (uint64_t)number * q.n_steps * q.beam};
    for (uint32_t query = number; query < q.n_queries;) {
        query = s.run(query);
        __pipeline_wait_prior(0); /* what a query that ended early had sent for */
    }
}

} // namespace ft

#endif
