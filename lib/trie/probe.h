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

/* Append place i if its code is in the filter: without a branch, for few are. Returns
 * how many there are then. */
static inline uint32_t ft_filter_note(const uint64_t *filter, uint32_t code, uint32_t i,
                                      uint32_t *places, uint32_t n_places)
{
    places[n_places] = i;
    return n_places + ft_filter_has(filter, code);
}

/* Places of codes[0 .. n) in the filter, ascending, into places; returns how many. */
static inline uint32_t ft_filter_codes(const uint64_t *restrict filter,
                                       const uint32_t *restrict codes, uint32_t n,
                                       uint32_t *restrict places)
{
    uint32_t m = 0, i = 0;
    for (; n - i >= 4; i += 4) {
        m = ft_filter_note(filter, codes[i], i, places, m);
        m = ft_filter_note(filter, codes[i + 1], i + 1, places, m);
        m = ft_filter_note(filter, codes[i + 2], i + 2, places, m);
        m = ft_filter_note(filter, codes[i + 3], i + 3, places, m);
    }
    for (; i < n; i++)
        m = ft_filter_note(filter, codes[i], i, places, m);
    return m;
}

/* The same for codes of which only the low 16 bits are at hand. */
static inline uint32_t ft_filter_lows(const uint64_t *restrict filter,
                                      const uint16_t *restrict lows, uint32_t n,
                                      uint32_t *restrict places)
{
    uint32_t m = 0, i = 0;
    for (; n - i >= 4; i += 4) {
        m = ft_filter_note(filter, lows[i], i, places, m);
        m = ft_filter_note(filter, lows[i + 1], i + 1, places, m);
        m = ft_filter_note(filter, lows[i + 2], i + 2, places, m);
        m = ft_filter_note(filter, lows[i + 3], i + 3, places, m);
    }
    for (; i < n; i++)
        m = ft_filter_note(filter, lows[i], i, places, m);
    return m;
}

#endif
