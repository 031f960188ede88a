/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/token_classes.h"

#include <stdlib.h>

#include "base/score.h"

enum {
    BLOCK_WORDS = FT_CLASS_BLOCK / 64,
    BLOCK_U32 = sizeof(ft_class_block) / sizeof(uint32_t)
};

static uint64_t n_blocks(const ft_token_classes *c)
{
    return c->n / FT_CLASS_BLOCK + 1;
}

static uint64_t n_hints(const ft_token_classes *c)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++)
        n += ft_n_hints(c->size[i], c->shift[i]);
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
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++)
        while (c.shift[i] < FT_SET_HINT_SHIFT &&
               size[i] >> (c.shift[i] + 1) >= c.n / FT_SET_BLOCK + 1)
            c.shift[i]++;
    return c;
}

uint64_t ft_token_classes_bytes(const uint32_t size[FT_CODE_CLASSES])
{
    const ft_token_classes c = ft_token_classes_of(size);
    return n_blocks(&c) * sizeof(ft_class_block) + (n_hints(&c) + 1) / 2 * 8;
}

ft_token_classes ft_token_classes_at(const uint32_t size[FT_CODE_CLASSES],
                                     const void *data)
{
    ft_token_classes c = ft_token_classes_of(size);
    c.blocks = data;
    const uint32_t *hints = (const uint32_t *)(c.blocks + n_blocks(&c));
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++) {
        c.hints[i] = hints;
        hints += ft_n_hints(size[i], c.shift[i]);
    }
    return c;
}

/* Words of the tokens of cls `c`. */
static inline uint64_t members(const ft_class_block *b, unsigned word, unsigned c)
{
    return (b->low[word] ^ ((uint64_t)(c & 1) - 1)) &
           (b->high[word] ^ ((uint64_t)(c >> 1) - 1));
}

ft_code_place ft_token_classes_place(const ft_token_classes *c, uint32_t id)
{
    const ft_class_block *b = &c->blocks[id / FT_CLASS_BLOCK];
    const unsigned at = id % FT_CLASS_BLOCK;
    uint32_t low = 0, high = 0, both = 0;
    for (unsigned i = 0; i < BLOCK_WORDS; i++) {
        const uint64_t before = i < at / 64    ? UINT64_MAX
                                : i == at / 64 ? ft_low_mask(at % 64)
                                               : 0;
        low += ft_popcount(b->low[i] & before);
        high += ft_popcount(b->high[i] & before);
        both += ft_popcount(b->low[i] & b->high[i] & before);
    }
    const uint32_t here[] = {at - low - high + both, low - both, high - both, both};
    ft_code_place p;
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++)
        p.before[i] = c->base[i] + b->before[i] + here[i];
    p.code = p.before[ft_token_classes_class(c, id)];
    return p;
}

uint32_t ft_token_classes_id(const ft_token_classes *c, uint32_t code)
{
    const unsigned cls = ft_code_class(c, code), shift = c->shift[cls];
    uint32_t k = code - c->base[cls];
    const uint32_t *hint = &c->hints[cls][k >> shift];
    if (shift == 0)
        return *hint;
    const uint64_t last = k >> shift < (c->size[cls] - 1) >> shift
                              ? hint[1] / FT_CLASS_BLOCK
                              : n_blocks(c) - 1;
    const uint64_t block = ft_block_of(c->blocks->before + cls, BLOCK_U32,
                                       *hint / FT_CLASS_BLOCK, last, k);
    const ft_class_block *b = &c->blocks[block];
    k -= b->before[cls];
    unsigned word = 0, n;
    for (; word + 1 < BLOCK_WORDS && (n = ft_popcount(members(b, word, cls))) <= k;
         word++)
        k -= n;
    return (uint32_t)(block * FT_CLASS_BLOCK + word * 64) +
           ft_select_in_word(members(b, word, cls), k);
}

