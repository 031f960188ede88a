/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes against a filter of 65,536 bits: which of many edges may be among those that a
 * search is after. The filter goes by the low 16 bits of a code, which is what the
 * narrow layout keeps together.
 */
#ifndef FT_TRIE_PROBE_H
#define FT_TRIE_PROBE_H

#include <stdint.h>
#include <string.h>

#include "trie/trie.h"

enum {
    FT_FILTER_WORDS = 65536 / 64,
    FT_PROBE_EDGES = 2048, /* of all the runs that are probed together, at most */
    FT_PROBE_SLACK = 16    /* places behind the last hit, which may be written to */
};

/* Edges that a filter has let through, ascending. They are numbered from the first
 * run's first edge on, one run behind the other. */
struct ft_hits {
    uint32_t n;
    uint32_t edges[FT_PROBE_EDGES + FT_PROBE_SLACK];
    uint32_t codes[FT_PROBE_EDGES + FT_PROBE_SLACK];
    uint8_t runs[FT_PROBE_EDGES + FT_PROBE_SLACK]; /* numbers of their runs */
};

/* The next n hits, whose edges and codes are there, are of a run. */
static inline void ft_hits_add(ft_hits *h, uint32_t n, uint32_t run)
{
    memset(h->runs + h->n, (int)run, FT_PROBE_SLACK); /* mostly enough, and no loop */
    if (n > FT_PROBE_SLACK)
        memset(h->runs + h->n, (int)run, n);
    h->n += n;
}

static inline unsigned ft_filter_has(const uint64_t *filter, uint32_t code)
{
    return filter[code / 64 % FT_FILTER_WORDS] >> (code % 64) & 1;
}

/* Append an edge if its code is in the filter: without a branch, for few are. Returns
 * how many there are then. */
static inline uint64_t ft_filter_note(const uint64_t *filter, uint32_t code,
                                      uint32_t edge, uint32_t *edges, uint64_t n_edges)
{
    edges[n_edges] = edge;
    return n_edges + ft_filter_has(filter, code);
}

/* Those of n edges from number `edge` on whose codes are in the filter, ascending, into
 * edges; returns how many. */
static inline uint32_t ft_filter_codes(const uint64_t *restrict filter,
                                       const uint32_t *restrict codes, uint32_t edge,
                                       uint32_t n, uint32_t *restrict edges)
{
    uint64_t m = 0;
    for (; n >= 4; n -= 4, codes += 4, edge += 4) {
        m = ft_filter_note(filter, codes[0], edge, edges, m);
        m = ft_filter_note(filter, codes[1], edge + 1, edges, m);
        m = ft_filter_note(filter, codes[2], edge + 2, edges, m);
        m = ft_filter_note(filter, codes[3], edge + 3, edges, m);
    }
    for (; n; n--)
        m = ft_filter_note(filter, *codes++, edge++, edges, m);
    return (uint32_t)m;
}

/* The same for codes of which only the low 16 bits are at hand. */
static inline uint32_t ft_filter_lows(const uint64_t *restrict filter,
                                      const uint16_t *restrict lows, uint32_t edge,
                                      uint32_t n, uint32_t *restrict edges)
{
    uint64_t m = 0;
    for (; n >= 4; n -= 4, lows += 4, edge += 4) {
        m = ft_filter_note(filter, lows[0], edge, edges, m);
        m = ft_filter_note(filter, lows[1], edge + 1, edges, m);
        m = ft_filter_note(filter, lows[2], edge + 2, edges, m);
        m = ft_filter_note(filter, lows[3], edge + 3, edges, m);
    }
    for (; n; n--)
        m = ft_filter_note(filter, *lows++, edge++, edges, m);
    return (uint32_t)m;
}

#endif
