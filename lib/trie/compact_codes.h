/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of edges in the compact layout: what decoding them scalar and by AVX-512 share.
 */
#ifndef FT_TRIE_COMPACT_CODES_H
#define FT_TRIE_COMPACT_CODES_H

#include "trie/compact.h"
#include "trie/probe.h"

/* Set what follows from the widths and first codes of the classes. */
void ft_region_set_widths(ft_region *r);

/* Codes of whose classes bit 0 is set, bit 1, and both. */
typedef struct ft_class_counts {
    unsigned low, high, both;
} ft_class_counts;

/* Those of a block's first `at` nodes. */
static inline ft_class_counts ft_classes_before(const ft_compact_block *b, unsigned at)
{
    const unsigned second = at < 64 ? 0 : at - 64;
    const uint64_t low[2] = {ft_low_bits(b->low[0], at),
                             ft_low_bits(b->low[1], second)};
    const uint64_t high[2] = {ft_low_bits(b->high[0], at),
                              ft_low_bits(b->high[1], second)};
    return (ft_class_counts){
        .low = ft_popcount(low[0]) + ft_popcount(low[1]),
        .high = ft_popcount(high[0]) + ft_popcount(high[1]),
        .both = ft_popcount(low[0] & high[0]) + ft_popcount(low[1] & high[1]),
    };
}

/* Bit of the code of the node in place `at` of a block. */
static inline uint64_t ft_code_bit(const ft_region *r, const ft_compact_block *b,
                                   unsigned at)
{
    const ft_class_counts n = ft_classes_before(b, at);
    const uint32_t bits = at * r->width[0] + n.low * r->low_more +
                          n.high * r->high_more + n.both * r->both_more;
    return ft_block_codes(b) + bits;
}

/* The probe of one run, whose edges are numbered from `edge` on. Returns how many hits
 * there are; room for one more than there are edges. */
uint32_t ft_compact_probe_run(const ft_trie *t, ft_range run, uint32_t edge,
                              const uint64_t *filter, uint32_t *edges, uint32_t *codes);

/* Both ways to probe; by AVX-512 only where the processor has it. */
bool ft_compact_has_avx512(void);
void ft_compact_probe_avx512(const ft_trie *t, const ft_range *runs, uint32_t n,
                             const uint64_t *filter, ft_hits *hits);
void ft_compact_probe_portable(const ft_trie *t, const ft_range *runs, uint32_t n,
                               const uint64_t *filter, ft_hits *hits);

#endif
