/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/tails.h"

#include <stdlib.h>

#include "trie/louds.h"
#include "trie/probe.h"

static inline bool in_tail(uint64_t node)
{
    return ft_tails_depth(node) != 0;
}

static inline bool in_tail_or_link(const ft_tails *l, uint64_t node)
{
    return in_tail(node) || ft_tails_is_link(l, node);
}

/* The only child of a link or of a node in a tail, if it has one. */
static ft_range next_in_tail(const ft_tails *l, uint64_t node)
{
    bool last = false;
    if (in_tail(node))
        ft_tails_peek(l, node, &last);
    return (ft_range){node + ((uint64_t)1 << FT_TAIL_SHIFT), !last};
}

static ft_range tails_children(const ft_trie *t, uint64_t node)
{
    const ft_tails *l = t->layout;
    return in_tail_or_link(l, node) ? next_in_tail(l, node)
                                    : l->inner.ops->children(&l->inner, node);
}

static unsigned tails_flags(const ft_trie *t, uint64_t node)
{
    const ft_tails *l = t->layout;
    if (!in_tail_or_link(l, node))
        return l->inner.ops->flags(&l->inner, node);
    return next_in_tail(l, node).count ? FT_NODE_HAS_CHILDREN : FT_NODE_TERMINAL;
}

/* Where the links among up to 64 nodes start: one rank serves them all. */
static void starts_of(const ft_tails *l, uint64_t first, uint64_t links, uint64_t *out)
{
    uint64_t rank = l->high_bits ? ft_bitvec_rank1(&l->links, first - 1) : 0;
    for (; links; links &= links - 1) {
        const uint64_t at = first - 1 + ft_lowest_bit(links);
        const uint64_t high = ft_packed_get(l->high, rank++, l->high_bits);
        *out = high << FT_TAIL_SLOT_BITS | l->slots[at * l->slot_step];
        __builtin_prefetch(l->tail + *out++ * l->tail_bits / 64);
    }
}

/* Put the first tokens of the links of a run in their places. They are anywhere in the
 * tail: all are asked for before the first is read. */
static void put_links(const ft_tails *l, uint64_t first, uint64_t count, uint32_t *out)
{
    for (uint64_t done = 0; done < count; done += 64) {
        const unsigned n = count - done < 64 ? (unsigned)(count - done) : 64;
        uint64_t links = ft_bitvec_get(&l->links, first - 1 + done, n);
        uint64_t starts[64], *start = starts;
        bool last;
        if (links)
            starts_of(l, first + done, links, starts);
        for (; links; links &= links - 1)
            out[done + ft_lowest_bit(links)] = ft_tails_token(l, *start++, &last);
    }
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
    l->inner.ops->labels(&l->inner, first, count, out);
    if (l->slots)
        put_links(l, first, count, out);
}

/* Binary search in which a comparison peeks into the tail (paper Appendix C). */
static uint64_t find_by_labels(const ft_trie *t, ft_range range, uint32_t token)
{
    uint64_t lo = range.first, n = range.count;
    uint32_t label;
    while (n > 1) {
        const uint64_t half = n / 2;
        tails_labels(t, lo + half - 1, 1, &label);
        lo += label < token ? half : 0;
        n -= half;
    }
    tails_labels(t, lo, 1, &label);
    return label == token ? lo : UINT64_MAX;
}

static uint64_t tails_find(const ft_trie *t, ft_range range, uint32_t token)
{
    const ft_tails *l = t->layout;
    if (range.count == 0)
        return UINT64_MAX;
    if (l->slots || in_tail(range.first))
        return find_by_labels(t, range, token);
    return l->inner.ops->find(&l->inner, range, token);
}

static uint64_t tails_terminal_rank(const ft_trie *t, uint64_t node)
{
    const ft_tails *l = t->layout;
    return l->inner.ops->terminal_rank(&l->inner, ft_tails_head(node));
}

/* A level that is entered in a tail has no place yet: the first node of the tree that
 * is visited there is searched for. */
enum { NO_PLACE = 0 };

static uint64_t tails_seek(const ft_trie *t, uint64_t node)
{
    const ft_tails *l = t->layout;
    return in_tail(node) ? (uint64_t)NO_PLACE : l->inner.ops->seek(&l->inner, node);
}

