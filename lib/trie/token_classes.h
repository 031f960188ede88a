/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of the tokens of a set. Each token is in one of four classes, the frequent ones
 * in the narrow ones; within a class tokens keep their order, so two bits a token say
 * everything. A token's code is the number of tokens in the classes before its own,
 * plus its rank in the class; an edge stores the rank alone, in the class's width.
 *
 * Where most tokens are rare, the set holds the others alone, in three classes, and the
 * last class is literal: edges store tokens, whose codes are the number of members of
 * the set plus the token.
 *
 * In a file: n / 256 + 1 ft_class_block; then, padded to 8 bytes, for each class a u32
 * for every 2^s-th of its tokens from the first on, that token's rank in the set; s is
 * the largest number up to 9 with size >> s at least n / 512 + 1, or 0.
 */
#ifndef FT_TRIE_TOKEN_CLASSES_H
#define FT_TRIE_TOKEN_CLASSES_H

#include "trie/token_set.h"

typedef struct ft_token_classes {
    uint32_t n;
    uint32_t size[FT_CODE_CLASSES]; /* they add up to n */
    uint32_t base[FT_CODE_CLASSES]; /* first code */
    const ft_class_block *blocks;
    const uint32_t *hints[FT_CODE_CLASSES];
    unsigned shift[FT_CODE_CLASSES];
} ft_token_classes;

/* Where a token of the set stands among the codes. */
typedef struct ft_code_place {
    uint32_t code;
    uint32_t before[FT_CODE_CLASSES]; /* codes of tokens of each class below the token
                                         are below this */
} ft_code_place;

/* Numbers of codes alone; sizes add up to less than 2^32. */
ft_token_classes ft_token_classes_of(const uint32_t size[FT_CODE_CLASSES]);

/* Bytes of the classes in a file, and the classes that lie at `data`. */
uint64_t ft_token_classes_bytes(const uint32_t size[FT_CODE_CLASSES]);
ft_token_classes ft_token_classes_at(const uint32_t size[FT_CODE_CLASSES],
                                     const void *data);

/* May tokens up to max_token be literal beside n others? All codes are below
 * UINT32_MAX - 1. */
static inline bool ft_literals_fit(uint32_t n, uint32_t max_token)
{
    return max_token > 0 && (uint64_t)n + max_token < UINT32_MAX - 1;
}

/* Of the token of rank `id` <= n; without a code if it is n. */
ft_code_place ft_token_classes_place(const ft_token_classes *c, uint32_t id);

static inline unsigned ft_code_class(const ft_token_classes *c, uint32_t code)
{
    return (unsigned)(code >= c->base[1]) + (code >= c->base[2]) + (code >= c->base[3]);
}

/* Class of the token of rank `id` < n. */
static inline unsigned ft_token_classes_class(const ft_token_classes *c, uint32_t id)
{
    const ft_class_block *b = &c->blocks[id / FT_CLASS_BLOCK];
    const unsigned at = id % FT_CLASS_BLOCK;
    return (unsigned)ft_bit_get(b->low, at) | (unsigned)ft_bit_get(b->high, at) << 1;
}

/* Rank in the set of the token with `code` < n. */
uint32_t ft_token_classes_id(const ft_token_classes *c, uint32_t code);

/* Check every byte, so that both directions are right. */
ft_status ft_token_classes_check(const ft_token_classes *c, ft_error *err);

/* Write n tokens' classes, in the order of the set, into a section that has been
 * begun: code[i] is a code under *c (sizes and bases), or no less than n and skipped.
 */
ft_status ft_token_classes_write(ft_writer *w, const ft_token_classes *c,
                                 const uint32_t *codes, uint64_t n_codes);

#endif
