/* SPDX-License-Identifier: Apache-2.0
 *
 * Where among the root's children a token is. The first step looks all proposals up
 * among as many children as the vocabulary is large; a table of where the tokens of
 * each of 4096 ranges start leaves them few to search. Layouts that number tokens
 * (trie/trie.h: code) find the root's children by that: there it is one range.
 */
#ifndef FT_ENGINE_ROOT_PARTS_H
#define FT_ENGINE_ROOT_PARTS_H

#include "trie/trie.h"

enum { FT_ROOT_PARTS = 4096 };

typedef struct ft_root_parts {
    unsigned shift; /* tokens with the same token >> shift are of one part */
    uint32_t max_token;
    uint64_t first;                    /* of the root's children */
    uint32_t place[FT_ROOT_PARTS + 1]; /* among them, of each part; then the end */
} ft_root_parts;

void ft_root_parts_make(ft_root_parts *r, const ft_trie *trie);

/* The root's children among which the token is, if it is one of theirs. */
static inline ft_range ft_root_part(const ft_root_parts *r, uint32_t token)
{
    if (token > r->max_token)
        return (ft_range){0, 0};
    const uint32_t *part = &r->place[(uint64_t)token >> r->shift];
    return (ft_range){r->first + part[0], part[1] - part[0]};
}

#endif
