/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/bits_out.h"

void ft_bits_ones(ft_bits_out *b, uint64_t n)
{
    const unsigned head = b->fill ? 64 - b->fill : 0;
    if (n <= head) {
        ft_bits_put(b, ft_low_mask((unsigned)n), (unsigned)n);
        return;
    }
    ft_bits_put(b, ft_low_mask(head), head);
    n -= head;
    uint64_t words = n / 64;
    if (b->at < b->first) {
        const uint64_t skip = b->first - b->at < words ? b->first - b->at : words;
        b->at += skip;
        words -= skip;
    }
    while (words && !ft_bits_full(b)) {
        ft_bits_word(b, ~(uint64_t)0);
        words--;
    }
    b->at += words;
    ft_bits_put(b, ft_low_mask(n % 64), n % 64);
}

void ft_bits_close(ft_bits_out *b)
{
    if (b->fill)
        ft_bits_word(b, b->word);
    while (!ft_bits_full(b))
        ft_bits_word(b, 0);
    b->fill = 0;
}
