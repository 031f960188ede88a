/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/token_ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/score.h"

enum { FIRST_LOG = 10, RADIX_BITS = 11 };

/* A bitmap up to a byte a node, or a megabyte. */
static bool dense(uint64_t n_nodes, uint64_t max_token)
{
    return max_token / 8 <= n_nodes || max_token < (uint64_t)1 << 23;
}

static ft_status grow(ft_token_ids *t, unsigned log, ft_error *err)
{
    const uint64_t n = (uint64_t)1 << log;
    ft_token_ids bigger = *t;
    bigger.slots = ft_alloc_aligned(n, sizeof *t->slots, err);
    if (!bigger.slots)
        return FT_ENOMEM;
    memset(bigger.slots, 0xff, n * sizeof *t->slots);
    bigger.shift = 64 - log;
    bigger.mask = n - 1;
    for (uint64_t i = 0; t->slots && i <= t->mask; i++)
        if (t->slots[i].token != FT_NO_TOKEN)
            bigger.slots[ft_token_ids_slot(&bigger, t->slots[i].token)] = t->slots[i];
    free(t->slots);
    *t = bigger;
    return FT_OK;
}

ft_status ft_token_ids_open(ft_token_ids *t, uint64_t n_nodes, uint32_t max_token,
                            ft_error *err)
{
    *t = (ft_token_ids){0};
    if (!dense(n_nodes, max_token))
        return grow(t, FIRST_LOG, err);
    t->n_words = (uint64_t)max_token / 64 + 1;
    t->bits = ft_calloc(t->n_words, sizeof *t->bits, err);
    return t->bits ? FT_OK : FT_ENOMEM;
}

ft_status ft_token_ids_add(ft_token_ids *t, const uint32_t *tokens, unsigned n,
                           ft_error *err)
{
    if (t->bits) {
        for (unsigned i = 0; i < n; i++) {
            uint64_t *word = &t->bits[tokens[i] / 64];
            const uint64_t bit = (uint64_t)1 << tokens[i] % 64;
            if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
                __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
        }
        return FT_OK;
    }
    for (unsigned i = 0; i < n; i++) {
        ft_token_slot *s = &t->slots[ft_token_ids_slot(t, tokens[i])];
        if (s->token == tokens[i])
            continue;
        s->token = tokens[i];
        if (++t->n <= t->mask / 2)
            continue;
        const ft_status st = grow(t, 64 - t->shift + 1, err);
        if (st != FT_OK)
            return st;
    }
    return FT_OK;
}

/* Three passes of 11 bits; `list` and `spare` have room for n. The odd number of passes
 * leaves the result in `spare`. */
static void radix_sort(uint32_t *list, uint32_t *spare, uint32_t n)
{
    for (unsigned shift = 0; shift < 32; shift += RADIX_BITS) {
        uint32_t start[(1 << RADIX_BITS) + 1] = {0};
        const uint32_t mask = (1 << RADIX_BITS) - 1;
        for (uint32_t i = 0; i < n; i++)
            start[(list[i] >> shift & mask) + 1]++;
        for (uint32_t i = 0; i < mask; i++)
            start[i + 1] += start[i];
        for (uint32_t i = 0; i < n; i++)
            spare[start[list[i] >> shift & mask]++] = list[i];
        uint32_t *swap = list;
        list = spare;
        spare = swap;
    }
}

static ft_status number_list(ft_token_ids *t, ft_error *err)
{
    uint32_t *list = ft_calloc(t->n, sizeof *list, err);
    t->list = ft_calloc(t->n, sizeof *list, err);
    if (!list || !t->list) {
        free(list);
        return FT_ENOMEM;
    }
    uint32_t n = 0;
    for (uint64_t i = 0; i <= t->mask; i++)
        if (t->slots[i].token != FT_NO_TOKEN)
            list[n++] = t->slots[i].token;
    radix_sort(list, t->list, n);
    free(list);
    for (uint32_t i = 0; i < n; i++)
        t->slots[ft_token_ids_slot(t, t->list[i])].id = i;
    return FT_OK;
}

ft_status ft_token_ids_number(ft_token_ids *t, ft_error *err)
{
    if (!t->bits)
        return number_list(t, err);
    t->rank = ft_calloc(t->n_words, sizeof *t->rank, err);
    if (!t->rank)
        return FT_ENOMEM;
    for (uint64_t i = 0; i < t->n_words; i++) {
        t->rank[i] = t->n;
        t->n += ft_popcount(t->bits[i]);
    }
    return FT_OK;
}

uint32_t ft_token_ids_next(const ft_token_ids *t, uint64_t *at)
{
    if (!t->bits)
        return *at < t->n ? t->list[(*at)++] : FT_NO_TOKEN;
    uint64_t word = *at / 64;
    if (word >= t->n_words)
        return FT_NO_TOKEN;
    uint64_t w = t->bits[word] & ~ft_low_mask(*at % 64);
    while (!w) {
        if (++word == t->n_words) {
            *at = word * 64;
            return FT_NO_TOKEN;
        }
        w = t->bits[word];
    }
    const uint64_t token = word * 64 + (unsigned)__builtin_ctzll(w);
    *at = token + 1;
    return (uint32_t)token;
}

void ft_token_ids_free(ft_token_ids *t)
{
    free(t->bits);
    free(t->rank);
    free(t->slots);
    free(t->list);
    *t = (ft_token_ids){0};
}
