/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of a token reader: shared by tokens.c and tokens_block.c.
 */
#ifndef FT_IO_TOKENS_READER_H
#define FT_IO_TOKENS_READER_H

#include "io/tokens.h"

/* A line longer than this is read byte-wise, not buffered: it is blanks or an error,
 * since the longest key without needless blanks and zeros takes 720,885 bytes. */
enum { FT_MAX_WINDOW_LINE = 1 << 20 };

struct ft_tokens {
    ft_stream *in; /* NULL: a reader of blocks */
    const char *name;
    bool binary;
    const uint8_t *base, *p, *end; /* window; base .. p is used up */
    const uint8_t *whole;          /* text: behind the last newline, or p */
    bool at_end;                   /* nothing follows the window */
    bool detached;                 /* the stream is behind the window */
    uint64_t n_places;             /* lines or records begun */
    uint64_t n_skipped;
    uint32_t *key; /* FT_MAX_KEY_TOKENS */
    ft_error failure;

    /* Where blocks have been cut off: */
    bool cut, rest;
    ft_buf tail; /* what has been read behind the last border */
    ft_buf last; /* the last key before it, as it stands in the input */
};

#endif
