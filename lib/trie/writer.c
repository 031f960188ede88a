/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/writer.h"

#include <stdlib.h>
#include <zstd.h>

#include "trie/checksum.h"

enum { RAW_BYTES = 1 << 17 };

static ft_section_entry *current(ft_writer *w)
{
    return &w->front.table[w->front.header.n_sections - 1];
}

ft_status ft_writer_open(ft_writer *w, ft_sink *out, int compress_level, ft_error *err)
{
    static const uint8_t zero[FT_SECTIONS_AT];
    *w = (ft_writer){.out = out, .err = err, .compress_level = compress_level};
    if (!ft_sink_seekable(out) || ft_sink_offset(out) != 0)
        return ft_fail(err, FT_EINVAL,
                       "an index is written to a regular file, from its start");
    w->stored = ft_alloc_aligned(FT_CHECKSUM_PIECE, 1, err);
    if (!w->stored)
        goto no_memory;
    w->raw = w->stored;
    w->cap_raw = FT_CHECKSUM_PIECE;
    if (compress_level) {
        w->raw = ft_alloc_aligned(RAW_BYTES, 1, err);
        w->cap_raw = RAW_BYTES;
        w->zstd = ZSTD_createCCtx();
        if (!w->raw || !w->zstd)
            goto no_memory;
    }
    return ft_sink_write(out, zero, sizeof zero, err);
no_memory:
    ft_writer_close(w);
    return ft_fail(err, FT_ENOMEM, "out of memory (index writer)");
}

void ft_writer_close(ft_writer *w)
{
    if (w->raw != w->stored)
        free(w->raw);
    free(w->stored);
    ZSTD_freeCCtx(w->zstd);
    ft_buf_free(&w->pieces);
    *w = (ft_writer){0};
}

/* Write a piece of stored bytes and note its checksum. */
static void flush_stored(ft_writer *w)
{
    if (w->status == FT_OK && w->n_stored) {
        const uint64_t sum = ft_checksum(w->stored, w->n_stored);
        w->status = ft_buf_append(&w->pieces, &sum, sizeof sum, w->err);
        if (w->status == FT_OK)
            w->status = ft_sink_write(w->out, w->stored, w->n_stored, w->err);
    }
    current(w)->stored_bytes += w->n_stored;
    w->n_stored = 0;
}

static void compress(ft_writer *w, ZSTD_EndDirective mode)
{
    ZSTD_inBuffer in = {w->raw, w->n_raw, 0};
    for (size_t left = 1; w->status == FT_OK && (in.pos < in.size || left);) {
        ZSTD_outBuffer out = {w->stored, FT_CHECKSUM_PIECE, w->n_stored};
        left = ZSTD_compressStream2(w->zstd, &out, &in, mode);
        if (ZSTD_isError(left)) {
            w->status = ft_fail(w->err, FT_EINVAL, "zstd: %s", ZSTD_getErrorName(left));
            return;
        }
        w->n_stored = out.pos;
        if (w->n_stored == FT_CHECKSUM_PIECE)
            flush_stored(w);
        if (mode == ZSTD_e_continue)
            left = 0;
    }
}

void ft_writer_flush(ft_writer *w)
{
    w->raw_bytes += w->n_raw;
    if (w->zstd) {
        compress(w, ZSTD_e_continue);
    } else {
        w->n_stored = w->n_raw;
        flush_stored(w);
    }
    w->n_raw = 0;
}

static ft_status begin_frame(ft_writer *w, uint64_t raw_bytes)
{
    size_t rc = ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_only);
    if (!ZSTD_isError(rc))
        rc =
            ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, w->compress_level);
    if (!ZSTD_isError(rc))
        rc = ZSTD_CCtx_setPledgedSrcSize(w->zstd, raw_bytes);
    if (ZSTD_isError(rc))
        return ft_fail(w->err, FT_EINVAL, "zstd: %s", ZSTD_getErrorName(rc));
    return FT_OK;
}

void ft_section_begin(ft_writer *w, uint32_t type, uint64_t items, uint32_t param,
                      uint64_t raw_bytes)
{
    static const uint8_t zero[FT_SECTION_ALIGN];
    const uint64_t at = ft_sink_offset(w->out), start = ft_section_align(at);
    assert(w->front.header.n_sections < FT_MAX_SECTIONS);
    w->front.header.n_sections++;
    *current(w) = (ft_section_entry){
        .type = type,
        .encoding = w->zstd ? FT_ENCODING_ZSTD : FT_ENCODING_PLAIN,
        .offset = start,
        .raw_bytes = raw_bytes,
        .items = items,
        .param = param,
    };
    w->n_raw = w->n_stored = 0;
    w->raw_bytes = 0;
    w->pieces.len = 0;
    if (w->status == FT_OK)
        w->status = ft_sink_write(w->out, zero, start - at, w->err);
    if (w->status == FT_OK && w->zstd)
        w->status = begin_frame(w, raw_bytes);
}

void ft_section_put(ft_writer *w, const void *data, uint64_t bytes)
{
    const uint8_t *from = data;
    while (bytes) {
        if (w->n_raw == w->cap_raw)
            ft_writer_flush(w);
        const uint64_t room = w->cap_raw - w->n_raw, n = bytes < room ? bytes : room;
        memcpy(w->raw + w->n_raw, from, n);
        w->n_raw += n;
        from += n;
        bytes -= n;
    }
}

ft_status ft_section_end(ft_writer *w)
{
    if (w->zstd) {
        w->raw_bytes += w->n_raw;
        compress(w, ZSTD_e_end);
        w->n_raw = 0;
        flush_stored(w);
    } else {
        ft_writer_flush(w);
    }
    assert(w->status != FT_OK || w->raw_bytes == current(w)->raw_bytes);
    current(w)->checksum = ft_checksum(w->pieces.data, w->pieces.len);
    return w->status;
}

ft_status ft_writer_finish(ft_writer *w)
{
    ft_index_header *h = &w->front.header;
    memcpy(h->magic, FT_INDEX_MAGIC, sizeof h->magic);
    h->byte_order = FT_BYTE_ORDER;
    h->version = FT_INDEX_VERSION;
    h->file_bytes = ft_sink_offset(w->out);
    h->checksum = ft_index_front_checksum(&w->front);
    if (w->status == FT_OK)
        w->status = ft_sink_rewrite(w->out, 0, &w->front, sizeof w->front, w->err);
    return w->status;
}

void ft_bits_fill(ft_bits_out *b, bool bit, uint64_t n)
{
    const uint64_t word = bit ? ~(uint64_t)0 : 0;
    for (; n > 64; n -= 64)
        ft_bits_put(b, word, 64);
    ft_bits_put(b, word & ft_low_mask((unsigned)n), (unsigned)n);
}

ft_status ft_bits_end_vector(ft_bits_out *b, uint64_t n_bits)
{
    const uint64_t words = ft_bitvec_bytes(n_bits) / 8;
    if (b->fill)
        ft_bits_word(b, b->word, b->fill);
    for (uint64_t i = ft_words(n_bits); i < words; i++)
        ft_bits_word(b, 0, 0);
    return ft_section_end(b->w);
}

ft_status ft_bits_end_packed(ft_bits_out *b)
{
    if (b->fill)
        ft_section_put_word(b->w, b->word);
    ft_section_put_word(b->w, 0);
    return ft_section_end(b->w);
}
