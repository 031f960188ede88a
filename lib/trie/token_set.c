/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/token_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/score.h"

enum { BLOCK_WORDS = FT_SET_BLOCK / 64 };

static uint64_t pad8(uint64_t bytes)
{
    return (bytes + 7) & ~(uint64_t)7;
}

static uint64_t bitmap_bytes(uint64_t n, uint64_t n_ids)
{
    const uint64_t blocks = ft_set_blocks(n_ids);
    return blocks * (FT_SET_BLOCK / 8) +
           pad8(blocks * 4 + ft_n_hints(n, FT_SET_HINT_SHIFT) * 4);
}

unsigned ft_token_set_form(uint64_t n, uint64_t n_ids)
{
    return bitmap_bytes(n, n_ids) <= pad8(n * 4) ? FT_SET_BITMAP : FT_SET_LIST;
}

uint64_t ft_token_set_bytes(unsigned form, uint64_t n, uint64_t n_ids)
{
    return form == FT_SET_BITMAP ? bitmap_bytes(n, n_ids) : pad8(n * 4);
}

ft_token_set ft_token_set_at(unsigned form, uint32_t n, uint64_t n_ids,
                             const void *data)
{
    ft_token_set s = {.n_ids = n_ids, .n = n};
    if (form == FT_SET_LIST) {
        s.list = data;
        return s;
    }
    const uint64_t blocks = ft_set_blocks(n_ids);
    s.bits = data;
    s.rank = (const uint32_t *)(s.bits + blocks * BLOCK_WORDS);
    s.hints = s.rank + blocks;
    return s;
}

static uint32_t list_rank(const ft_token_set *s, uint32_t token)
{
    const uint32_t *base = s->list;
    if (s->n == 0)
        return FT_NO_TOKEN;
    for (uint64_t n = s->n; n > 1;) {
        const uint64_t half = n / 2;
        base += base[half - 1] < token ? half : 0;
        n -= half;
    }
    return *base == token ? (uint32_t)(base - s->list) : FT_NO_TOKEN;
}

uint32_t ft_token_set_rank(const ft_token_set *s, uint32_t token)
{
    if (!s->bits)
        return list_rank(s, token);
    if (token >= s->n_ids || !ft_bit_get(s->bits, token))
        return FT_NO_TOKEN;
    const uint64_t block = token / FT_SET_BLOCK;
    const uint64_t *w = s->bits + block * BLOCK_WORDS;
    const unsigned word = token / 64 % BLOCK_WORDS;
    uint32_t rank = s->rank[block] + ft_popcount(w[word] & ft_low_mask(token % 64));
    for (unsigned i = 0; i + 1 < BLOCK_WORDS; i++)
        rank += i < word ? ft_popcount(w[i]) : 0;
    return rank;
}

uint32_t ft_token_set_select(const ft_token_set *s, uint32_t k)
{
    if (!s->bits)
        return s->list[k];
    const uint32_t h = k >> FT_SET_HINT_SHIFT;
    const uint64_t last = h < (s->n - 1) >> FT_SET_HINT_SHIFT
                              ? s->hints[h + 1] / FT_SET_BLOCK
                              : ft_set_blocks(s->n_ids) - 1;
    const uint64_t block = ft_block_of(s->rank, 1, s->hints[h] / FT_SET_BLOCK, last, k);
    const uint64_t *w = s->bits + block * BLOCK_WORDS;
    k -= s->rank[block];
    /* Without a branch: where the member is in the block cannot be foreseen. */
    unsigned word = 0;
    uint32_t before = 0, sum = 0;
    for (unsigned i = 0; i < BLOCK_WORDS; i++) {
        sum += ft_popcount(w[i]);
        const bool behind = sum <= k;
        word += behind;
        before = behind ? sum : before;
    }
    return (uint32_t)(block * FT_SET_BLOCK + word * 64) +
           ft_select_in_word(w[word], k - before);
}

static ft_status check_list(const ft_token_set *s, ft_error *err)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->list[i] >= s->n_ids)
            return ft_fail(err, FT_EFORMAT, "token %u, the largest is to be %llu",
                           s->list[i], (unsigned long long)s->n_ids - 1);
        if (i && s->list[i] <= s->list[i - 1])
            return ft_fail(err, FT_EFORMAT, "members out of order at number %u", i);
    }
    if (s->n % 2 && s->list[s->n] != 0)
        return ft_fail(err, FT_EFORMAT, "padding is not zero");
    return FT_OK;
}

