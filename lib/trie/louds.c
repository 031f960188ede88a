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

void ft_louds_fetch(const ft_trie *t, uint64_t node)
{
    const ft_louds *l = t->layout;
    if (node == 0)
        return;
    const uint32_t block = l->louds.hints[(node - 1) / FT_HINT_STEP];
    __builtin_prefetch(l->louds.rank + 2 * (uint64_t)block);
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

ft_status ft_vector_end(ft_bits_out *b, uint32_t rank_type, uint32_t hints_type,
                        uint64_t n_bits)
{
    ft_status st = ft_bits_end_vector(b, n_bits);
    ft_bitvec_index *x = b->index;
    if (st == FT_OK && rank_type) {
        ft_section_begin(b->w, rank_type, x->rank.len / 16, 0, x->rank.len);
        ft_section_put(b->w, x->rank.data, x->rank.len);
        st = ft_section_end(b->w);
    }
    if (st == FT_OK && hints_type) {
        ft_section_begin(b->w, hints_type, x->hints.len / 4, 0, x->hints.len);
        ft_section_put(b->w, x->hints.data, x->hints.len);
        st = ft_section_end(b->w);
    }
    return st;
}

/* Zeros for the leaves, a run of ones and a zero for each node with children. */
static void put_tree(ft_bits_out *bits, const ft_levels *levels)
{
    ft_group_iter groups = ft_levels_from(levels, 0);
    ft_degree_iter degrees = ft_levels_degrees(levels);
    unsigned n;
    for (const ft_group *g; (g = ft_group_next(&groups, &n));) {
        unsigned done = 0;
        for (uint64_t child = g->child; child; child &= child - 1) {
            const unsigned i = (unsigned)__builtin_ctzll(child);
            const uint64_t degree = ft_degree_next(&degrees);
            ft_bits_put(bits, 0, i - done);
            if (degree < 64) {
                ft_bits_put(bits, ft_low_mask((unsigned)degree), (unsigned)degree + 1);
            } else {
                ft_bits_fill(bits, true, degree);
                ft_bits_put(bits, 0, 1);
            }
            done = i + 1;
        }
        ft_bits_put(bits, 0, n - done);
    }
}

ft_status ft_louds_build(ft_writer *w, const ft_levels *levels)
{
    const uint64_t n = levels->n_nodes, n_bits = 2 * n - 1;
    ft_bitvec_index index = {0};
    ft_bits_out bits = {.w = w, .index = &index};
    ft_section_begin(w, FT_SECTION_LOUDS, n_bits, 0, ft_bitvec_bytes(n_bits));
    put_tree(&bits, levels);
    ft_status st =
        ft_vector_end(&bits, FT_SECTION_LOUDS_RANK, FT_SECTION_LOUDS_SELECT, n_bits);
    ft_bitvec_index_free(&index);
    if (st != FT_OK)
        return st;

    bits = (ft_bits_out){.w = w, .index = levels->ids ? &index : NULL};
    ft_section_begin(w, FT_SECTION_TERMINAL, n, 0, ft_bitvec_bytes(n));
    ft_group_iter groups = ft_levels_from(levels, 0);
    unsigned n_group;
    for (const ft_group *g; (g = ft_group_next(&groups, &n_group));)
        ft_bits_put(&bits, g->terminal, n_group);
    st = ft_vector_end(&bits, levels->ids ? FT_SECTION_TERMINAL_RANK : 0, 0, n);
    ft_bitvec_index_free(&index);
    return st;
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
