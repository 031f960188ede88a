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

#endif
