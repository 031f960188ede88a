/* SPDX-License-Identifier: Apache-2.0
 *
 * Token sequences, text or binary: ft-tokens(5). The form is recognised by the binary
 * magic. Order between keys is not checked here (trie/keys.h).
 */
#ifndef FT_IO_TOKENS_H
#define FT_IO_TOKENS_H

#include "base/score.h"
#include "io/stream.h"

typedef struct ft_tokens ft_tokens;

/* Takes over `in` and closes it with the reader, also when this call fails. */
ft_status ft_tokens_open(ft_tokens **out, ft_stream *in, ft_error *err);

/* The next key: *tokens (valid until the next call) and *n >= 1; *n = 0 at the end.
 * Empty lines are skipped and counted. */
ft_status ft_tokens_next(ft_tokens *r, const uint32_t **tokens, uint32_t *n,
                         ft_error *err);

/* 1-based line (text) or 0-based record (binary) of the key that ft_tokens_next gave
 * last. */
uint64_t ft_tokens_place(const ft_tokens *r);
bool ft_tokens_is_binary(const ft_tokens *r);

/* Bytes of the (decompressed) input up to behind that key. */
uint64_t ft_tokens_offset(const ft_tokens *r);
uint64_t ft_tokens_n_skipped(const ft_tokens *r);
const char *ft_tokens_name(const ft_tokens *r);
void ft_tokens_close(ft_tokens *r);

/* Keys of an input as they stand in it, to be parsed by another thread. */
typedef struct ft_tokens_block {
    ft_buf data;       /* whole lines or records */
    ft_buf previous;   /* the last key before them; empty: they are the first */
    uint64_t n_places; /* lines or records before them */
    uint64_t end;      /* bytes of the input up to their end */
    bool later;        /* there are none yet: the input is slow */
} ft_tokens_block;

/* Cut off the next block, of about `bytes` bytes, or less where the input is slow.
 * data.len = 0 at the end, or at the rest, or where `later` is set: the call did not
 * wait long. ft_tokens_next is for the rest alone from then on. */
ft_status ft_tokens_cut(ft_tokens *r, ft_tokens_block *b, uint64_t bytes,
                        ft_error *err);

/* Is there a rest that cannot be cut, since it begins with a line longer than a key
 * needs? ft_tokens_next reads it. */
bool ft_tokens_has_rest(const ft_tokens *r);
void ft_tokens_block_free(ft_tokens_block *b);

/* A reader of blocks of `whole`, which outlives it: counts and messages are those of
 * the whole input. It has no keys before it is given some: */
ft_status ft_tokens_open_blocks(ft_tokens **out, const ft_tokens *whole, ft_error *err);

/* Give it the last key before a block, or the block, which stays the caller's. Empty
 * lines are counted anew. */
void ft_tokens_set_previous(ft_tokens *r, const ft_tokens_block *b);
void ft_tokens_set_block(ft_tokens *r, const ft_tokens_block *b);

/* Count empty lines that a reader of blocks has skipped. */
void ft_tokens_add_skipped(ft_tokens *r, uint64_t n);

/* Write keys. */
ft_status ft_tokens_write_text(ft_sink *out, const uint32_t *tokens, uint32_t n,
                               ft_error *err);
ft_status ft_tokens_write_binary_header(ft_sink *out, ft_error *err);
ft_status ft_tokens_write_binary(ft_sink *out, const uint32_t *tokens, uint32_t n,
                                 ft_error *err);

/* Parse one token from text [*p, end): decimal, at most FT_NO_TOKEN - 1. Moves *p
 * behind it. False: not a token. */
bool ft_token_parse(const char **p, const char *end, uint32_t *token);

#endif
