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

#endif
