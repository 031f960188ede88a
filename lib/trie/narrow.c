/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/narrow.h"

#include "trie/ids.h"
#include "trie/parallel.h"
#include "trie/probe.h"

enum { PIECE_LABELS = 1 << 16, RUN_LABELS = 4096 };

static unsigned high_width(uint32_t max_token)
{
    return ft_bit_width(max_token >> 16);
}

/* Blocks of a fixed size, which compilers turn into vectors. */
static void widen(const uint16_t *low, uint64_t n, uint32_t *out)
{
    uint64_t i = 0;
    for (; n - i >= 16; i += 16)
        for (unsigned j = 0; j < 16; j++)
            out[i + j] = low[i + j];
    for (; i < n; i++)
        out[i] = low[i];
}

static void narrow_labels(const ft_trie *t, uint64_t first, uint64_t count,
                          uint32_t *out)
{
    const ft_narrow *l = t->layout;
    const uint64_t at = first - 1;
    widen(l->low + at, count, out);
    if (l->high_bits == 0)
        return;
    bool ranked = false;
    uint64_t rank = 0;
    for (uint64_t done = 0; done < count; done += 64) {
        const unsigned n = count - done < 64 ? (unsigned)(count - done) : 64;
        uint64_t flags = ft_bitvec_get(&l->flags, at + done, n);
        if (flags && !ranked) {
            rank = ft_bitvec_rank1(&l->flags, at + done);
            ranked = true;
        }
        for (; flags; flags &= flags - 1) {
            const uint64_t high = ft_packed_get(l->high, rank++, l->high_bits);
            out[done + (unsigned)__builtin_ctzll(flags)] |= (uint32_t)high << 16;
        }
    }
}

static uint64_t narrow_find(const ft_trie *t, ft_range range, uint32_t token)
{
    return ft_narrow_find_in(t->layout, range, token);
}

static uint32_t narrow_probe(const ft_trie *t, uint64_t first, uint32_t count,
                             const uint64_t *filter, uint32_t *places, uint32_t *codes)
{
    const ft_narrow *l = t->layout;
    const uint16_t *low = l->low + first - 1;
    const uint32_t n = ft_filter_lows(filter, low, count, places);
    for (uint32_t i = 0; i < n; i++)
        codes[i] = ft_narrow_label(l, first + places[i]);
    return n;
}

static void narrow_fetch_run(const ft_trie *t, ft_range children)
{
    const ft_narrow *l = t->layout;
    const uint64_t at = children.first - 1;
    __builtin_prefetch(l->low + at);
    if (l->high_bits) {
        __builtin_prefetch(l->flags.words + at / 64);
        __builtin_prefetch(l->flags.rank + at / FT_BLOCK_BITS * 2);
    }
}

static const ft_trie_ops narrow_ops = {
    .children = ft_louds_children,
    .labels = narrow_labels,
    .find = narrow_find,
    .flags = ft_louds_flags,
    .terminal_rank = ft_louds_terminal_rank,
    .seek = ft_louds_seek,
    .visit = ft_louds_visit,
    .codes = narrow_labels,
    .probe = narrow_probe,
    .fetch_node = ft_louds_fetch,
    .fetch_children = ft_louds_fetch,
    .fetch_run = narrow_fetch_run,
};

static ft_status build_high(ft_writer *w, const ft_levels *levels)
{
    const uint64_t n = levels->n_nodes - 1;
    const unsigned width = high_width(levels->max_token);
    if (width == 0)
        return FT_OK;
    ft_bitvec_index index = {0};
    ft_bits_out bits = {.w = w, .index = &index};
    ft_section_begin(w, FT_SECTION_HIGH_FLAGS, n, 0, ft_bitvec_bytes(n));
    ft_group_iter groups = ft_levels_from(levels, 1);
    unsigned n_group;
    for (const ft_group *g; (g = ft_group_next(&groups, &n_group));)
        ft_bits_put(&bits, g->high, n_group);
    const ft_status st = ft_vector_end(&bits, FT_SECTION_HIGH_RANK, 0, n);
    ft_bitvec_index_free(&index);
    if (st != FT_OK)
        return st;

    bits = (ft_bits_out){.w = w};
    ft_section_begin(w, FT_SECTION_HIGH, levels->n_highs, width,
                     ft_packed_bytes(levels->n_highs, width));
    ft_group_iter it = ft_levels_from(levels, 1);
    for (const ft_chunk *c = ft_chunk_first(&it); c; c = ft_chunk_next(&it))
        for (uint64_t i = 0; i < c->n_highs; i++)
            ft_bits_put(&bits, c->highs[i], width);
    return ft_bits_end_packed(&bits);
}

