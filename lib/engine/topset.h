/* SPDX-License-Identifier: Apache-2.0
 *
 * A bounded set of candidates: keeps the best `want` of all that were pushed, in the
 * order of base/score.h. Candidates are appended; when the buffer is full, quickselect
 * keeps the best and raises the bound below which nothing can enter. The amortised cost
 * of a candidate is constant (paper Section 2.2 replaces the heap likewise).
 */
#ifndef FT_ENGINE_TOPSET_H
#define FT_ENGINE_TOPSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/score.h"
#include "base/status.h"

/* A beam candidate (score is its running sum, exact in binary64) or a result. */
typedef struct ft_candidate {
    double score;
    uint64_t node;
    uint32_t parent; /* index of the beam that it extends */
    uint32_t token;
    uint32_t step;
} ft_candidate;

typedef struct ft_topset {
    ft_candidate *items; /* the first n, in no order */
    uint64_t n, cap;
    uint64_t want, limit; /* trim to `want` when n reaches `limit` */
    double bound;         /* once full: the worst kept; else -inf */
    uint64_t bound_node;
} ft_topset;

static inline bool ft_candidate_better(const ft_candidate *a, const ft_candidate *b)
{
    return ft_result_better(a->score, a->node, b->score, b->node);
}

/* Empty the set, which is to keep the best want >= 1. */
void ft_topset_reset(ft_topset *s, uint64_t want);

/* Can a candidate with this score still enter? False is final. */
static inline bool ft_topset_admits(const ft_topset *s, double score)
{
    return score >= s->bound;
}

/* Add c, unless it cannot enter. */
ft_status ft_topset_push(ft_topset *s, const ft_candidate *c, ft_error *err);

/* Move the candidates of `from` into s. */
ft_status ft_topset_merge(ft_topset *s, const ft_topset *from, ft_error *err);

/* Drop all but the best `want`. */
void ft_topset_trim(ft_topset *s);

/* Order the items, best first. */
void ft_topset_sort(ft_topset *s);
void ft_topset_free(ft_topset *s);

#endif
