/* SPDX-License-Identifier: Apache-2.0
 *
 * What a block of the search kernel keeps in shared memory, by what it is for:
 *
 *   HASTY    alone with a small query and a multiprocessor: for latency
 *   SPARING  alone with a large query, and leaving room for a second block: for
 *            throughput. Some of its memory is in device memory, some used twice.
 *   SHARING  one of a cluster, which shares a large query: for latency
 *   else     a small one of several on a multiprocessor
 */
#ifndef FT_GPU_BLOCK_MEMORY_CUH
#define FT_GPU_BLOCK_MEMORY_CUH

#include "position.cuh"
#include "question.h"
#include "select.cuh"
#include "views.cuh"

namespace ft
{

struct __align__(16) beam
{                   /* one access */
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
static_assert(sizeof(beam) == sizeof(candidate), "one takes the other's place");

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

/* What a block tells the others before the results are gathered. */
struct __align__(16) report
{
    uint32_t n_findings, best, worst; /* keys of scores */
    uint32_t most_beams;              /* of its own, after a step apart */
};

/* A beam of the border bin, of which not all stay: see prune(). Its key is the item of
 * the same number in select.list. */
struct contender {
    beam b;
    ft_gpu_trace from;
};

/* A pair whose code passed the filter. */
struct queued {
    uint32_t child, code;
    uint32_t beam_hint; /* the edge's hint above the beam */
};

/* A hint: `child` is a proposal, the child is to be found. */
enum { SEARCH_HUB = EDGE_UNKNOWN + 1 };

/* The pairs that a warp of a SPARING block has in hand: a run of them, so that the next
 * one's beam is known. In shared memory, since registers are scarce; lane 0 writes. */
struct pair_run {
    uint32_t x, end, to; /* the next pair; the end of the run, and of all */
    uint32_t first;      /* beam of pair x, within a run; else NO_BEAM */
    uint32_t n_beams, step, level, length;
    bool all_flags;

    enum : uint32_t { NO_BEAM = ~0u };
};

enum {
    LONG_RUN = 128, /* pairs */
    SHORT_RUN = 32, /* where there are no more pairs than LONG_ROUNDS of all threads */
    LONG_ROUNDS = 16
};

template <int THREADS_, int ROOM_, bool SPARING_ = false> struct memory {
    enum {
        THREADS = THREADS_,
        ROOM = ROOM_,
        SPARING = SPARING_,
        WARPS = THREADS / 32,
        EACH = (ROOM + THREADS - 1) / THREADS, /* beams a thread */
        LANE_EACH = 4,                         /* beams a lane of a warp that has all */
        HASTY = THREADS >= 4 * ROOM,           /* for the latency of a query */
        SHARING = ROOM > THREADS && !SPARING,
        TRACED = HASTY ? 32 : 0, /* steps whose trace is kept here */
        TRACES = HASTY ? TRACED * ROOM : 1,
        TELLS = HASTY || SHARING, /* see ft_gpu_record */
        NEAR = SHARING ? 128 : 1, /* beams of a block that goes on apart */
        NEAR_PAIRS = 1024,        /* of such a block and a step, at most */
        TRACE_BEAMS = SHARING ? MAX_TEAM * NEAR : 0, /* at least, in device memory */
        /* Threads that do not feed: see prune(). HASTY: the last ROOM of them scout. */
        SETTLERS = HASTY     ? THREADS - ROOM
                   : SHARING ? THREADS / 2
                             : 128,
        FEEDERS = THREADS - SETTLERS,
        FEED_EACH = (ROOM + FEEDERS - 1) / FEEDERS, /* proposals a feeder */
        BINS = THREADS,
        /* Those of a border bin: more are a crowd. */
        CONTENDERS = SHARING ? select_memory<THREADS, BINS, true>::LIST : 0,
        FRONTIERS = SPARING ? 1 : 2,
        AHEAD = SPARING ? 1 : 2, /* positions that proposals are fetched ahead */
        JOINS = HASTY ? 2 : 1,   /* runs of pairs that a warp may join at a time */
        QUEUE = 32 + 32 * JOINS, /* matches of a warp that wait to be looked at */
        /* Room for what is kept, for all warps' next looks and as many again. */
        CANDIDATES = ROOM + 2 * THREADS + (SPARING ? 352 : 0), /* more: what is left */
        FINDINGS = SPARING ? 6 * ROOM : CANDIDATES /* ample, which saves trims */
    };
    static_assert(ROOM <= 1 << finding::BEAM_BITS && THREADS <= 1024, "fields, room");
    static_assert(!HASTY || (ROOM <= 32 * LANE_EACH && ROOM <= FEEDERS && !SPARING),
                  "few beams");

    candidate candidates[CANDIDATES];         /* at the end: the team's best results */
    finding findings[SPARING ? 1 : FINDINGS]; /* SPARING: in device memory */
    beam beams[FRONTIERS][ROOM]; /* the frontier, the same in every block; by step */
    /* Before each beam. HASTY: of each beam, by the step's parity. */
    __align__(16) uint32_t pairs[HASTY ? 2 : 1][ROOM + (HASTY ? 4 : 1)];
    position<ROOM> proposals[HASTY || SHARING ? 2 : 1]; /* by the step's parity */
    struct {
        beam beams[NEAR];
        __align__(16) uint32_t pairs[NEAR]; /* of each beam */
    } near[SHARING ? 2 : 1]; /* this block's own frontier, by the step's parity */
    uint32_t n_near[3];      /* by step, modulo 3 */
    report reports[SHARING ? MAX_TEAM : 1];
    contender contenders[SHARING ? CONTENDERS : 1]; /* the same in every block */
    union {
        queued queue[WARPS][QUEUE];
        struct {
            uint32_t kept[ROOM + CONTENDERS]; /* this block's: candidate, place in the
                                                 frontier */
            uint32_t raw[SPARING ? ROOM : 1]; /* SPARING: raw_ahead */
        };
    };
    pair_run runs[SPARING ? WARPS : 1];
    uint32_t n_dealt; /* of the step's pairs, to SPARING warps */
    uint32_t tokens_ahead[AHEAD][ROOM], raw_ahead[SPARING ? 1 : ROOM];
    float logp_ahead[AHEAD][ROOM]; /* by position */
    select_memory<THREADS, BINS, SHARING> select;
    uint32_t n_findings, n_kept;
    uint32_t n_border; /* items of the border bin that have a place */
    uint32_t n_candidates[HASTY ? 3 : 1]; /* HASTY: by step, modulo 3 */
    uint32_t best_sum[2], worst_sum[2];   /* keys, of beams; by the step's parity */
    uint32_t best_score, worst_score;     /* keys; see note_scores() */
    uint32_t n_alive;
    int candidate_cut, finding_cut; /* bins behind these are hopeless */
    double finding_bound;           /* a score: below is hopeless */
    uint32_t slice_from, slice_to;  /* results that this block orders, by place */
    uint32_t tokens_of[MAX_TEAM];   /* in each block's slice */
    uint32_t ticket;                /* block 0's: of the team's next query */
    ft_gpu_trace trace[TRACES];
    unsigned long long n_probes, n_admitted;
};

} // namespace ft

#endif
