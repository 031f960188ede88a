/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of tokens, for people: a file with a line a token, either "id TAB text" or only
 * the text (line n, from 0, is token n); the first line says which. zstd is recognised.
 */
#ifndef FT_CMD_VOCAB_H
#define FT_CMD_VOCAB_H

#include "ft.h"

typedef struct ft_vocab ft_vocab;

/* A line without an id where the first had one, a bad id, or an id given twice is an
 * error that names the line. */
ft_status ft_vocab_open(ft_vocab **out, const char *path, ft_error *err);

/* The token's text in printable form: control characters and bytes that are no UTF-8 as
 * \n, \t, \r or \xHH, the rest as it is. NULL where the vocabulary lacks the token. */
const char *ft_vocab_text(const ft_vocab *v, uint32_t token);
void ft_vocab_close(ft_vocab *v);

/* Number of bytes of the printable UTF-8 character at text; 0: a control character or
 * no UTF-8. */
unsigned ft_printable_bytes(const uint8_t *text, size_t bytes);

#endif
