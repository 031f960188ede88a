/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers the different tokens of a build: id i is the i-th smallest. A bitmap with a
 * count a word where the largest token is small beside the number of nodes, else a hash
 * table: memory never follows the range of sparse ids.
 */
#ifndef FT_TRIE_TOKEN_IDS_H
#define FT_TRIE_TOKEN_IDS_H

#include "base/bits.h"
#include "base/mem.h"

typedef struct ft_token_slot {
    uint32_t token, id; /* FT_NO_TOKEN: empty */
} ft_token_slot;

typedef struct ft_token_ids {
    uint32_t n;
    uint64_t n_words; /* of the bitmap */
    uint64_t *bits;   /* NULL: the hash table and the list */
    uint32_t *rank;
    ft_token_slot *slots;
    unsigned shift; /* hash >> shift is a slot */
    uint64_t mask;
    uint32_t *list; /* tokens, ascending, once numbered */
} ft_token_ids;

/* For tokens up to max_token on n_nodes nodes. */
ft_status ft_token_ids_open(ft_token_ids *t, uint64_t n_nodes, uint32_t max_token,
                            ft_error *err);

/* Threads may add at the same time where ft_token_ids_shared says so. */
static inline bool ft_token_ids_shared(const ft_token_ids *t)
{
    return t->bits != NULL;
}

ft_status ft_token_ids_add(ft_token_ids *t, const uint32_t *tokens, unsigned n,
                           ft_error *err);

/* Number what has been added; ft_token_ids_of and the walk work from then on. */
ft_status ft_token_ids_number(ft_token_ids *t, ft_error *err);

/* All tokens with their ids, ascending: *at starts at 0 and is moved; FT_NO_TOKEN at
 * the end. */
uint32_t ft_token_ids_next(const ft_token_ids *t, uint64_t *at);
void ft_token_ids_free(ft_token_ids *t);

static inline uint64_t ft_token_ids_slot(const ft_token_ids *t, uint32_t token)
{
    uint64_t i = token * UINT64_C(0x9E3779B97F4A7C15) >> t->shift;
    while (t->slots[i].token != token && t->slots[i].token != UINT32_MAX)
        i = (i + 1) & t->mask;
    return i;
}

/* Ids of n tokens that have been added. */
static inline void ft_token_ids_of(const ft_token_ids *t, const uint32_t *tokens,
                                   unsigned n, uint32_t *ids)
{
    if (t->bits)
        for (unsigned i = 0; i < n; i++) {
            const uint32_t word = tokens[i] / 64;
            const uint64_t below = ft_low_mask(tokens[i] % 64);
            ids[i] = t->rank[word] + ft_popcount(t->bits[word] & below);
        }
    else
        for (unsigned i = 0; i < n; i++)
            ids[i] = t->slots[ft_token_ids_slot(t, tokens[i])].id;
}

#endif
