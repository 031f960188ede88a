/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernel: one launch runs all steps of a batch (paper Algorithm 1). A team
 * of one or more thread blocks takes a query from a queue and keeps it to the end:
 * proposals hashed in shared memory, (beam, child) pairs shared out over the whole
 * team, exact selection, results, backtrace, wire record. Where B, K or N are beyond
 * ROOM, the grid-wide kernel of wide.cuh does the same.
 *
 * Beams lie best first, about. A step of many pairs takes those of the first beams,
 * looks how good the B-th best is by then, and drops what cannot reach that: mostly
 * most of the pairs.
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
    PAIRS = 4,              /* of a lane, whose loads overlap */
    CHUNK = 32 * PAIRS,     /* pairs that a warp takes at most */
    QUEUE = 32 + CHUNK,     /* matches of a warp that wait to be looked at */
    ROUNDS_TO_LIMIT = 4,    /* rounds of a block from which a look at the bound pays */
    SAMPLE = 4              /* one pair in so many is done before the next look */
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

enum { SEARCH_HUB = 3 }; /* a hint: `child` is a proposal, the child is to be found */

template <int THREADS_, int ROOM_> struct memory {
    enum {
        THREADS = THREADS_,
        ROOM = ROOM_,
        WARPS = THREADS / 32,
        EACH = (ROOM + THREADS - 1) / THREADS, /* beams or proposals a thread */
        BINS = ROOM > THREADS ? ROOM : THREADS,
        /* Room for what is kept, for all warps' next looks and as many again. */
        CANDIDATES = ROOM + 2 * THREADS,
        FINDINGS = ROOM + 2 * THREADS
    };
    static_assert(ROOM <= 1 << finding::BEAM_BITS && THREADS <= 512, "fields, room");

    candidate candidates[CANDIDATES]; /* at the end: the team's best results */
    finding findings[FINDINGS];
    beam beams[2][ROOM]; /* the frontier, the same in every block; by step's parity */
    uint32_t pairs_before[ROOM + 1];
    position<THREADS, ROOM> proposals;
    union {
        queued queue[WARPS][QUEUE];
        uint32_t kept[ROOM]; /* this block's: candidate, place in the frontier */
    };
    uint32_t tokens_ahead[2][ROOM], raw_ahead[ROOM];
    float logp_ahead[2][ROOM]; /* by the position's parity */
    select_memory<THREADS, BINS> select;
    uint32_t n_candidates, n_findings, n_kept;
    uint32_t n_border;            /* block 0's: places of the border bin taken */
    uint32_t best_sum, worst_sum; /* keys, of the step's beams */
    uint32_t n_alive;
    int candidate_cut, finding_cut; /* bins behind these are hopeless */
    uint64_t finding_bound;         /* key of a score: below is hopeless */
    uint32_t query;
    uint64_t record; /* place of the wire record */
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
    uint8_t *scratch;    /* the record, before it goes over the bus */
    double norm;         /* of results of this step */
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

    /* A position's proposals are on their way to shared memory two steps ahead, what
     * the trie has for their tokens one step ahead. Each thread takes its own. */
    __device__ void fetch_proposals(uint32_t step)
    {
        const uint64_t at = ((uint64_t)m.query * q.n_steps + step) * q.n_proposals;
        if (step < q.n_steps)
            for (uint32_t k = threadIdx.x; k < q.n_proposals; k += THREADS) {
                __pipeline_memcpy_async(&m.tokens_ahead[step % 2][k], q.tokens + at + k,
                                        4);
                __pipeline_memcpy_async(&m.logp_ahead[step % 2][k], q.logp + at + k, 4);
            }
        __pipeline_commit();
    }

    __device__ void fetch_codes(uint32_t step)
    {
        __pipeline_wait_prior(0);
        if (step < q.n_steps)
            for (uint32_t k = threadIdx.x; k < q.n_proposals; k += THREADS)
                fetch_code_of(view, m.tokens_ahead[step % 2][k], step, &m.raw_ahead[k]);
        __pipeline_commit();
    }

    /* The proposals of position `step`. The place has been cleared, and a barrier lies
     * behind; another must follow. */
    __device__ void take_proposals(uint32_t step)
    {
        const uint32_t *tokens = m.tokens_ahead[step % 2];
        const float *logp = m.logp_ahead[step % 2];
        uint32_t code[EACH], best = 0, worst = ~0u;
        __pipeline_wait_prior(0);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t k = threadIdx.x + i * THREADS;
            code[i] = FT_NO_TOKEN;
            if (k < q.n_proposals && tokens[k] != FT_NO_TOKEN &&
                logp[k] > q.token_threshold)
                code[i] = fetched_code_of(view, tokens[k], step, m.raw_ahead[k]);
            if (code[i] == FT_NO_TOKEN)
                continue;
            m.proposals.mark(code[i]);
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
        __syncthreads();
        m.proposals.number(m.select.scan);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t k = threadIdx.x + i * THREADS;
            if (k < q.n_proposals)
                m.proposals.insert(k, tokens[k], code[i], logp[k]);
        }
    }

    /* Few children are probed, many are searched: by cost, per beam. */
    __device__ bool by_proposal(uint32_t n_children) const
    {
        return n_children / PROBES_PER_SEARCH > q.n_proposals;
    }

    /* Make ready for a step whose beams are there: the pairs before each beam. A
     * barrier of the team lies behind. */
    __device__ void begin_step(uint32_t step, uint32_t n_beams)
    {
        clear_bins(m.select.bins, m.select);
        clear_bins(m.select.ends, m.select);
        if (threadIdx.x == 0) {
            m.n_candidates = m.n_kept = m.n_border = 0;
            m.best_sum = 0;
            m.worst_sum = ~0u;
            m.candidate_cut = m.finding_cut = BINS;
            m.n_probes = m.n_admitted = 0;
        }
        __syncthreads();
        uint32_t n[EACH], best = 0, worst = ~0u, total;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t at = threadIdx.x * EACH + i;
            n[i] = 0;
            if (at >= n_beams)
                continue;
            const beam b = m.beams[step % 2][at];
            n[i] = by_proposal(b.n_children) ? q.n_proposals : b.n_children;
            const uint32_t key = ft_float_key(b.sum);
            best = max(best, key);
            worst = min(worst, key);
        }
        best = warp_max(best);
        worst = ~warp_max(~worst);
        if (threadIdx.x % 32 == 0) {
            atomicMax(&m.best_sum, best);
            atomicMin(&m.worst_sum, worst);
        }
        cub::BlockScan<uint32_t, THREADS>(m.select.scan).ExclusiveSum(n, n, total);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t at = threadIdx.x * EACH + i;
            if (at < n_beams)
                m.pairs_before[at] = n[i];
        }
        if (threadIdx.x == 0)
            m.pairs_before[n_beams] = total;
        __syncthreads();
    }

    /* Sums of the step in bins. */
    __device__ scale sum_scale() const
    {
        const float best = key_float(m.best_sum) + key_float(m.proposals.best);
        const float worst = key_float(m.worst_sum) + key_float(m.proposals.worst);
        return scale::over(best, fmaxf(worst, q.sentence_threshold));
    }

    /* The beam of pair `x`, for the whole warp; 32 places are looked at at a time. */
    __device__ uint32_t beam_of(uint32_t x, uint32_t n_beams) const
    {
        const unsigned lane = threadIdx.x % 32;
        uint32_t lo = 0, n = n_beams;
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

    /* The child of a hub by proposal number i; false: there is none, or another
     * proposal stands for the token. */
    __device__ bool search_hub(const beam &b, uint32_t i, uint32_t first, uint32_t step,
                               uint32_t *child) const
    {
        if (first != i)
            return false;
        const uint64_t node =
            view.find({b.first, b.n_children}, m.proposals.tokens[i], step);
        *child = (uint32_t)(node - b.first);
        return node != UINT64_MAX;
    }

    /* Queue the pairs x .. x + 32 each - 1, below `to`, that may match. */
    __device__ void join(uint32_t x, uint32_t each, uint32_t to, uint32_t step,
                         uint32_t n_beams, queued *queue, uint32_t *n_queued) const
    {
        const unsigned lane = threadIdx.x % 32;
        const beam *beams = m.beams[step % 2];
        uint32_t of[PAIRS], child[PAIRS], code[PAIRS];
        unsigned hint[PAIRS], hubs = 0;
        uint32_t lo = beam_of(x, n_beams);
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            if (i >= each)
                continue;
            /* Every beam has a pair: a bit for each beam that begins in these 32. */
            const uint32_t at = x + 32 * i, next = lo + 1 + lane;
            const uint32_t start = next < n_beams ? m.pairs_before[next] - at : ~0u;
            const unsigned starts = warp_or(start < 32 ? 1u << start : 0);
            const uint32_t mine = lo + __popc(starts & ((2u << lane) - 1));
            lo += __popc(__ballot_sync(~0u, start <= 32));
            const bool there = at + lane < to;
            of[i] = there ? mine : 0;
            child[i] = there ? at + lane - m.pairs_before[mine] : 0;
            const beam b = beams[of[i]];
            const bool hub = by_proposal(b.n_children);
            hubs |= (unsigned)hub << i;
            code[i] = edge_of(view, b.first + (hub ? 0 : child[i]), step, &hint[i]);
            if (at + 32 >= to)
                lo = n_beams - 1; /* what follows is not there */
        }
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            if (i >= each)
                continue;
            bool match = x + 32 * i + lane < to;
            if (match && (hubs >> i & 1)) {
                hint[i] = SEARCH_HUB;
                code[i] = m.proposals.entries[child[i]].code;
                match = code[i] != FT_NO_TOKEN;
            } else if (match) {
                match = m.proposals.may_have(code[i]);
            }
            const unsigned lanes = __ballot_sync(~0u, match);
            if (match)
                queue[*n_queued + __popc(lanes & ((1u << lane) - 1))] = {
                    child[i], code[i], of[i] | hint[i] << 16};
            *n_queued += __popc(lanes);
        }
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
        bool as_beam = false, as_result = false;
        queued e = {0, 0, 0};
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
            admitted = search_hub(b, e.child, proposal, step, &e.child);
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
            m.candidates[c] = {sum, e.child, token, parent};
            atomicAdd(&m.select.bins[bin], 1u);
        }
        if (as_result) {
            m.findings[f] = finding::of(sum, token, place_of(view, node), step, parent);
            atomicAdd(&m.select.ends[bin], 1u);
        }
        __syncwarp(); /* the queue may be filled again */
        lap(FT_PHASE_VALIDATION);
    }

    /* A warp's share of pairs up to `to`, from pair *x on, 32 `each` at a time. True:
     * it stopped for lack of room. */
    __device__ bool walk(uint32_t *x, uint32_t each, uint32_t to, uint32_t step,
                         uint32_t n_beams, const scale &bins, queued *queue,
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
            join(*x, each, to, step, n_beams, queue, n_queued);
            *x += THREADS * each;
        }
    }

    /* This block's share of the step's pairs from .. to - 1. */
    __device__ void expand(uint32_t from, uint32_t to, uint32_t step, uint32_t n_beams,
                           const scale &bins)
    {
        const uint64_t n = to - from;
        const uint32_t mine = from + (uint32_t)(n * all.rank / all.size);
        const uint32_t end = from + (uint32_t)(n * (all.rank + 1) / all.size);
        const unsigned warp = threadIdx.x / 32;
        queued *queue = m.queue[warp];
        /* Few pairs are spread over all warps. */
        const uint32_t rounds = (end - mine + THREADS - 1) / THREADS;
        const uint32_t each = max(1, min(rounds, PAIRS));
        uint32_t n_queued = 0, x = mine + warp * 32 * each;
        for (;;) {
            const bool stuck =
                walk(&x, each, end, step, n_beams, bins, queue, &n_queued);
            if (!__syncthreads_or(stuck))
                break;
            make_room(step, bins);
        }
        if (q.stats && threadIdx.x == 0)
            m.n_probes += end - mine;
        lap(FT_PHASE_EXPANSION);
    }

    __device__ rank_key key_of(const candidate &c, const beam *beams) const
    {
        return {c.sum, place_of(view, beams[c.beam].first + c.child)};
    }

    __device__ rank_key key_of(const finding &f) const
    {
        return {(double)f.sum * q.norm[f.step() + 1],
                order_of(view, f.node(), f.step())};
    }

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
        const auto get = [&](uint32_t i) {
            return key_of(m.candidates[i], m.beams[step % 2]);
        };
        if (threadIdx.x == 0)
            m.select.n_list = 0;
        const verdict<BINS> v = select_best<false>(team{0, 1}, m.select, m.select.bins,
                                                   bins, n, q.beam, get);
        keep<Mem::CANDIDATES>(m.candidates, n, v, &m.n_candidates, get);
        clear_bins(m.select.bins, m.select);
        if (threadIdx.x == 0)
            m.candidate_cut = min(m.candidate_cut, v.bin);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < m.n_candidates; i += THREADS)
            atomicAdd(&m.select.bins[bins.bin(m.candidates[i].sum)], 1u);
    }

    /* Keep the best N of this block's findings. */
    __device__ void trim_findings()
    {
        __shared__ uint32_t best, worst;
        const uint32_t n = m.n_findings;
        uint32_t *bins = m.select.place;
        const auto get = [&](uint32_t i) { return key_of(m.findings[i]); };
        clear_bins(bins, m.select);
        if (threadIdx.x == 0) {
            best = 0;
            worst = ~0u;
        }
        __syncthreads();
        score_range(n, &best, &worst);
        __syncthreads();
        const scale scores = scale::over(key_float(best), key_float(worst));
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            atomicAdd(&bins[scores.bin((float)get(i).value)], 1u);
        __syncthreads();
        const verdict<BINS> v =
            select_best<false>(team{0, 1}, m.select, bins, scores, n, q.n_results, get);
        keep<Mem::FINDINGS>(m.findings, n, v, &m.n_findings, get);
        unsigned long long bound = ~0ull;
        for (uint32_t i = threadIdx.x; i < m.n_findings; i += THREADS)
            bound = min(bound, (unsigned long long)double_key(get(i).value));
        if (threadIdx.x == 0) {
            m.finding_bound = ~0ull;
            m.select.n_list = 0;
        }
        __syncthreads();
        atomicMin((unsigned long long *)&m.finding_bound, bound);
    }

    /* Best and worst score of this block's n findings, as keys. */
    __device__ void score_range(uint32_t n, uint32_t *best, uint32_t *worst) const
    {
        uint32_t high = 0, low = ~0u;
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const uint32_t key = ft_float_key((float)key_of(m.findings[i]).value);
            high = max(high, key);
            low = min(low, key);
        }
        high = warp_max(high);
        low = ~warp_max(~low);
        if (threadIdx.x % 32 == 0) {
            atomicMax(best, high);
            atomicMin(worst, low);
        }
    }

    /* Trim what is nearly full. */
    __device__ void make_room(uint32_t step, const scale &bins)
    {
        const bool candidates = m.n_candidates + THREADS > Mem::CANDIDATES;
        const bool findings = m.n_findings + THREADS > Mem::FINDINGS;
        __syncthreads();
        if (candidates)
            trim_candidates(step, bins);
        __syncthreads();
        if (findings)
            trim_findings();
        __syncthreads();
    }

    /* A part of the pairs is done: cut off what can be neither beam nor result any
     * more. Returns how many beams are left. */
    __device__ uint32_t limit(uint32_t step, uint32_t n_beams, const scale &bins)
    {
        if (threadIdx.x == 0)
            m.n_alive = 0;
        all.sync();
        find_border<false>(all, m.select, m.select.bins, q.beam);
        const int as_beam = step + 1 < q.n_steps ? (int)m.select.border : -1;
        __syncthreads();
        find_border<false>(all, m.select, m.select.ends, q.n_results);
        const int most = max(as_beam, (int)m.select.border);
        if (threadIdx.x == 0) {
            m.candidate_cut = min(m.candidate_cut, as_beam);
            m.finding_cut = (int)m.select.border;
        }
        const float best = key_float(m.proposals.best);
        uint32_t alive = 0;
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
        const uint32_t round = THREADS * PAIRS * all.size;
        uint32_t done = 0, to = total / (SAMPLE * SAMPLE);
        for (;;) {
            to = total - done < ROUNDS_TO_LIMIT * round ? total : max(to, done + round);
            expand(done, to, step, n_beams, bins);
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

    /* The team's best B candidates become the frontier of every block, best bin first;
     * the next position's proposals take the place of this one's. Returns how many.
     */
    __device__ uint32_t prune(uint32_t step, const scale &bins)
    {
        const beam *beams = m.beams[step % 2];
        const auto get = [&](uint32_t i) { return key_of(m.candidates[i], beams); };
        m.proposals.clear();
        all.sync();
        lap(FT_PHASE_SYNC);
        uint32_t total = 0;
#pragma unroll
        for (unsigned r = 0; r < MAX_TEAM; r++)
            total += r < all.size ? *all.at(&m.n_candidates, r) : 0;
        take_proposals(step + 1);
        const uint32_t n = m.n_candidates;
        const verdict<BINS> v =
            select_best<true>(all, m.select, m.select.bins, bins, n, q.beam, get);
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
        lap(FT_PHASE_PRUNING);
        for (uint32_t i = threadIdx.x; i < m.n_kept; i += THREADS) {
            const uint32_t at = m.kept[i] >> 16;
            const candidate c = m.candidates[m.kept[i] & 0xffff];
            const ft_range r = view.children(beams[c.beam].first + c.child, step + 1);
            fetch_edges_of(view, r.first, step + 1);
            const beam b = {r.first, (uint32_t)r.count, c.sum};
            for (unsigned to = 0; to < all.size; to++)
                all.at(m.beams[(step + 1) % 2], to)[at] = b;
            trace[(uint64_t)step * q.beam + at] = {c.token, c.beam};
        }
        lap(FT_PHASE_EXPANSION);
        all.sync();
        lap(FT_PHASE_SYNC);
        return min(total, q.beam);
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

    struct result {
        double score;
        uint64_t node;
        uint32_t token;
        uint16_t step, beam;
    };
    static_assert(sizeof(result) * Mem::ROOM <= sizeof(m.candidates), "reused");

    /* The team's best N findings, in every block's `best`, best bin first. Returns how
     * many. */
    __device__ uint32_t gather_results(result *best, scale *scores)
    {
        const auto get = [&](uint32_t i) { return key_of(m.findings[i]); };
        const uint32_t n = m.n_findings;
        clear_bins(m.select.bins, m.select);
        if (threadIdx.x == 0) {
            m.n_border = 0;
            m.best_sum = 0;
            m.worst_sum = ~0u;
        }
        __syncthreads();
        score_range(n, &m.best_sum, &m.worst_sum);
        all.sync();
        uint32_t high = 0, low = ~0u, total = 0;
        for (unsigned r = 0; r < all.size; r++) {
            total += *all.at(&m.n_findings, r);
            high = max(high, *all.at(&m.best_sum, r));
            low = min(low, *all.at(&m.worst_sum, r));
        }
        *scores = scale::over(key_float(high), key_float(low));
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            atomicAdd(&m.select.bins[scores->bin((float)get(i).value)], 1u);
        all.sync();
        const verdict<BINS> v = select_best<true>(all, m.select, m.select.bins, *scores,
                                                  n, q.n_results, get);
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const finding f = m.findings[i];
            const rank_key k = get(i);
            if (!v.keeps(k))
                continue;
            const uint32_t at =
                v.on_border(k)
                    ? v.above + atomicAdd(all.at(&m.n_border, 0), 1u)
                    : atomicAdd(&m.select.place[scores->bin((float)k.value)], 1u);
            const result one = {k.value, k.node, f.token, (uint16_t)f.step(),
                                (uint16_t)f.beam()};
            for (unsigned r = 0; r < all.size; r++)
                all.at(best, r)[at] = one;
        }
        all.sync();
        return min(total, q.n_results);
    }

    /* How many results go before number i: its bin's neighbours are compared. */
    __device__ uint32_t rank_of(const result *best, uint32_t i, uint32_t n,
                                const scale &scores) const
    {
        const rank_key mine = {best[i].score, best[i].node};
        const int bin = scores.bin((float)mine.value);
        uint32_t lo = i, better = 0;
        for (; lo > 0 && scores.bin((float)best[lo - 1].score) == bin; lo--)
            better += before({best[lo - 1].score, best[lo - 1].node}, mine);
        for (uint32_t j = i + 1; j < n && scores.bin((float)best[j].score) == bin; j++)
            better += before({best[j].score, best[j].node}, mine);
        return lo + better;
    }

    /* Order the results, reserve the record and write it: paper Appendix D.3.
     * Ascending, so the best is the last. */
    __device__ void answer()
    {
        result *best = reinterpret_cast<result *>(m.candidates);
        scale scores;
        const uint32_t n = gather_results(best, &scores);
        lap(FT_PHASE_PRUNING);
        uint32_t *order = m.pairs_before, *lengths = m.kept; /* by place */
        const uint32_t step = THREADS * all.size;
        for (uint32_t i = all.rank * THREADS + threadIdx.x; i < n; i += step) {
            const uint32_t place = n - 1 - rank_of(best, i, n, scores);
            for (unsigned r = 0; r < all.size; r++) {
                all.at(lengths, r)[place] = best[i].step + 1;
                all.at(order, r)[place] = i;
            }
        }
        all.sync();
        uint32_t length[EACH], total;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t place = threadIdx.x * EACH + i;
            length[i] = place < n ? lengths[place] : 0;
        }
        cub::BlockScan<uint32_t, THREADS>(m.select.scan)
            .ExclusiveSum(length, length, total);
        uint32_t *tokens_before = lengths;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t place = threadIdx.x * EACH + i;
            if (place < n)
                tokens_before[place] = length[i];
        }
        const uint64_t bytes = 8 + 16ull * n + 4ull * total;
        if (all.rank == 0 && threadIdx.x == 0) {
            /* Records lie at multiples of 8. */
            const uint64_t at = atomicAdd(q.out_used, (bytes + 7) / 8 * 8) - q.out_base;
            for (unsigned r = 0; r < all.size; r++)
                *all.at(&m.record, r) = at;
            q.records[m.query] = {at, bytes};
        }
        __syncthreads();
        write_record(best, n, order, tokens_before);
        all.sync();
        /* Over the bus in whole lines. */
        const uint64_t *from = reinterpret_cast<const uint64_t *>(scratch);
        uint64_t *to = reinterpret_cast<uint64_t *>(q.out + m.record);
        for (uint64_t i = all.rank * THREADS + threadIdx.x; i < (bytes + 7) / 8;
             i += step)
            to[i] = from[i];
        lap(FT_PHASE_SYNC);
    }

    __device__ void write_record(const result *best, uint32_t n, const uint32_t *order,
                                 const uint32_t *tokens_before) const
    {
        uint8_t *record = scratch;
        double *scores = reinterpret_cast<double *>(record + 8);
        uint64_t *ends = reinterpret_cast<uint64_t *>(record + 8 + 8ull * n);
        uint32_t *tokens = reinterpret_cast<uint32_t *>(record + 8 + 16ull * n);
        if (all.rank == 0 && threadIdx.x == 0)
            *reinterpret_cast<uint64_t *>(record) = n;
        for (uint32_t place = all.rank * THREADS + threadIdx.x; place < n;
             place += THREADS * all.size) {
            const result &f = best[order[place]];
            const uint32_t at = tokens_before[place];
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

    __device__ void run()
    {
        if (TIMED && threadIdx.x == 0)
            lap_at = clock64();
        fetch_proposals(0);
        m.proposals.clear();
        if (threadIdx.x == 0) {
            const ft_range r = view.children(0, 0);
            m.beams[0][0] = {r.first, (uint32_t)r.count, 0};
            m.n_findings = 0;
            m.finding_bound = 0;
        }
        fetch_codes(0);
        __syncthreads();
        take_proposals(0);
        fetch_proposals(1);
        uint32_t n_beams = 1;
        for (uint32_t step = 0; step < q.n_steps && n_beams; step++) {
            const long long start = clock64();
            norm = q.norm[step + 1];
            begin_step(step, n_beams);
            fetch_codes(step + 1);
            fetch_proposals(step + 2);
            lap(FT_PHASE_SYNC);
            const scale bins = sum_scale();
            extend(step, n_beams, bins);
            const uint32_t n_kept = step + 1 < q.n_steps ? prune(step, bins) : 0;
            note_stats(step, n_beams, n_kept, start);
            n_beams = n_kept;
        }
        __syncthreads();
        answer();
        if (TIMED && threadIdx.x == 0 && all.rank == 0)
            for (int i = 0; i < FT_N_PHASES; i++) {
                q.phases[(uint64_t)m.query * FT_N_PHASES + i] = laps[i];
                laps[i] = 0;
            }
    }
};

/* BLOCKS: that a multiprocessor is to hold. */
template <class View, int THREADS, int ROOM, int BLOCKS, bool TIMED>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    search(const __grid_constant__ View view, const __grid_constant__ ft_gpu_question q)
{
    typedef memory<THREADS, ROOM> mem;
    extern __shared__ __align__(16) unsigned char raw[];
    mem &m = *reinterpret_cast<mem *>(raw);
    const team all = team::whole();
    all.sync(); /* shared memory of a block exists once it runs */
    const uint64_t number = blockIdx.x / all.size;
    searcher<View, mem, TIMED> s = {view,
                                    q,
                                    m,
                                    all,
                                    q.trace + number * q.n_steps * q.beam,
                                    q.scratch + number * q.scratch_bytes};
    for (;;) {
        if (all.rank == 0 && threadIdx.x == 0) {
            const uint32_t next = atomicAdd(q.next_ticket, 1u) - q.first_ticket;
            for (unsigned r = 0; r < all.size; r++)
                *all.at(&m.query, r) = next;
        }
        all.sync();
        if (m.query >= q.n_queries)
            return; /* nobody touches this block's memory any more */
        s.run();
        all.sync();
    }
}

} // namespace ft

#endif
