/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/writer.h"

#include <stdlib.h>
#include <zstd.h>

#include "trie/checksum.h"
#include "trie/pipeline.h"

static ft_section_entry *current(ft_writer *w)
{
    return &w->front.table[w->front.header.n_sections - 1];
}

ft_status ft_writer_open(ft_writer *w, ft_sink *out, int compress_level,
                         uint32_t n_threads, ft_error *err)
{
    static const uint8_t zero[FT_SECTIONS_AT];
    *w = (ft_writer){
        .out = out,
        .err = err,
        .compress_level = compress_level,
        .n_threads = ft_thread_count(n_threads),
    };
    if (!ft_sink_seekable(out) || ft_sink_offset(out) != 0)
        return ft_fail(err, FT_EINVAL,
                       "an index is written to a regular file, from its start");
    w->slots = ft_calloc(ft_pipeline_slots(w->n_threads), sizeof *w->slots, err);
    if (compress_level)
        w->stored = ft_alloc_aligned(FT_SECTION_PIECE, 1, err);
    if (!w->slots || (compress_level && !w->stored)) {
        ft_writer_close(w);
        return FT_ENOMEM;
    }
    return ft_sink_write(out, zero, sizeof zero, err);
}

void ft_writer_close(ft_writer *w)
{
    const uint32_t n_slots = w->slots ? ft_pipeline_slots(w->n_threads) : 0;
    for (uint32_t i = 0; i < n_slots; i++) {
        free(w->slots[i].raw);
        free(w->slots[i].frame);
        ZSTD_freeCCtx(w->slots[i].zstd);
    }
    free(w->slots);
    free(w->stored);
    ft_buf_free(&w->sums);
    *w = (ft_writer){0};
}

/* A slot's memory comes with its first use: small indexes have few pieces. */
static ft_status ready_slot(const ft_writer *w, ft_writer_slot *s, ft_error *err)
{
    if (s->raw)
        return FT_OK;
    uint8_t *raw = ft_alloc_aligned(FT_SECTION_PIECE, 1, err);
    if (raw && w->compress_level) {
        s->frame = ft_alloc_aligned(ZSTD_compressBound(FT_SECTION_PIECE), 1, err);
        s->zstd = ZSTD_createCCtx();
        if (!s->zstd)
            ft_fail(err, FT_ENOMEM, "out of memory (zstd)");
    }
    s->raw = raw;
    return !raw || (w->compress_level && (!s->frame || !s->zstd)) ? FT_ENOMEM : FT_OK;
}

/* Make of the raw bytes what is stored, or take its checksum. */
static ft_status encode(const ft_writer *w, ft_writer_slot *s, ft_error *err)
{
    if (!w->compress_level) {
        s->sum = ft_checksum(s->raw, s->n_raw);
        return FT_OK;
    }
    const size_t n =
        ZSTD_compressCCtx(s->zstd, s->frame, ZSTD_compressBound(FT_SECTION_PIECE),
                          s->raw, s->n_raw, w->compress_level);
    if (ZSTD_isError(n))
        return ft_fail(err, FT_ENOMEM, "zstd: %s", ZSTD_getErrorName(n));
    s->n_frame = n;
    return FT_OK;
}

static ft_status write_piece(ft_writer *w, const uint8_t *data, uint64_t n,
                             uint64_t sum, ft_error *err)
{
    current(w)->stored_bytes += n;
    const ft_status st = ft_buf_append(&w->sums, &sum, sizeof sum, err);
    return st == FT_OK ? ft_sink_write(w->out, data, n, err) : st;
}

static ft_status flush_stored(ft_writer *w, ft_error *err)
{
    const uint64_t n = w->n_stored;
    w->n_stored = 0;
    return n ? write_piece(w, w->stored, n, ft_checksum(w->stored, n), err) : FT_OK;
}

/* Frames are as long as they are, checksums are those of whole pieces of them. */
static ft_status store(ft_writer *w, const ft_writer_slot *s, ft_error *err)
{
    ft_status st = FT_OK;
    w->raw_bytes += s->n_raw;
    if (!w->compress_level)
        return write_piece(w, s->raw, s->n_raw, s->sum, err);
    for (uint64_t done = 0; done < s->n_frame && st == FT_OK;) {
        const uint64_t room = FT_SECTION_PIECE - w->n_stored, left = s->n_frame - done;
        const uint64_t n = left < room ? left : room;
        memcpy(w->stored + w->n_stored, s->frame + done, n);
        done += n;
        w->n_stored += n;
        if (w->n_stored == FT_SECTION_PIECE)
            st = flush_stored(w, err);
    }
    return st;
}

