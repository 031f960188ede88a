/* SPDX-License-Identifier: Apache-2.0
 *
 * How few bits a trie could take: the order-0 entropy of what an index stores, counted
 * level by level in one pass over the nodes. Not thread-safe.
 */
#ifndef FT_CMD_INSPECT_ENTROPY_H
#define FT_CMD_INSPECT_ENTROPY_H

#include "ft.h"

enum { FT_HUB = 128 };

/* How often each number occurs: a hash table. A zeroed one is empty. */
typedef struct ft_tally {
    struct ft_tally_slot *slots;
    uint64_t n_slots, n_used; /* n_slots: 0 or a power of two */
    uint64_t n_counted;
} ft_tally;

/* Bits of the whole trie. */
typedef struct ft_entropy {
    double labels;   /* the token, given the level */
    double degrees;  /* number of children, given the level */
    double terminal; /* does a node with children end a key? */
    double order;    /* of the labels' bits, those that the order of siblings saves */
    double hubs;     /* of these, those of FT_HUB and more siblings, the root's apart */
    ft_tally level_labels, level_degrees;
    uint64_t n_internal, n_internal_terminal;
    uint64_t n_levels;
} ft_entropy;

/* The next node, in the order of their numbers. Memory: up to 64 bytes, and 96 for a
 * moment, for each different token among the children of a level. */
ft_status ft_entropy_node(ft_entropy *e, const ft_trie *t, const ft_visit *visit,
                          ft_error *err);

/* The level of these nodes is complete. */
void ft_entropy_level(ft_entropy *e);

/* All levels are: the bits are those of the trie, and memory is freed. */
void ft_entropy_end(ft_entropy *e);

#endif
