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

typedef struct ft_proposal {
    uint32_t token; /* FT_NO_TOKEN: an empty slot of the hash */
    float logp;
} ft_proposal;

typedef struct ft_proposals {
    uint32_t n;
    ft_proposal *list; /* n of them, best first */

    /* A bit for each token's hash: rules out nearly every label without a look at the
     * table. 32 to 64 bits a proposal, so it stays in the first-level cache. */
    uint64_t *filter;
    unsigned filter_shift; /* hash >> filter_shift is the bit's number */

    ft_proposal *slots; /* open addressing, at most half full */
    unsigned slot_shift;
    uint32_t slot_mask;

    uint32_t cap; /* room, in proposals */
} ft_proposals;

static inline uint32_t ft_token_hash(uint32_t token)
{
    return token * UINT32_C(0x9E3779B1); /* the golden ratio: top bits mix */
}

/* Could `token` be proposed? A false positive is possible, a false negative is not. */
static inline bool ft_proposals_may_have(const ft_proposals *p, uint32_t token)
{
    const uint32_t bit = ft_token_hash(token) >> p->filter_shift;
    return p->filter[bit / 64] >> (bit % 64) & 1;
}

/* The proposal of `token`, or NULL. */
static inline const ft_proposal *ft_proposals_find(const ft_proposals *p, uint32_t token)
{
    uint32_t i = ft_token_hash(token) >> p->slot_shift;
    while (p->slots[i].token != token) {
        if (p->slots[i].token == FT_NO_TOKEN)
            return NULL;
        i = (i + 1) & p->slot_mask;
    }
    return &p->slots[i];
}

/* Build the set of n slots: empty ones and those not above the threshold are left out. */
ft_status ft_proposals_build(ft_proposals *p, const uint32_t *tokens, const float *logp,
                             uint32_t n, float token_threshold, ft_error *err);
void ft_proposals_free(ft_proposals *p);

#endif