static void begin(ft_writer *w, const ft_section *s)
{
    static const uint8_t zero[FT_SECTION_ALIGN];
    const uint64_t at = ft_sink_offset(w->out), start = ft_section_align(at);
    assert(w->front.header.n_sections < FT_MAX_SECTIONS);
    w->front.header.n_sections++;
    *current(w) = (ft_section_entry){
        .type = s->type,
        .encoding = w->compress_level ? FT_ENCODING_ZSTD : FT_ENCODING_PLAIN,
        .offset = start,
        .raw_bytes = s->raw_bytes,
        .items = s->items,
        .param = s->param,
    };
    w->raw_bytes = 0;
    w->sums.len = 0;
    if (w->status == FT_OK)
        w->status = ft_sink_write(w->out, zero, start - at, w->err);
}

static ft_status end(ft_writer *w)
{
    if (w->status == FT_OK)
        w->status = flush_stored(w, w->err);
    assert(w->status != FT_OK || w->raw_bytes == current(w)->raw_bytes);
    current(w)->checksum = ft_checksum(w->sums.data, w->sums.len);
    return w->status;
}

/* A section that threads fill. */
typedef struct filling {
    ft_writer *w;
    uint64_t next, raw_bytes;
    ft_fill_fn *fill;
    void *arg;
} filling;

static ft_status take(void *arg, uint32_t slot, ft_taken *what, ft_error *err)
{
    filling *f = arg;
    ft_writer_slot *s = &f->w->slots[slot];
    const uint64_t left = f->raw_bytes - f->next;
    (void)err;
    s->at = f->next;
    s->n_raw = left < FT_SECTION_PIECE ? left : FT_SECTION_PIECE;
    f->next += s->n_raw;
    *what = s->n_raw ? FT_TAKEN : FT_TAKEN_ALL;
    return FT_OK;
}

static ft_status work(void *arg, uint32_t slot, ft_error *err)
{
    const filling *f = arg;
    ft_writer_slot *s = &f->w->slots[slot];
    ft_status st = ready_slot(f->w, s, err);
    if (st == FT_OK)
        st = f->fill(f->arg, s->at, s->n_raw, s->raw, err);
    return st == FT_OK ? encode(f->w, s, err) : st;
}

static ft_status put(void *arg, uint32_t slot, ft_error *err)
{
    const filling *f = arg;
    return store(f->w, &f->w->slots[slot], err);
}

ft_status ft_section_fill(ft_writer *w, const ft_section *s, ft_fill_fn *fill,
                          void *arg)
{
    filling f = {w, 0, s->raw_bytes, fill, arg};
    const ft_pipeline pipeline = {&f, take, work, put};
    const uint64_t n_pieces = s->raw_bytes / FT_SECTION_PIECE + 1;
    const uint32_t n = n_pieces < w->n_threads ? (uint32_t)n_pieces : w->n_threads;
    begin(w, s);
    if (w->status == FT_OK)
        w->status = ft_pipeline_run(&pipeline, n, w->err);
    return end(w);
}

static ft_status copy(void *arg, uint64_t at, uint64_t n, uint8_t *out, ft_error *err)
{
    (void)err;
    memcpy(out, (const uint8_t *)arg + at, n);
    return FT_OK;
}

ft_status ft_section_copy(ft_writer *w, const ft_section *s, const void *data)
{
    return ft_section_fill(w, s, copy, (void *)data);
}

void ft_section_begin(ft_writer *w, const ft_section *s)
{
    begin(w, s);
    w->slots[0].n_raw = 0;
    if (w->status == FT_OK)
        w->status = ready_slot(w, &w->slots[0], w->err);
}

static void hand_on(ft_writer *w)
{
    ft_writer_slot *s = &w->slots[0];
    if (w->status == FT_OK && s->n_raw) {
        w->status = encode(w, s, w->err);
        if (w->status == FT_OK)
            w->status = store(w, s, w->err);
    }
    s->n_raw = 0;
}

void ft_section_put(ft_writer *w, const void *data, uint64_t bytes)
{
    ft_writer_slot *s = &w->slots[0];
    const uint8_t *from = data;
    while (bytes && w->status == FT_OK) {
        const uint64_t room = FT_SECTION_PIECE - s->n_raw;
        const uint64_t n = bytes < room ? bytes : room;
        memcpy(s->raw + s->n_raw, from, n);
        s->n_raw += n;
        from += n;
        bytes -= n;
        if (s->n_raw == FT_SECTION_PIECE)
            hand_on(w);
    }
}

ft_status ft_section_end(ft_writer *w)
{
    hand_on(w);
    return end(w);
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
