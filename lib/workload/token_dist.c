/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/token_dist.h"

/* Weights are summed as integers, so that the order of summation cannot matter. */
static uint64_t weight(const ft_token_law *law, double scale, uint64_t id)
{
    const uint64_t h = ft_mix(law->seed, id);
    const uint64_t sum = (h & 0xFFFF) + (h >> 16 & 0xFFFF) + (h >> 32 & 0xFFFF) +
                         (h >> 48); /* mean 2, deviation 0.577, in units of 65536 */
    const double x =
        ((double)sum / 65536.0 - 2.0) * 1.7320508075688772 * law->noise_bits;
    const double w = ft_fix_exp2(x + scale - law->skew * ft_fix_log2((double)id + 4.0));
    return w < 1.0 ? 1 : (uint64_t)w;
}

void ft_token_dist_init(ft_token_dist *d, const ft_token_law *law)
{
    const uint64_t vocab = law->vocab, n_exact = vocab < 65536 ? vocab : 65536;
    unsigned shift = 0;
    while ((vocab - n_exact) >> shift > 1u << 18)
        shift++;
    /* 2^44 times the sum of the weights, which is at most a few times vocab^(1 - skew),
     * or a logarithm: far below 2^64. */
    double scale = 44.0;
    if (law->skew < 1.0)
        scale -= (1.0 - law->skew) * ft_fix_log2((double)vocab);
    uint64_t total = 0, sum = 0, next = 0, ids = 1;
    for (uint64_t id = 0; id < vocab; id += ids) {
        ids = id < n_exact ? 1 : (uint64_t)1 << shift;
        total += weight(law, scale, id) * ids;
    }
    d->vocab = law->vocab;
    const uint64_t stratum = total / FT_STRATA + 1;
    for (uint64_t id = 0; id < vocab; id += ids) {
        ids = id < n_exact ? 1 : (uint64_t)1 << shift;
        const uint64_t w = weight(law, scale, id);
        for (; next < FT_STRATA && next * stratum <= sum + (ids - 1) * w; next++) {
            const uint64_t k =
                next * stratum > sum ? (next * stratum - sum + w - 1) / w : 0;
            d->edge[next] = (uint32_t)(id + k < vocab ? id + k : vocab);
        }
        sum += w * ids;
    }
    for (; next <= FT_STRATA; next++)
        d->edge[next] = law->vocab;
}
