/* SPDX-License-Identifier: Apache-2.0
 *
 * Level arrays with their chains folded, as they go into an index with tails
 * (trie/tails.h), in three steps: all chains are gathered, their suffixes are shared,
 * and the levels are made again without them.
 */
#ifndef FT_TRIE_TAILS_FOLD_H
#define FT_TRIE_TAILS_FOLD_H

#include "trie/levels.h"

/* A chain: the part of a key that no other key goes through. */
typedef struct ft_chain {
    uint64_t place_n;    /* << 16: see below; and the tokens that the tail has of it */
    uint64_t link_level; /* << 16: see below; and the level of its head */
} ft_chain;

/* Two numbers in a word. Of a chain: gathered, the place behind its last token, and its
 * number; shared, the number of the chain whose tokens are stored for it (FT_NO_CHAIN:
 * it stays in the tree), and where they start. */
enum { FT_CHAIN_SHIFT = 16 };
#define FT_NO_CHAIN (UINT64_MAX >> FT_CHAIN_SHIFT)

static inline uint64_t ft_chain_pair(uint64_t large, uint32_t small)
{
    return large << FT_CHAIN_SHIFT | small;
}

static inline uint64_t ft_chain_large(uint64_t pair)
{
    return pair >> FT_CHAIN_SHIFT;
}

static inline uint32_t ft_chain_small(uint64_t pair)
{
    return (uint32_t)(pair & ((1u << FT_CHAIN_SHIFT) - 1));
}

typedef struct ft_fold {
    bool labels;      /* heads keep their labels: the tail has what is below them */
    uint64_t n_left;  /* nodes that stay in the tree */
    uint64_t n_links; /* chains that are folded */
    uint64_t n_folded;

    ft_chain *chains; /* in the order of keys */
    uint64_t n_chains, cap_chains;
    uint32_t *tokens; /* of the chains, one after the other; then the tail */
    uint64_t n_tokens, cap_tokens;
    uint64_t *last; /* with the tail: a bit a token, set for the last of a suffix */

    ft_levels levels; /* what is left; the token of a head without label is its slot */
    uint64_t *links;  /* a bit a node but the root: is it a link? */
    uint64_t *starts; /* of the links by node: where in the tail */
} ft_fold;

/* Gather the chains of *levels. *f takes zeroed memory. */
ft_status ft_fold_gather(ft_fold *f, const ft_levels *levels, bool labels,
                         ft_error *err);

/* Make the tail: each suffix once, and those that others end with not at all. `choosy`:
 * fold only where a stored suffix pays, by Equation 1 over the chains that share it. */
ft_status ft_fold_share(ft_fold *f, bool choosy, uint32_t n_threads, ft_error *err);

/* Make the levels; those of before are spent on it, and the chains as well. */
ft_status ft_fold_levels(ft_fold *f, ft_levels *levels, ft_error *err);
void ft_fold_free(ft_fold *f);

/* Keys out of level arrays, in order. */
typedef struct ft_key_walk ft_key_walk;

typedef struct ft_walked_key {
    uint32_t *tokens; /* may be changed from `shared` on, until the next key */
    uint32_t n;
    uint32_t lcp;    /* tokens it shares with the key before it */
    uint32_t shared; /* and with that or the one behind it */
} ft_walked_key;

/* `spend`: the arrays are freed on the way. */
ft_status ft_key_walk_open(ft_key_walk **out, ft_levels *levels, bool spend,
                           ft_error *err);

/* The next key; false: there are no more. */
bool ft_key_walk_next(ft_key_walk *w, ft_walked_key *key);
void ft_key_walk_close(ft_key_walk *w);

/* Is the end of a key a chain, below all that it shares with its neighbours? */
static inline bool ft_walked_chain(const ft_walked_key *k)
{
    return k->n > k->shared + 1;
}

#endif
