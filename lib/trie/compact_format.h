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
#include <stddef.h>
#include <stdint.h>

enum {
    FT_COMPACT_REGIONS = 5,      /* at most, region 0 included */
    FT_COMPACT_BLOCK = 128,      /* nodes */
    FT_COMPACT_SUPER = 4096,     /* blocks */
    FT_COMPACT_RANK_BLOCKS = 32, /* blocks an entry of the sibling ranks */
    FT_CODE_CLASSES = 4,         /* widths of codes */
    FT_SET_BLOCK = 512,          /* tokens a block of a bitmap or of classes */
    FT_SET_HINT = 512            /* members a hint */
};

/* How a set of tokens is stored; the smaller one is taken, a bitmap if equal. */
enum { FT_SET_BITMAP = 0, FT_SET_LIST = 1 };

typedef struct ft_compact_region {
    uint64_t n_nodes;
    uint32_t level;                  /* of its first node: 0, then 2 or more */
    uint32_t form;                   /* FT_SET_BITMAP or FT_SET_LIST */
    uint32_t n_tokens;               /* different tokens on the edges into its nodes */
    uint32_t size[FT_CODE_CLASSES];  /* tokens of each class; region 0: 0 */
    uint32_t width[FT_CODE_CLASSES]; /* bits a code, at most 32; region 0: 0 */
    uint32_t zero;
} ft_compact_region;

static_assert(sizeof(ft_compact_region) == 56, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, level) == 8, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, form) == 12, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, n_tokens) == 16, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, size) == 20, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, width) == 36, "see ft-index(5)");
static_assert(offsetof(ft_compact_region, zero) == 52, "see ft-index(5)");

/* Bit i of word w speaks of node 64 w + i of the block. */
typedef struct ft_compact_root_block {
    uint64_t first_child; /* slot of the first child of its first node with children */
    uint64_t child[2];    /* has children; the root's own bit is 0 */
    uint64_t terminal[2]; /* ends a key */
} ft_compact_root_block;

static_assert(sizeof(ft_compact_root_block) == 40, "see ft-index(5)");
static_assert(offsetof(ft_compact_root_block, child) == 8, "see ft-index(5)");
static_assert(offsetof(ft_compact_root_block, terminal) == 24, "see ft-index(5)");

typedef struct ft_compact_block {
    uint32_t
        first_child;   /* slot of the next group of children, from the superblock's */
    uint32_t codes;    /* first bit of the block's codes, from the superblock's */
    uint64_t child[2]; /* has children */
    uint64_t first[2]; /* first among its siblings */
    uint64_t low[2];   /* class of its code, bit 0 */
    uint64_t high[2];  /* class of its code, bit 1 */
} ft_compact_block;

static_assert(sizeof(ft_compact_block) == 72, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, codes) == 4, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, child) == 8, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, first) == 24, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, low) == 40, "see ft-index(5)");
static_assert(offsetof(ft_compact_block, high) == 56, "see ft-index(5)");

typedef struct ft_compact_super {
    uint64_t first_child; /* slot */
    uint64_t codes;       /* bit */
} ft_compact_super;

static_assert(sizeof(ft_compact_super) == 16, "see ft-index(5)");
static_assert(offsetof(ft_compact_super, codes) == 8, "see ft-index(5)");

/* Classes of FT_SET_BLOCK neighbouring tokens of a set. */
typedef struct ft_class_block {
    uint32_t before[FT_CODE_CLASSES]; /* tokens of each class in blocks before */
    uint64_t low[FT_SET_BLOCK / 64];
    uint64_t high[FT_SET_BLOCK / 64];
} ft_class_block;

static_assert(sizeof(ft_class_block) == 144, "see ft-index(5)");
static_assert(offsetof(ft_class_block, low) == 16, "see ft-index(5)");
static_assert(offsetof(ft_class_block, high) == 80, "see ft-index(5)");

#endif
