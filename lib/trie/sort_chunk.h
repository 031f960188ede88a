/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys in one block of memory, sorted in place. A record holds the first two tokens of
 * its key, so that most comparisons stay within it; records grow from the front of the
 * block, the tokens behind the first two (the tail) from its back. A key takes 16 bytes
 * and 4 for each token of its tail; sorting takes none.
 */
#ifndef FT_TRIE_SORT_CHUNK_H
#define FT_TRIE_SORT_CHUNK_H

#include "trie/keys.h"

typedef struct ft_sort_record {
    uint64_t word; /* two tokens, each plus 1; 0 where the key has ended */
    uint64_t
        place; /* of the tail: tokens from the block's start << 16 | key's tokens */
} ft_sort_record;

typedef struct ft_sort_chunk {
    ft_sort_record *records; /* the block, from its front */
    uint32_t *tails;         /* the block again, as tokens */
    uint64_t n, tails_begin; /* records; where the tails begin, in tokens */
    uint64_t cap_tokens;     /* of the block */
    uint32_t longest, max_token;

    uint64_t at, group_end; /* the walk: next record, end of those with its word */
    uint64_t last_word;
    uint32_t *key; /* walked to last */
    uint64_t cap_key;
    uint32_t n_key;
    uint64_t n_duplicates; /* met on the walk */
} ft_sort_chunk;

/* *c is zeroed. */
ft_status ft_sort_chunk_open(ft_sort_chunk *c, uint64_t bytes, ft_error *err);

/* Take a key of 1 to FT_MAX_KEY_TOKENS tokens. False: it does not fit. */
bool ft_sort_chunk_add(ft_sort_chunk *c, const uint32_t *tokens, uint32_t n);

/* Sort by the first two tokens; what they leave equal is sorted on the walk, just
 * before its tokens are needed. No key is added after it. */
void ft_sort_chunk_sort(ft_sort_chunk *c);

/* Walk on: the next key that differs from the one before, valid until the next call;
 * n = 0 at the end. */
ft_status ft_sort_chunk_next(ft_sort_chunk *c, ft_key *key, ft_error *err);

/* Empty it; what it counted stays. */
void ft_sort_chunk_clear(ft_sort_chunk *c);
void ft_sort_chunk_close(ft_sort_chunk *c);

#endif
