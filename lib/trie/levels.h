/* SPDX-License-Identifier: Apache-2.0
 *
 * Level arrays: the trie as the builder holds it, and what every layout is written
 * from. A level is a list of chunks, a chunk an array of groups of up to 64 nodes; only
 * the last group of a chunk has fewer. Per node: the low 16 bits of its token, and four
 * bits: first among its siblings, has children, ends a key, token needs high bits. Two
 * of them, first-sibling and has-child, are the whole topology. High token parts and
 * key numbers follow apart, in node order.
 *
 * Builders of neighbouring ranges of keys can be joined: append the chunk lists level
 * by level; the one thing that crosses the border is the has-child bit of the last node
 * before it.
 */
#ifndef FT_TRIE_LEVELS_H
#define FT_TRIE_LEVELS_H

#include "base/bits.h"
#include "base/mem.h"

enum { FT_GROUP_NODES = 64, FT_KEY_NUMBER_BYTES = 5 };

/* Bit i speaks of node i of the group; bits past its nodes are zero. */
typedef struct ft_group {
    uint64_t first;    /* first among its siblings */
    uint64_t child;    /* has children */
    uint64_t terminal; /* ends a key */
    uint64_t high;     /* token is 65536 or more */
    uint16_t low[FT_GROUP_NODES];
} ft_group;

typedef struct ft_chunk {
    struct ft_chunk *next;
    uint64_t n_nodes, cap_nodes;
    uint64_t n_highs, cap_highs;
    uint64_t n_numbers, cap_numbers;
    uint16_t *highs;  /* token >> 16 of the nodes with the high bit */
    uint8_t *numbers; /* FT_KEY_NUMBER_BYTES a terminal, if ids */
    ft_group groups[];
} ft_chunk;

typedef struct ft_level {
    ft_chunk *head, *tail;
} ft_level;

/* Level 0 is the root alone; its label means nothing. */
typedef struct ft_levels {
    ft_level *level;
    uint64_t n_levels, cap_levels;
    uint64_t n_nodes, n_keys, n_highs; /* n_nodes counts the root */
    uint32_t max_token;
    bool ids;
} ft_levels;

/* Groups in level order. */
typedef struct ft_group_iter {
    const ft_levels *levels;
    uint64_t level;
    const ft_chunk *chunk;
    uint64_t next; /* node of the chunk */
} ft_group_iter;

/* From the first node of `level` on. */
ft_group_iter ft_levels_from(const ft_levels *l, uint64_t level);

/* The next group and its number of nodes, or NULL at the end. */
const ft_group *ft_group_next(ft_group_iter *it, unsigned *n);

/* Chunks in level order: the first, the one after, NULL. */
const ft_chunk *ft_chunk_first(ft_group_iter *it);
const ft_chunk *ft_chunk_next(ft_group_iter *it);

/* Numbers of children of the nodes that have any, in level order. */
typedef struct ft_degree_iter {
    ft_group_iter groups;
    uint64_t first; /* first-sibling bits from the place on */
    unsigned left;  /* nodes left in the group */
} ft_degree_iter;

ft_degree_iter ft_levels_degrees(const ft_levels *l);
uint64_t ft_degree_next(ft_degree_iter *it);

void ft_levels_free(ft_levels *l);

#endif
