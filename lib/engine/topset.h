/* SPDX-License-Identifier: Apache-2.0
 *
 * A bounded set of candidates: keeps the best `want` of all that were pushed, in the
 * order of base/score.h. Candidates are appended; when the buffer is full, quickselect
 * keeps the best and raises the bound below which nothing can enter. The amortised cost
 * of a candidate is constant (paper Section 2.2 replaces the heap likewise). Selection
 * runs over 64-bit keys of a score rounded to binary32 and a place; only candidates
 * that share the border's rounded score are compared in full.
 */
#ifndef FT_ENGINE_TOPSET_H
#define FT_ENGINE_TOPSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/score.h"
#include "base/status.h"
#include "trie/trie.h"

/* A beam candidate (score is its running sum, exact in binary64) or a result. */
typedef struct ft_candidate {
    double score;
    uint64_t node;
    uint32_t parent; /* index of the beam that it extends */
    uint32_t token;
    uint32_t step;
} ft_candidate;

enum { FT_TOPSET_ROOM = 1024 }; /* least room between trims, for all sets together */

typedef struct ft_topset {
    ft_candidate *items; /* the first n, in no order */
    uint64_t n, cap;
    uint64_t want, limit; /* trim to `want` when n reaches `limit` */

    /* Of n sets for the same best `want`, each has a part of want / n items that are no
     * worse than its part_bound (-inf: not yet). So nothing that is below all n of
     * these bounds can enter any of them. */
    uint64_t part;
    double part_bound;
    double bound; /* once full: the worst kept; else -inf; nothing below enters */
    uint64_t bound_node; /* ties beyond it cannot enter */
    const ft_trie *trie; /* settles ties; NULL: the order of nodes does */
    ft_candidate *spare; /* cap of them, for trims */
    uint64_t *keys;      /* twice as many */
    uint64_t cap_spare;
} ft_topset;

/* Does a go before b? Both have the same score; nodes do not tell. */
bool ft_topset_before(const ft_topset *s, const ft_candidate *a, const ft_candidate *b);

static inline bool ft_topset_better(const ft_topset *s, const ft_candidate *a,
                                    const ft_candidate *b)
{
    if (s->trie && a->score == b->score)
        return ft_topset_before(s, a, b);
    return ft_result_better(a->score, a->node, b->score, b->node);
}

/* The candidates will be nodes of this trie. */
static inline void ft_topset_use(ft_topset *s, const ft_trie *trie)
{
    s->trie = trie->level_order ? NULL : trie;
}

/* Empty the set, which is to keep the best want >= 1 of all that n_sets sets get. */
void ft_topset_reset_one(ft_topset *s, uint64_t want, uint32_t n_sets);

static inline void ft_topset_reset(ft_topset *s, uint64_t want)
{
    ft_topset_reset_one(s, want, 1);
}

/* It has become known that nothing below `bound` is among the best. */
static inline void ft_topset_raise(ft_topset *s, double bound)
{
    if (bound > s->bound) {
        s->bound = bound;
        s->bound_node = UINT64_MAX;
    }
}

/* Make room for n <= FT_TOPSET_ROOM more, trimming or growing. */
ft_status ft_topset_reserve(ft_topset *s, uint64_t n, ft_error *err);

/* Add c, unless it cannot enter. */
static inline ft_status ft_topset_push(ft_topset *s, const ft_candidate *c,
                                       ft_error *err)
{
    if (c->score < s->bound || (c->score == s->bound && c->node > s->bound_node))
        return FT_OK;
    if (s->n == s->cap || s->n >= s->limit) {
        const ft_status st = ft_topset_reserve(s, 1, err);
        if (st != FT_OK)
            return st;
    }
    s->items[s->n++] = *c;
    return FT_OK;
}

/* Add c if it is `wanted` and can enter, without a branch: half of them are not. There
 * is room. */
static inline void ft_topset_put(ft_topset *s, const ft_candidate *c, bool wanted)
{
    const bool above = c->score > s->bound;
    const bool level = c->score == s->bound && c->node <= s->bound_node;
    s->items[s->n] = *c;
    s->n += wanted & (above | level);
}

/* Add the candidates of `from`. */
ft_status ft_topset_merge(ft_topset *s, const ft_topset *from, ft_error *err);

/* Drop all but the best `want`. */
ft_status ft_topset_trim(ft_topset *s, ft_error *err);

/* Order the items, best first. */
ft_status ft_topset_sort(ft_topset *s, ft_error *err);
void ft_topset_free(ft_topset *s);

#endif
