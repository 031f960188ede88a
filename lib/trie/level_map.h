/* SPDX-License-Identifier: Apache-2.0
 *
 * Where everything is in finished level arrays, so that any part of a section can be
 * written by itself. The arrays are cut into spans of up to FT_SPAN_GROUPS groups; for
 * each the map has the counts of all before it.
 *
 * A node's children are the group of siblings that has the number, among the groups
 * from level 1 on, that the node has among the nodes with children.
 */
#ifndef FT_TRIE_LEVEL_MAP_H
#define FT_TRIE_LEVEL_MAP_H

#include "trie/levels.h"

enum { FT_SPAN_GROUPS = 256 };

typedef struct ft_span {
    const ft_chunk *chunk;
    uint64_t level;
    uint64_t group;                      /* of the chunk, its first */
    uint64_t chunk_highs, chunk_numbers; /* of the chunk, before it */

    /* Of all before it: */
    uint64_t node;      /* nodes, the root included: the number of its first node */
    uint64_t parents;   /* nodes with children */
    uint64_t siblings;  /* groups of siblings from level 1 on */
    uint64_t terminals; /* nodes that end keys */
    uint64_t highs;     /* nodes with high parts */
} ft_span;

typedef struct ft_level_map {
    ft_levels *levels;
    uint64_t n_spans;
    ft_span *spans; /* and one more, the end */
} ft_level_map;

ft_status ft_level_map_open(ft_level_map *m, ft_levels *levels, uint32_t n_threads,
                            ft_error *err);
void ft_level_map_close(ft_level_map *m);

/* The last span before which there are at most n nodes, terminals or high parts; the
 * end counts. */
const ft_span *ft_map_by_node(const ft_level_map *m, uint64_t n);
const ft_span *ft_map_by_terminals(const ft_level_map *m, uint64_t n);
const ft_span *ft_map_by_highs(const ft_level_map *m, uint64_t n);

/* Groups from that of a node on, plain and with whole tokens; *at is the node's place
 * in its group, and the first node of the group is that many before it. */
ft_group_iter ft_map_groups(const ft_level_map *m, uint64_t node, unsigned *at);
ft_token_iter ft_map_tokens(const ft_level_map *m, uint64_t node, unsigned *at);

/* Stands at the first node of a group of siblings. */
typedef struct ft_sibling_cursor {
    ft_group_iter it;
    uint64_t bits; /* first-sibling bits of its group of nodes, from there on */
    uint64_t node; /* of bit 0 */
    unsigned n;    /* nodes of the group */
} ft_sibling_cursor;

/* At group of siblings number k; as many as there are: at the end. */
ft_sibling_cursor ft_map_siblings(const ft_level_map *m, uint64_t k);

/* Move over k groups; there are so many. */
void ft_siblings_move(ft_sibling_cursor *c, uint64_t k);

/* The node it stands at; at the end, the number of nodes. */
static inline uint64_t ft_siblings_node(const ft_sibling_cursor *c)
{
    return c->node + (unsigned)__builtin_ctzll(c->bits);
}

/* Number of siblings of the group; moves on to the next. */
static inline uint64_t ft_siblings_next(ft_sibling_cursor *c)
{
    const uint64_t start = ft_siblings_node(c);
    c->bits &= c->bits - 1;
    if (!c->bits)
        ft_siblings_move(c, 0);
    return ft_siblings_node(c) - start;
}

/* Groups of siblings, from level 1 on, before a node. */
uint64_t ft_map_siblings_before(const ft_level_map *m, uint64_t node);

/* Nodes with children before a node. */
uint64_t ft_map_parents_before(const ft_level_map *m, uint64_t node);

#endif
