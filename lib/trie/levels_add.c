/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys in order go to the ends of the level arrays: a key that shares lcp tokens with
 * the one before it adds one node to each of the levels lcp + 1 to n, and nothing else
 * changes but one has-child bit.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trie/levels.h"

enum {
    FIRST_GROUPS = 1,
    MAX_GROUPS = 1 << 14,
    CHUNK_GROWTH = 4,
    MAX_KEPT_LEVELS = 1 << 12
};

uint64_t *ft_highs_room(uint64_t cap_nodes, unsigned bits, ft_error *err)
{
    /* A field more than there are nodes, which put_high writes before it counts, and
     * the word that packed arrays have behind. */
    return ft_realloc(NULL, ft_words((cap_nodes + 1) * bits) + 1, sizeof(uint64_t),
                      err);
}

static ft_status widen_highs(ft_levels *l, ft_chunk *c, unsigned bits, ft_error *err)
{
    uint64_t *highs = ft_highs_room(c->cap_nodes, bits, err);
    if (!highs)
        return FT_ENOMEM;
    for (uint64_t i = 0; i < c->n_highs; i++)
        ft_highs_put(highs, i, bits, ft_chunk_high(c, i));
    free(c->highs);
    c->highs = highs;
    c->high_bits = bits;
    l->high_bits = bits > l->high_bits ? bits : l->high_bits;
    return FT_OK;
}

/* Kept only if it is not zero: no branch. */
static inline ft_status put_high(ft_levels *l, ft_chunk *c, uint32_t high,
                                 ft_error *err)
{
    if (high >> c->high_bits) {
        const ft_status st = widen_highs(l, c, ft_bit_width(high), err);
        if (st != FT_OK)
            return st;
    }
    ft_highs_put(c->highs, c->n_highs, c->high_bits, high);
    c->n_highs += high != 0;
    return FT_OK;
}

/* Chunks grow from one group to a million nodes, so that a level costs little when keys
 * are long and nothing is copied when levels are wide. */
static ft_status grow(const ft_levels *l, ft_level *level, ft_error *err)
{
    uint64_t groups = FIRST_GROUPS;
    if (level->tail && level->tail->next) {
        level->tail = level->tail->next;
        return FT_OK;
    }
    if (level->tail) {
        groups = level->tail->cap_nodes / FT_GROUP_NODES;
        groups =
            groups * CHUNK_GROWTH < MAX_GROUPS ? groups * CHUNK_GROWTH : MAX_GROUPS;
    }
    ft_chunk *c =
        ft_realloc(NULL, 1, sizeof(ft_chunk) + groups * sizeof(ft_group), err);
    if (!c)
        return FT_ENOMEM;
    *c = (ft_chunk){.cap_nodes = groups * FT_GROUP_NODES,
                    .high_bits = l->high_bits ? l->high_bits : 1};
    c->highs = ft_highs_room(c->cap_nodes, c->high_bits, err);
    if (!c->highs) {
        free(c);
        return FT_ENOMEM;
    }
    if (level->tail)
        level->tail->next = c;
    else
        level->head = c;
    level->tail = c;
    return FT_OK;
}

static ft_status add_number(ft_chunk *c, uint64_t number, ft_error *err)
{
    if (!c->numbers) {
        c->numbers = ft_realloc(NULL, c->cap_nodes, FT_KEY_NUMBER_BYTES, err);
        if (!c->numbers)
            return FT_ENOMEM;
    }
    memcpy(c->numbers + c->n_numbers++ * FT_KEY_NUMBER_BYTES, &number,
           FT_KEY_NUMBER_BYTES);
    return FT_OK;
}

/* Append a node; child and terminal bits may be set later. */
static inline ft_status add_node(ft_levels *l, ft_level *level, uint32_t token,
                                 bool first, bool child, bool terminal, ft_error *err)
{
    ft_chunk *c = level->tail;
    if (!c || c->n_nodes == c->cap_nodes) {
        const ft_status st = grow(l, level, err);
        if (st != FT_OK)
            return st;
        c = level->tail;
    }
    ft_group *g = &c->groups[c->n_nodes / FT_GROUP_NODES];
    const unsigned i = c->n_nodes % FT_GROUP_NODES;
    const uint32_t high = token >> 16;
    if (i == 0)
        g->first = g->child = g->terminal = g->high = 0;
    g->low[i] = (uint16_t)token;
    g->first |= (uint64_t)first << i;
    g->child |= (uint64_t)child << i;
    g->terminal |= (uint64_t)terminal << i;
    g->high |= (uint64_t)(high != 0) << i;
    c->n_nodes++;
    return put_high(l, c, high, err);
}

