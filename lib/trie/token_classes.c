/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/token_classes.h"

#include <stdlib.h>

#include "base/score.h"

enum { BLOCK_WORDS = FT_SET_BLOCK / 64, BLOCK_U32 = sizeof(ft_class_block) / 4 };

static uint64_t n_hints(const uint32_t size[FT_CODE_CLASSES])
{
    uint64_t n = 0;
    for (unsigned c = 0; c < FT_CODE_CLASSES; c++)
        n += ft_n_hints(size[c]);
    return n;
}

ft_token_classes ft_token_classes_of(const uint32_t size[FT_CODE_CLASSES])
{
    ft_token_classes c = {0};
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++) {
        c.size[i] = size[i];
        c.base[i] = c.n;
        c.n += size[i];
    }
    return c;
}

uint64_t ft_token_classes_bytes(const uint32_t size[FT_CODE_CLASSES])
{
    const uint32_t n = ft_token_classes_of(size).n;
    return ft_set_blocks(n) * sizeof(ft_class_block) + (n_hints(size) + 1) / 2 * 8;
}

ft_token_classes ft_token_classes_at(const uint32_t size[FT_CODE_CLASSES],
                                     const void *data)
{
    ft_token_classes c = ft_token_classes_of(size);
    c.blocks = data;
    const uint32_t *hints = (const uint32_t *)(c.blocks + ft_set_blocks(c.n));
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++) {
        c.hints[i] = hints;
        hints += ft_n_hints(size[i]);
    }
    return c;
}

/* Words of the tokens of class `c`. */
static inline uint64_t members(const ft_class_block *b, unsigned word, unsigned c)
{
    return (c & 1 ? b->low[word] : ~b->low[word]) &
           (c & 2 ? b->high[word] : ~b->high[word]);
}

ft_code_place ft_token_classes_place(const ft_token_classes *c, uint32_t id)
{
    const ft_class_block *b = &c->blocks[id / FT_SET_BLOCK];
    const unsigned words = id / 64 % BLOCK_WORDS, bit = id % 64;
    uint32_t low = 0, high = 0, both = 0;
    for (unsigned i = 0; i <= words; i++) {
        const uint64_t mask = ft_low_mask(i < words ? 64 : bit);
        low += ft_popcount(b->low[i] & mask);
        high += ft_popcount(b->high[i] & mask);
        both += ft_popcount(b->low[i] & b->high[i] & mask);
    }
    const uint32_t in_block = id % FT_SET_BLOCK;
    const uint32_t here[] = {in_block - low - high + both, low - both, high - both,
                             both};
    const unsigned class =
        (b->low[words] >> bit & 1) | (unsigned)(b->high[words] >> bit & 1) << 1;
    ft_code_place p;
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++)
        p.before[i] = c->base[i] + b->before[i] + here[i];
    p.code = p.before[class];
    return p;
}

uint32_t ft_token_classes_id(const ft_token_classes *c, uint32_t code)
{
    const unsigned class = ft_code_class(c, code);
    uint32_t k = code - c->base[class];
    const uint64_t block =
        ft_hinted_block(c->blocks->before + class, BLOCK_U32, ft_set_blocks(c->n),
                        c->hints[class], c->size[class], k);
    const ft_class_block *b = &c->blocks[block];
    k -= b->before[class];
    unsigned word = 0;
    uint64_t w;
    for (unsigned n; (n = ft_popcount(w = members(b, word, class))) <= k; word++)
        k -= n;
    return (uint32_t)(block * FT_SET_BLOCK + word * 64) + ft_select_in_word(w, k);
}

static ft_status check_hints(const ft_token_classes *c, unsigned class, uint64_t block,
                             uint64_t from, uint64_t to, ft_error *err)
{
    for (uint64_t h = ft_n_hints(from); h * FT_SET_HINT < to; h++)
        if (c->hints[class][h] != block)
            return ft_fail(err, FT_EFORMAT, "hint %llu of class %u is wrong",
                           (unsigned long long)h, class);
    return FT_OK;
}

/* Tokens of the block that exist, 0 to 64 a word. */
static uint64_t exist(const ft_token_classes *c, uint64_t block, unsigned word)
{
    const uint64_t first = block * FT_SET_BLOCK + word * 64;
    return first >= c->n ? 0 : ft_low_mask(c->n - first < 64 ? c->n - first : 64);
}

ft_status ft_token_classes_check(const ft_token_classes *c, ft_error *err)
{
    uint64_t n[FT_CODE_CLASSES] = {0};
    ft_status st = FT_OK;
    for (uint64_t b = 0; b < ft_set_blocks(c->n) && st == FT_OK; b++) {
        const ft_class_block *block = &c->blocks[b];
        uint64_t beyond = 0;
        for (unsigned i = 0; i < BLOCK_WORDS; i++)
            beyond |= (block->low[i] | block->high[i]) & ~exist(c, b, i);
        if (beyond)
            return ft_fail(err, FT_EFORMAT, "bits beyond the last are set");
        for (unsigned class = 0; class < FT_CODE_CLASSES && st == FT_OK; class ++) {
            const uint64_t before = n[class];
            if (block->before[class] != before)
                return ft_fail(err, FT_EFORMAT,
                               "count of class %u is wrong at block %llu", class,
                               (unsigned long long)b);
            for (unsigned i = 0; i < BLOCK_WORDS; i++)
                n[class] += ft_popcount(members(block, i, class) & exist(c, b, i));
            if (n[class] > c->size[class])
                return ft_fail(err, FT_EFORMAT, "more than %u tokens of class %u",
                               c->size[class], class);
            st = check_hints(c, class, b, before, n[class], err);
        }
    }
    if (st != FT_OK)
        return st;
    /* Not more of any class, and all of them together: as many of each. */
    const uint64_t hints = n_hints(c->size);
    if (hints % 2 && c->hints[0][hints] != 0)
        return ft_fail(err, FT_EFORMAT, "padding is not zero");
    return FT_OK;
}

ft_status ft_token_classes_write(ft_writer *w, const ft_token_classes *c,
                                 const uint32_t *codes, uint64_t n_codes)
{
    const uint64_t hints = (n_hints(c->size) + 1) / 2 * 2, blocks = ft_set_blocks(c->n);
    uint32_t *hint = ft_calloc(hints, sizeof *hint, w->err);
    if (!hint)
        return w->status = FT_ENOMEM;
    uint32_t *next[FT_CODE_CLASSES], n[FT_CODE_CLASSES] = {0};
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++)
        next[i] = i ? next[i - 1] + ft_n_hints(c->size[i - 1]) : hint;
    uint64_t at = 0, id = 0;
    for (uint64_t b = 0; b < blocks; b++) {
        ft_class_block block = {0};
        for (unsigned i = 0; i < FT_CODE_CLASSES; i++)
            block.before[i] = n[i];
        for (; at < n_codes && id < (b + 1) * FT_SET_BLOCK; at++) {
            if (codes[at] == FT_NO_TOKEN)
                continue;
            const unsigned class = ft_code_class(c, codes[at]), i = id % FT_SET_BLOCK;
            block.low[i / 64] |= (uint64_t)(class & 1) << i % 64;
            block.high[i / 64] |= (uint64_t)(class >> 1) << i % 64;
            if (n[class]++ % FT_SET_HINT == 0)
                *next[class]++ = (uint32_t)b;
            id++;
        }
        ft_section_put(w, &block, sizeof block);
    }
    ft_section_put(w, hint, hints * sizeof *hint);
    free(hint);
    return w->status;
}
