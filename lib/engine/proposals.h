/* SPDX-License-Identifier: Apache-2.0
 *
 * The proposals of one position as a set: admitted tokens, each once with its highest
 * log-prob, best first, and a hash over them. Every beam of a step joins with the same
 * set, so it is built once a position.
 */
#ifndef FT_ENGINE_PROPOSALS_H
#define FT_ENGINE_PROPOSALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/score.h"
#include "base/status.h"
#include "engine/code_memo.h"

typedef struct ft_proposal {
    uint32_t token;
    uint32_t code; /* what the trie stores for it on the edges of the level */
    float logp;
} ft_proposal;

typedef struct ft_proposal_slot {
    uint32_t code;  /* FT_NO_TOKEN: empty */
    uint32_t place; /* in the list */
} ft_proposal_slot;

typedef struct ft_proposals {
    uint32_t n;
    ft_proposal *list; /* n of them, best first */

    /* A bit for each code's hash: rules out nearly every edge without a look at the
     * table. 32 to 64 bits a proposal, so it stays in the first-level cache. */
    uint64_t *filter;
    unsigned filter_shift; /* hash >> filter_shift is the bit's number */

    ft_proposal_slot *slots; /* open addressing, at most half full */
    unsigned slot_shift;
    uint32_t slot_mask;

    uint32_t cap; /* room, in proposals */
} ft_proposals;

static inline uint32_t ft_code_hash(uint32_t code)
{
    return code * UINT32_C(0x9E3779B1); /* the golden ratio: top bits mix */
}

/* Could `code` be proposed? A false positive is possible, a false negative is not. */
static inline bool ft_proposals_may_have(const ft_proposals *p, uint32_t code)
{
    const uint32_t bit = ft_code_hash(code) >> p->filter_shift;
    return p->filter[bit / 64] >> (bit % 64) & 1;
}

/* The proposal with `code`, or NULL. */
static inline const ft_proposal *ft_proposals_find(const ft_proposals *p, uint32_t code)
{
    uint32_t i = ft_code_hash(code) >> p->slot_shift;
    while (p->slots[i].code != code) {
        if (p->slots[i].code == FT_NO_TOKEN)
            return NULL;
        i = (i + 1) & p->slot_mask;
    }
    return &p->list[p->slots[i].place];
}

/* Places i of codes[0 .. n) that may be proposed, ascending, into hits (room for n);
 * returns how many. */
uint32_t ft_proposals_filter(const ft_proposals *p, const uint32_t *codes, uint32_t n,
                             uint32_t *hits);

/* Build the set of n slots for edges into nodes of `level`: left out are empty slots,
 * those not above the threshold, and tokens that the trie has nowhere on that level. */
ft_status ft_proposals_build(ft_proposals *p, const ft_code_memo *memo, uint32_t level,
                             const uint32_t *tokens, const float *logp, uint32_t n,
                             float token_threshold, ft_error *err);
void ft_proposals_free(ft_proposals *p);

#endif