static ft_status add_levels(ft_levels *l, uint64_t n, ft_error *err)
{
    void *level = l->level;
    const ft_status st = ft_reserve(&level, &l->cap_levels, n, sizeof *l->level, err);
    l->level = level;
    if (st == FT_OK)
        for (; l->n_levels < n; l->n_levels++)
            l->level[l->n_levels] = (ft_level){0};
    return st;
}

/* The last node of a level gets its first child. */
static void set_child(ft_level *level)
{
    ft_chunk *c = level->tail;
    const uint64_t last = c->n_nodes - 1;
    c->groups[last / FT_GROUP_NODES].child |= (uint64_t)1 << last % FT_GROUP_NODES;
}

ft_status ft_levels_open(ft_levels *l, bool ids, ft_error *err)
{
    *l = (ft_levels){.ids = ids};
    ft_status st = add_levels(l, 1, err);
    if (st == FT_OK)
        st = add_node(l, &l->level[0], 0, true, false, false, err);
    if (st == FT_OK)
        l->n_nodes = 1;
    else
        ft_levels_free(l);
    return st;
}

ft_status ft_levels_add(ft_levels *l, const uint32_t *tokens, uint32_t n, uint32_t lcp,
                        ft_error *err)
{
    ft_status st = FT_OK;
    assert(n > lcp && lcp <= l->previous);
    if (n >= l->n_levels && (st = add_levels(l, (uint64_t)n + 1, err)) != FT_OK)
        return st;

    /* Only where the key before is a prefix of this one is its end new as a parent. */
    const bool extends = lcp == l->previous;
    if (extends) {
        const ft_chunk *end = l->level[lcp].tail;
        if (end && end->n_nodes)
            set_child(&l->level[lcp]);
        else
            l->extends = true;
    }
    uint32_t max = l->max_token;
    for (uint32_t d = lcp; d < n; d++) {
        const bool first = d > lcp || extends;
        st =
            add_node(l, &l->level[d + 1], tokens[d], first, d + 1 < n, d + 1 == n, err);
        if (st != FT_OK)
            return st;
        max = tokens[d] > max ? tokens[d] : max;
    }
    if (l->ids && (st = add_number(l->level[n].tail, l->n_keys, err)) != FT_OK)
        return st;
    l->max_token = max;
    l->n_nodes += n - lcp;
    l->n_keys++;
    l->previous = n;
    return FT_OK;
}

ft_status ft_levels_restart(ft_levels *l, uint32_t previous, ft_error *err)
{
    if (l->n_levels > MAX_KEPT_LEVELS) {
        const ft_levels kept = {.ids = l->ids, .high_bits = l->high_bits};
        ft_levels_free(l);
        *l = kept;
    }
    for (uint64_t i = 0; i < l->n_levels; i++) {
        ft_level *level = &l->level[i];
        for (ft_chunk *c = level->head; c; c = c->next) {
            c->n_nodes = c->n_highs = c->n_numbers = 0;
            /* Chunks of one width are joined fast. */
            if (c->high_bits < l->high_bits &&
                widen_highs(l, c, l->high_bits, err) != FT_OK)
                return FT_ENOMEM;
        }
        level->tail = level->head;
    }
    l->n_nodes = l->n_keys = l->n_highs = 0;
    l->max_token = 0;
    l->previous = previous;
    l->extends = false;
    return FT_OK;
}

/* Append `n` nodes of a group to a chunk that has room for them. */
static void join_group(ft_chunk *c, const ft_group *from, unsigned n)
{
    ft_group *g = &c->groups[c->n_nodes / FT_GROUP_NODES];
    const unsigned at = c->n_nodes % FT_GROUP_NODES;
    const unsigned here = n < FT_GROUP_NODES - at ? n : FT_GROUP_NODES - at;
    if (at == 0)
        g->first = g->child = g->terminal = g->high = 0;
    memcpy(g->low + at, from->low, here * sizeof *g->low);
    g->first |= from->first << at;
    g->child |= from->child << at;
    g->terminal |= from->terminal << at;
    g->high |= from->high << at;
    if (here < n) {
        const unsigned rest = FT_GROUP_NODES - at;
        memcpy(g[1].low, from->low + here, (n - here) * sizeof *g->low);
        g[1].first = from->first >> rest;
        g[1].child = from->child >> rest;
        g[1].terminal = from->terminal >> rest;
        g[1].high = from->high >> rest;
    }
    c->n_nodes += n;
}

/* The first n nodes of a group, and the others as a group of their own. */
static ft_group split_group(ft_group *g, unsigned n)
{
    ft_group rest = {
        .first = g->first >> n,
        .child = g->child >> n,
        .terminal = g->terminal >> n,
        .high = g->high >> n,
    };
    const uint64_t kept = ft_low_mask(n);
    memcpy(rest.low, g->low + n, (FT_GROUP_NODES - n) * sizeof *g->low);
    g->first &= kept;
    g->child &= kept;
    g->terminal &= kept;
    g->high &= kept;
    return rest;
}

