/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of ids with rank and select: a bitmap; or, where few ids are members,
 * Elias-Fano's form; or nothing at all, where all of them are. A member's rank is its
 * id among those who number the set's members. Ids are tokens or ranks in another set.
 *
 * In a file, padded to 8 bytes. As a bitmap over n_ids ids: n_ids / 512 + 1 blocks of
 * 512 bits; a u32 a block, the members before it; a u32 for every 512th member from the
 * first on, its place (a hint). Sparse: a packed array of the low bits of the n
 * members, floor(log2(n_ids / n)) of each; a bitmap of the same form, with a one for
 * each member and behind those of every value of the bits above, members or not, a
 * zero.
 */
#ifndef FT_TRIE_TOKEN_SET_H
#define FT_TRIE_TOKEN_SET_H

#include "base/bits.h"
#include "base/mem.h"
#include "trie/compact_format.h"
#include "trie/writer.h"

typedef struct ft_counted_bits {
    const uint64_t *words;
    const uint32_t *rank, *hints;
    uint64_t n_bits; /* fewer than 2^32 */
} ft_counted_bits;

/* All ids where neither `bits` nor `low` are there. */
typedef struct ft_token_set {
    uint64_t n_ids;
    uint32_t n;
    ft_counted_bits bits; /* of the ids, or, of a sparse set, of the high parts */
    const uint64_t *low;  /* NULL: not sparse */
    unsigned low_bits;
} ft_token_set;

/* Bytes of n of n_ids ids, in the smallest form. */
uint64_t ft_token_set_bytes(uint64_t n, uint64_t n_ids);

/* The set of that form that lies at `data`. */
ft_token_set ft_token_set_at(uint32_t n, uint64_t n_ids, const void *data);

/* The id's rank, or FT_NO_TOKEN where it is no member. Any number may be asked. */
uint32_t ft_token_set_rank(const ft_token_set *s, uint32_t id);

/* Number of members below an id that is none. */
uint32_t ft_token_set_below(const ft_token_set *s, uint32_t id);

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

/* Writes a set into a section that has been begun: n ids, ascending. */
typedef struct ft_token_set_out {
    ft_writer *w;
    ft_token_set set; /* of the words */
    uint64_t *words;  /* all that is written */
    uint64_t *bits;   /* of them, the bitmap's */
    uint64_t bytes;
    uint32_t n; /* members so far */
} ft_token_set_out;

ft_status ft_token_set_begin(ft_token_set_out *o, ft_writer *w, uint64_t n,
                             uint64_t n_ids);
void ft_token_set_put(ft_token_set_out *o, uint32_t id);

/* Write what is left and free *o, after an error too. */
void ft_token_set_end(ft_token_set_out *o);

#endif
