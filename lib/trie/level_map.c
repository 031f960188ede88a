/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/level_map.h"

#include <stddef.h>
#include <stdlib.h>

#include "trie/parallel.h"

enum { PIECE_SPANS = 64 };

static uint64_t n_spans_of(const ft_chunk *c)
{
    const uint64_t nodes = (uint64_t)FT_SPAN_GROUPS * FT_GROUP_NODES;
    return c->n_nodes / nodes + (c->n_nodes % nodes != 0);
}

/* Where the spans start. */
static ft_status list_spans(ft_level_map *m, ft_error *err)
{
    ft_group_iter it = ft_levels_from(m->levels, 0);
    for (const ft_chunk *c = ft_chunk_first(&it); c; c = ft_chunk_next(&it))
        m->n_spans += n_spans_of(c);
    m->spans = ft_calloc(m->n_spans + 1, sizeof *m->spans, err);
    if (!m->spans)
        return FT_ENOMEM;
    ft_span *s = m->spans;
    it = ft_levels_from(m->levels, 0);
    for (const ft_chunk *c = ft_chunk_first(&it); c; c = ft_chunk_next(&it))
        for (uint64_t i = 0; i < n_spans_of(c); i++)
            *s++ =
                (ft_span){.chunk = c, .level = it.level, .group = i * FT_SPAN_GROUPS};
    s->level = m->levels->n_levels;
    return FT_OK;
}

/* What is in the span, not before it. */
static void count_span(ft_span *s)
{
    const ft_chunk *c = s->chunk;
    const uint64_t first = s->group * FT_GROUP_NODES, left = c->n_nodes - first;
    const uint64_t most = (uint64_t)FT_SPAN_GROUPS * FT_GROUP_NODES;
    s->node = left < most ? left : most;
    const ft_group *g = c->groups + s->group;
    for (uint64_t i = 0; i < s->node; i += FT_GROUP_NODES, g++) {
        s->parents += ft_popcount(g->child);
        s->siblings += ft_popcount(g->first);
        s->terminals += ft_popcount(g->terminal);
        s->highs += ft_popcount(g->high);
    }
    if (s->level == 0)
        s->siblings = 0;
}

static ft_status count_spans(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const ft_level_map *m = arg;
    (void)err;
    for (uint64_t i = begin; i < end; i++)
        count_span(&m->spans[i]);
    return FT_OK;
}

static void add_up(ft_level_map *m)
{
    ft_span sum = {0};
    for (uint64_t i = 0; i <= m->n_spans; i++) {
        ft_span *s = &m->spans[i];
        const ft_span in = *s;
        const bool same = i > 0 && s->chunk == sum.chunk;
        s->chunk_highs = same ? sum.chunk_highs : 0;
        s->chunk_numbers = same ? sum.chunk_numbers : 0;
        s->node = sum.node;
        s->parents = sum.parents;
        s->siblings = sum.siblings;
        s->terminals = sum.terminals;
        s->highs = sum.highs;
        sum.chunk = in.chunk;
        sum.chunk_highs = s->chunk_highs + in.highs;
        sum.chunk_numbers = s->chunk_numbers + in.terminals;
        sum.node += in.node;
        sum.parents += in.parents;
        sum.siblings += in.siblings;
        sum.terminals += in.terminals;
        sum.highs += in.highs;
    }
}

ft_status ft_level_map_open(ft_level_map *m, ft_levels *levels, uint32_t n_threads,
                            ft_error *err)
{
    *m = (ft_level_map){.levels = levels};
    ft_status st = list_spans(m, err);
    if (st == FT_OK)
        st = ft_parallel(m->n_spans, PIECE_SPANS, n_threads, count_spans, m, err);
    if (st == FT_OK)
        add_up(m);
    return st;
}

void ft_level_map_close(ft_level_map *m)
{
    free(m->spans);
    *m = (ft_level_map){0};
}

/* `field` is the offset of one of the counts. */
static const ft_span *find(const ft_level_map *m, size_t field, uint64_t n)
{
    uint64_t lo = 0, hi = m->n_spans;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo + 1) / 2;
        const char *s = (const char *)&m->spans[mid];
        if (*(const uint64_t *)(const void *)(s + field) <= n)
            lo = mid;
        else
            hi = mid - 1;
    }
    return &m->spans[lo];
}