/* Append n_bits bits from place `bit` on behind place `to`, into words that, but for
 * the first, need no zeros. */
static void copy_bits(uint64_t *words, uint64_t to, const uint64_t *from, uint64_t bit,
                      uint64_t n_bits)
{
    for (unsigned n; n_bits; to += n, bit += n, n_bits -= n) {
        const unsigned shift = to % 64;
        n = n_bits < 64 ? (unsigned)n_bits : 64;
        uint64_t w = from[bit / 64] >> bit % 64;
        if (bit % 64)
            w |= from[bit / 64 + 1] << (64 - bit % 64);
        w &= ft_low_mask(n);
        words[to / 64] = (shift ? words[to / 64] : 0) | w << shift;
        if (shift + n > 64)
            words[to / 64 + 1] = w >> (64 - shift);
    }
}

/* Append the next n high parts of a chunk, from number `at` on. */
static ft_status join_highs(ft_levels *l, ft_chunk *c, const ft_chunk *from,
                            uint64_t at, unsigned n, ft_error *err)
{
    ft_status st = FT_OK;
    if (from->high_bits > c->high_bits) /* the next chunks will need them as well */
        st = widen_highs(l, c, from->high_bits, err);
    if (st == FT_OK && c->high_bits == from->high_bits) {
        const unsigned bits = c->high_bits;
        copy_bits(c->highs, c->n_highs * bits, from->highs, at * bits,
                  (uint64_t)n * bits);
        c->n_highs += n;
        return FT_OK;
    }
    for (unsigned i = 0; i < n && st == FT_OK; i++)
        st = put_high(l, c, ft_chunk_high(from, at + i), err);
    return st;
}

/* Append the next n key numbers of a chunk, from number `at` on; they count from
 * `base`. */
static ft_status join_numbers(ft_chunk *c, const ft_chunk *from, uint64_t at,
                              unsigned n, uint64_t base, ft_error *err)
{
    ft_status st = FT_OK;
    for (unsigned i = 0; i < n && st == FT_OK; i++) {
        uint64_t number = 0;
        memcpy(&number, from->numbers + (at + i) * FT_KEY_NUMBER_BYTES,
               FT_KEY_NUMBER_BYTES);
        st = add_number(c, base + number, err);
    }
    return st;
}

static ft_status join_chunk(ft_levels *l, ft_level *level, const ft_chunk *from,
                            ft_error *err)
{
    uint64_t high = 0, number = 0;
    for (uint64_t done = 0; done < from->n_nodes; done += FT_GROUP_NODES) {
        ft_group g = from->groups[done / FT_GROUP_NODES], rest = {0};
        const uint64_t left = from->n_nodes - done;
        unsigned n = left < FT_GROUP_NODES ? (unsigned)left : FT_GROUP_NODES;
        for (unsigned n_rest; n; n = n_rest, g = rest) {
            ft_status st = FT_OK;
            if (!level->tail || level->tail->n_nodes == level->tail->cap_nodes)
                st = grow(l, level, err);
            if (st != FT_OK)
                return st;
            ft_chunk *c = level->tail;
            const uint64_t room = c->cap_nodes - c->n_nodes;
            n_rest = n > room ? n - (unsigned)room : 0;
            if (n_rest)
                rest = split_group(&g, n - n_rest);
            join_group(c, &g, n - n_rest);
            const unsigned highs = ft_popcount(g.high);
            st = join_highs(l, c, from, high, highs, err);
            high += highs;
            if (st == FT_OK && l->ids) {
                const unsigned ends = ft_popcount(g.terminal);
                st = join_numbers(c, from, number, ends, l->n_keys, err);
                number += ends;
            }
            if (st != FT_OK)
                return st;
        }
    }
    return FT_OK;
}

ft_status ft_levels_join(ft_levels *l, const ft_levels *more, ft_error *err)
{
    ft_status st = FT_OK;
    if (more->n_levels > l->n_levels)
        st = add_levels(l, more->n_levels, err);
    if (st == FT_OK && more->extends)
        set_child(&l->level[l->previous]);
    for (uint64_t i = 0; i < more->n_levels; i++)
        for (const ft_chunk *c = more->level[i].head; c && c->n_nodes; c = c->next) {
            if (st == FT_OK)
                st = join_chunk(l, &l->level[i], c, err);
        }
    if (st != FT_OK)
        return st;
    l->n_nodes += more->n_nodes;
    l->n_keys += more->n_keys;
    l->max_token = more->max_token > l->max_token ? more->max_token : l->max_token;
    l->previous = more->previous;
    return FT_OK;
}
