/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/narrow.h"

#include "trie/ids.h"
#include "trie/parallel.h"
#include "trie/probe.h"

enum {
    PIECE_LABELS = 1 << 16,
    RUN_LABELS = 4096,
    FETCH_LABELS = 512, /* fetched ahead, at most */
    LINE_LABELS = 32    /* of a cache line */
};

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

static void narrow_probe(const ft_trie *t, const ft_range *runs, uint32_t n,
                         const uint64_t *filter, ft_hits *hits)
{
    const ft_narrow *l = t->layout;
    hits->n = 0;
    for (uint32_t run = 0, edge = 0; run < n; edge += (uint32_t)runs[run++].count) {
        const uint64_t first = runs[run].first;
        uint32_t *edges = hits->edges + hits->n, *codes = hits->codes + hits->n;
        const uint32_t n_hits = ft_filter_lows(filter, l->low + first - 1, edge,
                                               (uint32_t)runs[run].count, edges);
        for (uint32_t i = 0; i < n_hits; i++)
            codes[i] = ft_narrow_label(l, first + (edges[i] - edge));
        ft_hits_add(hits, n_hits, run);
    }
}

static void narrow_fetch(const ft_trie *t, const ft_range *runs, uint32_t n)
{
    const ft_narrow *l = t->layout;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t at = runs[i].first - 1;
        const uint64_t some =
            runs[i].count < FETCH_LABELS ? runs[i].count : FETCH_LABELS;
        for (uint64_t j = 0; j < some; j += LINE_LABELS)
            __builtin_prefetch(l->low + at + j);
        if (l->high_bits) {
            __builtin_prefetch(l->flags.words + at / 64);
            __builtin_prefetch(l->flags.rank + at / FT_BLOCK_BITS * 2);
        }
    }
}

static const ft_trie_ops narrow_ops = {
    .children = ft_louds_children,
    .labels = narrow_labels,
    .find = narrow_find,
    .flags = ft_louds_flags,
    .children_many = ft_louds_children_many,
    .flags_many = ft_louds_flags_many,
    .terminal_rank = ft_louds_terminal_rank,
    .seek = ft_louds_seek,
    .visit = ft_louds_visit,
    .codes = narrow_labels,
    .probe = narrow_probe,
    .fetch = narrow_fetch,
};

/* Bits and labels are those of nodes 1, 2, ... */
static void put_flags(const ft_level_map *map, ft_bits_out *b)
{
    unsigned n, at;
    ft_group_iter groups = ft_map_groups(map, b->first * 64 + 1, &at);
    ft_bits_seek(b, b->first * 64 - at);
    for (const ft_group *g; !ft_bits_full(b) && (g = ft_group_next(&groups, &n));)
        ft_bits_put(b, g->high, n);
}

static ft_status fill_low(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                          ft_error *err)
{
    unsigned n_group, skip;
    ft_group_iter it = ft_map_groups(arg, at / 2 + 1, &skip);
    (void)err;
    for (uint64_t done = 0; done < n; skip = 0) {
        const ft_group *g = ft_group_next(&it, &n_group);
        const uint64_t bytes = (n_group - skip) * sizeof *g->low, left = n - done;
        const uint64_t here = bytes < left ? bytes : left;
        memcpy(out + done, g->low + skip, here);
        done += here;
    }
    return FT_OK;
}

static void put_highs(const ft_chunk *c, uint64_t first, unsigned width, ft_bits_out *b)
{
    for (uint64_t i = first; i < c->n_highs && !ft_bits_full(b); i++)
        ft_bits_put(b, ft_chunk_high(c, i), width);
}

static ft_status fill_high(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                           ft_error *err)
{
    const ft_level_map *map = arg;
    const unsigned width = high_width(map->levels->max_token);
    const ft_span *s = ft_map_by_highs(map, at * 8 / width);
    ft_bits_out b = ft_bits_window(out, at, n);
    (void)err;
    ft_bits_seek(&b, s->highs * width);
    ft_group_iter it = {.levels = map->levels, .level = s->level, .chunk = s->chunk};
    uint64_t first = s->chunk_highs;
    for (const ft_chunk *c = it.chunk; c && !ft_bits_full(&b); c = ft_chunk_next(&it)) {
        put_highs(c, first, width, &b);
        first = 0;
    }
    ft_bits_close(&b);
    return FT_OK;
}

