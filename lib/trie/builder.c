/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys in order go to the ends of the level arrays: a key that shares lcp tokens with
 * the one before it adds one node to each of the levels lcp + 1 to n, and nothing else
 * changes but one has-child bit.
 */
#include "trie/build.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/score.h"
#include "trie/layout.h"

enum { FIRST_GROUPS = 1, MAX_GROUPS = 1 << 14, CHUNK_GROWTH = 4 };

struct ft_builder {
    const ft_layout *layout;
    int compress_level;
    bool spent;
    uint32_t previous; /* tokens of the key before; 0: none */
    ft_levels levels;
};

/* Chunks grow from one group to a million nodes, so that a level costs little when keys
 * are long and nothing is copied when levels are wide. */
static ft_status grow(ft_level *level, ft_error *err)
{
    uint64_t groups = FIRST_GROUPS;
    if (level->tail) {
        groups = level->tail->cap_nodes / FT_GROUP_NODES;
        groups =
            groups * CHUNK_GROWTH < MAX_GROUPS ? groups * CHUNK_GROWTH : MAX_GROUPS;
    }
    ft_chunk *c = ft_calloc(1, sizeof(ft_chunk) + groups * sizeof(ft_group), err);
    if (!c)
        return FT_ENOMEM;
    c->cap_nodes = groups * FT_GROUP_NODES;
    if (level->tail)
        level->tail->next = c;
    else
        level->head = c;
    level->tail = c;
    return FT_OK;
}

static ft_status reserve_high(ft_chunk *c, ft_error *err)
{
    void *highs = c->highs;
    const ft_status st =
        ft_reserve(&highs, &c->cap_highs, c->n_highs + 1, sizeof *c->highs, err);
    c->highs = highs;
    return st;
}

static ft_status add_number(ft_chunk *c, uint64_t number, ft_error *err)
{
    void *numbers = c->numbers;
    const ft_status st = ft_reserve(&numbers, &c->cap_numbers, c->n_numbers + 1,
                                    FT_KEY_NUMBER_BYTES, err);
    c->numbers = numbers;
    if (st == FT_OK)
        memcpy(c->numbers + c->n_numbers++ * FT_KEY_NUMBER_BYTES, &number,
               FT_KEY_NUMBER_BYTES);
    return st;
}

/* Append a node; child and terminal bits may be set later. */
static inline ft_status add_node(ft_level *level, uint32_t token, bool first,
                                 bool child, bool terminal, ft_error *err)
{
    ft_chunk *c = level->tail;
    ft_status st;
    if (!c || c->n_nodes == c->cap_nodes) {
        if ((st = grow(level, err)) != FT_OK)
            return st;
        c = level->tail;
    }
    if (c->n_highs == c->cap_highs && (st = reserve_high(c, err)) != FT_OK)
        return st;
    ft_group *g = &c->groups[c->n_nodes / FT_GROUP_NODES];
    const unsigned i = c->n_nodes % FT_GROUP_NODES;
    const uint16_t high = (uint16_t)(token >> 16);
    g->low[i] = (uint16_t)token;
    g->first |= (uint64_t)first << i;
    g->child |= (uint64_t)child << i;
    g->terminal |= (uint64_t)terminal << i;
    g->high |= (uint64_t)(high != 0) << i;
    c->highs[c->n_highs] = high; /* kept only if it is not zero: no branch */
    c->n_highs += high != 0;
    c->n_nodes++;
    return FT_OK;
}

