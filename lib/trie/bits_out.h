/* SPDX-License-Identifier: Apache-2.0
 *
 * Bits and packed fields into a window: a piece of a section of bits. What is put
 * starts at or before the window and goes up to its end or beyond, or to the end of the
 * section; what lies outside is dropped.
 */
#ifndef FT_TRIE_BITS_OUT_H
#define FT_TRIE_BITS_OUT_H

#include "base/bits.h"

typedef struct ft_bits_out {
    uint64_t *out;       /* of words first .. end - 1 of the section */
    uint64_t first, end; /* of the window */
    uint64_t at;         /* the word that is being filled */
    uint64_t word;
    unsigned fill; /* bits of it */
} ft_bits_out;

/* The window of bytes at .. at + n - 1, whole words. */
static inline ft_bits_out ft_bits_window(uint8_t *out, uint64_t at, uint64_t n)
{
    return (ft_bits_out){
        .out = (uint64_t *)(void *)out, .first = at / 8, .end = (at + n) / 8};
}

/* Puts start at bit `bit` of the section. */
static inline void ft_bits_seek(ft_bits_out *b, uint64_t bit)
{
    b->at = bit / 64;
    b->fill = bit % 64;
}

/* Is the window full? */
static inline bool ft_bits_full(const ft_bits_out *b)
{
    return b->at >= b->end;
}

static inline void ft_bits_word(ft_bits_out *b, uint64_t word)
{
    if (b->at - b->first < b->end - b->first)
        b->out[b->at - b->first] = word;
    b->at++;
}

/* Append the low n bits (0 to 64) of `bits`, whose other bits are zero. */
static inline void ft_bits_put(ft_bits_out *b, uint64_t bits, unsigned n)
{
    b->word |= bits << b->fill;
    if (b->fill + n >= 64) {
        ft_bits_word(b, b->word);
        b->word = b->fill ? bits >> (64 - b->fill) : 0;
        b->fill = b->fill + n - 64;
    } else {
        b->fill += n;
    }
}

/* Append n ones. Those that are out of the window cost nothing. */
void ft_bits_ones(ft_bits_out *b, uint64_t n);

/* After the last bit of the section or of the window: zeros up to its end. */
void ft_bits_close(ft_bits_out *b);

#endif
