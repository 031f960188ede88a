/* SPDX-License-Identifier: Apache-2.0
 *
 * The proposals of one position as a set: admitted tokens, each once with its highest
 * log-prob, best first, and an index of their codes. Every beam of a step joins with
 * the same set, so it is built once a position.
 */
#ifndef FT_ENGINE_PROPOSALS_H
#define FT_ENGINE_PROPOSALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/score.h"
#include "base/status.h"
#include "engine/code_memo.h"
#include "trie/probe.h"

typedef struct ft_proposal {
    uint32_t token;
    uint32_t code; /* what the trie stores for it on the edges of the level */
    float logp;
} ft_proposal;

/* Slots are in the order of the low 16 bits of codes, which the filter has a bit for:
 * the slot of one is the rank of its bit. Those that share their low bits are chained.
 */
typedef struct ft_proposal_slot {
    ft_proposal p;
    uint32_t next; /* slot with the same low bits, or FT_NO_TOKEN */
} ft_proposal_slot;

typedef struct ft_proposals {
    uint32_t n;
    ft_proposal *list; /* n of them, best first */

    /* Rules out nearly every edge without a look at the slots (trie/probe.h). */
    uint64_t filter[FT_FILTER_WORDS];
    uint16_t before[FT_FILTER_WORDS]; /* bits of the filter before each word */
    ft_proposal_slot *slots;          /* first those by rank, then the chained */

    uint64_t *keys; /* twice as many as there is room for: to sort by */
    uint32_t cap;   /* room, in proposals */
} ft_proposals;

/* The slot of a code whose bit is in the filter. */
static inline uint32_t ft_proposals_rank(const ft_proposals *p, uint32_t code)
{
    const uint32_t word = code / 64 % FT_FILTER_WORDS;
    const uint64_t below = p->filter[word] & ((UINT64_C(1) << code % 64) - 1);
    return p->before[word] + ft_popcount(below);
}

/* The proposal with `code`, which the filter lets through, or one with another code. */
static inline const ft_proposal *ft_proposals_find(const ft_proposals *p, uint32_t code)
{
    const ft_proposal_slot *s = &p->slots[ft_proposals_rank(p, code)];
    while (s->next != FT_NO_TOKEN && s->p.code != code) /* few are chained */
        s = &p->slots[s->next];
    return &s->p;
}

/* Build the set of n slots for edges into nodes of `level`: left out are empty slots,
 * those not above the threshold, and tokens that the trie has nowhere on that level. */
ft_status ft_proposals_build(ft_proposals *p, const ft_code_memo *memo, uint32_t level,
                             const uint32_t *tokens, const float *logp, uint32_t n,
                             float token_threshold, ft_error *err);
void ft_proposals_free(ft_proposals *p);

#endif