ft_status ft_token_set_check(const ft_token_set *s, ft_error *err)
{
    if (!s->bits)
        return check_list(s, err);
    const uint64_t blocks = ft_set_blocks(s->n_ids);
    uint64_t n = 0;
    for (uint64_t b = 0; b < blocks; b++) {
        if (s->rank[b] != n)
            return ft_fail(err, FT_EFORMAT, "rank is wrong at block %llu",
                           (unsigned long long)b);
        for (unsigned i = 0; i < BLOCK_WORDS; i++)
            n += ft_popcount(s->bits[b * BLOCK_WORDS + i]);
        if (n > s->n)
            break;
    }
    if (n != s->n)
        return ft_fail(err, FT_EFORMAT, "not %u members", s->n);
    const uint64_t n_hints = ft_n_hints(n, FT_SET_HINT_SHIFT);
    for (uint64_t i = 0; i < n_hints; i++)
        if (ft_token_set_rank(s, s->hints[i]) != i << FT_SET_HINT_SHIFT)
            return ft_fail(err, FT_EFORMAT, "hint %llu is wrong",
                           (unsigned long long)i);
    uint64_t beyond = s->bits[s->n_ids / 64] & ~ft_low_mask(s->n_ids % 64);
    for (uint64_t i = s->n_ids / 64 + 1; i < blocks * BLOCK_WORDS; i++)
        beyond |= s->bits[i];
    if ((blocks + n_hints) % 2)
        beyond |= s->hints[n_hints];
    if (beyond)
        return ft_fail(err, FT_EFORMAT, "bits beyond the last are set");
    return FT_OK;
}

ft_status ft_token_set_begin(ft_token_set_out *o, ft_writer *w, unsigned form,
                             uint64_t n, uint64_t n_ids)
{
    *o = (ft_token_set_out){.w = w, .form = form, .n_ids = n_ids};
    if (form == FT_SET_LIST)
        return FT_OK;
    const uint64_t blocks = ft_set_blocks(n_ids);
    o->rank =
        ft_calloc(blocks + ft_n_hints(n, FT_SET_HINT_SHIFT), sizeof *o->rank, w->err);
    if (!o->rank)
        return w->status = FT_ENOMEM;
    o->hints = o->rank + blocks;
    return FT_OK;
}

/* Write full words up to number `next`. */
static void advance(ft_token_set_out *o, uint64_t next)
{
    for (; o->next_word < next; o->next_word++) {
        ft_section_put_word(o->w, o->word);
        o->word = 0;
        if ((o->next_word + 1) % BLOCK_WORDS == 0 &&
            (o->next_word + 1) / BLOCK_WORDS < ft_set_blocks(o->n_ids))
            o->rank[(o->next_word + 1) / BLOCK_WORDS] = o->n;
    }
}

void ft_token_set_put(ft_token_set_out *o, uint32_t token)
{
    if (o->form == FT_SET_LIST) {
        ft_section_put(o->w, &token, sizeof token);
    } else if (o->rank) {
        advance(o, token / 64);
        o->word |= (uint64_t)1 << token % 64;
        if ((o->n & ((1 << FT_SET_HINT_SHIFT) - 1)) == 0)
            o->hints[o->n >> FT_SET_HINT_SHIFT] = token;
    }
    o->n++;
}

void ft_token_set_end(ft_token_set_out *o)
{
    static const uint32_t zero;
    uint64_t n_u32 = o->n;
    if (o->rank) {
        const uint64_t blocks = ft_set_blocks(o->n_ids);
        advance(o, blocks * BLOCK_WORDS);
        n_u32 = blocks + ft_n_hints(o->n, FT_SET_HINT_SHIFT);
        ft_section_put(o->w, o->rank, n_u32 * sizeof *o->rank);
    }
    if (n_u32 % 2)
        ft_section_put(o->w, &zero, sizeof zero);
    free(o->rank);
    o->rank = NULL;
}
