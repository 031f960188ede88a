/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch is asked, as plain structs that go to the kernel by value. All pointers
 * are the device's.
 */
#ifndef FT_GPU_QUESTION_H
#define FT_GPU_QUESTION_H

#include <stdint.h>

#include "lib.h"

enum { FT_GPU_ROOM_SMALL = 128, FT_GPU_ROOM_LARGE = 1024 };

/* How a launch spends the chip. */
typedef struct ft_gpu_plan {
    uint32_t room;    /* FT_GPU_ROOM_SMALL or _LARGE: B, K and N are at most this; 0:
                         the grid-wide form */
    uint32_t cluster; /* blocks a query */
    bool for_latency; /* a block has a multiprocessor to itself */
    uint32_t n_teams; /* queries at a time; room 0: launches that share the chip */
    uint32_t trace_beams;   /* that a team's trace has room for, at least; or 0 */
    uint64_t finding_bytes; /* of device memory for a team's results, or 0 */
    bool tells;             /* see ft_gpu_record */
} ft_gpu_plan;

/* How beam i of the frontier after a step came about. */
typedef struct ft_gpu_trace {
    uint32_t token;
    uint32_t beam; /* of the frontier before */
} ft_gpu_trace;

/* Where a query's wire record lies in the output. Each block of the query's team says
 * so of the whole. bytes is never 0; where the plan tells, it is written last: who sees
 * those of all blocks can read the record. */
typedef struct ft_gpu_record {
    uint64_t at, bytes;
} ft_gpu_record;

typedef struct ft_gpu_step_stats {
    unsigned long long beams, probes, candidates, kept, cycles;
} ft_gpu_step_stats;

typedef struct ft_gpu_question {
    const uint32_t *tokens; /* [n_queries][n_steps][n_proposals] */
    const float *logp;
    uint32_t n_queries, n_steps, n_proposals;
    uint32_t first_query; /* of the grid-wide form's part, which has n_queries */
    uint32_t beam, n_results;
    float token_threshold, sentence_threshold;
    const double *norm;    /* n_steps + 1 */
    ft_gpu_trace *trace;   /* n_steps * max(beam, the plan's trace_beams) a team */
    uint32_t *next_ticket; /* only grows: the team that draws first_ticket gets the
                              first query that no team began with */
    uint32_t first_ticket;
    uint8_t *out; /* record_bytes a query, as many as its record may have */
    uint64_t record_bytes;
    ft_gpu_record *records;   /* [n_queries][blocks of a team] */
    ft_gpu_step_stats *stats; /* n_queries * n_steps, zeroed; or NULL */

    /* n_queries * FT_N_PHASES, in cycles, or NULL: an instrumented kernel fills it. */
    unsigned long long *phases;

    void *findings; /* the plan's finding_bytes a team */
} ft_gpu_question;

enum {
    /* Candidates, and results, that all grid-wide kernels of a time have room for
     * beside those that they keep. */
    FT_GPU_SPARE_ITEMS = 4 << 20,
    FT_GPU_WIDE_BLOCKS = 4096, /* of a launch, at most */
    FT_GPU_WIDE_BINS = 2048,   /* of a selection */
    FT_GPU_WIDE_RANKED = 8192, /* items that a selection can rank, or more */
    FT_GPU_COUNTER_BYTES = 128 /* of ft_gpu_wide.counters */
};

/* A candidate or result of the grid-wide search. */
typedef struct ft_gpu_wide_item {
    double value;
    uint64_t node;
    uint32_t token, beam, step, zero;
} ft_gpu_wide_item;

/* An item to be ranked: its key, and its number. */
typedef struct ft_gpu_wide_rank {
    double value;
    uint64_t node;
    uint32_t item, zero;
} ft_gpu_wide_rank;

/* Device memory of the grid-wide search. */
typedef struct ft_gpu_wide {
    float *sums; /* the frontier: beam of each */
    ft_range *children;
    uint64_t *before;                                /* pairs before each beam */
    uint32_t *codes, *tokens;                        /* n_proposals */
    uint32_t *slot_code, *slot_logp, *slot_proposal; /* slot_mask + 1 */
    uint32_t slot_mask;
    ft_gpu_wide_item *candidates, *findings; /* the caps */
    uint64_t cap_candidates, cap_findings;   /* beam, n_results and some more */
    ft_gpu_wide_item *kept;                  /* the larger of beam and n_results */
    ft_gpu_wide_rank *ranked;                /* cap_ranked: n_results and more */
    uint64_t cap_ranked;
    uint32_t *order;      /* n_results */
    uint32_t *bins;       /* 3 * FT_GPU_WIDE_BINS */
    uint64_t *block_sums; /* FT_GPU_WIDE_BLOCKS */
    void *counters;
} ft_gpu_wide;

/* A step where each beam has its own proposals. The question gives beam, n_results and
 * thresholds, and nothing else. */
typedef struct ft_gpu_extension_slot {
    unsigned long long child; /* all ones: empty */
    uint32_t logp;            /* ft_float_key of the highest */
    uint32_t beam, token, zero;
} ft_gpu_extension_slot;

typedef struct ft_gpu_extension {
    const uint64_t *nodes; /* the frontier */
    const float *sums;
    uint64_t n_beams;
    const uint32_t *tokens; /* [n_beams][n_proposals] */
    const float *logp;
    uint32_t n_proposals, step;
    double norm; /* of results of this step */
    ft_gpu_extension_slot *slots;
    uint64_t slot_mask;        /* 31 and up; at most half of them will be taken */
    unsigned long long *found; /* candidates and findings, left in ft_gpu_wide */
} ft_gpu_extension;

#endif
