/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/bitvec.h"

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

uint64_t ft_bitvec_count(const uint64_t *words, uint64_t n_blocks, uint64_t *rank)
{
    uint64_t ones = 0;
    for (uint64_t block = 0; block < n_blocks; block++) {
        uint64_t counts;
        const uint64_t here = count_block(words + block * 8, &counts);
        rank[block * 2] = ones;
        rank[block * 2 + 1] = counts;
        ones += here;
    }
    return ones;
}

void ft_bitvec_settle(const ft_bitvec *b, uint64_t *rank, uint32_t *hints,
                      uint64_t first, uint64_t last, uint64_t before, uint64_t ones)
{
    const uint64_t n_zeros = b->n_bits - b->n_ones;
    for (uint64_t block = first; block < last; block++) {
        const uint64_t in = rank[block * 2];
        const uint64_t next = block + 1 < last ? rank[block * 2 + 2] : ones;
        const uint64_t from = block * FT_BLOCK_BITS - before - in;
        uint64_t to = (block + 1) * FT_BLOCK_BITS - before - next;
        rank[block * 2] = before + in;
        to = to < n_zeros ? to : n_zeros; /* the rest is padding */
        for (uint64_t h = ft_bitvec_hints(from); hints && h * FT_HINT_STEP < to; h++)
            hints[h] = (uint32_t)block;
    }
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
