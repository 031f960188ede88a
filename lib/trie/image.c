/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/image.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/score.h"
#include "trie/checksum.h"
#include "trie/parallel.h"

/* Files that people offer in place of an index. */
static const struct {
    const char *magic;
    size_t bytes;
    const char *what;
} kinds[] = {
    {"FTGRID1\n", 8, "this is a proposal grid, not an index"},
    {"FTKEYS1\n", 8, "this is a token file, not an index: build one with ft-build"},
    {"\x28\xb5\x2f\xfd", 4, "this is a zstd file: decompress it first (zstd -d)"},
    {"\x1f\x8b", 2, "this is a gzip file, not an index"},
    {"\x93NUMPY", 6, "this is a NumPy file, not an index"},
};

static ft_status wrong_kind(const uint8_t *bytes, uint64_t n, ft_error *err)
{
    if (n == 0)
        return ft_fail(err, FT_EFORMAT, "this is an empty file, not an index");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n >= kinds[i].bytes && memcmp(bytes, kinds[i].magic, kinds[i].bytes) == 0)
            return ft_fail(err, FT_EFORMAT, "%s", kinds[i].what);
    if (memcmp(bytes, FT_INDEX_MAGIC, n < 8 ? n : 8) == 0)
        return ft_fail(err, FT_EFORMAT, "cut short: %llu bytes", (unsigned long long)n);
    if (bytes[0] == ' ' || bytes[0] == '\t' || (bytes[0] >= '0' && bytes[0] <= '9'))
        return ft_fail(err, FT_EFORMAT,
                       "not an index; if these are keys, build one with ft-build");
    return ft_fail(err, FT_EFORMAT, "not an index (its first bytes are others)");
}

static bool all_zero(const uint8_t *bytes, uint64_t n)
{
    uint8_t any = 0;
    for (uint64_t i = 0; i < n; i++)
        any |= bytes[i];
    return any == 0;
}

static ft_status check_header(const ft_index_header *h, ft_error *err)
{
    if (h->byte_order != FT_BYTE_ORDER)
        return ft_fail(
            err, FT_EFORMAT,
            "byte order mark %08x, %08x expected: this index was written on a "
            "machine of the other byte order",
            h->byte_order, FT_BYTE_ORDER);
    if (h->version != FT_INDEX_VERSION)
        return ft_fail(err, FT_EFORMAT,
                       "version %u of the index format, this program reads version %d: "
                       "build the index again",
                       h->version, FT_INDEX_VERSION);
    return FT_OK;
}

static ft_status check_counts(const ft_index_header *h, ft_error *err)
{
    if (h->flags & ~(uint32_t)(FT_INDEX_HAS_IDS | FT_INDEX_LEVEL_ORDER))
        return ft_fail(err, FT_EFORMAT, "header: flags %#x are not known", h->flags);
    if (h->n_nodes == 0 || h->n_nodes >= FT_MAX_NODES)
        return ft_fail(err, FT_EFORMAT, "header: %llu nodes",
                       (unsigned long long)h->n_nodes);
    if (h->n_keys >= h->n_nodes)
        return ft_fail(err, FT_EFORMAT, "header: %llu keys in %llu nodes",
                       (unsigned long long)h->n_keys, (unsigned long long)h->n_nodes);
    if (h->depth > FT_MAX_KEY_TOKENS)
        return ft_fail(err, FT_EFORMAT, "header: keys of %u tokens (at most %d)",
                       h->depth, FT_MAX_KEY_TOKENS);
    if (h->max_token == FT_NO_TOKEN)
        return ft_fail(err, FT_EFORMAT, "header: largest token %u", h->max_token);
    if (h->n_sections > FT_MAX_SECTIONS)
        return ft_fail(err, FT_EFORMAT, "header: %u sections (at most %d)",
                       h->n_sections, FT_MAX_SECTIONS);
    if (h->zero1 || !all_zero(h->zero2, sizeof h->zero2))
        return ft_fail(err, FT_EFORMAT, "header: reserved bytes are not zero");
    return FT_OK;
}

