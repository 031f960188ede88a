/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/louds.h"

#include "trie/ids.h"

ft_range ft_louds_children(const ft_trie *t, uint64_t node)
{
    return ft_louds_children_of(t->layout, node);
}

unsigned ft_louds_flags(const ft_trie *t, uint64_t node)
{
    return ft_louds_flags_of(t->layout, node);
}

/* Where the runs of nodes start but for a look at the bits, which are fetched; 0 counts
 * as node 1. */
static void locate_runs(const ft_louds *l, const uint64_t *nodes, uint32_t n,
                        ft_bit_place *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t zero = nodes[i] - (nodes[i] != 0);
        const uint32_t block = l->louds.hints[zero / FT_HINT_STEP];
        __builtin_prefetch(l->louds.rank + 2 * (uint64_t)block);
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i] = ft_bitvec_locate0(&l->louds, nodes[i] - (nodes[i] != 0));
        __builtin_prefetch(l->louds.words + out[i].word);
    }
}

void ft_louds_children_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                            ft_range *out)
{
    const ft_louds *l = t->layout;
    ft_bit_place places[FT_MANY];
    locate_runs(l, nodes, n, places);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t zero = ft_bitvec_place0(&l->louds, places[i]);
        out[i] = ft_louds_run(l, nodes[i], nodes[i] ? zero + 1 : 0);
    }
}

/* Only of nodes that end a key it is not plain whether they have children. */
void ft_louds_flags_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                         uint8_t *out)
{
    const ft_louds *l = t->layout;
    uint64_t ends[FT_MANY];
    uint8_t at[FT_MANY];
    ft_bit_place places[FT_MANY];
    uint32_t n_ends = 0;
    if (!n)
        return;
    for (uint32_t i = 0; i < n; i++)
        __builtin_prefetch(l->terminal.words + nodes[i] / 64);
    for (uint32_t i = 0; i < n; i++) {
        const bool terminal = ft_bit_get(l->terminal.words, nodes[i]);
        out[i] = terminal ? FT_NODE_TERMINAL : FT_NODE_HAS_CHILDREN;
        ends[n_ends] = nodes[i];
        at[n_ends] = (uint8_t)i;
        n_ends += terminal;
    }
    locate_runs(l, ends, n_ends, places);
    for (uint32_t i = 0; i < n_ends; i++)
        if (ft_bit_get(l->louds.words, ft_bitvec_place0(&l->louds, places[i]) + 1))
            out[at[i]] |= FT_NODE_HAS_CHILDREN;
}

uint64_t ft_louds_terminal_rank(const ft_trie *t, uint64_t node)
{
    const ft_louds *l = t->layout;
    return ft_bitvec_rank1(&l->terminal, node);
}

uint64_t ft_louds_seek(const ft_trie *t, uint64_t node)
{
    return ft_louds_run_start(t->layout, node);
}

ft_visit ft_louds_visit(const ft_trie *t, uint64_t node, uint64_t *place)
{
    const ft_louds *l = t->layout;
    const uint64_t start = *place, end = ft_bitvec_next0(&l->louds, start);
    *place = end + 1;
    return (ft_visit){{start - node + 1, end - start},
                      ft_bit_get(l->terminal.words, node)};
}

/* Where the bits of a span's first node start: behind the zeros of the nodes before it
 * and the ones of their children, which are the nodes from 1 on. */
static uint64_t start_of(const ft_level_map *map, const ft_span *s)
{
    const ft_sibling_cursor children = ft_map_siblings(map, s->parents);
    return s->node + ft_siblings_node(&children) - 1;
}

/* The last span that starts at or before a bit. */
static const ft_span *span_at(const ft_level_map *map, uint64_t bit)
{
    uint64_t lo = 0, hi = map->n_spans - 1;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo + 1) / 2;
        if (start_of(map, &map->spans[mid]) <= bit)
            lo = mid;
        else
            hi = mid - 1;
    }
    return &map->spans[lo];
}

/* Zeros for the leaves, a run of ones and a zero for each node with children. */
static void put_group(ft_bits_out *b, const ft_group *g, unsigned n,
                      ft_sibling_cursor *children)
{
    unsigned done = 0;
    for (uint64_t child = g->child; child; child &= child - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(child);
        const uint64_t degree = ft_siblings_next(children);
        ft_bits_put(b, 0, i - done);
        if (degree < 64) {
            ft_bits_put(b, ft_low_mask((unsigned)degree), (unsigned)degree + 1);
        } else {
            ft_bits_ones(b, degree);
            ft_bits_put(b, 0, 1);
        }
        done = i + 1;
    }
    ft_bits_put(b, 0, n - done);
}

