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
#include "trie/probe.h"

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

    /* Rules out nearly every edge without a look at the table (trie/probe.h). */
    uint64_t filter[FT_FILTER_WORDS];

    ft_proposal_slot *slots; /* open addressing, at most half full */
    unsigned slot_shift;
    uint32_t slot_mask;

    uint32_t cap; /* room, in proposals */
} ft_proposals;

static inline uint32_t ft_code_hash(uint32_t code)
{
    return code * UINT32_C(0x9E3779B1); /* the golden ratio: top bits mix */
}

/* Place in the list of the proposal with `code`, or FT_NO_TOKEN. */
static inline uint32_t ft_proposals_find(const ft_proposals *p, uint32_t code)
{
    uint32_t i = ft_code_hash(code) >> p->slot_shift;
    while (p->slots[i].code != code) {
        if (p->slots[i].code == FT_NO_TOKEN)
            return FT_NO_TOKEN;
        i = (i + 1) & p->slot_mask;
    }
    return p->slots[i].place;
}

/* Build the set of n slots for edges into nodes of `level`: left out are empty slots,
 * those not above the threshold, and tokens that the trie has nowhere on that level. */
ft_status ft_proposals_build(ft_proposals *p, const ft_code_memo *memo, uint32_t level,
                             const uint32_t *tokens, const float *logp, uint32_t n,
                             float token_threshold, ft_error *err);
void ft_proposals_free(ft_proposals *p);

#endif
