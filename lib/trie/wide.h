/* SPDX-License-Identifier: Apache-2.0
 *
 * The wide layout: 32-bit labels, indexed by node - 1. What MARISA-Opt stores (paper
 * Appendix B.2).
 */
#ifndef FT_TRIE_WIDE_H
#define FT_TRIE_WIDE_H

#include "trie/louds.h"

typedef struct ft_wide {
    ft_louds base;
    const uint32_t *labels;
} ft_wide;

/* The child in `range` reached by `token`, or UINT64_MAX. */
static inline FT_HD uint64_t ft_wide_find_in(const ft_wide *l, ft_range range,
                                             uint32_t token)
{
    if (range.count == 0)
        return UINT64_MAX;
    const uint32_t *labels = l->labels + range.first - 1, *base = labels;
    for (uint64_t n = range.count; n > 1;) {
        const uint64_t half = n / 2;
        base += base[half - 1] < token ? half : 0;
        n -= half;
    }
    return *base == token ? range.first + (uint64_t)(base - labels) : UINT64_MAX;
}

#endif
