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
uint64_t ft_tokens_n_skipped(const ft_tokens *r);
const char *ft_tokens_name(const ft_tokens *r);
void ft_tokens_close(ft_tokens *r);

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