static ft_status check_entry(const ft_index *ix, uint32_t i, uint64_t *end,
                             ft_error *err)
{
    const ft_section_entry *e = &ix->front.table[i];
    const char *name = ft_section_name(e->type);
    if (!name)
        return ft_fail(err, FT_EFORMAT, "section table: type %u is not known", e->type);
    for (uint32_t j = 0; j < i; j++)
        if (ix->front.table[j].type == e->type)
            return ft_fail(err, FT_EFORMAT, "section %s: given twice", name);
    const uint64_t start = ft_section_align(*end);
    if (e->offset != start)
        return ft_fail(err, FT_EFORMAT, "section %s: at offset %llu, %llu expected",
                       name, (unsigned long long)e->offset, (unsigned long long)start);
    if (start > ix->n_bytes || e->stored_bytes > ix->n_bytes - start)
        return ft_fail(err, FT_EFORMAT,
                       "section %s: reaches beyond the end of the file", name);
    if (!all_zero(ix->bytes + *end, start - *end))
        return ft_fail(err, FT_EFORMAT, "section %s: bytes before it are not zero",
                       name);
    if (e->encoding > FT_ENCODING_ZSTD)
        return ft_fail(err, FT_EFORMAT, "section %s: encoding %u is not known", name,
                       e->encoding);
    if (e->encoding == FT_ENCODING_PLAIN && e->raw_bytes != e->stored_bytes)
        return ft_fail(err, FT_EFORMAT, "section %s: two lengths, %llu and %llu", name,
                       (unsigned long long)e->raw_bytes,
                       (unsigned long long)e->stored_bytes);
    if (!all_zero(e->zero, sizeof e->zero))
        return ft_fail(err, FT_EFORMAT, "section %s: reserved bytes are not zero",
                       name);
    *end = start + e->stored_bytes;
    return FT_OK;
}

static ft_status check_table(const ft_index *ix, ft_error *err)
{
    const ft_index_front *f = &ix->front;
    uint64_t end = FT_SECTIONS_AT;
    for (uint32_t i = 0; i < f->header.n_sections; i++) {
        const ft_status st = check_entry(ix, i, &end, err);
        if (st != FT_OK)
            return st;
    }
    const ft_section_entry *unused = f->table + f->header.n_sections;
    if (!all_zero((const uint8_t *)unused,
                  (FT_MAX_SECTIONS - f->header.n_sections) * sizeof *unused))
        return ft_fail(err, FT_EFORMAT, "section table: unused entries are not zero");
    if (end != ix->n_bytes)
        return ft_fail(err, FT_EFORMAT, "section table: %llu bytes behind the last one",
                       (unsigned long long)(ix->n_bytes - end));
    return FT_OK;
}

ft_status ft_image_check_front(ft_index *ix, ft_error *err)
{
    const uint64_t n = ix->n_bytes;
    ft_index_header *h = &ix->front.header;
    if (n < sizeof h->magic || memcmp(ix->bytes, FT_INDEX_MAGIC, sizeof h->magic) != 0)
        return wrong_kind(ix->bytes, n, err);
    if (n < sizeof *h)
        return ft_fail(err, FT_EFORMAT, "cut short: %llu bytes", (unsigned long long)n);
    memcpy(h, ix->bytes, sizeof *h);
    ft_status st = check_header(h, err);
    if (st != FT_OK)
        return st;
    if (n < h->file_bytes || n < FT_SECTIONS_AT)
        return ft_fail(err, FT_EFORMAT, "cut short: %llu bytes of %llu",
                       (unsigned long long)n, (unsigned long long)h->file_bytes);
    if (n > h->file_bytes)
        return ft_fail(err, FT_EFORMAT, "%llu bytes behind the end of the index",
                       (unsigned long long)(n - h->file_bytes));
    memcpy(&ix->front, ix->bytes, sizeof ix->front);
    if (ft_index_front_checksum(&ix->front) != h->checksum)
        return ft_fail(err, FT_EFORMAT,
                       "header: checksum differs: the file is damaged");
    if ((st = check_counts(h, err)) != FT_OK)
        return st;
    return check_table(ix, err);
}

/* A frame of a section, and where it goes. */
typedef struct frame {
    const uint8_t *from;
    uint8_t *to;
    uint64_t stored_bytes, raw_bytes;
    uint32_t section;
} frame;

typedef struct frames {
    frame *list;
    uint64_t n, cap;
} frames;

static ft_status bad_frame(const ft_section_entry *e, uint64_t i, const char *what,
                           ft_error *err)
{
    return ft_fail(err, FT_EFORMAT, "section %s: zstd frame %llu: %s",
                   ft_section_name(e->type), (unsigned long long)i, what);
}

/* The frames of a section, each of FT_SECTION_PIECE bytes but the last. A zstd block of
 * 4 bytes makes 128 KiB at most, so what frames claim to hold is limited by their
 * length: no large allocation without data behind it. */
