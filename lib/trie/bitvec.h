/* SPDX-License-Identifier: Apache-2.0
 *
 * Bit vectors with rank and select, 64 bits throughout. Bits come in blocks of 512.
 * The rank directory (Vigna's rank9, 25% of the bits) holds two words a block: ones
 * before the block, and seven 9-bit counts of ones before its words 1 to 7. Select
 * starts from hints, the block of every 1024th zero, so that a long run of ones (a
 * hub's children) costs a binary search over the blocks between two hints and no scan.
 *
 * Bits and directory have n_bits / 512 + 1 blocks: place n_bits always exists, and the
 * bits from n_bits on are zero.
 */
#ifndef FT_TRIE_BITVEC_H
#define FT_TRIE_BITVEC_H

#include "base/bits.h"
#include "base/mem.h"

enum { FT_BLOCK_BITS = 512, FT_HINT_STEP = 1024 };

/* Hints are 32-bit block numbers. */
#define FT_MAX_BITS (((uint64_t)1 << 32) * FT_BLOCK_BITS - 1)

typedef struct ft_bitvec {
    const uint64_t *words;
    const uint64_t *rank;  /* NULL: neither rank nor select */
    const uint32_t *hints; /* of zeros; NULL: select searches the whole directory */
    uint64_t n_bits, n_ones;
} ft_bitvec;

static inline FT_HD uint64_t ft_bitvec_blocks(uint64_t n_bits)
{
    return n_bits / FT_BLOCK_BITS + 1;
}

/* Bytes of the bits, of the rank directory, and number of hints of n_zeros zeros. */
static inline FT_HD uint64_t ft_bitvec_bytes(uint64_t n_bits)
{
    return ft_bitvec_blocks(n_bits) * (FT_BLOCK_BITS / 8);
}

static inline FT_HD uint64_t ft_bitvec_rank_bytes(uint64_t n_bits)
{
    return ft_bitvec_blocks(n_bits) * 16;
}

static inline FT_HD uint64_t ft_bitvec_hints(uint64_t n_zeros)
{
    return n_zeros / FT_HINT_STEP + (n_zeros % FT_HINT_STEP != 0);
}

/* Ones in the block before its word number `word` (0 to 7), from the second directory
 * word, whose top bit is zero. */
static inline FT_HD uint64_t ft_block_ones(uint64_t counts, unsigned word)
{
    return counts >> 9 * ((word - 1) & 7) & 0x1ff;
}

/* Ones before place i, i <= n_bits. */
static inline FT_HD uint64_t ft_bitvec_rank1(const ft_bitvec *b, uint64_t i)
{
    const uint64_t *r = b->rank + i / FT_BLOCK_BITS * 2;
    return r[0] + ft_block_ones(r[1], i / 64 % 8) +
           ft_popcount(b->words[i / 64] & ft_low_mask(i % 64));
}

/* Seven 9-bit fields, and bits before words 1 to 7 of a block. */
#define FT_NINTHS UINT64_C(0x0040201008040201)
#define FT_COUNTS_OF_WORDS                                                             \
    (64 * (UINT64_C(1) | UINT64_C(2) << 9 | UINT64_C(3) << 18 | UINT64_C(4) << 27 |    \
           UINT64_C(5) << 36 | UINT64_C(6) << 45 | UINT64_C(7) << 54))

/* How many of seven fields, each below 512, are at most k < 512. */
static inline FT_HD unsigned ft_count_fields_up_to(uint64_t fields, uint64_t k)
{
    const uint64_t top = FT_NINTHS << 8, ks = k * FT_NINTHS;
    const uint64_t at_most =
        (((ks | top) - (fields & ~top)) | (fields ^ ks)) ^ (fields & ~ks);
    return ft_popcount(at_most & top);
}

static inline FT_HD uint64_t ft_block_before(const ft_bitvec *b, uint64_t block,
                                             bool one)
{
    const uint64_t ones = b->rank[block * 2];
    return one ? ones : block * FT_BLOCK_BITS - ones;
}

/* A bit that the directory has found: its word, and its number in there. */
typedef struct ft_bit_place {
    uint64_t word, k;
} ft_bit_place;

