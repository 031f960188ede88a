/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of workload generators: the same bits on any machine and compiler.
 * Integers, and IEEE binary64 + - * / in a fixed order (built with -ffp-contract=off);
 * never libm, whose last bit differs between systems.
 */
#ifndef FT_WORKLOAD_FIXMATH_H
#define FT_WORKLOAD_FIXMATH_H

#include <stdint.h>

/* log2(x) of a normal x > 0, within 1e-10. */
double ft_fix_log2(double x);

/* 2^x for |x| < 1000, within 1e-10 of its value. */
double ft_fix_exp2(double x);

/* log2 and 2^x in fixed point with 16 fraction bits, by tables (within 1e-4). */
typedef struct ft_fix_tables {
    uint32_t log2[257], exp2[257];
} ft_fix_tables;

void ft_fix_tables_init(ft_fix_tables *t);

static inline uint32_t ft_fix_lerp(const uint32_t table[257], uint32_t fraction)
{
    const uint32_t i = fraction >> 8, a = table[i];
    return a + (((table[i + 1] - a) * (fraction & 255)) >> 8);
}

/* log2(v), v >= 1. */
static inline uint32_t ft_fix_log2_q16(const ft_fix_tables *t, uint64_t v)
{
    const unsigned whole = 63u - (unsigned)__builtin_clzll(v);
    const uint32_t fraction = (uint32_t)((v << (63 - whole)) >> 47) & 0xFFFF;
    return ((uint32_t)whole << 16) + ft_fix_lerp(t->log2, fraction);
}

/* 2^(x / 65536) in fixed point with 16 fraction bits, 0 <= x < 47 * 65536. */
static inline uint64_t ft_fix_exp2_q16(const ft_fix_tables *t, uint32_t x)
{
    return (uint64_t)ft_fix_lerp(t->exp2, x & 0xFFFF) << (x >> 16);
}

/* The two halves of a 128-bit product, folded: a hash of two words (wyhash's step). */
static inline uint64_t ft_mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 p = (unsigned __int128)(a ^ UINT64_C(0xA0761D6478BD642F)) *
                                (b ^ UINT64_C(0xE7037ED1A0B428DB));
    return (uint64_t)(p >> 64) ^ (uint64_t)p;
}

/* The high half of a * b: `a` scaled by the fraction b / 2^64. */
static inline uint64_t ft_scale(uint64_t a, uint64_t b)
{
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}

/* A sequence of words; any state will do. */
static inline uint64_t ft_random(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    return ft_mix(*state, *state >> 32);
}

#endif