const ft_span *ft_map_by_node(const ft_level_map *m, uint64_t n)
{
    return find(m, offsetof(ft_span, node), n);
}

const ft_span *ft_map_by_terminals(const ft_level_map *m, uint64_t n)
{
    return find(m, offsetof(ft_span, terminals), n);
}

const ft_span *ft_map_by_highs(const ft_level_map *m, uint64_t n)
{
    return find(m, offsetof(ft_span, highs), n);
}

static ft_group_iter groups_from(const ft_level_map *m, const ft_span *s)
{
    return (ft_group_iter){.levels = m->levels,
                           .level = s->level,
                           .chunk = s->chunk,
                           .next = s->group * FT_GROUP_NODES};
}

ft_group_iter ft_map_groups(const ft_level_map *m, uint64_t node, unsigned *at)
{
    const ft_span *s = ft_map_by_node(m, node);
    ft_group_iter it = groups_from(m, s);
    it.next += (node - s->node) / FT_GROUP_NODES * FT_GROUP_NODES;
    *at = (node - s->node) % FT_GROUP_NODES;
    return it;
}

ft_token_iter ft_map_tokens(const ft_level_map *m, uint64_t node, unsigned *at)
{
    const ft_span *s = ft_map_by_node(m, node);
    ft_token_iter it = {
        .groups = ft_map_groups(m, node, at),
        .chunk = s->chunk,
        .n_highs = s->chunk_highs,
    };
    for (uint64_t i = s->group; i < it.groups.next / FT_GROUP_NODES; i++)
        it.n_highs += ft_popcount(s->chunk->groups[i].high);
    return it;
}

/* On to the next group of nodes that starts groups of siblings. */
static void fetch(ft_sibling_cursor *c)
{
    do {
        unsigned n;
        const ft_group *g = ft_group_next(&c->it, &n);
        c->node += c->n;
        c->bits = g ? g->first : 1;
        c->n = g ? n : 0;
    } while (!c->bits);
}

void ft_siblings_move(ft_sibling_cursor *c, uint64_t k)
{
    for (uint64_t n; (n = ft_popcount(c->bits)) <= k; k -= n)
        fetch(c);
    while (k--)
        c->bits &= c->bits - 1;
}

ft_sibling_cursor ft_map_siblings(const ft_level_map *m, uint64_t k)
{
    const ft_span *s = find(m, offsetof(ft_span, siblings), k);
    ft_sibling_cursor c = {.it = groups_from(m, s), .node = s->node};
    uint64_t before = s->siblings;
    if (s->level == 0) { /* the root alone */
        c = (ft_sibling_cursor){.it = ft_levels_from(m->levels, 1), .node = 1};
        before = 0;
    }
    fetch(&c);
    ft_siblings_move(&c, k - before);
    return c;
}

/* Ones of a bit of the groups, from the start of a span up to a node of it. */
static uint64_t ones_before(const ft_span *s, uint64_t node, size_t field)
{
    const uint64_t n = node - s->node;
    uint64_t ones = 0;
    for (uint64_t i = 0; i < n; i += FT_GROUP_NODES) {
        const ft_group *g = &s->chunk->groups[s->group + i / FT_GROUP_NODES];
        const char *bits = (const char *)g + field;
        const unsigned left = n - i < 64 ? (unsigned)(n - i) : 64;
        ones += ft_popcount(*(const uint64_t *)(const void *)bits & ft_low_mask(left));
    }
    return ones;
}

uint64_t ft_map_siblings_before(const ft_level_map *m, uint64_t node)
{
    const ft_span *s = ft_map_by_node(m, node);
    return s->siblings + ones_before(s, node, offsetof(ft_group, first));
}

uint64_t ft_map_parents_before(const ft_level_map *m, uint64_t node)
{
    const ft_span *s = ft_map_by_node(m, node);
    return s->parents + ones_before(s, node, offsetof(ft_group, child));
}
