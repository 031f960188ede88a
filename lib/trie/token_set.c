/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/token_set.h"

#include <stdlib.h>

#include "base/score.h"
#include "trie/bitvec.h"

enum { BLOCK_WORDS = FT_SET_BLOCK / 64 };

/* Bytes of n_bits bits, n of them ones, with counts and hints. */
static uint64_t counted_bytes(uint64_t n, uint64_t n_bits)
{
    const uint64_t blocks = ft_set_blocks(n_bits);
    const uint64_t numbers = blocks + ft_n_hints(n, FT_SET_HINT_SHIFT);
    return blocks * (FT_SET_BLOCK / 8) + (numbers + 1) / 2 * 8;
}

static ft_counted_bits counted_at(uint64_t n_bits, const uint64_t *data)
{
    const uint64_t blocks = ft_set_blocks(n_bits);
    const uint32_t *rank = (const uint32_t *)(data + blocks * BLOCK_WORDS);
    return (ft_counted_bits){data, rank, rank + blocks, n_bits};
}

/* Bits of a member that a sparse set stores as they are. */
static unsigned low_bits_of(uint64_t n, uint64_t n_ids)
{
    const uint64_t share = n ? n_ids / n : n_ids;
    return share ? ft_bit_width(share) - 1 : 0;
}

/* Bits for the rest: a one a member, a zero a value. A sparse set has few members, so
 * there are fewer than 2^32. */
static uint64_t high_bits_of(uint64_t n, uint64_t n_ids)
{
    return n + ((n_ids - 1) >> low_bits_of(n, n_ids)) + 1;
}

static uint64_t sparse_bytes(uint64_t n, uint64_t n_ids)
{
    return ft_packed_bytes(n, low_bits_of(n, n_ids)) +
           counted_bytes(n, high_bits_of(n, n_ids));
}

static bool is_sparse(uint64_t n, uint64_t n_ids)
{
    return n < n_ids && sparse_bytes(n, n_ids) < counted_bytes(n, n_ids);
}

uint64_t ft_token_set_bytes(uint64_t n, uint64_t n_ids)
{
    return n == n_ids            ? 0
           : is_sparse(n, n_ids) ? sparse_bytes(n, n_ids)
                                 : counted_bytes(n, n_ids);
}

ft_token_set ft_token_set_at(uint32_t n, uint64_t n_ids, const void *data)
{
    ft_token_set s = {.n_ids = n_ids, .n = n};
    if (is_sparse(n, n_ids)) {
        s.low_bits = low_bits_of(n, n_ids);
        s.low = data;
        s.bits = counted_at(high_bits_of(n, n_ids),
                            s.low + ft_packed_bytes(n, s.low_bits) / 8);
    } else if (n < n_ids) {
        s.bits = counted_at(n_ids, data);
    }
    return s;
}

static uint32_t ones_before(const ft_counted_bits *b, uint64_t bit)
{
    const uint64_t block = bit / FT_SET_BLOCK;
    const uint64_t *w = b->words + block * BLOCK_WORDS;
    const unsigned word = bit / 64 % BLOCK_WORDS;
    uint32_t n = b->rank[block] + ft_popcount(w[word] & ft_low_mask(bit % 64));
    for (unsigned i = 0; i + 1 < BLOCK_WORDS; i++)
        n += i < word ? ft_popcount(w[i]) : 0;
    return n;
}

/* Place of bit number k of the value that `flip` (all or none) turns into ones, in a
 * block: without a branch, for where it is cannot be foreseen. */
static uint64_t select_in_block(const ft_counted_bits *b, uint64_t block, uint64_t flip,
                                uint32_t k)
{
    const uint64_t *w = b->words + block * BLOCK_WORDS;
    unsigned word = 0;
    uint32_t before = 0, sum = 0;
    for (unsigned i = 0; i < BLOCK_WORDS; i++) {
        sum += ft_popcount(w[i] ^ flip);
        const bool behind = sum <= k;
        word += behind;
        before = behind ? sum : before;
    }
    return block * FT_SET_BLOCK + word * 64 +
           ft_select_in_word(w[word] ^ flip, k - before);
}

