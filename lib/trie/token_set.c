/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/token_set.h"

#include <stdlib.h>

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

/* Bits of a member that a sparse set stores as they are. */
static unsigned low_bits_of(uint64_t n, uint64_t n_ids)
{
    const uint64_t share = n ? n_ids / n : n_ids;
    return share ? ft_bit_width(share) - 1 : 0;
}

/* Bits of the vector for the rest: a one a member, a zero a value, 2 to 3 a member. */
static uint64_t high_bits_of(uint64_t n, uint64_t n_ids)
{
    return n + ((n_ids - 1) >> low_bits_of(n, n_ids)) + 1;
}

static uint64_t sparse_bytes(uint64_t n, uint64_t n_ids)
{
    const uint64_t n_bits = high_bits_of(n, n_ids);
    return ft_packed_bytes(n, low_bits_of(n, n_ids)) + ft_bitvec_bytes(n_bits) +
           ft_bitvec_rank_bytes(n_bits);
}

unsigned ft_token_set_form(uint64_t n, uint64_t n_ids)
{
    return bitmap_bytes(n, n_ids) <= sparse_bytes(n, n_ids) ? FT_SET_BITMAP
                                                            : FT_SET_SPARSE;
}

uint64_t ft_token_set_bytes(unsigned form, uint64_t n, uint64_t n_ids)
{
    return form == FT_SET_BITMAP ? bitmap_bytes(n, n_ids) : sparse_bytes(n, n_ids);
}

ft_token_set ft_token_set_at(unsigned form, uint32_t n, uint64_t n_ids,
                             const void *data)
{
    ft_token_set s = {.n_ids = n_ids, .n = n};
    if (form == FT_SET_SPARSE) {
        const uint64_t n_bits = high_bits_of(n, n_ids);
        s.low_bits = low_bits_of(n, n_ids);
        s.low = data;
        s.high.words = s.low + ft_packed_bytes(n, s.low_bits) / 8;
        s.high.rank = s.high.words + ft_bitvec_bytes(n_bits) / 8;
        s.high.n_bits = n_bits;
        s.high.n_ones = n;
        return s;
    }
    const uint64_t blocks = ft_set_blocks(n_ids);
    s.bits = data;
    s.rank = (const uint32_t *)(s.bits + blocks * BLOCK_WORDS);
    s.hints = s.rank + blocks;
    return s;
}

/* Members by the value of their high bits: number *first up to, not with, *end. */
static void members_with(const ft_token_set *s, uint64_t high, uint64_t *first,
                         uint64_t *end)
{
    const uint64_t at = high ? ft_bitvec_select0(&s->high, high - 1) + 1 : 0;
    const uint64_t zeros = ~s->high.words[at / 64] & ~ft_low_mask(at % 64);
    const uint64_t zero =
        zeros ? at / 64 * 64 + ft_lowest_bit(zeros) : ft_bitvec_select0(&s->high, high);
    *first = at - high;
    *end = zero - high;
}

static uint32_t sparse_rank(const ft_token_set *s, uint32_t token)
{
    const uint64_t low = token & ft_low_mask(s->low_bits);
    uint64_t k, end;
    if (token >= s->n_ids)
        return FT_NO_TOKEN;
    members_with(s, token >> s->low_bits, &k, &end);
    for (uint64_t n = end - k; n > 1;) {
        const uint64_t half = n / 2;
        k += ft_packed_get(s->low, k + half - 1, s->low_bits) < low ? half : 0;
        n -= half;
    }
    return k < end && ft_packed_get(s->low, k, s->low_bits) == low ? (uint32_t)k
                                                                   : FT_NO_TOKEN;
}

static uint32_t sparse_select(const ft_token_set *s, uint32_t k)
{
    const uint64_t high = ft_bitvec_select1(&s->high, k) - k;
    return (uint32_t)(high << s->low_bits | ft_packed_get(s->low, k, s->low_bits));
}

uint32_t ft_token_set_rank(const ft_token_set *s, uint32_t token)
{
    if (!s->bits)
        return sparse_rank(s, token);
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
        return sparse_select(s, k);
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

/* The members ascend, and the last is an id. */
static ft_status check_members(const ft_token_set *s, ft_error *err)
{
    uint64_t k = 0, next = 0;
    for (uint64_t word = 0; word < ft_words(s->high.n_bits); word++)
        for (uint64_t w = s->high.words[word]; w; w &= w - 1, k++) {
            const uint64_t high = word * 64 + ft_lowest_bit(w) - k;
            const uint64_t token =
                high << s->low_bits | ft_packed_get(s->low, k, s->low_bits);
            if (token < next || token >= s->n_ids)
                return ft_fail(err, FT_EFORMAT, "member %llu is out of order",
                               (unsigned long long)k);
            next = token + 1;
        }
    return FT_OK;
}

static ft_status check_sparse(const ft_token_set *s, ft_error *err)
{
    const ft_status st =
        ft_bitvec_check(&s->high, 0, ft_bitvec_blocks(s->high.n_bits), err);
    if (st != FT_OK)
        return st;
    if (!ft_bitvec_padding_ok(&s->high) ||
        !ft_packed_padding_ok(s->low, s->n, s->low_bits))
        return ft_fail(err, FT_EFORMAT, "bits beyond the last are set");
    return check_members(s, err);
}

ft_status ft_token_set_check(const ft_token_set *s, ft_error *err)
{
    if (!s->bits)
        return check_sparse(s, err);
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
    *o = (ft_token_set_out){.w = w};
    o->words = ft_calloc(ft_token_set_bytes(form, n, n_ids), 1, w->err);
    if (!o->words)
        return w->status = FT_ENOMEM;
    o->set = ft_token_set_at(form, (uint32_t)n, n_ids, o->words);
    o->bits = o->words + (o->set.bits ? 0 : o->set.high.words - o->set.low);
    return FT_OK;
}

void ft_token_set_put(ft_token_set_out *o, uint32_t token)
{
    const unsigned low_bits = o->set.low_bits;
    if (o->set.bits) {
        ft_bit_set(o->bits, token);
    } else {
        ft_packed_set(o->words, o->n, low_bits, token & ft_low_mask(low_bits));
        ft_bit_set(o->bits, (token >> low_bits) + o->n);
    }
    o->n++;
}

/* The counts and hints of a bitmap. */
static void add_hints(const ft_token_set *s, uint32_t *rank)
{
    const uint64_t blocks = ft_set_blocks(s->n_ids);
    uint32_t n = 0, *hint = rank + blocks;
    for (uint64_t b = 0; b < blocks; b++) {
        rank[b] = n;
        for (uint64_t i = b * BLOCK_WORDS; i < (b + 1) * BLOCK_WORDS; i++)
            for (uint64_t w = s->bits[i]; w; w &= w - 1)
                if (n++ % (1 << FT_SET_HINT_SHIFT) == 0)
                    *hint++ = (uint32_t)(i * 64 + ft_lowest_bit(w));
    }
}

void ft_token_set_end(ft_token_set_out *o)
{
    const ft_token_set *s = &o->set;
    if (s->bits)
        add_hints(s, (uint32_t *)(o->bits + ft_set_blocks(s->n_ids) * BLOCK_WORDS));
    else
        ft_bitvec_count(o->bits, ft_bitvec_blocks(s->high.n_bits),
                        o->bits + ft_bitvec_bytes(s->high.n_bits) / 8);
    ft_section_put(
        o->w, o->words,
        ft_token_set_bytes(s->bits ? FT_SET_BITMAP : FT_SET_SPARSE, s->n, s->n_ids));
    free(o->words);
    o->words = NULL;
}
