/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch of the paper's kernel is asked, as plain structs. All pointers are the
 * device's.
 */
#ifndef FT_GPU_PAPER_QUESTION_H
#define FT_GPU_PAPER_QUESTION_H

#include "../question.h"

/* A beam that is to come, or a result. Among equal scores `order` decides as the
 * contract wants it (base/score.h): the step, then the parent's rank among the
 * sequences of its frontier, then the token, from the top 16 + 16 + 32 bits. No node
 * numbers are needed, which say nothing where tails are shared. */
typedef struct ft_paper_state {
    double score;   /* a beam's sum, or a result's score */
    uint64_t order; /* step << 48 | parent's rank << 32 | token */
    uint64_t node;  /* where a beam stands, as its trie puts it */
    uint32_t parent;
    uint32_t zero;
} ft_paper_state;

/* What is sorted: a state's score and its number. */
typedef struct ft_paper_item {
    double score;
    uint32_t state, zero;
} ft_paper_item;

enum {
    FT_PAPER_MAX_BEAM = 65536,       /* ranks take 16 bits */
    FT_PAPER_MAX_STEPS = UINT16_MAX, /* so do steps */
    FT_PAPER_MAX_SLOTS = 32          /* queries at a time: the paper's largest batch */
};

typedef struct ft_paper_counters {
    uint32_t arrived;   /* at the barrier, all told */
    uint32_t n_next[2]; /* by the step's parity */
    uint32_t n_found;
    unsigned long long n_probes, n_candidates; /* of the step, where counted */
} ft_paper_counters;

/* Memory of one partition of the grid (Appendix D: per-batch search state). */
typedef struct ft_paper_slot {
    uint64_t *proposals; /* [n_steps][n_sorted]: token << 32 | ~(key of the log-prob) */
    uint64_t *nodes;     /* the frontier: beam of each */
    uint64_t *orders;
    float *sums;
    ft_paper_state *next;     /* cap_next */
    ft_paper_state *selected; /* cap_selected */
    ft_paper_item *items[2];  /* the larger of the two */
    ft_gpu_trace *history;    /* [n_steps][beam] */
    uint64_t *ends;           /* n_results */
    ft_paper_counters *counters;
} ft_paper_slot;

typedef struct ft_paper_question {
    const uint32_t *tokens; /* [n_queries][n_steps][n_proposals] */
    const float *logp;
    uint32_t n_queries, n_steps, n_proposals;
    uint32_t n_sorted; /* the power of two at or above n_proposals */
    uint32_t beam, n_results;
    float token_threshold, sentence_threshold;
    const double *norm; /* n_steps + 1 */
    uint32_t n_slots;   /* partitions of the grid */
    const ft_paper_slot *slots;

    /* No step makes more than cap_next states of either kind, and `selected` has room
     * for n_results beside them. */
    uint32_t cap_next, cap_selected;
    uint8_t *out; /* record i is at i * record_room */
    uint64_t record_room;
    uint64_t *record_bytes;     /* n_queries */
    ft_gpu_step_stats *stats;   /* [n_queries][n_steps], zeroed; or NULL */
    unsigned long long *phases; /* [n_queries][FT_N_PHASES] cycles; timed kernels */
} ft_paper_question;

#endif