/* Place of one number k < n, of n. */
static uint64_t select_one(const ft_counted_bits *b, uint32_t n, uint32_t k)
{
    const uint32_t h = k >> FT_SET_HINT_SHIFT;
    const uint64_t last = h < (n - 1) >> FT_SET_HINT_SHIFT
                              ? b->hints[h + 1] / FT_SET_BLOCK
                              : ft_set_blocks(b->n_bits) - 1;
    const uint64_t block = ft_block_of(b->rank, 1, b->hints[h] / FT_SET_BLOCK, last, k);
    return select_in_block(b, block, 0, k - b->rank[block]);
}

/* Place of zero number k; there is one. */
static uint64_t select_zero(const ft_counted_bits *b, uint64_t k)
{
    uint64_t block = 0;
    for (uint64_t left = ft_set_blocks(b->n_bits); left > 1;) {
        const uint64_t half = left / 2, at = block + half;
        block += half & -(uint64_t)(at * FT_SET_BLOCK - b->rank[at] <= k);
        left -= half;
    }
    const uint64_t before = block * FT_SET_BLOCK - b->rank[block];
    return select_in_block(b, block, UINT64_MAX, (uint32_t)(k - before));
}

/* Members by the value of their high bits: number *first up to, not with, *end. */
static void members_with(const ft_token_set *s, uint64_t high, uint64_t *first,
                         uint64_t *end)
{
    const uint64_t *words = s->bits.words;
    const uint64_t at = high ? select_zero(&s->bits, high - 1) + 1 : 0;
    const uint64_t zeros = ~words[at / 64] & ~ft_low_mask(at % 64);
    const uint64_t zero =
        zeros ? at / 64 * 64 + ft_lowest_bit(zeros) : select_zero(&s->bits, high);
    *first = at - high;
    *end = zero - high;
}

/* Number of members below an id of a sparse set, and whether it is one. */
static uint32_t sparse_below(const ft_token_set *s, uint32_t id, bool *member)
{
    const uint64_t low = id & ft_low_mask(s->low_bits);
    uint64_t k, end;
    members_with(s, id >> s->low_bits, &k, &end);
    for (uint64_t n = end - k; n > 0;) {
        const uint64_t half = n / 2;
        const bool below = ft_packed_get(s->low, k + half, s->low_bits) < low;
        k += below ? half + 1 : 0;
        n = below ? n - half - 1 : half;
    }
    *member = k < end && ft_packed_get(s->low, k, s->low_bits) == low;
    return (uint32_t)k;
}

uint32_t ft_token_set_rank(const ft_token_set *s, uint32_t id)
{
    if (id >= s->n_ids)
        return FT_NO_TOKEN;
    if (s->low) {
        bool member;
        const uint32_t below = sparse_below(s, id, &member);
        return member ? below : FT_NO_TOKEN;
    }
    if (!s->bits.words)
        return id;
    return ft_bit_get(s->bits.words, id) ? ones_before(&s->bits, id) : FT_NO_TOKEN;
}

uint32_t ft_token_set_below(const ft_token_set *s, uint32_t id)
{
    bool member;
    return s->low ? sparse_below(s, id, &member) : ones_before(&s->bits, id);
}

uint32_t ft_token_set_select(const ft_token_set *s, uint32_t k)
{
    if (!s->bits.words)
        return k;
    const uint64_t at = select_one(&s->bits, s->n, k);
    if (!s->low)
        return (uint32_t)at;
    return (uint32_t)((at - k) << s->low_bits | ft_packed_get(s->low, k, s->low_bits));
}

