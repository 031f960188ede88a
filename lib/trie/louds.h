/* SPDX-License-Identifier: Apache-2.0
 *
 * What the paper's layouts share (Section 2.2, Appendix A): the tree as LOUDS bits, and
 * which nodes end a key. For each node in level order: a one for each child, then a
 * zero; no super-root, so n nodes take 2 n - 1 bits. The run of node v starts behind
 * zero number v - 1, and the one at place p is the edge into node p - v + 1.
 */
#ifndef FT_TRIE_LOUDS_H
#define FT_TRIE_LOUDS_H

#include "trie/bits_out.h"
#include "trie/bitvec.h"
#include "trie/layout.h"

/* ft_trie.layout points to a struct that starts with this one. */
typedef struct ft_louds {
    ft_bitvec louds;
    ft_bitvec terminal; /* a bit a node; rank only where key numbers are stored */
} ft_louds;

/* The place of a node's run. */
static inline FT_HD uint64_t ft_louds_run_start(const ft_louds *l, uint64_t node)
{
    return node ? ft_bitvec_select0(&l->louds, node - 1) + 1 : 0;
}

/* The run of a node that starts at a place. */
static inline FT_HD ft_range ft_louds_run(const ft_louds *l, uint64_t node,
                                          uint64_t start)
{
    return (ft_range){start - node + 1, ft_bitvec_next0(&l->louds, start) - start};
}

static inline FT_HD ft_range ft_louds_children_of(const ft_louds *l, uint64_t node)
{
    return ft_louds_run(l, node, ft_louds_run_start(l, node));
}

static inline FT_HD unsigned ft_louds_flags_of(const ft_louds *l, uint64_t node)
{
    const bool terminal = ft_bit_get(l->terminal.words, node);
    if (!terminal && node)
        return FT_NODE_HAS_CHILDREN;
    const bool parent = ft_bit_get(l->louds.words, ft_louds_run_start(l, node));
    return (terminal ? FT_NODE_TERMINAL : 0) | (parent ? FT_NODE_HAS_CHILDREN : 0);
}

/* Accessors for ft_trie_ops. */
ft_range ft_louds_children(const ft_trie *t, uint64_t node);
unsigned ft_louds_flags(const ft_trie *t, uint64_t node);
void ft_louds_children_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                            ft_range *out);
void ft_louds_flags_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                         uint8_t *out);
uint64_t ft_louds_terminal_rank(const ft_trie *t, uint64_t node);
uint64_t ft_louds_seek(const ft_trie *t, uint64_t node);
ft_visit ft_louds_visit(const ft_trie *t, uint64_t node, uint64_t *place);

/* Their parts of a layout's functions. `open` adds the sections it has used to *n_used
 * and sets trie->ids and trie->id_bits. */
ft_status ft_louds_build(ft_writer *w, const ft_level_map *map);
ft_status ft_louds_open(ft_louds *l, ft_trie *trie, const ft_sections *sections,
                        uint32_t *n_used, ft_error *err);
ft_status ft_louds_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err);

/* Where the levels of a tree that is right end (room for FT_MAX_KEY_TOKENS + 1 of them,
 * or NULL), and how deep it is. */
ft_status ft_louds_levels(const ft_louds *l, uint64_t *ends, uint32_t *depth,
                          ft_error *err);

/* A bit vector's sections: write them, find them, check them in parallel. rank_type or
 * hints_type 0: there is no such directory. */
typedef struct ft_vector_source {
    uint32_t type, rank_type, hints_type;
    uint64_t n_bits, n_ones;
    const ft_level_map *map;

    /* Put the bits from a place at or before the window's first, until it is full or
     * they end. */
    void (*put)(const ft_level_map *map, ft_bits_out *b);
} ft_vector_source;

ft_status ft_vector_write(ft_writer *w, const ft_vector_source *v);

/* The tree and the terminal bits of level arrays. */
ft_vector_source ft_louds_tree(const ft_level_map *map);
ft_vector_source ft_louds_terminals(const ft_level_map *map);
ft_status ft_vector_open(ft_bitvec *b, const ft_sections *s, uint32_t type,
                         uint32_t rank_type, uint32_t hints_type, ft_error *err);
ft_status ft_vector_verify(const ft_bitvec *b, const char *name, uint32_t n_threads,
                           ft_error *err);

#endif