static ft_visit tails_visit(const ft_trie *t, uint64_t node, uint64_t *place)
{
    const ft_tails *l = t->layout;
    ft_visit v = {{0, 0}, false};
    if (!in_tail(node)) {
        if (*place == NO_PLACE) /* which may be the root's, too */
            *place = l->inner.ops->seek(&l->inner, node);
        v = l->inner.ops->visit(&l->inner, node, place);
        if (!ft_tails_is_link(l, node))
            return v;
    }
    v.children = next_in_tail(l, node);
    v.terminal = v.children.count == 0;
    return v;
}

static void tails_probe(const ft_trie *t, const ft_range *runs, uint32_t n,
                        const uint64_t *filter, ft_hits *hits)
{
    hits->n = 0;
    for (uint32_t run = 0, edge = 0; run < n; edge += (uint32_t)runs[run++].count) {
        uint32_t *edges = hits->edges + hits->n, *codes = hits->codes + hits->n;
        tails_labels(t, runs[run].first, runs[run].count, codes);
        const uint32_t n_hits =
            ft_filter_codes(filter, codes, edge, (uint32_t)runs[run].count, edges);
        for (uint32_t i = 0; i < n_hits; i++)
            codes[i] = codes[edges[i] - edge]; /* they ascend: not overwritten yet */
        ft_hits_add(hits, n_hits, run);
    }
}

/* The first node, `n` levels below, that comes from `node` or one behind it. */
static uint64_t first_below(const ft_trie *t, uint64_t node, uint64_t n)
{
    for (; n; n--) {
        uint64_t place = t->ops->seek(t, node);
        node = t->ops->visit(t, node, &place).children.first;
    }
    return node;
}

/* Nodes of one depth: the head that is deeper in its tail is higher in the tree, and a
 * leaf there; the other is before it if it is before all that comes from what is behind
 * it. */
static bool tails_before(const ft_trie *t, uint64_t a, uint64_t b)
{
    const ft_tails *l = t->layout;
    const uint64_t deep_a = ft_tails_depth(a), deep_b = ft_tails_depth(b);
    const uint64_t x = ft_tails_head(a), y = ft_tails_head(b);
    return deep_a > deep_b ? first_below(&l->inner, x, deep_a - deep_b) <= y
                           : x < first_below(&l->inner, y, deep_b - deep_a);
}

/* Of a link and of a node in its tail, where it is told that it is one. */
static void fetch_link(const ft_tails *l, uint64_t node)
{
    const uint64_t head = ft_tails_head(node);
    if (head == 0)
        return;
    __builtin_prefetch(l->links.words + (head - 1) / 64);
    if (l->slots)
        __builtin_prefetch(l->slots + (head - 1) * l->slot_step);
    if (in_tail(node) && l->high_bits)
        __builtin_prefetch(l->links.rank + (head - 1) / FT_BLOCK_BITS * 2);
}

/* Nodes of the tree among those asked about, and where they are; links and tails are
 * told by other means. */
static uint32_t in_tree(const ft_tails *l, const uint64_t *nodes, uint32_t n,
                        uint64_t *inner, uint8_t *at)
{
    uint32_t n_inner = 0;
    for (uint32_t i = 0; i < n; i++)
        fetch_link(l, nodes[i]);
    for (uint32_t i = 0; i < n; i++) {
        inner[n_inner] = nodes[i];
        at[n_inner] = (uint8_t)i;
        n_inner += !in_tail_or_link(l, nodes[i]);
    }
    return n_inner;
}

static void tails_children_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                                ft_range *out)
{
    const ft_tails *l = t->layout;
    uint64_t inner[FT_MANY];
    uint8_t at[FT_MANY];
    ft_range children[FT_MANY];
    const uint32_t n_inner = in_tree(l, nodes, n, inner, at);
    l->inner.ops->children_many(&l->inner, inner, n_inner, children);
    for (uint32_t i = 0, j = 0; i < n; i++)
        out[i] = j < n_inner && at[j] == i ? children[j++] : next_in_tail(l, nodes[i]);
}

static void tails_flags_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                             uint8_t *out)
{
    const ft_tails *l = t->layout;
    uint64_t inner[FT_MANY];
    uint8_t at[FT_MANY], flags[FT_MANY];
    const uint32_t n_inner = in_tree(l, nodes, n, inner, at);
    l->inner.ops->flags_many(&l->inner, inner, n_inner, flags);
    for (uint32_t i = 0, j = 0; i < n; i++)
        out[i] = j < n_inner && at[j] == i         ? flags[j++]
                 : next_in_tail(l, nodes[i]).count ? FT_NODE_HAS_CHILDREN
                                                   : FT_NODE_TERMINAL;
}

