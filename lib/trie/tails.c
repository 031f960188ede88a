/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/tails.h"

#include "trie/ids.h"
#include "trie/probe.h"

static inline bool in_tail(uint64_t node)
{
    return ft_tails_depth(node) != 0;
}

/* The only child of a link or of a node in a tail, if it has one. */
static ft_range next_in_tail(const ft_tails *l, uint64_t node)
{
    bool last;
    ft_tails_peek(l, node, &last);
    return (ft_range){node + ((uint64_t)1 << FT_TAIL_SHIFT), !last};
}

static ft_range tails_children(const ft_trie *t, uint64_t node)
{
    const ft_tails *l = t->layout;
    if (in_tail(node) || ft_tails_is_link(l, node))
        return next_in_tail(l, node);
    return ft_louds_children_of(&l->narrow.base, node);
}

static unsigned tails_flags(const ft_trie *t, uint64_t node)
{
    const ft_tails *l = t->layout;
    bool last;
    if (!in_tail(node))
        return ft_tails_is_link(l, node) ? (unsigned)FT_NODE_HAS_CHILDREN
                                         : ft_louds_flags_of(&l->narrow.base, node);
    ft_tails_peek(l, node, &last);
    return last ? FT_NODE_TERMINAL : FT_NODE_HAS_CHILDREN;
}

/* Put the first tokens of the links of a run in their places; returns their number. */
static uint64_t put_links(const ft_tails *l, uint64_t first, uint64_t count,
                          uint32_t *out)
{
    uint64_t n_links = 0;
    bool last;
    for (uint64_t done = 0; done < count; done += 64) {
        const unsigned n = count - done < 64 ? (unsigned)(count - done) : 64;
        uint64_t links = ft_bitvec_get(&l->links, first - 1 + done, n);
        n_links += ft_popcount(links);
        for (; links; links &= links - 1) {
            const uint64_t i = done + ft_lowest_bit(links);
            out[i] = ft_tails_peek(l, first + i, &last);
        }
    }
    return n_links;
}

static void tails_labels(const ft_trie *t, uint64_t first, uint64_t count,
                         uint32_t *out)
{
    const ft_tails *l = t->layout;
    bool last;
    if (in_tail(first)) {
        if (count)
            *out = ft_tails_peek(l, first, &last);
        return;
    }
    ft_narrow_labels(t, first, count, out);
    put_links(l, first, count, out);
}

/* Any node that is a child (paper Appendix C: a comparison peeks into the tail). */
static uint32_t label_of(const ft_tails *l, uint64_t node)
{
    bool last;
    return in_tail(node) || ft_tails_is_link(l, node)
               ? ft_tails_peek(l, node, &last)
               : ft_narrow_label(&l->narrow, node);
}

static uint64_t tails_find(const ft_trie *t, ft_range range, uint32_t token)
{
    const ft_tails *l = t->layout;
    uint64_t lo = range.first, n = range.count;
    if (n == 0)
        return UINT64_MAX;
    while (n > 1) {
        const uint64_t half = n / 2;
        lo += label_of(l, lo + half - 1) < token ? half : 0;
        n -= half;
    }
    return label_of(l, lo) == token ? lo : UINT64_MAX;
}

static uint64_t tails_terminal_rank(const ft_trie *t, uint64_t node)
{
    return ft_louds_terminal_rank(t, ft_tails_head(node));
}

/* A level that is entered in a tail has no place yet: the first node in LOUDS that is
 * visited there is searched for. */
enum { NO_PLACE = 0 };

static uint64_t tails_seek(const ft_trie *t, uint64_t node)
{
    return in_tail(node) ? (uint64_t)NO_PLACE : ft_louds_seek(t, node);
}

