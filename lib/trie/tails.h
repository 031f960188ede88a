/* SPDX-License-Identifier: Apache-2.0
 *
 * Links and a tail over another layout, the paper's (Appendix A; MARISA's Patricia and
 * TAIL). A chain of nodes with one child each, down to a leaf, is folded: its head
 * stays in the tree as a link, a leaf there that ends the key, and the tokens further
 * on are in the tail buffer, the last of them marked. Equal suffixes are stored once,
 * and so is one that another ends with. The tree that is left is one of the inner
 * layout, which knows nothing of all this.
 *
 * As the paper has it, the label slot of a link holds where its tokens start, the one
 * on the edge into the link included: the low 16 bits; the high bits of all links are
 * packed apart, by rank among the links. Where labels have no slots (compact), a link
 * keeps its label, the whole start is packed apart, and only tails that pay are folded.
 *
 * Node i tokens down the chain from its head is (i << FT_TAIL_SHIFT) + head: numbers
 * stay different where tails are shared, and lead to the head's key number. They are in
 * no order with those of other nodes, so the trie has none (ft_trie.level_order), and
 * ops->before goes by what the heads have below them.
 */
#ifndef FT_TRIE_TAILS_H
#define FT_TRIE_TAILS_H

#include "trie/bitvec.h"
#include "trie/build.h"
#include "trie/format.h"
#include "trie/layout.h"

enum { FT_TAIL_SHIFT = 40, FT_TAIL_SLOT_BITS = 16 };

static_assert(FT_MAX_NODES == (uint64_t)1 << FT_TAIL_SHIFT, "nodes of the tree fit");

/* A layout with tails, by what it is made of. */
typedef struct ft_tails_form {
    const ft_layout *layout, *inner;
    uint32_t slots;      /* type of the section of label slots; 0: links keep labels */
    unsigned slot_step;  /* 16-bit units from slot to slot */
    unsigned token_bits; /* of the tail; 0: as many as the largest token has */
    bool choosy;         /* of all chains, fold those that pay (Equation 1) */
} ft_tails_form;

/* The form of a layout, and the one over an inner layout; NULL where there is none. */
const ft_tails_form *ft_tails_form_of(const ft_layout *layout);
const ft_tails_form *ft_tails_form_over(const ft_layout *inner);

/* ft_trie.layout of all forms. */
typedef struct ft_tails {
    const ft_tails_form *form;
    ft_trie inner; /* the tree that is left: inner.layout is ft_narrow, ft_wide, ... */
    const uint16_t *slots; /* of nodes 1, 2, ...; NULL: links keep their labels */
    unsigned slot_step;
    ft_bitvec links;      /* node - 1 is a link */
    const uint64_t *high; /* packed, by rank of the link: what slots have no room for */
    unsigned high_bits;   /* 0: there are none */
    const uint64_t *tail; /* packed: token << 1 | last of its suffix */
    unsigned tail_bits;   /* of a field */
    uint64_t n_tail;
} ft_tails;

static inline FT_HD uint64_t ft_tails_head(uint64_t node)
{
    return node & (((uint64_t)1 << FT_TAIL_SHIFT) - 1);
}

/* How far down the chain a node is; 0: it is in the tree. */
static inline FT_HD uint64_t ft_tails_depth(uint64_t node)
{
    return node >> FT_TAIL_SHIFT;
}

/* Is a node of the tree a link? */
static inline FT_HD bool ft_tails_is_link(const ft_tails *l, uint64_t node)
{
    return node && ft_bit_get(l->links.words, node - 1);
}

/* Where the tokens of a link start: with the one on the edge into it, or into its child
 * where it keeps its label. */
static inline FT_HD uint64_t ft_tails_start(const ft_tails *l, uint64_t link)
{
    uint64_t high = 0;
    if (l->high_bits)
        high =
            ft_packed_get(l->high, ft_bitvec_rank1(&l->links, link - 1), l->high_bits);
    return l->slots ? high << FT_TAIL_SLOT_BITS | l->slots[(link - 1) * l->slot_step]
                    : high;
}

/* The token at a place of the tail. */
static inline FT_HD uint32_t ft_tails_token(const ft_tails *l, uint64_t at, bool *last)
{
    const uint64_t field = ft_packed_get(l->tail, at, l->tail_bits);
    *last = field & 1;
    return (uint32_t)(field >> 1);
}

/* The token on the edge into a node in a tail, or into a link that has no label. */
static inline FT_HD uint32_t ft_tails_peek(const ft_tails *l, uint64_t node, bool *last)
{
    const uint64_t start = ft_tails_start(l, ft_tails_head(node));
    return ft_tails_token(l, start + ft_tails_depth(node) - (l->slots ? 0 : 1), last);
}

/* Bits of a field of a packed array: what slots have no room for, and the tail. */
static inline unsigned ft_tails_high_bits(const ft_tails_form *form, uint64_t n_tail)
{
    return n_tail ? ft_bit_width((n_tail - 1) >> (form->slots ? FT_TAIL_SLOT_BITS : 0))
                  : 0;
}

static inline unsigned ft_tails_field_bits(const ft_tails_form *form,
                                           uint32_t max_token)
{
    return (form->token_bits ? form->token_bits : ft_bit_width(max_token)) + 1;
}

/* What the flags of links and their rank take, in tokens of the tail. */
static inline uint64_t ft_tails_flag_tokens(uint64_t n_numbered, unsigned tail_bits)
{
    return (n_numbered + n_numbered / 4) / tail_bits;
}

/* Write the index, or, `if_pays` and Equation 1 says that tails do not, that of the
 * inner layout. Sets the header's layout and flags. Spends the level arrays. */
ft_status ft_tails_build(ft_writer *w, ft_level_map *map, const ft_tails_form *form,
                         bool if_pays, ft_tail_summary *summary);

/* What the tails of a view hold. */
void ft_tails_summarise(const ft_trie *trie, ft_tail_summary *out);

/* Where the levels of the tree that is left end: inner->depth + 1 of them. */
void ft_tails_levels(const ft_trie *inner, uint64_t *ends);

/* See ft_layout. */
ft_status ft_tails_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err);

#endif