static ft_status list_frames(ft_index *ix, uint32_t section, frames *f, ft_error *err)
{
    const ft_section_entry *e = &ix->front.table[section];
    const uint8_t *from = ix->bytes + e->offset;
    uint64_t left = e->stored_bytes;
    if (e->raw_bytes / (1 << 15) > e->stored_bytes)
        return ft_fail(err, FT_EFORMAT,
                       "section %s: zstd frames cannot hold the %llu bytes given",
                       ft_section_name(e->type), (unsigned long long)e->raw_bytes);
    uint8_t *to = ix->owned[section] = ft_alloc_aligned(e->raw_bytes, 1, err);
    if (!to)
        return FT_ENOMEM;
    for (uint64_t at = 0, i = 0; at < e->raw_bytes || left; i++) {
        const uint64_t rest = e->raw_bytes - at;
        const uint64_t raw = rest < FT_SECTION_PIECE ? rest : FT_SECTION_PIECE;
        const size_t stored = ZSTD_findFrameCompressedSize(from, left);
        if (ZSTD_isError(stored))
            return bad_frame(e, i, ZSTD_getErrorName(stored), err);
        if (raw == 0 || ZSTD_getFrameContentSize(from, left) != raw)
            return bad_frame(e, i, "not of the length that it should have", err);
        void *list = f->list;
        const ft_status st = ft_reserve(&list, &f->cap, f->n + 1, sizeof *f->list, err);
        f->list = list;
        if (st != FT_OK)
            return st;
        f->list[f->n++] = (frame){from, to + at, stored, raw, section};
        at += raw;
        from += stored;
        left -= stored;
    }
    ix->data[section] = to;
    return FT_OK;
}

typedef struct loading {
    const ft_index *ix;
    frames frames;
} loading;

static ft_status decompress(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const loading *l = arg;
    for (uint64_t i = begin; i < end; i++) {
        const frame *f = &l->frames.list[i];
        const ft_section_entry *e = &l->ix->front.table[f->section];
        const size_t n = ZSTD_decompress(f->to, f->raw_bytes, f->from, f->stored_bytes);
        if (n != f->raw_bytes)
            return bad_frame(e,
                             (uint64_t)(f->to - (uint8_t *)l->ix->owned[f->section]) /
                                 FT_SECTION_PIECE,
                             ZSTD_isError(n) ? ZSTD_getErrorName(n) : "cut short", err);
    }
    return FT_OK;
}

ft_status ft_image_load(ft_index *ix, ft_error *err)
{
    loading l = {.ix = ix};
    ft_status st = FT_OK;
    for (uint32_t i = 0; i < ix->front.header.n_sections && st == FT_OK; i++) {
        const ft_section_entry *e = &ix->front.table[i];
        ix->data[i] = ix->bytes + e->offset;
        if (e->encoding == FT_ENCODING_ZSTD)
            st = list_frames(ix, i, &l.frames, err);
    }
    if (st == FT_OK)
        st = ft_parallel(l.frames.n, 1, ix->n_threads, decompress, &l, err);
    free(l.frames.list);
    return st;
}

typedef struct hashing {
    const uint8_t *bytes;
    uint64_t n_bytes;
    uint64_t *sums;
} hashing;

static ft_status hash_pieces(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const hashing *h = arg;
    (void)err;
    for (uint64_t i = begin; i < end; i++) {
        const uint64_t at = i * FT_SECTION_PIECE, left = h->n_bytes - at;
        h->sums[i] = ft_checksum(
            h->bytes + at, left < FT_SECTION_PIECE ? left : (uint64_t)FT_SECTION_PIECE);
    }
    return FT_OK;
}

ft_status ft_image_check_sums(const ft_index *ix, ft_error *err)
{
    for (uint32_t i = 0; i < ix->front.header.n_sections; i++) {
        const ft_section_entry *e = &ix->front.table[i];
        const uint64_t n = e->stored_bytes / FT_SECTION_PIECE +
                           (e->stored_bytes % FT_SECTION_PIECE != 0);
        hashing h = {ix->bytes + e->offset, e->stored_bytes, NULL};
        h.sums = ft_calloc(n, sizeof *h.sums, err);
        if (!h.sums)
            return FT_ENOMEM;
        ft_status st = ft_parallel(n, 1, ix->n_threads, hash_pieces, &h, err);
        if (st == FT_OK && ft_checksum(h.sums, n * sizeof *h.sums) != e->checksum)
            st = ft_fail(err, FT_EFORMAT,
                         "section %s: checksum differs: the file is damaged",
                         ft_section_name(e->type));
        free(h.sums);
        if (st != FT_OK)
            return st;
    }
    return FT_OK;
}