static void tails_fetch(const ft_trie *t, const ft_range *runs, uint32_t n)
{
    const ft_tails *l = t->layout;
    ft_range inner[FT_MANY];
    uint32_t n_inner = 0;
    for (uint32_t i = 0; i < n; i++) {
        inner[n_inner] = runs[i];
        n_inner += runs[i].count && !in_tail(runs[i].first);
    }
    l->inner.ops->fetch(&l->inner, inner, n_inner);
}

/* Codes are the tokens, over compact as well: those in tails are shared by levels that
 * have different codes. */
static const ft_trie_ops tails_ops = {
    .children = tails_children,
    .labels = tails_labels,
    .find = tails_find,
    .flags = tails_flags,
    .children_many = tails_children_many,
    .flags_many = tails_flags_many,
    .terminal_rank = tails_terminal_rank,
    .seek = tails_seek,
    .visit = tails_visit,
    .codes = tails_labels,
    .probe = tails_probe,
    .before = tails_before,
    .fetch = tails_fetch,
};

static bool of_links(uint32_t type)
{
    return type >= FT_SECTION_TAIL && type <= FT_SECTION_TREE;
}

/* The sections of the inner layout. */
typedef struct inner_sections {
    ft_section_entry table[FT_MAX_SECTIONS];
    const void *data[FT_MAX_SECTIONS];
    ft_sections s;
} inner_sections;

static void take_inner(inner_sections *in, const ft_sections *s)
{
    in->s = (ft_sections){s->header, in->table, in->data, 0};
    for (uint32_t i = 0; i < s->n; i++)
        if (!of_links(s->table[i].type)) {
            in->table[in->s.n] = s->table[i];
            in->data[in->s.n++] = s->data[i];
        }
}

