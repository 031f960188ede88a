/* SPDX-License-Identifier: Apache-2.0
 *
 * The narrow layout with links and a tail, the paper's (Appendix A; MARISA's Patricia
 * and TAIL). A chain of nodes with one child each, down to a leaf, is folded: its head
 * stays in LOUDS as a link node, a leaf there that ends the key, and its tokens, from
 * the one on the edge into the head on, are in the tail buffer, the last of them
 * marked. The head's label slot has the low 16 bits of where they start; the high bits
 * of all links are packed apart, by rank among the links. Equal suffixes are stored
 * once, and so is one that another ends with.
 *
 * Node i tokens down the chain from its head is (i << FT_TAIL_SHIFT) + head: numbers
 * stay different where tails are shared, and lead to the head's key number. They are in
 * no order with those of other nodes, so the trie has none (ft_trie.level_order), and
 * ops->before goes by the ancestors that are in LOUDS.
 */
#ifndef FT_TRIE_TAILS_H
#define FT_TRIE_TAILS_H

#include "trie/build.h"
#include "trie/format.h"
#include "trie/narrow.h"

enum { FT_TAIL_SHIFT = 40 };

static_assert(FT_MAX_NODES == (uint64_t)1 << FT_TAIL_SHIFT, "nodes in LOUDS fit");

typedef struct ft_tails {
    ft_narrow narrow;     /* of the nodes in LOUDS; a link's label is 0 in it */
    ft_bitvec links;      /* node - 1 is a link */
    const uint64_t *high; /* packed: where the tail starts >> 16, by rank of the link */
    unsigned high_bits;   /* 0: there are none */
    const uint64_t *tail; /* packed: token << 1 | last of its suffix */
    unsigned tail_bits;   /* of a field */
    uint64_t n_tail;
} ft_tails;

static inline FT_HD uint64_t ft_tails_head(uint64_t node)
{
    return node & (((uint64_t)1 << FT_TAIL_SHIFT) - 1);
}

/* How far down the chain a node is; 0: it is in LOUDS. */
static inline FT_HD uint64_t ft_tails_depth(uint64_t node)
{
    return node >> FT_TAIL_SHIFT;
}

/* Is a node in LOUDS a link? */
static inline FT_HD bool ft_tails_is_link(const ft_tails *l, uint64_t node)
{
    return node && ft_bit_get(l->links.words, node - 1);
}

/* Where the tokens of a link start. */
static inline FT_HD uint64_t ft_tails_start(const ft_tails *l, uint64_t link)
{
    uint64_t at = l->narrow.low[link - 1];
    if (l->high_bits) {
        const uint64_t rank = ft_bitvec_rank1(&l->links, link - 1);
        at |= ft_packed_get(l->high, rank, l->high_bits) << 16;
    }
    return at;
}

/* The token at a place of the tail. */
static inline FT_HD uint32_t ft_tails_token(const ft_tails *l, uint64_t at, bool *last)
{
    const uint64_t field = ft_packed_get(l->tail, at, l->tail_bits);
    *last = field & 1;
    return (uint32_t)(field >> 1);
}

/* The token on the edge into a link, or into a node in its tail. */
static inline FT_HD uint32_t ft_tails_peek(const ft_tails *l, uint64_t node, bool *last)
{
    return ft_tails_token(
        l, ft_tails_start(l, ft_tails_head(node)) + ft_tails_depth(node), last);
}

/* Bits of a field of a packed array: starts of links, and the tail. */
static inline unsigned ft_tails_high_bits(uint64_t n_tail)
{
    return n_tail ? ft_bit_width((n_tail - 1) >> 16) : 0;
}

static inline unsigned ft_tails_field_bits(uint32_t max_token)
{
    return ft_bit_width(max_token) + 1;
}

/* Write the index, or, `if_pays` and Equation 1 says that tails do not, the narrow one.
 * Sets the header's layout and flags. */
ft_status ft_tails_build(ft_writer *w, ft_level_map *map, bool if_pays,
                         ft_tail_summary *summary);

/* See ft_layout. */
ft_status ft_tails_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err);

#endif
