/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes an index file section by section: padding, compression, checksums, and the
 * table at the end. A section comes in one of two ways: byte after byte from one
 * thread, or from a function that gives the bytes of any piece of it, which many
 * threads call. Memory: two pieces a thread. Errors stick: after one, puts do nothing
 * and the end of the section says what happened.
 */
#ifndef FT_TRIE_WRITER_H
#define FT_TRIE_WRITER_H

#include <string.h>

#include "io/stream.h"
#include "trie/format.h"

/* A piece of a section on its way. */
typedef struct ft_writer_slot {
    uint64_t at;  /* of the section's bytes */
    uint8_t *raw; /* FT_SECTION_PIECE bytes */
    uint64_t n_raw;
    void *zstd; /* ZSTD_CCtx, where sections are compressed, and its output */
    uint8_t *frame;
    uint64_t n_frame;
    uint64_t sum; /* of the raw bytes, where they are stored */
} ft_writer_slot;

typedef struct ft_writer {
    ft_sink *out;
    ft_error *err;
    ft_status status;
    int compress_level; /* 0: sections are stored plain */
    uint32_t n_threads;
    ft_writer_slot *slots; /* of a pipeline; the first is that of ft_section_put, too */
    uint64_t raw_bytes;    /* of the section, handed on so far */
    uint8_t *stored;       /* compressed bytes, up to a piece of them */
    uint64_t n_stored;
    ft_buf sums; /* of the section's pieces */
    ft_index_front front;
} ft_writer;

/* *w takes zeroed or spent memory; compress_level 0 stores plain. n_threads 0: one a
 * processor. *err is where later errors go. */
ft_status ft_writer_open(ft_writer *w, ft_sink *out, int compress_level,
                         uint32_t n_threads, ft_error *err);

/* What a section is. */
typedef struct ft_section {
    uint32_t type;
    uint32_t param;
    uint64_t items;
    uint64_t raw_bytes;
} ft_section;

/* Give the n bytes of a section from byte `at` on; at is a multiple of
 * FT_SECTION_PIECE, and n is that or reaches up to the end. `out` is aligned to 64
 * bytes and is not zeroed. Called from any thread. */
typedef ft_status ft_fill_fn(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                             ft_error *err);

/* Write a section. */
ft_status ft_section_fill(ft_writer *w, const ft_section *s, ft_fill_fn *fill,
                          void *arg);

/* Write a section that is in memory. */
ft_status ft_section_copy(ft_writer *w, const ft_section *s, const void *data);

/* Write a section byte after byte. */
void ft_section_begin(ft_writer *w, const ft_section *s);
void ft_section_put(ft_writer *w, const void *data, uint64_t bytes);
ft_status ft_section_end(ft_writer *w);

/* Write header and table over the front of the file; the caller has filled the fields
 * of w->front.header that are the trie's. */
ft_status ft_writer_finish(ft_writer *w);
void ft_writer_close(ft_writer *w);

#endif
