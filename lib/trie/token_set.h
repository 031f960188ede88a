/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of tokens with rank and select: a bitmap over the ids, or, where few of them
 * are members, Elias-Fano's form. A token's rank is its id among those who number the
 * set's members.
 *
 * In a file, padded to 8 bytes. As a bitmap over n_ids ids: n_ids / 512 + 1 blocks of
 * 512 bits; a u32 a block, the members before it; a u32 for every 512th member from the
 * first on, that member (a hint). Sparse: a packed array of the low bits of the n
 * members, floor(log2(n_ids / n)) of each; a bit vector of a one for each member, and
 * behind those of every value of the bits above, members or not, a zero; its rank
 * directory.
 */
#ifndef FT_TRIE_TOKEN_SET_H
#define FT_TRIE_TOKEN_SET_H

#include "base/bits.h"
#include "base/mem.h"
#include "trie/bitvec.h"
#include "trie/compact_format.h"
#include "trie/writer.h"

typedef struct ft_token_set {
    uint64_t n_ids; /* the largest token of the library, plus one */
    uint32_t n;
    const uint64_t *bits; /* NULL: the set is sparse */
    const uint32_t *rank, *hints;
    unsigned low_bits; /* sparse, from here on */
    const uint64_t *low;
    ft_bitvec high;
} ft_token_set;

/* The smaller form of n tokens, and its bytes. */
unsigned ft_token_set_form(uint64_t n, uint64_t n_ids);
uint64_t ft_token_set_bytes(unsigned form, uint64_t n, uint64_t n_ids);

/* The set that lies at `data`. */
ft_token_set ft_token_set_at(unsigned form, uint32_t n, uint64_t n_ids,
                             const void *data);

/* The token's rank, or FT_NO_TOKEN where it is no member. Any token may be asked. */
uint32_t ft_token_set_rank(const ft_token_set *s, uint32_t token);

/* The member of rank k < n. */
uint32_t ft_token_set_select(const ft_token_set *s, uint32_t k);

/* Check every byte, so that rank and select are right. */
ft_status ft_token_set_check(const ft_token_set *s, ft_error *err);

/* A block's two words: the bits before place i < 128, and how many are set. */
typedef struct ft_block_bits {
    uint64_t w[2];
} ft_block_bits;

static inline FT_HD ft_block_bits ft_bits_before(unsigned i)
{
    const uint64_t below = ((uint64_t)1 << i % 64) - 1, second = -(uint64_t)(i / 64);
    return (ft_block_bits){{below | second, below & second}};
}

static inline FT_HD unsigned ft_bits_rank(const uint64_t w[2], ft_block_bits before)
{
    return ft_popcount(w[0] & before.w[0]) + ft_popcount(w[1] & before.w[1]);
}

/* Among blocks with before[0], before[stride], ... members before them, the one from
 * `first` to `last` that holds member k. */
static inline uint64_t ft_block_of(const uint32_t *before, uint64_t stride,
                                   uint64_t first, uint64_t last, uint32_t k)
{
    uint64_t block = first;
    for (uint64_t left = last - first + 1; left > 1;) {
        const uint64_t half = left / 2;
        block += half & -(uint64_t)(before[(block + half) * stride] <= k);
        left -= half;
    }
    return block;
}

/* Hints: of n members, each number i << shift. */
static inline uint64_t ft_n_hints(uint64_t n, unsigned shift)
{
    return n ? ((n - 1) >> shift) + 1 : 0;
}

/* Blocks of a bitmap over n ids, at least one. */
static inline uint64_t ft_set_blocks(uint64_t n_ids)
{
    return n_ids / FT_SET_BLOCK + 1;
}

/* Writes a set into a section that has been begun: n tokens, ascending. */
typedef struct ft_token_set_out {
    ft_writer *w;
    ft_token_set set; /* of the words */
    uint64_t *words;  /* all that is written */
    uint64_t *bits;   /* of them, the bitmap's or the bit vector's */
    uint32_t n;       /* members so far */
} ft_token_set_out;

ft_status ft_token_set_begin(ft_token_set_out *o, ft_writer *w, unsigned form,
                             uint64_t n, uint64_t n_ids);
void ft_token_set_put(ft_token_set_out *o, uint32_t token);

/* Write what is left and free *o, after an error too. */
void ft_token_set_end(ft_token_set_out *o);

#endif
