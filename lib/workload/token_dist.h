/* SPDX-License-Identifier: Apache-2.0
 *
 * How often each token id occurs: a power law over ids with noise, as in the vocabulary
 * of a byte-pair encoder (ids are given out by frequency, roughly). Cut into strata of
 * equal mass, in id order: walking the strata upwards gives ids in ascending order.
 */
#ifndef FT_WORKLOAD_TOKEN_DIST_H
#define FT_WORKLOAD_TOKEN_DIST_H

#include "workload/fixmath.h"

enum { FT_STRATA_BITS = 16, FT_STRATA = 1 << FT_STRATA_BITS };

/* Weight of id i: 1 / (i + 4)^skew, times 2^x with x about normal, of deviation
 * noise_bits. vocab >= 1, 0 <= skew <= 4, 0 <= noise_bits <= 8. */
typedef struct ft_token_law {
    uint32_t vocab; /* ids are below this */
    double skew, noise_bits;
    uint64_t seed; /* of the noise */
} ft_token_law;

typedef struct ft_token_dist {
    uint32_t vocab; /* ids are below this */
    /* Stratum i starts the ids edge[i] .. edge[i + 1] - 1; none when a frequent id that
     * started earlier fills it. */
    uint32_t edge[FT_STRATA + 1];
} ft_token_dist;

/* Takes time in proportion to vocab up to 300,000 ids, and little more above that:
 * there, blocks of neighbours share a weight. */
void ft_token_dist_init(ft_token_dist *d, const ft_token_law *law);

/* One of the ids first .. first + count - 1, count >= 1, by the low half of `random`:
 * squared, so that neighbours differ in frequency inside a stratum too. */
static inline uint32_t ft_token_among(uint32_t first, uint32_t count, uint64_t random)
{
    const uint64_t r = random & 0xFFFFFFFF, place = r * r >> 32;
    return first + (uint32_t)(count * place >> 32);
}

/* An id that starts in strata lo .. hi - 1 (there is one), drawn by frequency. */
static inline uint32_t ft_token_draw(const ft_token_dist *d, uint32_t lo, uint32_t hi,
                                     uint64_t random)
{
    const uint32_t i = lo + (uint32_t)ft_scale(hi - lo, random);
    const uint32_t from = d->edge[i], count = d->edge[i + 1] - from;
    /* A stratum that starts no id belongs to the one before, if that is in reach. No
     * branch, here and above: which case it is cannot be predicted. */
    const uint32_t none = count == 0;
    const uint32_t first = from - (none & (from > d->edge[lo]));
    return ft_token_among(first, count + none, random);
}

#endif
