/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes against a filter of 65,536 bits: which of a run may be among those that a
 * search is after. The filter goes by the low 16 bits of a code, which is what the
 * narrow layout keeps together.
 */
#ifndef FT_TRIE_PROBE_H
#define FT_TRIE_PROBE_H

#include <stdint.h>

enum { FT_FILTER_WORDS = 65536 / 64 };

static inline unsigned ft_filter_has(const uint64_t *filter, uint32_t code)
{
    return filter[code / 64 % FT_FILTER_WORDS] >> (code % 64) & 1;
}

/* Places of codes[0 .. n) in the filter, ascending, into places; returns how many. */
static inline uint32_t ft_filter_codes(const uint64_t *restrict filter,
                                       const uint32_t *restrict codes, uint32_t n,
                                       uint32_t *restrict places)
{
    uint32_t n_places = 0;
    for (uint32_t i = 0; i < n; i++) {
        places[n_places] = i; /* without a branch: few are */
        n_places += ft_filter_has(filter, codes[i]);
    }
    return n_places;
}

/* The same for codes of which only the low 16 bits are at hand. */
static inline uint32_t ft_filter_lows(const uint64_t *restrict filter,
                                      const uint16_t *restrict lows, uint32_t n,
                                      uint32_t *restrict places)
{
    uint32_t n_places = 0;
    for (uint32_t i = 0; i < n; i++) {
        places[n_places] = i;
        n_places += ft_filter_has(filter, lows[i]);
    }
    return n_places;
}

#endif
