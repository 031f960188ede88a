/* SPDX-License-Identifier: Apache-2.0
 *
 * Bits of 64-bit words: count, select, and fields packed without gaps. Bit i of a bit
 * array is bit i % 64 of word i / 64. Plain C, no state.
 */
#ifndef FT_BASE_BITS_H
#define FT_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>
#if defined __BMI2__ && !defined __CUDACC__
#include <immintrin.h>
#endif

#include "base/device.h"

static inline FT_HD unsigned ft_popcount(uint64_t w)
{
#ifdef __CUDA_ARCH__
    return (unsigned)__popcll(w);
#else
    return (unsigned)__builtin_popcountll(w);
#endif
}

/* Place of the lowest set bit; w is not 0. */
static inline FT_HD unsigned ft_lowest_bit(uint64_t w)
{
#ifdef __CUDA_ARCH__
    return (unsigned)__ffsll((long long)w) - 1;
#else
    return (unsigned)__builtin_ctzll(w);
#endif
}

/* Number of bits that hold v: 0 for 0, 64 for UINT64_MAX. */
static inline FT_HD unsigned ft_bit_width(uint64_t v)
{
#ifdef __CUDA_ARCH__
    return 64u - (unsigned)__clzll((long long)v);
#else
    return v ? 64u - (unsigned)__builtin_clzll(v) : 0;
#endif
}

/* Words that hold n bits. */
static inline FT_HD uint64_t ft_words(uint64_t n_bits)
{
    return n_bits / 64 + (n_bits % 64 != 0);
}

static inline FT_HD bool ft_bit_get(const uint64_t *words, uint64_t i)
{
    return words[i / 64] >> (i % 64) & 1;
}

static inline FT_HD void ft_bit_set(uint64_t *words, uint64_t i)
{
    words[i / 64] |= (uint64_t)1 << (i % 64);
}

/* Mask of the low n bits, 0 <= n <= 64. */
static inline FT_HD uint64_t ft_low_mask(unsigned n)
{
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

/* The low n bits of w; all of them for n from 64 to 255. */
static inline FT_HD uint64_t ft_low_bits(uint64_t w, unsigned n)
{
#if defined __BMI2__ && !defined __CUDACC__
    return _bzhi_u64(w, n);
#else
    return w & ft_low_mask(n);
#endif
}

/* Bit *k from *place on is behind `width` bits, if these have no more than *k set ones;
 * `counts` says how many, in the bits of `mask` from *place on. */
static inline FT_HD void ft_descend(uint32_t counts, unsigned mask, unsigned width,
                                    unsigned *k, unsigned *place)
{
    const unsigned n = counts >> *place & mask;
    if (n <= *k) {
        *k -= n;
        *place += width;
    }
}

/* What ft_select_in_word does, where no instruction does it. */
static inline FT_HD unsigned ft_select_by_halves(uint64_t w, unsigned k)
{
    /* Bits of each byte, and of each four, by halves; then down to the bit's place. */
    const uint32_t low = (uint32_t)w;
    const unsigned n_low = ft_popcount(low);
    const bool upper = k >= n_low;
    const uint32_t v = upper ? (uint32_t)(w >> 32) : low;
    const uint32_t pairs = v - (v >> 1 & 0x55555555u);
    const uint32_t fours = (pairs & 0x33333333u) + (pairs >> 2 & 0x33333333u);
    const uint32_t bytes = (fours + (fours >> 4)) & 0x0f0f0f0fu;
    const uint32_t halves = bytes + (bytes >> 8);
    unsigned place = 0;
    k -= upper ? n_low : 0;
    ft_descend(halves, 31, 16, &k, &place);
    ft_descend(bytes, 15, 8, &k, &place);
    ft_descend(fours, 15, 4, &k, &place);
    ft_descend(pairs, 3, 2, &k, &place);
    ft_descend(v, 1, 1, &k, &place);
    place += upper ? 32 : 0;
    return place;
}

/* Position of the set bit number k (from 0) of w; w has more than k set bits. */
static inline FT_HD unsigned ft_select_in_word(uint64_t w, unsigned k)
{
#if defined __BMI2__ && !defined __CUDACC__
    return (unsigned)__builtin_ctzll(_pdep_u64((uint64_t)1 << k, w));
#else
    return ft_select_by_halves(w, k);
#endif
}

/* Field number i of `width` bits (0 to 64) in a packed array. The array has one word
 * more than ft_words(n * width), so that reading across a border is always in bounds.
 */
static inline FT_HD uint64_t ft_packed_get(const uint64_t *words, uint64_t i,
                                           unsigned width)
{
    const uint64_t bit = i * width, w = bit / 64;
    const unsigned shift = bit % 64;
    uint64_t v = words[w] >> shift;
    if (shift)
        v |= words[w + 1] << (64 - shift);
    return v & ft_low_mask(width);
}

/* The array starts zeroed; every field is set once. */
static inline FT_HD void ft_packed_set(uint64_t *words, uint64_t i, unsigned width,
                                       uint64_t v)
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