static ft_visit tails_visit(const ft_trie *t, uint64_t node, uint64_t *place)
{
    const ft_tails *l = t->layout;
    ft_visit v;
    if (in_tail(node)) {
        v.children = next_in_tail(l, node);
        v.terminal = v.children.count == 0;
        return v;
    }
    if (*place == NO_PLACE) /* which is the root's, too */
        *place = ft_louds_seek(t, node);
    v = ft_louds_visit(t, node, place);
    if (ft_tails_is_link(l, node)) {
        v.children = next_in_tail(l, node);
        v.terminal = false;
    }
    return v;
}

static uint32_t tails_probe(const ft_trie *t, uint64_t first, uint32_t count,
                            const uint64_t *filter, uint32_t *places, uint32_t *codes)
{
    tails_labels(t, first, count, codes);
    const uint32_t n = ft_filter_codes(filter, codes, count, places);
    for (uint32_t i = 0; i < n; i++)
        codes[i] = codes[places[i]]; /* places ascend: not overwritten yet */
    return n;
}

/* Nodes of one depth: of the one whose head lies deeper, go up to the other's. A link
 * is a leaf of LOUDS, so the two differ there, and are in level order. */
static bool tails_before(const ft_trie *t, uint64_t a, uint64_t b)
{
    const ft_tails *l = t->layout;
    uint64_t x = ft_tails_head(a), y = ft_tails_head(b);
    uint64_t deep_a = ft_tails_depth(a), deep_b = ft_tails_depth(b);
    for (; deep_a < deep_b; deep_a++)
        x = ft_louds_parent_of(&l->narrow.base, x);
    for (; deep_b < deep_a; deep_b++)
        y = ft_louds_parent_of(&l->narrow.base, y);
    return x < y;
}

/* Of a link and of a node in its tail the slot, and for others where LOUDS is read. */
static void tails_fetch(const ft_trie *t, uint64_t node)
{
    const ft_tails *l = t->layout;
    const uint64_t head = ft_tails_head(node);
    if (head == 0)
        return;
    __builtin_prefetch(l->links.words + (head - 1) / 64);
    __builtin_prefetch(l->narrow.low + head - 1);
    if (!in_tail(node))
        ft_louds_fetch(t, node);
    else if (l->high_bits)
        __builtin_prefetch(l->links.rank + (head - 1) / FT_BLOCK_BITS * 2);
}

static void tails_fetch_run(const ft_trie *t, ft_range children)
{
    if (children.count && !in_tail(children.first))
        ft_narrow_fetch_run(t, children);
}

static const ft_trie_ops tails_ops = {
    .children = tails_children,
    .labels = tails_labels,
    .find = tails_find,
    .flags = tails_flags,
    .terminal_rank = tails_terminal_rank,
    .seek = tails_seek,
    .visit = tails_visit,
    .codes = tails_labels,
    .probe = tails_probe,
    .before = tails_before,
    .fetch_node = tails_fetch,
    .fetch_children = tails_fetch,
    .fetch_run = tails_fetch_run,
};

/* The sizes of everything else follow from the nodes in LOUDS, the links and the tokens
 * of the tail, which the table gives. */
static ft_status open_sizes(ft_tails *l, ft_trie *trie, const ft_sections *s,
                            ft_error *err)
{
    const ft_section_entry *tree = ft_sections_entry(s, FT_SECTION_LOUDS);
    const ft_section_entry *high = ft_sections_entry(s, FT_SECTION_LINK_HIGH);
    const ft_section_entry *tail = ft_sections_entry(s, FT_SECTION_TAIL);
    if (!tree || !high || !tail)
        return ft_fail(err, FT_EFORMAT, "section %s: missing",
                       ft_section_name(!tree   ? FT_SECTION_LOUDS
                                       : !high ? FT_SECTION_LINK_HIGH
                                               : FT_SECTION_TAIL));
    if (tree->items % 2 == 0 || tree->items >= 2 * trie->n_nodes)
        return ft_fail(err, FT_EFORMAT, "section louds: %llu bits of %llu nodes",
                       (unsigned long long)tree->items,
                       (unsigned long long)trie->n_nodes);
    const uint64_t n = (tree->items + 1) / 2;
    if (high->items >= n)
        return ft_fail(err, FT_EFORMAT, "section link-high: more links than nodes");
    if (tail->items > trie->n_nodes - n + high->items)
        return ft_fail(err, FT_EFORMAT, "section tail: more tokens than nodes");
    trie->n_numbered = n;
    l->narrow.base.louds = (ft_bitvec){.n_bits = 2 * n - 1, .n_ones = n - 1};
    l->narrow.base.terminal = (ft_bitvec){.n_bits = n, .n_ones = trie->n_keys};
    l->links = (ft_bitvec){.n_bits = n - 1, .n_ones = high->items};
    l->n_tail = tail->items;
    l->high_bits = ft_tails_high_bits(l->n_tail);
    l->tail_bits = ft_tails_field_bits(trie->max_token);
    return FT_OK;
}