static void put_tree(const ft_level_map *map, ft_bits_out *b)
{
    const ft_span *s = span_at(map, b->first * 64);
    ft_sibling_cursor children = ft_map_siblings(map, s->parents);
    unsigned n, at;
    ft_group_iter groups = ft_map_groups(map, s->node, &at);
    ft_bits_seek(b, start_of(map, s));
    for (const ft_group *g; !ft_bits_full(b) && (g = ft_group_next(&groups, &n));)
        put_group(b, g, n, &children);
}

static void put_terminals(const ft_level_map *map, ft_bits_out *b)
{
    unsigned n, at;
    ft_group_iter groups = ft_map_groups(map, b->first * 64, &at);
    ft_bits_seek(b, b->first * 64 - at);
    for (const ft_group *g; !ft_bits_full(b) && (g = ft_group_next(&groups, &n));)
        ft_bits_put(b, g->terminal, n);
}

ft_vector_source ft_louds_tree(const ft_level_map *map)
{
    return (ft_vector_source){
        .type = FT_SECTION_LOUDS,
        .rank_type = FT_SECTION_LOUDS_RANK,
        .hints_type = FT_SECTION_LOUDS_SELECT,
        .n_bits = 2 * map->levels->n_nodes - 1,
        .n_ones = map->levels->n_nodes - 1,
        .map = map,
        .put = put_tree,
    };
}

ft_vector_source ft_louds_terminals(const ft_level_map *map)
{
    return (ft_vector_source){
        .type = FT_SECTION_TERMINAL,
        .rank_type = map->levels->ids ? FT_SECTION_TERMINAL_RANK : 0,
        .n_bits = map->levels->n_nodes,
        .n_ones = map->levels->n_keys,
        .map = map,
        .put = put_terminals,
    };
}

ft_status ft_louds_build(ft_writer *w, const ft_level_map *map)
{
    const ft_vector_source tree = ft_louds_tree(map), ends = ft_louds_terminals(map);
    const ft_status st = ft_vector_write(w, &tree);
    return st == FT_OK ? ft_vector_write(w, &ends) : st;
}

ft_status ft_vector_open(ft_bitvec *b, const ft_sections *s, uint32_t type,
                         uint32_t rank_type, uint32_t hints_type, ft_error *err)
{
    const void *data;
    ft_status st = ft_sections_find(
        s, &(ft_section_want){type, 0, b->n_bits, ft_bitvec_bytes(b->n_bits)}, &data,
        err);
    if (st != FT_OK)
        return st;
    b->words = data;
    if (rank_type) {
        const uint64_t blocks = ft_bitvec_blocks(b->n_bits);
        const ft_section_want want = {rank_type, 0, blocks, blocks * 16};
        if ((st = ft_sections_find(s, &want, &data, err)) != FT_OK)
            return st;
        b->rank = data;
    }
    if (hints_type) {
        const uint64_t hints = ft_bitvec_hints(b->n_bits - b->n_ones);
        const ft_section_want want = {hints_type, 0, hints, hints * 4};
        if ((st = ft_sections_find(s, &want, &data, err)) != FT_OK)
            return st;
        b->hints = data;
    }
    return FT_OK;
}

ft_status ft_louds_open(ft_louds *l, ft_trie *trie, const ft_sections *sections,
                        uint32_t *n_used, ft_error *err)
{
    const uint64_t n = trie->n_nodes;
    if (!trie->level_order)
        return ft_fail(err, FT_EFORMAT,
                       "header: flags say no level order, LOUDS has it");
    l->louds = (ft_bitvec){.n_bits = 2 * n - 1, .n_ones = n - 1};
    l->terminal = (ft_bitvec){.n_bits = n, .n_ones = trie->n_keys};
    ft_status st = ft_vector_open(&l->louds, sections, FT_SECTION_LOUDS,
                                  FT_SECTION_LOUDS_RANK, FT_SECTION_LOUDS_SELECT, err);
    if (st == FT_OK)
        st = ft_vector_open(&l->terminal, sections, FT_SECTION_TERMINAL,
                            trie->has_ids ? FT_SECTION_TERMINAL_RANK : 0, 0, err);
    *n_used += 4;
    if (st != FT_OK || !trie->has_ids)
        return st;
    ++*n_used;
    return ft_ids_open(trie, sections, n_used, err);
}