ft_status ft_builder_open(ft_builder **out, const ft_build_options *options,
                          ft_error *err)
{
    const ft_layout *layout = ft_layout_by_name(options->layout);
    if (!layout)
        return ft_fail(err, FT_EINVAL, "no layout is called '%s'", options->layout);
    if (options->compress_level < 0 || options->compress_level > ZSTD_maxCLevel())
        return ft_fail(err, FT_EINVAL, "compression level %d is not within 0 to %d",
                       options->compress_level, ZSTD_maxCLevel());
    ft_builder *b = ft_new(ft_builder, err);
    if (!b)
        return FT_ENOMEM;
    b->layout = layout;
    b->compress_level = options->compress_level;
    b->levels.ids = options->ids;
    ft_levels *l = &b->levels;
    void *level = NULL;
    ft_status st = ft_reserve(&level, &l->cap_levels, 16, sizeof *l->level, err);
    l->level = level;
    if (st == FT_OK) {
        l->level[0] = (ft_level){0};
        l->n_levels = 1;
        l->n_nodes = 1;
        st = add_node(&l->level[0], 0, true, false, false, err);
    }
    if (st != FT_OK) {
        ft_builder_close(b);
        return st;
    }
    *out = b;
    return FT_OK;
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

ft_status ft_builder_add(ft_builder *b, const uint32_t *tokens, uint32_t n,
                         uint32_t lcp, ft_error *err)
{
    ft_levels *l = &b->levels;
    assert(!b->spent && n > lcp && lcp <= b->previous);
    if (n > FT_MAX_KEY_TOKENS)
        return ft_fail(err, FT_EINVAL, "a key of %u tokens (at most %d)", n,
                       FT_MAX_KEY_TOKENS);
    if (l->n_nodes + n >= FT_MAX_NODES)
        return ft_fail(err, FT_EINVAL, "more nodes than an index can hold (2^40)");
    ft_status st = FT_OK;
    if (n >= l->n_levels && (st = add_levels(l, (uint64_t)n + 1, err)) != FT_OK)
        return st;

    /* Only where the key before is a prefix of this one is its end new as a parent. */
    const bool extends = lcp == b->previous;
    if (extends)
        set_child(&l->level[lcp]);
    uint32_t max = l->max_token;
    for (uint32_t d = lcp; d < n; d++) {
        const bool first = d > lcp || extends;
        st = add_node(&l->level[d + 1], tokens[d], first, d + 1 < n, d + 1 == n, err);
        if (st != FT_OK)
            return st;
        max = tokens[d] > max ? tokens[d] : max;
    }
    if (l->ids && (st = add_number(l->level[n].tail, l->n_keys, err)) != FT_OK)
        return st;
    l->max_token = max;
    l->n_nodes += n - lcp;
    l->n_keys++;
    b->previous = n;
    return FT_OK;
}

ft_status ft_builder_finish(ft_builder *b, ft_sink *out, ft_build_summary *summary,
                            ft_error *err)
{
    ft_levels *l = &b->levels;
    ft_writer w;
    b->spent = true;
    ft_status st = ft_writer_open(&w, out, b->compress_level, err);
    if (st != FT_OK)
        return st;
    ft_index_header *h = &w.front.header;
    h->layout = b->layout->id;
    h->flags = FT_INDEX_LEVEL_ORDER | (l->ids ? FT_INDEX_HAS_IDS : 0);
    h->n_keys = l->n_keys;
    h->n_nodes = l->n_nodes;
    h->depth = (uint32_t)l->n_levels - 1;
    h->max_token = l->max_token;
    l->n_highs = 0;
    ft_group_iter it = ft_levels_from(l, 0);
    for (const ft_chunk *c = ft_chunk_first(&it); c; c = ft_chunk_next(&it))
        l->n_highs += c->n_highs;
    st = b->layout->build(&w, l);
    if (st == FT_OK)
        st = ft_writer_finish(&w);
    if (st == FT_OK)
        *summary = (ft_build_summary){
            .n_keys = l->n_keys,
            .n_nodes = l->n_nodes,
            .file_bytes = h->file_bytes,
            .bits_per_node = (double)h->file_bytes * 8 / (double)l->n_nodes,
        };
    ft_writer_close(&w);
    return st;
}

void ft_builder_close(ft_builder *b)
{
    if (!b)
        return;
    ft_levels_free(&b->levels);
    free(b);
}
