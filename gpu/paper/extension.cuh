/* SPDX-License-Identifier: Apache-2.0
 *
 * A beam in the hands of a block: its proposals, its children, and where its extensions
 * go. What a Match (match_*.cu) works with:
 *
 *     Match::extend(x)    for each proposal that x admits and that a child has,
 *                         x.append; every thread of the block calls it
 */
#ifndef FT_GPU_PAPER_EXTENSION_CUH
#define FT_GPU_PAPER_EXTENSION_CUH

#include <cub/block/block_scan.cuh>

#include "tournament.cuh"
#include "trie_view.cuh"

namespace ft::paper
{

enum {
    SORTED_IN_BLOCK = 1024, /* proposals of a position, in shared memory */
    CACHED_LABELS = 4096    /* of children, in shared memory (Appendix J) */
};

typedef cub::BlockScan<uint64_t, THREADS> end_scan;

struct block_memory {
    union { /* one after another, with barriers between */
        uint64_t proposals[SORTED_IN_BLOCK];
        uint32_t labels[CACHED_LABELS];
        tile_memory tiles;
        typename end_scan::TempStorage scan;
    };
    ft_range children[2]; /* of a beam and of the next */
    ft_paper_slot slot;
};

static __device__ inline uint64_t pack_proposal(uint32_t token, float logp)
{
    return (uint64_t)token << 32 | (uint32_t)~ft_float_key(logp);
}

static __device__ inline uint32_t proposal_token(uint64_t p)
{
    return (uint32_t)(p >> 32);
}

static __device__ inline float proposal_logp(uint64_t p)
{
    const uint32_t key = ~(uint32_t)p;
    return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

/* A place of its own for each thread that calls this, with an atomic a warp. */
static __device__ inline uint32_t take_place(uint32_t *counter)
{
    const auto callers = cooperative_groups::coalesced_threads();
    uint32_t first = 0;
    if (callers.thread_rank() == 0)
        first = atomicAdd(counter, callers.size());
    return callers.shfl(first, 0) + callers.thread_rank();
}

template <class View, bool Timed> struct extension {
    const View &view;
    const ft_paper_question &q;
    block_memory &m;
    stopwatch<Timed> watch;
    uint32_t step;
    const uint64_t *proposals; /* of the position, q.n_proposals */
    uint32_t n_probes, n_candidates;

    /* the beam */
    uint32_t beam, rank; /* among the frontier's sequences */
    uint64_t node;
    float sum;
    ft_range children; /* of one that is in no link */

    /* Alg. 3, line 7: is proposal k admitted? */
    __device__ bool admits(uint32_t k, uint32_t *token, float *sum_after)
    {
        const uint64_t p = proposals[k];
        *token = proposal_token(p);
        const bool yes = ft_admit(sum, proposal_logp(p), q.token_threshold,
                                  q.sentence_threshold, sum_after);
        watch.charge(FT_PHASE_VALIDATION);
        return yes;
    }

    /* Alg. 2, lines 10 to 19: to `selected`, to `next`, or to both, where a key is
     * another's prefix. */
    __device__ void append(uint32_t token, float sum_after, const arrival &a)
    {
        const ft_paper_slot &s = m.slot;
        const uint64_t order = (uint64_t)step << 48 | (uint64_t)rank << 32 | token;
        n_candidates++;
        if (a.terminal)
            s.selected[take_place(&s.counters->n_found)] = {
                (double)sum_after * q.norm[step + 1], order, 0, beam, 0};
        if (a.goes_on && step + 1 < q.n_steps)
            s.next[take_place(&s.counters->n_next[step % 2])] = {
                (double)sum_after, order, a.node, beam, 0};
        watch.charge(FT_PHASE_VALIDATION);
    }

    /* The same for a child that a Match has found. */
    __device__ void append_child(uint32_t token, float sum_after, uint64_t child)
    {
        append(token, sum_after, view.enter(child, step));
    }

    /* Decode the labels of children from .. from + n - 1, n <= CACHED_LABELS, into
     * shared memory, each once. */
    __device__ void cache_labels(uint64_t from, uint32_t n)
    {
        for (uint32_t i = threadIdx.x; i < n; i += THREADS)
            m.labels[i] = view.label(children.first + from + i);
        __syncthreads();
        watch.charge(FT_PHASE_EXPANSION);
    }
};

} // namespace ft::paper

#endif
