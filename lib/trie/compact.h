/* SPDX-License-Identifier: Apache-2.0
 *
 * The compact layout: nodes in level order in blocks of 128, a cache line each. A block
 * says where its nodes' children and codes start; one bit a node, first among its
 * siblings, delimits the groups, so that a node's children and an edge's code cost two
 * dependent accesses each and no select. Edges store
 * codes of four widths, the short ones for frequent tokens, or rare tokens as they are
 * (token_classes.h); the root's children store nothing, they are a set with rank.
 * Leaves end keys, so only nodes with children store whether they do.
 *
 * Numbers of nodes stay those of LOUDS, so the order of ties and key numbers do.
 *
 * Siblings ascend, and codes make no use of it. What that would save was modelled over
 * the blocks of 10 million synthetic keys, 6.1 million titles and 149,000 lemmas, for
 * aligned runs of 32 to 128 siblings and with a flag a run: 0.1 to 0.6% of the index as
 * differences to the first rank, 0.4 to 1.3% in Elias-Fano's form class by class, 0.6
 * to 1.9% in that of all ranks. But searches compare codes: from rank to code takes
 * 7.7 ns a child, decoding 0.6 to 2.9, and a table of it takes more than is saved. So
 * there is one kind of block.
 */
#ifndef FT_TRIE_COMPACT_H
#define FT_TRIE_COMPACT_H

#include <string.h>

#include "trie/compact_format.h"
#include "trie/layout.h"
#include "trie/token_classes.h"

enum { FT_CODE_BITS = 57 };

/* Two codes in a row, by the class of the first + FT_CODE_CLASSES * the second's. */
typedef struct ft_code_pairs {
    uint64_t mask[FT_CODE_CLASSES * FT_CODE_CLASSES];  /* the low bits of each half that
                                                          its code has */
    uint64_t base[FT_CODE_CLASSES * FT_CODE_CLASSES];  /* of each half */
    uint64_t width[FT_CODE_CLASSES * FT_CODE_CLASSES]; /* of both together */
} ft_code_pairs;

typedef struct ft_region {
    uint64_t node; /* its first */
    uint64_t slot; /* where that lies; region 0 has blocks of its own */
    uint64_t n_nodes;
    uint32_t level;     /* of its first node */
    uint32_t mean_bits; /* a code, about */
    uint32_t width[FT_CODE_CLASSES];

    /* Bits of a code beyond width[0], for bits of low, of high, of both (mod 2^32). */
    uint32_t low_more, high_more, both_more;
    ft_code_pairs pairs;
    bool paired;              /* any two codes fit a load */
    bool literal;             /* the last class has tokens for codes */
    ft_token_set set;         /* of the tokens that have other codes */
    ft_token_classes classes; /* not of region 0 */
} ft_region;

typedef struct ft_label_tables ft_label_tables;

typedef struct ft_compact {
    uint32_t n_regions;                       /* region 0 included */
    ft_region region[FT_COMPACT_REGIONS + 1]; /* and the end: n_nodes, n_slots */

    /* Of the regions, side by side, what is asked of each node: their first nodes, then
     * UINT64_MAX, and slots less nodes (mod 2^64). */
    uint64_t first[FT_COMPACT_REGIONS + 1];
    uint64_t shift[FT_COMPACT_REGIONS];
    uint64_t n_root_children, n_root_blocks;
    uint64_t n_blocks, n_slots;
    const ft_compact_root_block *root_blocks;
    const ft_compact_block *blocks;
    const uint64_t *siblings;     /* first among its siblings, by slot; the end */
    const uint64_t *sibling_rank; /* groups before every 64th word */
    const uint64_t *codes;
    uint64_t n_code_bits;
    ft_label_tables *tables; /* NULL: there are too many tokens */
    bool avx512;             /* probe by AVX-512 */
} ft_compact;

static inline uint64_t ft_compact_n_blocks(uint64_t n_nodes)
{
    return n_nodes / FT_COMPACT_BLOCK + (n_nodes % FT_COMPACT_BLOCK != 0);
}

static inline uint64_t ft_compact_n_root_blocks(uint64_t n_root_children)
{
    return n_root_children / FT_COMPACT_ROOT_BLOCK + 1;
}

static inline uint64_t ft_compact_n_ranks(uint64_t n_blocks)
{
    return n_blocks * (FT_COMPACT_BLOCK / 64) / FT_SIBLING_RANK + 1;
}

/* Region of a node that is not in region 0; n_nodes belongs to the last. */
static inline unsigned ft_compact_region_number(const ft_compact *l, uint64_t node)
{
    unsigned i = 1;
    while (node >= l->first[i + 1])
        i++;
    return i;
}

static inline const ft_region *ft_compact_region_of(const ft_compact *l, uint64_t node)
{
    return &l->region[ft_compact_region_number(l, node)];
}

/* Region of a slot, and number of the node in it, n_nodes for n_slots. */
static inline const ft_region *ft_compact_region_at(const ft_compact *l, uint64_t slot)
{
    const ft_region *r = &l->region[l->n_regions];
    while (slot < r->slot)
        r--;
    return r;
}

static inline uint64_t ft_compact_node(const ft_compact *l, uint64_t slot)
{
    const ft_region *r = ft_compact_region_at(l, slot);
    return slot - r->slot + r->node;
}

/* FT_CODE_BITS bits at place `bit` of the codes, and some more. */
static inline uint64_t ft_code_bits(const uint64_t *codes, uint64_t bit)
{
    uint64_t v;
    memcpy(&v, (const uint8_t *)codes + bit / 8, sizeof v);
    return v >> bit % 8;
}

/* layout_compact's parts. */
ft_status ft_compact_build(ft_writer *w, ft_level_map *map);
ft_status ft_compact_open(ft_trie *trie, const ft_sections *sections, ft_error *err);
ft_status ft_compact_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err);

extern const ft_trie_ops ft_compact_ops;
void ft_compact_labels(const ft_trie *trie, uint64_t first, uint64_t count,
                       uint32_t *out);
void ft_compact_edge_codes(const ft_trie *t, uint64_t first, uint64_t count,
                           uint32_t *out);
uint32_t ft_compact_edge_code(const ft_trie *t, uint32_t token, uint32_t level);
uint64_t ft_compact_find(const ft_trie *t, ft_range range, uint32_t token);
void ft_compact_probe(const ft_trie *t, const ft_range *runs, uint32_t n,
                      const uint64_t *filter, ft_hits *hits);

/* Tables of tokens by code, made when they pay, in zeroed room of as many bytes (0: no
 * tables) for all the tokens of a view's regions, whose sets are open. */
uint64_t ft_label_tables_bytes(uint64_t n_tokens);
void ft_label_tables_init(ft_compact *l, void *room);

#endif
