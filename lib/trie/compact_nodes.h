/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of level arrays as the blocks of a compact index: where regions start, and
 * blocks one after another from any of them on. The level arrays hold codes where they
 * held tokens, from level 2 on.
 */
#ifndef FT_TRIE_COMPACT_NODES_H
#define FT_TRIE_COMPACT_NODES_H

#include "trie/compact_plan.h"
#include "trie/level_map.h"

/* Where a region starts. */
typedef struct ft_region_place {
    uint64_t node, slot, block;
} ft_region_place;

typedef struct ft_compact_shape {
    const ft_level_map *map;
    const ft_compact_plan *plan;
    ft_region_place place[FT_PLAN_REGIONS + 1]; /* of the plan's regions, and the end */
    uint64_t n_blocks;
} ft_compact_shape;

ft_compact_shape ft_compact_shape_of(const ft_level_map *map,
                                     const ft_compact_plan *plan);

/* Slot of a node from level 2 on; of the number of nodes, the end. */
uint64_t ft_shape_slot(const ft_compact_shape *s, uint64_t node);

enum { FT_BLOCK_WORDS = FT_COMPACT_BLOCK / 64 };

/* A block's nodes; the words have room for what a group brings beyond them. */
typedef struct ft_node_block {
    const ft_plan_region *region;
    unsigned n;
    uint64_t child[FT_BLOCK_WORDS + 1], terminal[FT_BLOCK_WORDS + 1];
    uint32_t codes[FT_COMPACT_BLOCK + FT_GROUP_NODES];
} ft_node_block;

typedef struct ft_node_blocks {
    const ft_compact_shape *shape;
    ft_token_iter it;
    unsigned region;    /* of the plan */
    uint64_t left;      /* nodes of the region that have not been handed out */
    unsigned n_waiting; /* of them, in `block` */
    ft_node_block block;
} ft_node_blocks;

/* Blocks from number `block` on; there is such a one. */
void ft_node_blocks_from(ft_node_blocks *b, const ft_compact_shape *s, uint64_t block);

/* The next block, or NULL at the end; valid until the next call. */
const ft_node_block *ft_node_blocks_next(ft_node_blocks *b);

/* The root and its children, with tokens for codes and no region: ft_node_blocks_next
 * gives them in blocks of the same size. */
void ft_root_blocks_from(ft_node_blocks *b, const ft_compact_shape *s);

/* Bits of a block's codes, and their classes, FT_BLOCK_WORDS words each. */
uint64_t ft_node_block_bits(const ft_node_block *b);
void ft_node_block_classes(const ft_node_block *b, uint64_t *low, uint64_t *high);

static inline unsigned ft_node_ones(const uint64_t *words)
{
    return ft_popcount(words[0]) + ft_popcount(words[1]);
}

/* Put codes in the place of the tokens from level 2 on, by the plan. */
ft_status ft_compact_recode(ft_levels *levels, const ft_compact_plan *plan,
                            uint32_t n_threads, ft_error *err);

#endif