static ft_status check_hints(const ft_token_classes *c, ft_error *err)
{
    for (unsigned cls = 0; cls < FT_CODE_CLASSES; cls++) {
        const unsigned shift = c->shift[cls];
        for (uint64_t i = 0; i < ft_n_hints(c->size[cls], shift); i++) {
            const uint32_t id = c->hints[cls][i];
            if (id >= c->n ||
                ft_token_classes_place(c, id).code != c->base[cls] + (i << shift))
                return ft_fail(err, FT_EFORMAT, "hint %llu of class %u is wrong",
                               (unsigned long long)i, cls);
        }
    }
    return FT_OK;
}

/* Tokens of the block that exist, 0 to 64 a word. */
static uint64_t exist(const ft_token_classes *c, uint64_t block, unsigned word)
{
    const uint64_t first = block * FT_CLASS_BLOCK + word * 64;
    return first >= c->n ? 0 : ft_low_mask(c->n - first < 64 ? c->n - first : 64);
}

static ft_status check_block(const ft_token_classes *c, uint64_t number, uint64_t *n,
                             ft_error *err)
{
    const ft_class_block *b = &c->blocks[number];
    uint64_t beyond = 0;
    for (unsigned i = 0; i < BLOCK_WORDS; i++)
        beyond |= (b->low[i] | b->high[i]) & ~exist(c, number, i);
    if (beyond)
        return ft_fail(err, FT_EFORMAT, "bits beyond the last are set");
    for (unsigned cls = 0; cls < FT_CODE_CLASSES; cls++) {
        if (b->before[cls] != n[cls])
            return ft_fail(err, FT_EFORMAT, "count of class %u is wrong at block %llu",
                           cls, (unsigned long long)number);
        for (unsigned i = 0; i < BLOCK_WORDS; i++)
            n[cls] += ft_popcount(members(b, i, cls) & exist(c, number, i));
        if (n[cls] > c->size[cls])
            return ft_fail(err, FT_EFORMAT, "more than %u tokens of class %u",
                           c->size[cls], cls);
    }
    return FT_OK;
}

ft_status ft_token_classes_check(const ft_token_classes *c, ft_error *err)
{
    uint64_t n[FT_CODE_CLASSES] = {0};
    ft_status st = FT_OK;
    for (uint64_t b = 0; b < n_blocks(c) && st == FT_OK; b++)
        st = check_block(c, b, n, err);
    /* Not more of any cls, and all of them together: as many of each. */
    if (st == FT_OK)
        st = check_hints(c, err);
    if (st != FT_OK)
        return st;
    const uint64_t hints = n_hints(c);
    if (hints % 2 && c->hints[0][hints] != 0)
        return ft_fail(err, FT_EFORMAT, "padding is not zero");
    return FT_OK;
}

ft_status ft_token_classes_write(ft_writer *w, const ft_token_classes *c,
                                 const uint32_t *codes, uint64_t n_codes)
{
    const uint64_t hints = (n_hints(c) + 1) / 2 * 2, blocks = n_blocks(c);
    uint32_t *hint = ft_calloc(hints, sizeof *hint, w->err);
    if (!hint)
        return w->status = FT_ENOMEM;
    uint32_t *next[FT_CODE_CLASSES], n[FT_CODE_CLASSES] = {0};
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++)
        next[i] = i ? next[i - 1] + ft_n_hints(c->size[i - 1], c->shift[i - 1]) : hint;
    uint64_t at = 0, id = 0;
    for (uint64_t b = 0; b < blocks; b++) {
        ft_class_block block = {0};
        for (unsigned i = 0; i < FT_CODE_CLASSES; i++)
            block.before[i] = n[i];
        for (; at < n_codes && id < (b + 1) * FT_CLASS_BLOCK; at++) {
            if (codes[at] >= c->n)
                continue;
            const unsigned cls = ft_code_class(c, codes[at]), i = id % FT_CLASS_BLOCK;
            block.low[i / 64] |= (uint64_t)(cls & 1) << i % 64;
            block.high[i / 64] |= (uint64_t)(cls >> 1) << i % 64;
            if ((n[cls]++ & ft_low_mask(c->shift[cls])) == 0)
                *next[cls]++ = (uint32_t)id;
            id++;
        }
        ft_section_put(w, &block, sizeof block);
    }
    ft_section_put(w, hint, hints * sizeof *hint);
    free(hint);
    return w->status;
}