static ft_status build_high(ft_writer *w, const ft_level_map *map)
{
    const ft_levels *l = map->levels;
    const unsigned width = high_width(l->max_token);
    if (width == 0)
        return FT_OK;
    const ft_vector_source flags = {
        .type = FT_SECTION_HIGH_FLAGS,
        .rank_type = FT_SECTION_HIGH_RANK,
        .n_bits = l->n_nodes - 1,
        .n_ones = l->n_highs,
        .map = map,
        .put = put_flags,
    };
    const ft_section high = {FT_SECTION_HIGH, width, l->n_highs,
                             ft_packed_bytes(l->n_highs, width)};
    const ft_status st = ft_vector_write(w, &flags);
    return st == FT_OK ? ft_section_fill(w, &high, fill_high, (void *)map) : st;
}

static ft_status narrow_build(ft_writer *w, ft_level_map *map)
{
    const uint64_t n = map->levels->n_nodes - 1;
    const ft_section low = {FT_SECTION_LABELS_LOW, 0, n, n * 2};
    ft_status st = ft_louds_build(w, map);
    if (st == FT_OK)
        st = ft_section_fill(w, &low, fill_low, (void *)map);
    if (st == FT_OK)
        st = build_high(w, map);
    return st == FT_OK ? ft_ids_build(w, map) : st;
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

static ft_status open_labels(ft_narrow *l, const ft_trie *trie, const ft_sections *s,
                             uint64_t n, uint32_t *n_used, ft_error *err)
{
    const void *data;
    const ft_section_want want = {FT_SECTION_LABELS_LOW, 0, n, n * 2};
    const ft_status st = ft_sections_find(s, &want, &data, err);
    if (st != FT_OK)
        return st;
    l->low = data;
    l->high_bits = high_width(trie->max_token);
    if (l->high_bits == 0)
        return FT_OK;
    *n_used += 3;
    return open_high(l, s, n, err);
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
    if ((st = open_labels(l, trie, sections, n, &n_used, err)) != FT_OK)
        return st;
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
        t->ops->labels(t, i + 1, n, labels);
        for (uint64_t j = 0; j < n; j++)
            max = labels[j] > max ? labels[j] : max;
        if (max > t->max_token)
            return ft_fail(err, FT_EFORMAT,
                           "section labels-low: token %u, the largest is to be %u", max,
                           t->max_token);
    }
    return FT_OK;
}

static ft_status verify_labels(const ft_trie *trie, uint64_t n, uint32_t n_threads,
                               ft_error *err)
{
    const ft_narrow *l = trie->layout;
    ft_status st = FT_OK;
    if (l->high_bits) {
        st = ft_vector_verify(&l->flags, "high-flags", n_threads, err);
        if (st == FT_OK &&
            !ft_packed_padding_ok(l->high, l->flags.n_ones, l->high_bits))
            st = ft_fail(err, FT_EFORMAT, "section high: bits beyond the last are set");
        if (st == FT_OK)
            st = ft_parallel(l->flags.n_ones, PIECE_LABELS, n_threads, check_highs,
                             (void *)l, err);
    }
    if (st == FT_OK)
        st = ft_parallel(n, PIECE_LABELS, n_threads, check_labels, (void *)trie, err);
    return st;
}

static ft_status narrow_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err)
{
    const ft_status st = ft_louds_verify(trie, n_threads, err);
    return st == FT_OK ? verify_labels(trie, trie->n_nodes - 1, n_threads, err) : st;
}

const ft_layout ft_layout_narrow = {
    .name = "narrow",
    .summary = "16-bit labels, high bits apart where needed (the paper's)",
    .id = FT_LAYOUT_NARROW,
    .build = narrow_build,
    .open = narrow_open,
    .verify = narrow_verify,
};