static ft_status narrow_build(ft_writer *w, const ft_levels *levels)
{
    const uint64_t n = levels->n_nodes - 1;
    ft_status st = ft_louds_build(w, levels);
    if (st != FT_OK)
        return st;
    ft_section_begin(w, FT_SECTION_LABELS_LOW, n, 0, n * 2);
    ft_group_iter groups = ft_levels_from(levels, 1);
    unsigned n_group;
    for (const ft_group *g; (g = ft_group_next(&groups, &n_group));)
        ft_section_put(w, g->low, n_group * sizeof *g->low);
    st = ft_section_end(w);
    if (st == FT_OK)
        st = build_high(w, levels);
    return st == FT_OK ? ft_ids_build(w, levels) : st;
}

static ft_status open_high(ft_narrow *l, const ft_sections *s, uint64_t n_labels,
                           ft_error *err)
{
    const ft_section_entry *e = ft_sections_entry(s, FT_SECTION_HIGH);
    if (!e)
        return ft_fail(err, FT_EFORMAT, "section high: missing");
    if (e->items > n_labels)
        return ft_fail(err, FT_EFORMAT, "section high: more high parts than labels");
    l->flags = (ft_bitvec){.n_bits = n_labels, .n_ones = e->items};
    const void *data;
    const ft_section_want want = {FT_SECTION_HIGH, l->high_bits, e->items,
                                  ft_packed_bytes(e->items, l->high_bits)};
    const ft_status st = ft_sections_find(s, &want, &data, err);
    if (st != FT_OK)
        return st;
    l->high = data;
    return ft_vector_open(&l->flags, s, FT_SECTION_HIGH_FLAGS, FT_SECTION_HIGH_RANK, 0,
                          err);
}

static ft_status narrow_open(ft_trie *trie, const ft_sections *sections, ft_error *err)
{
    const uint64_t n = trie->n_nodes - 1;
    uint32_t n_used = 1;
    ft_narrow *l = ft_new(ft_narrow, err);
    if (!l)
        return FT_ENOMEM;
    trie->layout = l;
    trie->ops = &narrow_ops;
    ft_status st = ft_louds_open(&l->base, trie, sections, &n_used, err);
    if (st != FT_OK)
        return st;
    const void *data;
    st = ft_sections_find(
        sections, &(ft_section_want){FT_SECTION_LABELS_LOW, 0, n, n * 2}, &data, err);
    if (st != FT_OK)
        return st;
    l->low = data;
    l->high_bits = high_width(trie->max_token);
    if (l->high_bits) {
        n_used += 3;
        if ((st = open_high(l, sections, n, err)) != FT_OK)
            return st;
    }
    return ft_sections_only(sections, n_used, err);
}

static ft_status check_highs(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const ft_narrow *l = arg;
    for (uint64_t i = begin; i < end; i++)
        if (ft_packed_get(l->high, i, l->high_bits) == 0)
            return ft_fail(err, FT_EFORMAT, "section high: part %llu is zero",
                           (unsigned long long)i);
    return FT_OK;
}

static ft_status check_labels(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const ft_trie *t = arg;
    uint32_t labels[RUN_LABELS];
    for (uint64_t i = begin; i < end; i += RUN_LABELS) {
        const uint64_t n = end - i < RUN_LABELS ? end - i : RUN_LABELS;
        uint32_t max = 0;
        narrow_labels(t, i + 1, n, labels);
        for (uint64_t j = 0; j < n; j++)
            max = labels[j] > max ? labels[j] : max;
        if (max > t->max_token)
            return ft_fail(err, FT_EFORMAT,
                           "section labels-low: token %u, the largest is to be %u", max,
                           t->max_token);
    }
    return FT_OK;
}

static ft_status narrow_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err)
{
    const ft_narrow *l = trie->layout;
    ft_status st = ft_louds_verify(trie, n_threads, err);
    if (st == FT_OK && l->high_bits) {
        st = ft_vector_verify(&l->flags, "high-flags", n_threads, err);
        if (st == FT_OK &&
            !ft_packed_padding_ok(l->high, l->flags.n_ones, l->high_bits))
            st = ft_fail(err, FT_EFORMAT, "section high: bits beyond the last are set");
        if (st == FT_OK)
            st = ft_parallel(l->flags.n_ones, PIECE_LABELS, n_threads, check_highs,
                             (void *)l, err);
    }
    if (st == FT_OK)
        st = ft_parallel(trie->n_nodes - 1, PIECE_LABELS, n_threads, check_labels,
                         (void *)trie, err);
    return st;
}

const ft_layout ft_layout_narrow = {
    .name = "narrow",
    .summary = "16-bit labels, high bits apart where needed (the paper's)",
    .id = FT_LAYOUT_NARROW,
    .build = narrow_build,
    .open = narrow_open,
    .verify = narrow_verify,
};
