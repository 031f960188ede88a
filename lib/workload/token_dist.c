/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/token_dist.h"

/* What the weight of an id is made of, as logarithms with 16 fraction bits. */
typedef struct weights {
    ft_fix_tables fix;
    uint64_t seed;
    int64_t scale, skew, noise;
} weights;

static void set_up(weights *w, const ft_token_law *law)
{
    ft_fix_tables_init(&w->fix);
    /* 2^44 times the sum of the weights, which is at most a few times vocab^(1 - skew),
     * or a logarithm: far below 2^64. */
    double scale = 44.0;
    if (law->skew < 1.0)
        scale -= (1.0 - law->skew) * ft_fix_log2((double)law->vocab);
    w->seed = law->seed;
    w->scale = (int64_t)(scale * 65536.0);
    w->skew = (int64_t)(law->skew * 65536.0);
    w->noise = (int64_t)(law->noise_bits * 1.7320508075688772 * 65536.0);
}

/* Weights are summed as integers, so that the order of summation cannot matter. */
static inline uint64_t weight(const weights *w, uint64_t id)
{
    const uint64_t h = ft_mix(w->seed, id);
    const uint64_t sum = (h & 0xFFFF) + (h >> 16 & 0xFFFF) + (h >> 32 & 0xFFFF) +
                         (h >> 48); /* mean 2, deviation 0.577, in units of 65536 */
    const int64_t stray = ((int64_t)sum - 2 * 65536) * w->noise;
    const int64_t fall = w->skew * ft_fix_log2_q16(&w->fix, id + 4);
    const int64_t log2 = w->scale + (stray - fall) / 65536, most = 46 * 65536;
    if (log2 < 0)
        return 1;
    return ft_fix_exp2_q16(&w->fix, (uint32_t)(log2 < most ? log2 : most)) >> 16;
}

void ft_token_dist_init(ft_token_dist *d, const ft_token_law *law)
{
    const uint64_t vocab = law->vocab, n_exact = vocab < 65536 ? vocab : 65536;
    unsigned shift = 0;
    while ((vocab - n_exact) >> shift > 1u << 18)
        shift++;
    weights w;
    set_up(&w, law);
    uint64_t total = 0, sum = 0, next = 0, ids = 1;
    for (uint64_t id = 0; id < vocab; id += ids) {
        ids = id < n_exact ? 1 : (uint64_t)1 << shift;
        total += weight(&w, id) * ids;
    }
    d->vocab = law->vocab;
    const uint64_t stratum = total / FT_STRATA + 1;
    for (uint64_t id = 0; id < vocab; id += ids) {
        ids = id < n_exact ? 1 : (uint64_t)1 << shift;
        const uint64_t each = weight(&w, id);
        for (; next < FT_STRATA && next * stratum <= sum + (ids - 1) * each; next++) {
            const uint64_t k =
                next * stratum > sum ? (next * stratum - sum + each - 1) / each : 0;
            d->edge[next] = (uint32_t)(id + k < vocab ? id + k : vocab);
        }
        sum += each * ids;
    }
    for (; next <= FT_STRATA; next++)
        d->edge[next] = law->vocab;
}