/* Bit number k (from 0) with the value `one` in blocks lo to hi. */
static inline FT_HD ft_bit_place ft_bitvec_locate(const ft_bitvec *b, uint64_t k,
                                                  bool one, uint64_t lo, uint64_t hi)
{
    /* No branch is half of the time taken; three rounds are what hints mostly leave. */
    uint64_t n = hi - lo + 1;
    for (unsigned round = 0; round < 3 || n > 1; round++) {
        const uint64_t half = n / 2;
        lo += half & -(uint64_t)(ft_block_before(b, lo + half, one) <= k);
        n -= half;
    }
    k -= ft_block_before(b, lo, one);

    /* The words whose bits before them are no more than k, seven at a time (Vigna). */
    const uint64_t ones = b->rank[lo * 2 + 1];
    const uint64_t counts = one ? ones : FT_COUNTS_OF_WORDS - ones;
    const unsigned word = ft_count_fields_up_to(counts, k);
    return (ft_bit_place){lo * 8 + word, k - ft_block_ones(counts, word)};
}

/* Zero number k, k < n_bits - n_ones: all of select but the look at the bits. */
static inline FT_HD ft_bit_place ft_bitvec_locate0(const ft_bitvec *b, uint64_t k)
{
    uint64_t lo = 0, hi = b->n_bits / FT_BLOCK_BITS;
    if (b->hints) {
        const uint64_t h = k / FT_HINT_STEP;
        lo = b->hints[h];
        if ((h + 1) * FT_HINT_STEP < b->n_bits - b->n_ones)
            hi = b->hints[h + 1];
    }
    return ft_bitvec_locate(b, k, false, lo, hi);
}

/* Then the look. */
static inline FT_HD uint64_t ft_bitvec_place0(const ft_bitvec *b, ft_bit_place p)
{
    return p.word * 64 + ft_select_in_word(~b->words[p.word], (unsigned)p.k);
}

/* Place of zero number k. */
static inline FT_HD uint64_t ft_bitvec_select0(const ft_bitvec *b, uint64_t k)
{
    return ft_bitvec_place0(b, ft_bitvec_locate0(b, k));
}

/* Place of one number k, k < n_ones. There are no hints of ones: the search is over the
 * whole directory. */
static inline FT_HD uint64_t ft_bitvec_select1(const ft_bitvec *b, uint64_t k)
{
    const ft_bit_place p = ft_bitvec_locate(b, k, true, 0, b->n_bits / FT_BLOCK_BITS);
    return p.word * 64 + ft_select_in_word(b->words[p.word], (unsigned)p.k);
}

/* The first zero at or after place i; there is one in the vector. */
static inline FT_HD uint64_t ft_bitvec_next0(const ft_bitvec *b, uint64_t i)
{
    uint64_t word = i / 64;
    uint64_t zeros = ~b->words[word] & ~ft_low_mask(i % 64);
    while (!zeros)
        zeros = ~b->words[++word];
    return word * 64 + ft_lowest_bit(zeros);
}

/* Bits i to i + n - 1 (n is 1 to 64, i + n <= n_bits) as the low bits of a word. */
static inline FT_HD uint64_t ft_bitvec_get(const ft_bitvec *b, uint64_t i, unsigned n)
{
    const unsigned shift = i % 64;
    uint64_t w = b->words[i / 64] >> shift;
    if (shift + n > 64)
        w |= b->words[i / 64 + 1] << (64 - shift);
    return w & ft_low_mask(n);
}

/* Rank directory of n_blocks blocks as if they were the first; their ones. */
uint64_t ft_bitvec_count(const uint64_t *words, uint64_t n_blocks, uint64_t *rank);

/* Make good the directory entries of blocks first to last - 1, which ft_bitvec_count
 * has made, by the ones `before` them; `ones` are those in them. Fills in their select
 * hints, unless `hints` is NULL. Only sizes are taken from *b; blocks in any order. */
void ft_bitvec_settle(const ft_bitvec *b, uint64_t *rank, uint32_t *hints,
                      uint64_t first, uint64_t last, uint64_t before, uint64_t ones);

/* Check the directories of blocks first to last - 1 against the bits. Says the truth
 * about the vector once it has passed over all blocks, in any order. */
ft_status ft_bitvec_check(const ft_bitvec *b, uint64_t first, uint64_t last,
                          ft_error *err);

/* Are the bits from n_bits to the end of the last block zero? */
bool ft_bitvec_padding_ok(const ft_bitvec *b);

/* Packed arrays (base/bits.h) of n fields: bytes, the spare word included, and are the
 * bits behind the last field zero? */
static inline FT_HD uint64_t ft_packed_bytes(uint64_t n, unsigned width)
{
    return (ft_words(n * width) + 1) * 8;
}

bool ft_packed_padding_ok(const uint64_t *words, uint64_t n, unsigned width);

#endif
