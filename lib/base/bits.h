/* SPDX-License-Identifier: Apache-2.0
 *
 * Bits of 64-bit words: count, select, and fields packed without gaps. Bit i of a bit
 * array is bit i % 64 of word i / 64. Plain C, no state.
 */
#ifndef FT_BASE_BITS_H
#define FT_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>
#ifdef __BMI2__
#include <immintrin.h>
#endif

static inline unsigned ft_popcount(uint64_t w)
{
    return (unsigned)__builtin_popcountll(w);
}

/* Number of bits that hold v: 0 for 0, 64 for UINT64_MAX. */
static inline unsigned ft_bit_width(uint64_t v)
{
    return v ? 64u - (unsigned)__builtin_clzll(v) : 0;
}

/* Words that hold n bits. */
static inline uint64_t ft_words(uint64_t n_bits)
{
    return n_bits / 64 + (n_bits % 64 != 0);
}

static inline bool ft_bit_get(const uint64_t *words, uint64_t i)
{
    return words[i / 64] >> (i % 64) & 1;
}

static inline void ft_bit_set(uint64_t *words, uint64_t i)
{
    words[i / 64] |= (uint64_t)1 << (i % 64);
}

/* Mask of the low n bits, 0 <= n <= 64. */
static inline uint64_t ft_low_mask(unsigned n)
{
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

/* Position of the set bit number k (from 0) of w; w has more than k set bits. */
static inline unsigned ft_select_in_word(uint64_t w, unsigned k)
{
#ifdef __BMI2__
    return (unsigned)__builtin_ctzll(_pdep_u64((uint64_t)1 << k, w));
#else
    while (k--)
        w &= w - 1;
    return (unsigned)__builtin_ctzll(w);
#endif
}

/* Field number i of `width` bits (0 to 64) in a packed array. The array has one word
 * more than ft_words(n * width), so that reading across a border is always in bounds. */
static inline uint64_t ft_packed_get(const uint64_t *words, uint64_t i, unsigned width)
{
    const uint64_t bit = i * width, w = bit / 64;
    const unsigned shift = bit % 64;
    uint64_t v = words[w] >> shift;
    if (shift)
        v |= words[w + 1] << (64 - shift);
    return v & ft_low_mask(width);
}

/* The array starts zeroed; every field is set once. */
static inline void ft_packed_set(uint64_t *words, uint64_t i, unsigned width, uint64_t v)
{
    const uint64_t bit = i * width, w = bit / 64;
    const unsigned shift = bit % 64;
    if (!width)
        return;
    words[w] |= v << shift;
    if (shift + width > 64)
        words[w + 1] |= v >> (64 - shift);
}

#endif
