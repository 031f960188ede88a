/* SPDX-License-Identifier: Apache-2.0
 *
 * Level arrays with their chains folded, as they go into an index with tails
 * (trie/tails.h).
 */
#ifndef FT_TRIE_TAILS_FOLD_H
#define FT_TRIE_TAILS_FOLD_H

#include "trie/levels.h"

typedef struct ft_link {
    uint64_t node;
    uint64_t at;    /* where its tokens start */
    uint32_t level; /* of the node */
    uint32_t n;     /* tokens, at least 2 */
} ft_link;

typedef struct ft_fold {
    ft_levels levels; /* what is left; the token of a link is 0 */
    ft_link *links;   /* by node */
    uint64_t n_links, cap_links;
    uint32_t *tokens; /* of the links, one after the other; then the tail */
    uint64_t n_tokens, cap_tokens;
    uint64_t *last; /* with the tail: a bit a token, set for the last of a suffix */
} ft_fold;

/* Fold the chains of *levels, which stay as they are. *f takes zeroed memory. */
ft_status ft_fold_make(ft_fold *f, const ft_levels *levels, ft_error *err);

/* Make the tail: each suffix once, and those that others end with not at all. */
ft_status ft_fold_share(ft_fold *f, ft_error *err);
void ft_fold_free(ft_fold *f);

/* Keys out of level arrays, in order. */
typedef struct ft_key_walk ft_key_walk;
ft_status ft_key_walk_open(ft_key_walk **out, const ft_levels *levels, ft_error *err);

/* The next key, of *n tokens, and how many of them it shares with the one before it.
 * Tokens stay until the next call. False: there are no more. */
bool ft_key_walk_next(ft_key_walk *w, const uint32_t **tokens, uint32_t *n,
                      uint32_t *lcp);
void ft_key_walk_close(ft_key_walk *w);

#endif