static ft_status check_counted(const ft_counted_bits *b, uint32_t n_ones, ft_error *err)
{
    const uint64_t blocks = ft_set_blocks(b->n_bits);
    const uint64_t n_hints = ft_n_hints(n_ones, FT_SET_HINT_SHIFT);
    uint64_t n = 0;
    for (uint64_t i = 0; i < blocks && n <= n_ones; i++) {
        if (b->rank[i] != n)
            return ft_fail(err, FT_EFORMAT, "rank is wrong at block %llu",
                           (unsigned long long)i);
        for (unsigned word = 0; word < BLOCK_WORDS; word++)
            n += ft_popcount(b->words[i * BLOCK_WORDS + word]);
    }
    if (n != n_ones)
        return ft_fail(err, FT_EFORMAT, "not %u members", n_ones);
    uint64_t beyond = b->words[b->n_bits / 64] & ~ft_low_mask(b->n_bits % 64);
    for (uint64_t i = b->n_bits / 64 + 1; i < blocks * BLOCK_WORDS; i++)
        beyond |= b->words[i];
    if ((blocks + n_hints) % 2)
        beyond |= b->hints[n_hints];
    if (beyond)
        return ft_fail(err, FT_EFORMAT, "bits beyond the last are set");
    for (uint64_t i = 0; i < n_hints; i++) {
        const uint32_t at = b->hints[i];
        if (at >= b->n_bits || !ft_bit_get(b->words, at) ||
            ones_before(b, at) != i << FT_SET_HINT_SHIFT)
            return ft_fail(err, FT_EFORMAT, "hint %llu is wrong",
                           (unsigned long long)i);
    }
    return FT_OK;
}

/* The members ascend, and the last is an id. */
static ft_status check_members(const ft_token_set *s, ft_error *err)
{
    uint64_t k = 0, next = 0;
    for (uint64_t word = 0; word < ft_words(s->bits.n_bits); word++)
        for (uint64_t w = s->bits.words[word]; w; w &= w - 1, k++) {
            const uint64_t high = word * 64 + ft_lowest_bit(w) - k;
            const uint64_t id =
                high << s->low_bits | ft_packed_get(s->low, k, s->low_bits);
            if (id < next || id >= s->n_ids)
                return ft_fail(err, FT_EFORMAT, "member %llu is out of order",
                               (unsigned long long)k);
            next = id + 1;
        }
    return FT_OK;
}

ft_status ft_token_set_check(const ft_token_set *s, ft_error *err)
{
    if (!s->bits.words)
        return FT_OK;
    const ft_status st = check_counted(&s->bits, s->n, err);
    if (st != FT_OK || !s->low)
        return st;
    if (!ft_packed_padding_ok(s->low, s->n, s->low_bits))
        return ft_fail(err, FT_EFORMAT, "bits beyond the last are set");
    return check_members(s, err);
}

ft_status ft_token_set_begin(ft_token_set_out *o, ft_writer *w, uint64_t n,
                             uint64_t n_ids)
{
    *o = (ft_token_set_out){.w = w, .bytes = ft_token_set_bytes(n, n_ids)};
    o->words = ft_calloc(o->bytes, 1, w->err);
    if (!o->words)
        return w->status = FT_ENOMEM;
    o->set = ft_token_set_at((uint32_t)n, n_ids, o->words);
    o->bits = o->words + (o->set.low ? o->set.bits.words - o->set.low : 0);
    return FT_OK;
}

void ft_token_set_put(ft_token_set_out *o, uint32_t id)
{
    const unsigned low_bits = o->set.low_bits;
    if (o->set.low) {
        ft_packed_set(o->words, o->n, low_bits, id & ft_low_mask(low_bits));
        ft_bit_set(o->bits, (id >> low_bits) + o->n);
    } else if (o->set.bits.words) {
        ft_bit_set(o->bits, id);
    }
    o->n++;
}

static void add_counts(const ft_counted_bits *b, uint32_t *rank)
{
    const uint64_t blocks = ft_set_blocks(b->n_bits);
    uint32_t n = 0, *hint = rank + blocks;
    for (uint64_t i = 0; i < blocks; i++) {
        rank[i] = n;
        for (uint64_t word = i * BLOCK_WORDS; word < (i + 1) * BLOCK_WORDS; word++)
            for (uint64_t w = b->words[word]; w; w &= w - 1)
                if (n++ % (1 << FT_SET_HINT_SHIFT) == 0)
                    *hint++ = (uint32_t)(word * 64 + ft_lowest_bit(w));
    }
}

void ft_token_set_end(ft_token_set_out *o)
{
    const ft_counted_bits *b = &o->set.bits;
    if (b->words)
        add_counts(b, (uint32_t *)(o->bits + ft_set_blocks(b->n_bits) * BLOCK_WORDS));
    ft_section_put(o->w, o->words, o->bytes);
    free(o->words);
    o->words = NULL;
}
