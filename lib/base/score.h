/* SPDX-License-Identifier: Apache-2.0
 *
 * Score and order: the only place that says which of two beams or results is better.
 * Compiled by the C and by the CUDA compiler; build with -ffp-contract=off and
 * --fmad=false, so that both give the same bytes. Contract: sums are IEEE binary32
 * (paper Alg. 1, line 11), scores are binary64 (paper Eq. 2), the order is total.
 *
 * Ties. Tries here number their nodes level by level, siblings by token, so among nodes
 * of one depth the smaller number is the lexicographically smaller sequence, and over
 * depths the smaller number has fewer tokens: "fewer tokens, then lexicographic" is
 * "smaller node". Tries that share tails cannot promise that (ft_trie.level_order).
 */
#ifndef FT_BASE_SCORE_H
#define FT_BASE_SCORE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/device.h"

/* "No token": an empty slot of a grid; never part of a key. */
#define FT_NO_TOKEN UINT32_C(0xFFFFFFFF)

enum { FT_MAX_KEY_TOKENS = 65535 };

/* alpha is held to this range so that every score is finite or the sum's own infinity.
 */
#define FT_MAX_ALPHA 64.0

/* Is (sigma, rho) admitted? Then *sum is the new running sum. Thresholds are strict. */
static inline FT_HD bool ft_admit(float sigma, float rho, float token_threshold,
                                  float sentence_threshold, float *sum)
{
    const float s = sigma + rho;
    *sum = s;
    return rho > token_threshold && s > sentence_threshold;
}

/* Does beam a go before beam b of the same step? */
static inline FT_HD bool ft_beam_better(float sigma_a, uint64_t node_a, float sigma_b,
                                        uint64_t node_b)
{
    return sigma_a > sigma_b || (sigma_a == sigma_b && node_a < node_b);
}

/* Does result a go before result b? */
static inline FT_HD bool ft_result_better(double score_a, uint64_t node_a,
                                          double score_b, uint64_t node_b)
{
    return score_a > score_b || (score_a == score_b && node_a < node_b);
}

/* Map a float, not NaN, to an unsigned key of the same order; -0 and +0 share a key. */
static inline FT_HD uint32_t ft_float_key(float f)
{
    uint32_t u;
    f = f + 0.0f; /* -0 becomes +0 */
    memcpy(&u, &f, sizeof u);
    return u & UINT32_C(0x80000000) ? ~u : u | UINT32_C(0x80000000);
}

/* norm[d] = (6 / (5 + d))^alpha for d = 0 .. max_length (paper Eq. 2), computed on the
 * host once a search. */
void ft_norm_table(double alpha, uint32_t max_length, double *norm);

#endif