static ft_status open_packed(const uint64_t **words, const ft_sections *s,
                             uint32_t type, uint64_t n, unsigned width, ft_error *err)
{
    const ft_section_want want = {type, width, n, ft_packed_bytes(n, width)};
    const void *data;
    const ft_status st = ft_sections_find(s, &want, &data, err);
    if (st == FT_OK)
        *words = data;
    return st;
}

static ft_status open_vectors(ft_tails *l, ft_trie *trie, const ft_sections *s,
                              uint32_t *n_used, ft_error *err)
{
    ft_louds *base = &l->narrow.base;
    ft_status st = ft_vector_open(&base->louds, s, FT_SECTION_LOUDS,
                                  FT_SECTION_LOUDS_RANK, FT_SECTION_LOUDS_SELECT, err);
    if (st == FT_OK)
        st = ft_vector_open(&base->terminal, s, FT_SECTION_TERMINAL,
                            trie->has_ids ? FT_SECTION_TERMINAL_RANK : 0, 0, err);
    if (st == FT_OK)
        st = ft_ids_open(trie, s, n_used, err);
    if (st == FT_OK)
        st = ft_vector_open(&l->links, s, FT_SECTION_LINK_FLAGS, FT_SECTION_LINK_RANK,
                            0, err);
    *n_used += 6 + trie->has_ids;
    return st;
}

static ft_status tails_open(ft_trie *trie, const ft_sections *sections, ft_error *err)
{
    uint32_t n_used = 3; /* labels-low, link-high, tail */
    if (trie->level_order)
        return ft_fail(err, FT_EFORMAT,
                       "header: flags say level order, tails have none");
    ft_tails *l = ft_new(ft_tails, err);
    if (!l)
        return FT_ENOMEM;
    trie->layout = l;
    trie->ops = &tails_ops;
    ft_status st = open_sizes(l, trie, sections, err);
    if (st == FT_OK)
        st = open_vectors(l, trie, sections, &n_used, err);
    if (st == FT_OK)
        st = ft_narrow_open_labels(&l->narrow, trie, sections, trie->n_numbered - 1,
                                   &n_used, err);
    if (st == FT_OK)
        st = open_packed(&l->high, sections, FT_SECTION_LINK_HIGH, l->links.n_ones,
                         l->high_bits, err);
    if (st == FT_OK)
        st = open_packed(&l->tail, sections, FT_SECTION_TAIL, l->n_tail, l->tail_bits,
                         err);
    return st == FT_OK ? ft_sections_only(sections, n_used, err) : st;
}

static ft_status build(ft_writer *w, ft_level_map *map)
{
    ft_tail_summary ignored;
    return ft_tails_build(w, map, false, &ignored);
}

const ft_layout ft_layout_narrow_tails = {
    .name = "narrow-tails",
    .summary = "narrow with links into a shared tail (the paper's)",
    .id = FT_LAYOUT_NARROW_TAILS,
    .build = build,
    .open = tails_open,
    .verify = ft_tails_verify,
};
