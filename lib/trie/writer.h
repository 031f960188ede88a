/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes an index file section by section through one bounded buffer: padding,
 * compression, checksums, and the table at the end. Errors stick: after one, puts do
 * nothing and ft_section_end says what happened.
 */
#ifndef FT_TRIE_WRITER_H
#define FT_TRIE_WRITER_H

#include <string.h>

#include "io/stream.h"
#include "trie/bitvec.h"
#include "trie/format.h"

typedef struct ft_writer {
    ft_sink *out;
    ft_error *err;
    ft_status status;
    int compress_level;
    void *zstd;      /* ZSTD_CCtx; NULL: sections are stored plain */
    uint8_t *stored; /* a piece of FT_CHECKSUM_PIECE stored bytes */
    size_t n_stored;
    uint8_t *raw; /* bytes on their way in; `stored` itself where plain */
    size_t n_raw, cap_raw;
    uint64_t raw_bytes; /* of the section, flushed so far */
    ft_buf pieces;      /* checksums of the section's pieces */
    ft_index_front front;
} ft_writer;

/* *w takes zeroed or spent memory; compress_level 0 stores plain. *err is where later
 * errors go. */
ft_status ft_writer_open(ft_writer *w, ft_sink *out, int compress_level, ft_error *err);

/* Start a section of raw_bytes bytes. */
void ft_section_begin(ft_writer *w, uint32_t type, uint64_t items, uint32_t param,
                      uint64_t raw_bytes);
void ft_section_put(ft_writer *w, const void *data, uint64_t bytes);
ft_status ft_section_end(ft_writer *w);

/* Write header and table over the front of the file; the caller has filled the fields
 * of w->front.header that are the trie's. */
ft_status ft_writer_finish(ft_writer *w);
void ft_writer_close(ft_writer *w);

/* Hand a full buffer on. */
void ft_writer_flush(ft_writer *w);

static inline void ft_section_put_word(ft_writer *w, uint64_t word)
{
    if (w->n_raw + sizeof word > w->cap_raw)
        ft_writer_flush(w);
    memcpy(w->raw + w->n_raw, &word, sizeof word);
    w->n_raw += sizeof word;
}

/* Bits and packed fields into a section that has been begun, with the directories of a
 * bit vector on the way where `index` is given. */
typedef struct ft_bits_out {
    ft_writer *w;
    ft_bitvec_index *index;
    uint64_t word;
    unsigned fill;
} ft_bits_out;

/* Put the full word on. */
static inline void ft_bits_word(ft_bits_out *b, uint64_t word, unsigned n)
{
    if (b->index && b->w->status == FT_OK)
        b->w->status = ft_bitvec_index_add(b->index, word, n, b->w->err);
    ft_section_put_word(b->w, word);
}

/* Append the low n bits (0 to 64) of `bits`, whose other bits are zero. */
static inline void ft_bits_put(ft_bits_out *b, uint64_t bits, unsigned n)
{
    b->word |= bits << b->fill;
    if (b->fill + n >= 64) {
        ft_bits_word(b, b->word, 64);
        b->word = b->fill ? bits >> (64 - b->fill) : 0;
        b->fill = b->fill + n - 64;
    } else {
        b->fill += n;
    }
}

/* Append n copies of `bit`. */
void ft_bits_fill(ft_bits_out *b, bool bit, uint64_t n);

/* Pad a bit vector of n_bits to whole blocks, or a packed array to its last word and
 * one more, and end the section. */
ft_status ft_bits_end_vector(ft_bits_out *b, uint64_t n_bits);
ft_status ft_bits_end_packed(ft_bits_out *b);

#endif