static ft_status open_inner(ft_tails *l, ft_trie *trie, const ft_tails_form *form,
                            const ft_sections *s, ft_error *err)
{
    inner_sections in;
    const void *data;
    const ft_section_want want = {FT_SECTION_TREE, 0, 1, sizeof(ft_index_tree)};
    ft_status st = ft_sections_find(s, &want, &data, err);
    if (st != FT_OK)
        return st;
    const ft_index_tree *tree = data;
    if (tree->n_nodes <= trie->n_keys || tree->n_nodes > trie->n_nodes)
        return ft_fail(err, FT_EFORMAT, "section tree: %llu nodes of %llu",
                       (unsigned long long)tree->n_nodes,
                       (unsigned long long)trie->n_nodes);
    if (tree->depth > trie->depth || tree->zero != 0)
        return ft_fail(err, FT_EFORMAT, "section tree: depth %u of %u", tree->depth,
                       trie->depth);
    trie->n_numbered = tree->n_nodes;
    l->inner = (ft_trie){
        .n_nodes = tree->n_nodes,
        .n_numbered = tree->n_nodes,
        .n_keys = trie->n_keys,
        .depth = tree->depth,
        .max_token = trie->max_token,
        .level_order = true,
        .has_ids = trie->has_ids,
    };
    if (form->slots) /* which hold what they like; see check_labels */
        l->inner.max_token |= (1u << FT_TAIL_SLOT_BITS) - 1;
    take_inner(&in, s);
    st = form->inner->open(&l->inner, &in.s, err);
    if (st != FT_OK)
        return st;
    trie->ids = l->inner.ids;
    trie->id_bits = l->inner.id_bits;
    if (form->slots)
        l->slots = s->data[ft_sections_entry(s, form->slots) - s->table];
    l->slot_step = form->slot_step;
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

/* The sizes follow from the nodes of the tree, and from the links and the tokens of the
 * tail, which the table gives. */
static ft_status open_links(ft_tails *l, const ft_trie *trie, const ft_tails_form *form,
                            const ft_sections *s, ft_error *err)
{
    const ft_section_entry *high = ft_sections_entry(s, FT_SECTION_LINK_HIGH);
    const ft_section_entry *tail = ft_sections_entry(s, FT_SECTION_TAIL);
    const uint64_t n = trie->n_numbered;
    if (!high || !tail)
        return ft_fail(err, FT_EFORMAT, "section %s: missing",
                       ft_section_name(high ? FT_SECTION_TAIL : FT_SECTION_LINK_HIGH));
    if (high->items >= n)
        return ft_fail(err, FT_EFORMAT, "section link-high: more links than nodes");
    if (tail->items > trie->n_nodes - n + high->items)
        return ft_fail(err, FT_EFORMAT, "section tail: more tokens than nodes");
    l->links = (ft_bitvec){.n_bits = n - 1, .n_ones = high->items};
    l->n_tail = tail->items;
    l->high_bits = ft_tails_high_bits(form, l->n_tail);
    l->tail_bits = ft_tails_field_bits(form, trie->max_token);
    ft_status st = ft_vector_open(&l->links, s, FT_SECTION_LINK_FLAGS,
                                  FT_SECTION_LINK_RANK, 0, err);
    if (st == FT_OK)
        st = open_packed(&l->high, s, FT_SECTION_LINK_HIGH, l->links.n_ones,
                         l->high_bits, err);
    return st == FT_OK
               ? open_packed(&l->tail, s, FT_SECTION_TAIL, l->n_tail, l->tail_bits, err)
               : st;
}

static ft_status tails_open(ft_trie *trie, const ft_sections *sections, ft_error *err)
{
    const ft_tails_form *form =
        ft_tails_form_of(ft_layout_by_id(sections->header->layout));
    if (trie->level_order)
        return ft_fail(err, FT_EFORMAT,
                       "header: flags say level order, tails have none");
    ft_tails *l = ft_new(ft_tails, err);
    if (!l)
        return FT_ENOMEM;
    l->form = form;
    trie->layout = l;
    trie->ops = &tails_ops;
    const ft_status st = open_inner(l, trie, form, sections, err);
    return st == FT_OK ? open_links(l, trie, form, sections, err) : st;
}

static void tails_close(ft_trie *trie)
{
    const ft_tails *l = trie->layout;
    free((void *)l->inner.layout);
}

static ft_status build(ft_writer *w, ft_level_map *map)
{
    const ft_layout *layout = ft_layout_by_id(w->front.header.layout);
    ft_tail_summary ignored;
    return ft_tails_build(w, map, ft_tails_form_of(layout), false, &ignored);
}

void ft_tails_summarise(const ft_trie *trie, ft_tail_summary *out)
{
    const ft_tails *l = trie->layout;
    *out = (ft_tail_summary){
        .n_links = l->links.n_ones,
        .n_folded = trie->n_nodes - trie->n_numbered + (l->slots ? l->links.n_ones : 0),
        .n_tail = l->n_tail,
        .n_flags = ft_tails_flag_tokens(trie->n_numbered, l->tail_bits),
        .measured = true,
        .kept = true,
    };
}

const ft_layout ft_layout_narrow_tails = {
    .name = "narrow-tails",
    .summary = "narrow with links into a shared tail (the paper's)",
    .id = FT_LAYOUT_NARROW_TAILS,
    .build = build,
    .open = tails_open,
    .verify = ft_tails_verify,
    .close = tails_close,
};

const ft_layout ft_layout_wide_tails = {
    .name = "wide-tails",
    .summary = "wide with links into a shared tail (what MARISA-Int walks)",
    .id = FT_LAYOUT_WIDE_TAILS,
    .build = build,
    .open = tails_open,
    .verify = ft_tails_verify,
    .close = tails_close,
};

const ft_layout ft_layout_compact_tails = {
    .name = "compact-tails",
    .summary = "compact with links where a shared tail pays",
    .id = FT_LAYOUT_COMPACT_TAILS,
    .build = build,
    .open = tails_open,
    .verify = ft_tails_verify,
    .close = tails_close,
};

static const ft_tails_form forms[] = {
    {.layout = &ft_layout_narrow_tails,
     .inner = &ft_layout_narrow,
     .slots = FT_SECTION_LABELS_LOW,
     .slot_step = 1},
    {.layout = &ft_layout_wide_tails,
     .inner = &ft_layout_wide,
     .slots = FT_SECTION_LABELS,
     .slot_step = 2,
     .token_bits = 32},
    {.layout = &ft_layout_compact_tails, .inner = &ft_layout_compact, .choosy = true},
};

enum { N_FORMS = sizeof forms / sizeof *forms };

const ft_tails_form *ft_tails_form_of(const ft_layout *layout)
{
    for (unsigned i = 0; i < N_FORMS; i++)
        if (forms[i].layout == layout)
            return &forms[i];
    return NULL;
}

const ft_tails_form *ft_tails_form_over(const ft_layout *inner)
{
    for (unsigned i = 0; i < N_FORMS; i++)
        if (forms[i].inner == inner)
            return &forms[i];
    return NULL;
}
