/* SPDX-License-Identifier: Apache-2.0
 *
 * Sections of an index with tails: those of the inner layout over the folded levels,
 * and the links' own.
 */
#include <stdlib.h>

#include "trie/louds.h"
#include "trie/tails.h"
#include "trie/tails_fold.h"

/* What fills sections; begins with the map, which is all that others know of it. */
typedef struct tails_map {
    ft_level_map map; /* of the folded levels */
    const ft_tails_form *form;
    ft_fold fold;
} tails_map;

static void put_flags(const ft_level_map *map, ft_bits_out *b)
{
    const ft_fold *f = &((const tails_map *)map)->fold;
    ft_bits_seek(b, b->first * 64);
    for (uint64_t i = b->first; i < ft_words(f->n_left - 1) && !ft_bits_full(b); i++)
        ft_bits_put(b, f->links[i], 64);
}

static ft_status fill_high(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                           ft_error *err)
{
    const tails_map *m = arg;
    const unsigned width = ft_tails_high_bits(m->form, m->fold.n_tokens);
    const unsigned shift = m->form->slots ? FT_TAIL_SLOT_BITS : 0;
    ft_bits_out b = ft_bits_window(out, at, n);
    uint64_t i = width ? at * 8 / width : m->fold.n_links;
    (void)err;
    ft_bits_seek(&b, width ? i * width : at * 8);
    for (; i < m->fold.n_links && !ft_bits_full(&b); i++)
        ft_bits_put(&b, m->fold.starts[i] >> shift, width);
    ft_bits_close(&b);
    return FT_OK;
}

static ft_status fill_tail(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                           ft_error *err)
{
    const tails_map *m = arg;
    const ft_fold *f = &m->fold;
    const unsigned width = ft_tails_field_bits(m->form, f->levels.max_token);
    ft_bits_out b = ft_bits_window(out, at, n);
    uint64_t i = at * 8 / width;
    (void)err;
    ft_bits_seek(&b, i * width);
    for (; i < f->n_tokens && !ft_bits_full(&b); i++)
        ft_bits_put(&b, (uint64_t)f->tokens[i] << 1 | ft_bit_get(f->last, i), width);
    ft_bits_close(&b);
    return FT_OK;
}

static ft_status build_links(ft_writer *w, tails_map *m, uint32_t depth)
{
    const ft_fold *f = &m->fold;
    const unsigned high_bits = ft_tails_high_bits(m->form, f->n_tokens);
    const unsigned tail_bits = ft_tails_field_bits(m->form, f->levels.max_token);
    const ft_index_tree tree = {.n_nodes = f->n_left, .depth = depth};
    const ft_vector_source flags = {
        .type = FT_SECTION_LINK_FLAGS,
        .rank_type = FT_SECTION_LINK_RANK,
        .n_bits = f->n_left - 1,
        .n_ones = f->n_links,
        .map = &m->map,
        .put = put_flags,
    };
    const ft_section high = {FT_SECTION_LINK_HIGH, high_bits, f->n_links,
                             ft_packed_bytes(f->n_links, high_bits)};
    const ft_section tail = {FT_SECTION_TAIL, tail_bits, f->n_tokens,
                             ft_packed_bytes(f->n_tokens, tail_bits)};
    ft_status st =
        ft_section_copy(w, &(ft_section){FT_SECTION_TREE, 0, 1, sizeof tree}, &tree);
    if (st == FT_OK)
        st = ft_vector_write(w, &flags);
    if (st == FT_OK)
        st = ft_section_fill(w, &high, fill_high, m);
    return st == FT_OK ? ft_section_fill(w, &tail, fill_tail, m) : st;
}

/* The level arrays of *map are spent. */
static ft_status build_sections(ft_writer *w, tails_map *m, ft_level_map *map)
{
    ft_levels *levels = map->levels;
    ft_level_map_close(map);
    ft_status st = ft_fold_levels(&m->fold, levels, w->err);
    if (st == FT_OK)
        st = ft_level_map_open(&m->map, &m->fold.levels, w->n_threads, w->err);
    if (st != FT_OK)
        return st;
    const uint32_t depth = (uint32_t)m->fold.levels.n_levels - 1;
    m->fold.levels.n_highs = m->map.spans[m->map.n_spans].highs;
    st = m->form->inner->build(w, &m->map);
    return st == FT_OK ? build_links(w, m, depth) : st;
}

ft_status ft_tails_build(ft_writer *w, ft_level_map *map, const ft_tails_form *form,
                         bool if_pays, ft_tail_summary *summary)
{
    tails_map m = {.form = form};
    ft_index_header *h = &w->front.header;
    ft_status st = ft_fold_gather(&m.fold, map->levels, !form->slots, w->err);
    if (st == FT_OK)
        st = ft_fold_share(&m.fold, form->choosy, w->n_threads, w->err);
    if (st == FT_OK) {
        const ft_fold *f = &m.fold;
        const unsigned tail_bits = ft_tails_field_bits(form, h->max_token);
        *summary =
            (ft_tail_summary){.n_links = f->n_links,
                              .n_folded = f->n_folded,
                              .n_tail = f->n_tokens,
                              .n_flags = ft_tails_flag_tokens(f->n_left, tail_bits),
                              .measured = true};
        summary->kept = !if_pays || ft_tails_pay(summary);
        if (summary->kept) {
            h->layout = form->layout->id;
            h->flags &= ~(uint32_t)FT_INDEX_LEVEL_ORDER;
            st = build_sections(w, &m, map);
        } else {
            ft_fold_free(&m.fold);
            h->layout = form->inner->id;
            st = form->inner->build(w, map);
        }
    }
    ft_level_map_close(&m.map);
    ft_fold_free(&m.fold);
    return st;
}
