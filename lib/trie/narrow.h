/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's narrow layout (Section 2.2): 16-bit low parts of all labels in one array;
 * the high parts of those that have one bit-packed apart, found by the rank of a flag.
 * Labels are indexed by node - 1. Where no token needs high bits, flags and high parts
 * are left out.
 */
#ifndef FT_TRIE_NARROW_H
#define FT_TRIE_NARROW_H

#include "trie/louds.h"

typedef struct ft_narrow {
    ft_louds base;
    const uint16_t *low;
    ft_bitvec flags;      /* label is 65536 or more */
    const uint64_t *high; /* packed: label >> 16, by rank of the flag */
    unsigned high_bits;   /* 0: there are no flags and no high parts */
} ft_narrow;

/* The token on the edge into a node. */
static inline FT_HD uint32_t ft_narrow_label(const ft_narrow *l, uint64_t node)
{
    const uint64_t at = node - 1;
    uint32_t label = l->low[at];
    if (l->high_bits && ft_bit_get(l->flags.words, at)) {
        const uint64_t rank = ft_bitvec_rank1(&l->flags, at);
        label |= (uint32_t)ft_packed_get(l->high, rank, l->high_bits) << 16;
    }
    return label;
}

/* Among n >= 1 ascending low parts, the place of `want` or UINT64_MAX. */
static inline FT_HD uint64_t ft_narrow_find_low(const uint16_t *low, uint64_t n,
                                                uint16_t want)
{
    const uint16_t *base = low;
    while (n > 1) {
        const uint64_t half = n / 2;
        base += half & -(uint64_t)(base[half - 1] < want); /* no branch */
        n -= half;
    }
    return *base == want ? (uint64_t)(base - low) : UINT64_MAX;
}

/* The same among labels with high parts, `rank` that of the first. */
static inline FT_HD uint64_t ft_narrow_find_high(const ft_narrow *l, uint64_t at,
                                                 uint64_t rank, uint64_t n,
                                                 uint32_t want)
{
    uint64_t base = 0;
    for (;;) {
        const uint64_t half = n / 2, i = base + (n > 1 ? half - 1 : 0);
        const uint64_t high = ft_packed_get(l->high, rank + i, l->high_bits);
        const uint32_t label = (uint32_t)high << 16 | l->low[at + i];
        if (n == 1)
            return label == want ? base : UINT64_MAX;
        base += half & -(uint64_t)(label < want);
        n -= half;
    }
}

/* Siblings ascend, so those with high parts are the last. Nothing out of bounds is read
 * where they are not: ranks start at the first sibling's. */
static inline FT_HD uint64_t ft_narrow_find_in(const ft_narrow *l, ft_range range,
                                               uint32_t token)
{
    const uint64_t at = range.first - 1, n = range.count;
    uint64_t n_high = 0, place = UINT64_MAX;
    if (n == 0)
        return UINT64_MAX;
    if (l->high_bits)
        n_high = n <= 64 ? ft_popcount(ft_bitvec_get(&l->flags, at, (unsigned)n))
                         : ft_bitvec_rank1(&l->flags, at + n) -
                               ft_bitvec_rank1(&l->flags, at);
    if (token >> 16 == 0) {
        if (n_high < n)
            place = ft_narrow_find_low(l->low + at, n - n_high, (uint16_t)token);
    } else if (n_high) {
        place = ft_narrow_find_high(l, at + n - n_high, ft_bitvec_rank1(&l->flags, at),
                                    n_high, token);
        place += place == UINT64_MAX ? 0 : n - n_high;
    }
    return place == UINT64_MAX ? UINT64_MAX : range.first + place;
}

#endif
