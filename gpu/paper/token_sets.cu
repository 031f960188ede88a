/* SPDX-License-Identifier: Apache-2.0 */
#include "token_sets.h"

enum { LEAST_SLOTS = 64 };

/* A hash of tokens, at most half full; FT_NO_TOKEN is a free slot. */
struct token_bag {
    uint32_t *slots;
    uint64_t n, n_slots; /* a power of two */
};

static void put(uint32_t *slots, uint64_t n_slots, uint32_t token, uint64_t *n)
{
    uint64_t at = token * UINT64_C(0x9E3779B97F4A7C15) >> 32 & (n_slots - 1);
    while (slots[at] != FT_NO_TOKEN && slots[at] != token)
        at = (at + 1) & (n_slots - 1);
    *n += slots[at] == FT_NO_TOKEN;
    slots[at] = token;
}

static ft_status add(token_bag *b, uint32_t token, ft_error *err)
{
    if (2 * b->n >= b->n_slots) {
        const uint64_t n_slots = b->n_slots ? 2 * b->n_slots : LEAST_SLOTS;
        uint32_t *slots = (uint32_t *)ft_calloc(n_slots, sizeof *slots, err);
        if (!slots)
            return FT_ENOMEM;
        memset(slots, 0xff, n_slots * sizeof *slots);
        b->n = 0;
        for (uint64_t i = 0; i < b->n_slots; i++)
            if (b->slots[i] != FT_NO_TOKEN)
                put(slots, n_slots, b->slots[i], &b->n);
        free(b->slots);
        b->slots = slots;
        b->n_slots = n_slots;
    }
    put(b->slots, b->n_slots, token, &b->n);
    return FT_OK;
}

static int by_value(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

/* Tokens that a key shares with the one before are in the bags already. */
static ft_status add_key(token_bag *bags, const uint32_t *tokens, uint32_t n,
                         uint32_t *before, uint32_t *n_before, ft_error *err)
{
    uint32_t d = 0;
    ft_status st = FT_OK;
    while (d < n && d < *n_before && tokens[d] == before[d])
        d++;
    for (; d < n && st == FT_OK; d++) {
        before[d] = tokens[d];
        st = add(&bags[d], tokens[d], err);
    }
    *n_before = n;
    return st;
}

static ft_status read_keys(token_bag *bags, uint8_t *ends, const ft_trie *trie,
                           ft_error *err)
{
    ft_cursor *keys = NULL;
    const uint32_t *tokens;
    uint32_t n = 0, n_before = 0;
    uint64_t node;
    uint32_t *before = (uint32_t *)ft_calloc(trie->depth, sizeof *before, err);
    ft_status st = before ? ft_cursor_open(&keys, trie, NULL, 0, err) : FT_ENOMEM;
    while (st == FT_OK) {
        st = ft_cursor_next(keys, &tokens, &n, &node, err);
        if (st != FT_OK || n == 0)
            break;
        ends[n - 1] = 1;
        st = add_key(bags, tokens, n, before, &n_before, err);
    }
    ft_cursor_close(keys);
    free(before);
    return st;
}

static ft_status sort_bags(ft_token_sets *s, const token_bag *bags, ft_error *err)
{
    for (uint32_t d = 0; d < s->depth; d++)
        s->offsets[d + 1] = s->offsets[d] + bags[d].n;
    s->tokens = (uint32_t *)ft_calloc(s->offsets[s->depth], sizeof *s->tokens, err);
    if (!s->tokens)
        return FT_ENOMEM;
    for (uint32_t d = 0; d < s->depth; d++) {
        uint32_t *out = s->tokens + s->offsets[d];
        for (uint64_t i = 0; i < bags[d].n_slots; i++)
            if (bags[d].slots[i] != FT_NO_TOKEN)
                *out++ = bags[d].slots[i];
        qsort(s->tokens + s->offsets[d], bags[d].n, sizeof *s->tokens, by_value);
    }
    return FT_OK;
}

ft_status ft_token_sets_make(ft_token_sets *out, const ft_trie *trie, ft_error *err)
{
    ft_token_sets s = {};
    s.depth = trie->depth;
    s.offsets = (uint64_t *)ft_calloc(s.depth + 1ull, sizeof *s.offsets, err);
    s.ends = (uint8_t *)ft_calloc(s.depth, 1, err);
    token_bag *bags = (token_bag *)ft_calloc(s.depth, sizeof *bags, err);
    ft_status st = s.offsets && s.ends && bags ? FT_OK : FT_ENOMEM;
    if (st == FT_OK)
        st = read_keys(bags, s.ends, trie, err);
    if (st == FT_OK)
        st = sort_bags(&s, bags, err);
    for (uint32_t d = 0; bags && d < s.depth; d++)
        free(bags[d].slots);
    free(bags);
    if (st == FT_OK)
        *out = s;
    else
        ft_token_sets_free(&s);
    return st;
}

void ft_token_sets_free(ft_token_sets *s)
{
    free(s->offsets);
    free(s->tokens);
    free(s->ends);
    *s = {};
}
