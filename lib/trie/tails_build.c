/* SPDX-License-Identifier: Apache-2.0
 *
 * Sections of an index with tails: those of narrow over the folded levels, where links
 * have been put into their slots, and the links' own.
 */
#include "trie/ids.h"
#include "trie/tails.h"
#include "trie/tails_fold.h"

/* What fills sections; begins with the map, which is all that others know of it. */
typedef struct tails_map {
    ft_level_map map; /* of the folded levels */
    ft_fold fold;
} tails_map;

/* The first link at or behind a label slot. */
static const ft_link *link_from(const ft_fold *f, uint64_t slot)
{
    uint64_t lo = 0, hi = f->n_links;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (f->links[mid].node - 1 < slot)
            lo = mid + 1;
        else
            hi = mid;
    }
    return f->links + lo;
}

static ft_status fill_low(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                          ft_error *err)
{
    const ft_fold *f = &((const tails_map *)arg)->fold;
    const ft_link *const end = f->links + f->n_links;
    uint16_t *low = (uint16_t *)(void *)out;
    const uint64_t first = at / sizeof *low, behind = (at + n) / sizeof *low;
    const ft_status st = ft_narrow_fill_low(arg, at, n, out, err);
    for (const ft_link *l = link_from(f, first); l < end && l->node - 1 < behind; l++)
        low[l->node - 1 - first] = (uint16_t)l->at;
    return st;
}

static void put_flags(const ft_level_map *map, ft_bits_out *b)
{
    const ft_fold *f = &((const tails_map *)map)->fold;
    const ft_link *const end = f->links + f->n_links;
    uint64_t slot = b->first * 64;
    ft_bits_seek(b, slot);
    for (const ft_link *l = link_from(f, slot); l < end && !ft_bits_full(b); l++) {
        for (; l->node - 1 - slot >= 64; slot += 64)
            ft_bits_put(b, 0, 64);
        ft_bits_put(b, 0, (unsigned)(l->node - 1 - slot));
        ft_bits_put(b, 1, 1);
        slot = l->node;
    }
}

static ft_status fill_high(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                           ft_error *err)
{
    const ft_fold *f = &((const tails_map *)arg)->fold;
    const unsigned width = ft_tails_high_bits(f->n_tokens);
    ft_bits_out b = ft_bits_window(out, at, n);
    uint64_t i = width ? at * 8 / width : f->n_links;
    (void)err;
    ft_bits_seek(&b, width ? i * width : at * 8);
    for (; i < f->n_links && !ft_bits_full(&b); i++)
        ft_bits_put(&b, f->links[i].at >> 16, width);
    ft_bits_close(&b);
    return FT_OK;
}

static ft_status fill_tail(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                           ft_error *err)
{
    const ft_fold *f = &((const tails_map *)arg)->fold;
    const unsigned width = ft_tails_field_bits(f->levels.max_token);
    ft_bits_out b = ft_bits_window(out, at, n);
    uint64_t i = at * 8 / width;
    (void)err;
    ft_bits_seek(&b, i * width);
    for (; i < f->n_tokens && !ft_bits_full(&b); i++)
        ft_bits_put(&b, (uint64_t)f->tokens[i] << 1 | ft_bit_get(f->last, i), width);
    ft_bits_close(&b);
    return FT_OK;
}

static ft_status build_links(ft_writer *w, tails_map *m)
{
    const ft_fold *f = &m->fold;
    const unsigned high_bits = ft_tails_high_bits(f->n_tokens);
    const unsigned tail_bits = ft_tails_field_bits(f->levels.max_token);
    const ft_vector_source flags = {
        .type = FT_SECTION_LINK_FLAGS,
        .rank_type = FT_SECTION_LINK_RANK,
        .n_bits = f->levels.n_nodes - 1,
        .n_ones = f->n_links,
        .map = &m->map,
        .put = put_flags,
    };
    const ft_section high = {FT_SECTION_LINK_HIGH, high_bits, f->n_links,
                             ft_packed_bytes(f->n_links, high_bits)};
    const ft_section tail = {FT_SECTION_TAIL, tail_bits, f->n_tokens,
                             ft_packed_bytes(f->n_tokens, tail_bits)};
    ft_status st = ft_vector_write(w, &flags);
    if (st == FT_OK)
        st = ft_section_fill(w, &high, fill_high, m);
    return st == FT_OK ? ft_section_fill(w, &tail, fill_tail, m) : st;
}

static ft_status build_sections(ft_writer *w, tails_map *m)
{
    const uint64_t n = m->fold.levels.n_nodes - 1;
    const ft_section low = {FT_SECTION_LABELS_LOW, 0, n, n * 2};
    ft_status st = ft_level_map_open(&m->map, &m->fold.levels, w->n_threads, w->err);
    if (st != FT_OK)
        return st;
    m->fold.levels.n_highs = m->map.spans[m->map.n_spans].highs;
    st = ft_louds_build(w, &m->map);
    if (st == FT_OK)
        st = ft_section_fill(w, &low, fill_low, m);
    if (st == FT_OK)
        st = ft_narrow_build_high(w, &m->map);
    if (st == FT_OK)
        st = ft_ids_build(w, &m->map);
    return st == FT_OK ? build_links(w, m) : st;
}

ft_status ft_tails_build(ft_writer *w, ft_level_map *map, bool if_pays,
                         ft_tail_summary *summary)
{
    tails_map m = {0};
    ft_index_header *h = &w->front.header;
    ft_status st = ft_fold_make(&m.fold, map->levels, w->err);
    const uint64_t n_folded = m.fold.n_tokens;
    if (st == FT_OK)
        st = ft_fold_share(&m.fold, w->err);
    if (st == FT_OK) {
        *summary = (ft_tail_summary){.n_links = m.fold.n_links,
                                     .n_folded = n_folded,
                                     .n_tail = m.fold.n_tokens,
                                     .measured = true};
        summary->kept = !if_pays || ft_tails_pay(summary);
        if (summary->kept) {
            h->layout = FT_LAYOUT_NARROW_TAILS;
            h->flags &= ~(uint32_t)FT_INDEX_LEVEL_ORDER;
            st = build_sections(w, &m);
        } else {
            ft_fold_free(&m.fold);
            h->layout = FT_LAYOUT_NARROW;
            st = ft_layout_narrow.build(w, map);
        }
    }
    ft_level_map_close(&m.map);
    ft_fold_free(&m.fold);
    return st;
}
