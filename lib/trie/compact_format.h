/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the compact layout, byte for byte: ft-index(5). Little-endian.
 *
 * Nodes are numbered level by level. Region 0 is the root and its children; up to four
 * more regions of whole levels follow, each with its own token codes. Nodes lie in
 * blocks; every region starts a block, so behind a region's last node some places of
 * its last block may be empty. A slot is a place in the blocks of regions 1 and up:
 * block number * FT_COMPACT_BLOCK + place in the block.
 */
#ifndef FT_TRIE_COMPACT_FORMAT_H
#define FT_TRIE_COMPACT_FORMAT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/device.h"
#include "trie/format.h"

enum {
    FT_COMPACT_REGIONS = 5,     /* at most, region 0 included */
    FT_COMPACT_ROOT_BLOCK = 64, /* nodes, in region 0 */
    FT_COMPACT_BLOCK = 128,     /* nodes, in the others */
    FT_SIBLING_RANK = 64,       /* words of sibling bits an entry of the ranks */
    FT_SIBLING_END = 4,   /* words behind the last slot's; of them, bit 0 is set */
    FT_CODE_CLASSES = 4,  /* widths of codes */
    FT_CLASS_BLOCK = 256, /* tokens a block of classes */
    FT_SET_BLOCK = 512,   /* tokens a block of a bitmap */
    FT_SET_HINT_SHIFT = 9 /* 512 members a hint, at most */
};

typedef struct ft_compact_region {
    uint64_t n_nodes;
    uint32_t level;                  /* of its first node: 0, then 2 or more */
    uint32_t n_tokens;               /* members of its token set */
    uint32_t size[FT_CODE_CLASSES];  /* of each class; region 0: 0 */
    uint32_t width[FT_CODE_CLASSES]; /* bits a code, at most 32; region 0: 0. The last
                                        class of size 0 and another width is literal */
} ft_compact_region;

static_assert(sizeof(ft_compact_region) == 48, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, level) == 8, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, n_tokens) == 12, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, size) == 16, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, width) == 32, "see ft-index(5)");

static inline bool ft_region_is_literal(const ft_compact_region *r)
{
    return r->size[FT_CODE_CLASSES - 1] == 0 && r->width[FT_CODE_CLASSES - 1] != 0;
}

/* Bit i speaks of node i of the block. */
typedef struct ft_compact_root_block {
    uint64_t first_child; /* slot of the first child of its first node with children */
    uint64_t child;       /* has children; the root's own bit is 0 */
    uint64_t terminal;    /* ends a key */
    uint64_t terminals;   /* nodes before it that end keys */
} ft_compact_root_block;

static_assert(sizeof(ft_compact_root_block) == 32, "see ft-index(5)");
static_assert(offsetof(ft_compact_root_block, child) == 8, "see ft-index(5)");
static_assert(offsetof(ft_compact_root_block, terminal) == 16, "see ft-index(5)");
static_assert(offsetof(ft_compact_root_block, terminals) == 24, "see ft-index(5)");

/* A line of the cache: all that is known of a node but its code and whether a parent
 * ends a key. Bit i of word w speaks of node 64 w + i of the block. */
typedef struct ft_compact_block {
    uint32_t first_child; /* slot of its nodes' first child */
    uint32_t codes;       /* first bit of its nodes' codes */
    uint32_t terminals;   /* nodes before it that end keys, those of region 0 too */
    uint32_t upper;       /* of the three, the bits from 32 on */
    uint64_t child[2];    /* has children */
    uint64_t low[2];      /* class of its code, bit 0 */
    uint64_t high[2];     /* and bit 1 */
} ft_compact_block;

static_assert(sizeof(ft_compact_block) == FT_SECTION_ALIGN, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, codes) == 4, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, terminals) == 8, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, upper) == 12, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, child) == 16, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, low) == 32, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, high) == 48, "see ft-index(5)");

/* Bits of `upper`, from the lowest on: 14 of codes, 8 of terminals, 10 of first_child.
 * Whatever FT_MAX_NODES allows fits: a node has 33 bits of codes at most. */
enum { FT_UPPER_TERMINALS = 14, FT_UPPER_FIRST_CHILD = 22 };

static_assert(33 * FT_MAX_NODES >> (32 + 14) == 0, "codes fit");
static_assert((FT_MAX_NODES - 1) >> (32 + 8) == 0, "terminals fit");
static_assert((FT_MAX_NODES + FT_COMPACT_REGIONS * FT_COMPACT_BLOCK) >> (32 + 10) == 0,
              "slots fit");

static inline FT_HD uint64_t ft_block_codes(const ft_compact_block *b)
{
    const uint32_t upper = b->upper & ((1u << FT_UPPER_TERMINALS) - 1);
    return (uint64_t)upper << 32 | b->codes;
}

static inline FT_HD uint64_t ft_block_terminals(const ft_compact_block *b)
{
    return (uint64_t)(uint8_t)(b->upper >> FT_UPPER_TERMINALS) << 32 | b->terminals;
}

static inline FT_HD uint64_t ft_block_first_child(const ft_compact_block *b)
{
    return (uint64_t)(b->upper >> FT_UPPER_FIRST_CHILD) << 32 | b->first_child;
}

static inline void ft_block_place(ft_compact_block *b, uint64_t first_child,
                                  uint64_t codes, uint64_t terminals)
{
    b->first_child = (uint32_t)first_child;
    b->codes = (uint32_t)codes;
    b->terminals = (uint32_t)terminals;
    b->upper = (uint32_t)(codes >> 32 | terminals >> 32 << FT_UPPER_TERMINALS |
                          first_child >> 32 << FT_UPPER_FIRST_CHILD);
}

/* Classes of FT_CLASS_BLOCK neighbouring tokens of a set. */
typedef struct ft_class_block {
    uint32_t before[FT_CODE_CLASSES]; /* tokens of each class in blocks before */
    uint64_t low[4];
    uint64_t high[4];
} ft_class_block;

static_assert(sizeof(ft_class_block) == 80, "see ft-index(5)");
static_assert(offsetof(ft_class_block, low) == 16, "see ft-index(5)");
static_assert(offsetof(ft_class_block, high) == 48, "see ft-index(5)");

#endif
