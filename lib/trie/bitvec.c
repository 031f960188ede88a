/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/bitvec.h"

#include <string.h>

ft_status ft_bitvec_index_add(ft_bitvec_index *x, uint64_t word, unsigned n,
                              ft_error *err)
{
    const unsigned place = x->n_words % 8;
    const uint64_t block = x->n_words / 8;
    ft_status st = FT_OK;
    if (place == 0) {
        const uint64_t entry[2] = {x->n_ones, 0};
        st = ft_buf_append(&x->rank, entry, sizeof entry, err);
        x->block_ones = x->n_ones;
    } else {
        uint64_t counts;
        uint8_t *at = x->rank.data + x->rank.len - sizeof counts;
        memcpy(&counts, at, sizeof counts);
        counts |= (x->n_ones - x->block_ones) << 9 * (place - 1);
        memcpy(at, &counts, sizeof counts);
    }
    const unsigned ones = ft_popcount(word), zeros = n - ones;
    const uint64_t next = ft_bitvec_hints(x->n_zeros) * FT_HINT_STEP;
    if (st == FT_OK && next < x->n_zeros + zeros) {
        const uint32_t hint = (uint32_t)block;
        st = ft_buf_append(&x->hints, &hint, sizeof hint, err);
    }
    x->n_ones += ones;
    x->n_zeros += zeros;
    x->n_words++;
    return st;
}

void ft_bitvec_index_free(ft_bitvec_index *x)
{
    ft_buf_free(&x->rank);
    ft_buf_free(&x->hints);
    *x = (ft_bitvec_index){0};
}

/* Directory entry of a block, from its bits. */
static uint64_t count_block(const uint64_t *words, uint64_t *counts)
{
    uint64_t ones = ft_popcount(words[0]);
    *counts = 0;
    for (unsigned i = 1; i < 8; i++) {
        *counts |= ones << 9 * (i - 1);
        ones += ft_popcount(words[i]);
    }
    return ones;
}

/* Do the hints of zeros number from to to - 1 name this block? */
static bool hints_ok(const ft_bitvec *b, uint64_t block, uint64_t from, uint64_t to)
{
    const uint64_t n_zeros = b->n_bits - b->n_ones;
    if (to > n_zeros) /* padding */
        to = n_zeros;
    for (uint64_t h = ft_bitvec_hints(from); h * FT_HINT_STEP < to; h++)
        if (b->hints[h] != block)
            return false;
    return true;
}

ft_status ft_bitvec_check(const ft_bitvec *b, uint64_t first, uint64_t last,
                          ft_error *err)
{
    uint64_t ones = b->rank[first * 2];
    if (first == 0 && ones != 0)
        return ft_fail(err, FT_EFORMAT, "rank directory does not start at 0");
    if (ones > first * FT_BLOCK_BITS)
        return ft_fail(err, FT_EFORMAT, "rank directory is wrong at block %llu",
                       (unsigned long long)first);
    for (uint64_t block = first; block < last; block++) {
        uint64_t counts;
        const uint64_t before = ones;
        ones += count_block(b->words + block * 8, &counts);
        if (b->rank[block * 2] != before || b->rank[block * 2 + 1] != counts)
            return ft_fail(err, FT_EFORMAT, "rank directory is wrong at block %llu",
                           (unsigned long long)block);
        if (b->hints && !hints_ok(b, block, block * FT_BLOCK_BITS - before,
                                  (block + 1) * FT_BLOCK_BITS - ones))
            return ft_fail(err, FT_EFORMAT, "select hints are wrong at block %llu",
                           (unsigned long long)block);
    }
    const uint64_t total =
        last == ft_bitvec_blocks(b->n_bits) ? b->n_ones : b->rank[last * 2];
    if (ones != total)
        return ft_fail(err, FT_EFORMAT, "%llu ones up to block %llu, %llu expected",
                       (unsigned long long)ones, (unsigned long long)last,
                       (unsigned long long)total);
    return FT_OK;
}

bool ft_bitvec_padding_ok(const ft_bitvec *b)
{
    const uint64_t end = ft_bitvec_blocks(b->n_bits) * 8;
    uint64_t any = b->words[b->n_bits / 64] & ~ft_low_mask(b->n_bits % 64);
    for (uint64_t i = b->n_bits / 64 + 1; i < end; i++)
        any |= b->words[i];
    return any == 0;
}

bool ft_packed_padding_ok(const uint64_t *words, uint64_t n, unsigned width)
{
    const uint64_t end = n * width, spare = ft_words(end);
    const uint64_t tail = end % 64 ? words[spare - 1] >> end % 64 : 0;
    return tail == 0 && words[spare] == 0;
}
