/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of tokens with rank and select: a bitmap over the ids, or a sorted list where
 * ids are sparse. A token's rank is its id among those who number the set's members.
 *
 * In a file, padded to 8 bytes: as a list, n u32. As a bitmap over n_ids ids,
 * n_ids / 512 + 1 blocks of 512 bits; a u32 a block, the members before it; a u32 for
 * every 512th member from the first on, the block that it is in.
 */
#ifndef FT_TRIE_TOKEN_SET_H
#define FT_TRIE_TOKEN_SET_H

#include "base/bits.h"
#include "base/mem.h"
#include "trie/compact_format.h"
#include "trie/writer.h"

typedef struct ft_token_set {
    uint64_t n_ids; /* the largest token of the library, plus one */
    uint32_t n;
    const uint32_t *list;
    const uint64_t *bits; /* NULL: it is a list */
    const uint32_t *rank, *hints;
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

/* Hints speed up the search of member k, k < n, among n_blocks blocks with before[0],
 * before[stride], ... members before them: hints[i] is the block of member number
 * i * FT_SET_HINT. */
static inline uint64_t ft_hinted_block(const uint32_t *before, uint64_t stride,
                                       uint64_t n_blocks, const uint32_t *hints,
                                       uint32_t n, uint32_t k)
{
    const uint32_t h = k / FT_SET_HINT;
    uint64_t lo = hints[h];
    uint64_t hi = h < (n - 1) / FT_SET_HINT ? hints[h + 1] : n_blocks - 1;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo + 1) / 2;
        if (before[mid * stride] <= k)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static inline uint64_t ft_n_hints(uint64_t n)
{
    return n / FT_SET_HINT + (n % FT_SET_HINT != 0);
}

/* Blocks that hold n places, at least one. */
static inline uint64_t ft_set_blocks(uint64_t n)
{
    return n / FT_SET_BLOCK + 1;
}

/* Writes a set into a section that has been begun: n tokens, ascending. */
typedef struct ft_token_set_out {
    ft_writer *w;
    unsigned form;
    uint64_t n_ids, next_word, word;
    uint32_t n;
    uint32_t *rank; /* bitmap: one allocation, the hints behind the counts */
    uint32_t *hints;
} ft_token_set_out;

ft_status ft_token_set_begin(ft_token_set_out *o, ft_writer *w, unsigned form,
                             uint64_t n, uint64_t n_ids);
void ft_token_set_put(ft_token_set_out *o, uint32_t token);

/* Write what is left and free *o, after an error too. */
void ft_token_set_end(ft_token_set_out *o);

#endif
