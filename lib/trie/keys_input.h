/* SPDX-License-Identifier: Apache-2.0
 *
 * One input of keys (trie/keys.h), whatever its form.
 */
#ifndef FT_TRIE_KEYS_INPUT_H
#define FT_TRIE_KEYS_INPUT_H

#include "io/tokens.h"
#include "trie/index.h"
#include "trie/keys.h"

typedef struct ft_keys_input {
    ft_tokens *reader; /* text or binary, or NULL: */
    ft_stream *stream; /* the reader's */
    ft_index *index;   /* an index and the walk of its keys */
    ft_cursor *cursor;
    ft_buf image; /* the index, where it cannot be mapped */
    uint32_t *tokens;
    uint64_t cap;
    uint32_t n;   /* of the key that is current; 0: before the first or at the end */
    uint32_t lcp; /* with the key before it */
    uint64_t n_read, n_duplicates;
    bool by_blocks; /* the reader's blocks are read by others, and up to here: */
    uint64_t block_bytes;
} ft_keys_input;

/* *in is zeroed. "-": standard input. */
ft_status ft_keys_input_open(ft_keys_input *in, const char *path, ft_error *err);

/* Go to the next key that differs from the current one. */
ft_status ft_keys_input_next(ft_keys_input *in, ft_error *err);

/* The next key, whatever its order, valid until the next call; n = 0 at the end. An
 * input is read either this way or the other. */
ft_status ft_keys_input_read(ft_keys_input *in, const uint32_t **tokens, uint32_t *n,
                             ft_error *err);

/* Decompressed bytes read so far. */
uint64_t ft_keys_input_bytes(const ft_keys_input *in);
void ft_keys_input_close(ft_keys_input *in);

/* The input, where `keys` is one of tokens and nothing else, none of which has been
 * read; else NULL. */
ft_keys_input *ft_keys_only_input(ft_keys *keys);

#endif
