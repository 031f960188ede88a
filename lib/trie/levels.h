/* SPDX-License-Identifier: Apache-2.0
 *
 * Level arrays: the trie as the builder holds it, and what every layout is written
 * from. A level is a list of chunks, a chunk an array of groups of up to 64 nodes; only
 * the last group of a chunk has fewer. Per node: the low 16 bits of its token, and four
 * bits: first among its siblings, has children, ends a key, token needs high bits. Two
 * of them, first-sibling and has-child, are the whole topology. High token parts and
 * key numbers follow apart, in node order.
 *
 * Level arrays of neighbouring ranges of keys can be joined, level by level. Those of a
 * range begin at the first node that its first key does not share with the key before
 * the range; the one thing that crosses the border is the has-child bit of that key's
 * node.
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
    uint64_t n_highs, n_numbers;

    /* Room for cap_nodes of each; pages that are not used are not there. */
    uint64_t *highs;    /* token >> 16 of the nodes with the high bit, packed */
    unsigned high_bits; /* of each, as many as any of them needs */
    uint8_t *numbers;   /* FT_KEY_NUMBER_BYTES a terminal, if ids */
    ft_group groups[];
} ft_chunk;

/* Chunks behind the tail are empty. */
typedef struct ft_level {
    ft_chunk *head, *tail;
} ft_level;

/* Level 0 is the root alone; its label means nothing. */
typedef struct ft_levels {
    ft_level *level;
    uint64_t n_levels, cap_levels;
    uint64_t n_nodes, n_keys, n_highs; /* n_nodes counts the root */
    uint32_t max_token;
    unsigned high_bits; /* of new chunks */
    uint32_t previous;  /* tokens of the key before the next one; 0: none */
    bool extends; /* the first key extends the one before it, which is elsewhere */
    bool ids;
} ft_levels;

/* Append a key that shares lcp tokens with the one before it; n > lcp. */
ft_status ft_levels_add(ft_levels *l, const uint32_t *tokens, uint32_t n, uint32_t lcp,
                        ft_error *err);

/* Empty the arrays, keep their memory, and be ready for keys that follow one of
 * `previous` tokens (0: none). Such levels have no root. */
ft_status ft_levels_restart(ft_levels *l, uint32_t previous, ft_error *err);

/* Start with the root. */
ft_status ft_levels_open(ft_levels *l, bool ids, ft_error *err);

/* Append the levels of keys that follow those of *l. */
ft_status ft_levels_join(ft_levels *l, const ft_levels *more, ft_error *err);

/* High part number i of a chunk. */
static inline uint32_t ft_chunk_high(const ft_chunk *c, uint64_t i)
{
    return (uint32_t)ft_packed_get(c->highs, i, c->high_bits);
}

/* Room for the high parts of cap_nodes nodes, of `bits` bits. */
uint64_t *ft_highs_room(uint64_t cap_nodes, unsigned bits, ft_error *err);

/* Put high part number i, behind those before it. Room needs no zeros, and is not read
 * before it is written: a page that is first read costs two faults. */
static inline void ft_highs_put(uint64_t *highs, uint64_t i, unsigned bits,
                                uint32_t high)
{
    const uint64_t bit = i * bits, w = bit / 64;
    const unsigned shift = bit % 64;
    highs[w] = (shift ? highs[w] : 0) | (uint64_t)high << shift;
    if (shift + bits > 64)
        highs[w + 1] = (uint64_t)high >> (64 - shift);
}

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

/* Groups in level order with whole tokens. */
typedef struct ft_token_iter {
    ft_group_iter groups;
    const ft_chunk *chunk;
    uint64_t n_highs; /* high parts of the chunk that are behind */
} ft_token_iter;

static inline ft_token_iter ft_token_groups_from(const ft_levels *l, uint64_t level)
{
    return (ft_token_iter){.groups = ft_levels_from(l, level)};
}

/* The next group, its number of nodes, and its tokens with room for FT_GROUP_NODES. */
static inline const ft_group *ft_token_groups_next(ft_token_iter *it, unsigned *n,
                                                   uint32_t *tokens)
{
    const ft_group *g = ft_group_next(&it->groups, n);
    if (!g)
        return NULL;
    if (it->chunk != it->groups.chunk) {
        it->chunk = it->groups.chunk;
        it->n_highs = 0;
    }
    for (unsigned i = 0; i < FT_GROUP_NODES; i++)
        tokens[i] = g->low[i];
    for (uint64_t high = g->high; high; high &= high - 1)
        tokens[__builtin_ctzll(high)] |= ft_chunk_high(it->chunk, it->n_highs++) << 16;
    return g;
}

void ft_chunk_free(ft_chunk *c);
void ft_levels_free(ft_levels *l);

#endif
