/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/levels.h"

#include <stdlib.h>

ft_group_iter ft_levels_from(const ft_levels *l, uint64_t level)
{
    return (ft_group_iter){.levels = l, .level = level};
}

const ft_chunk *ft_chunk_first(ft_group_iter *it)
{
    if (it->level >= it->levels->n_levels)
        return NULL;
    it->next = 0;
    it->chunk = it->levels->level[it->level].head;
    return it->chunk;
}

const ft_chunk *ft_chunk_next(ft_group_iter *it)
{
    it->next = 0;
    it->chunk = it->chunk->next;
    if (it->chunk)
        return it->chunk;
    it->level++;
    return ft_chunk_first(it);
}

const ft_group *ft_group_next(ft_group_iter *it, unsigned *n)
{
    const ft_chunk *c = it->chunk ? it->chunk : ft_chunk_first(it);
    while (c && it->next >= c->n_nodes)
        c = ft_chunk_next(it);
    if (!c)
        return NULL;
    const uint64_t left = c->n_nodes - it->next;
    const ft_group *g = &c->groups[it->next / FT_GROUP_NODES];
    *n = left < FT_GROUP_NODES ? (unsigned)left : FT_GROUP_NODES;
    it->next += FT_GROUP_NODES;
    return g;
}

ft_degree_iter ft_levels_degrees(const ft_levels *l)
{
    return (ft_degree_iter){.groups = ft_levels_from(l, 1)};
}

uint64_t ft_degree_next(ft_degree_iter *it)
{
    uint64_t degree = 0;
    for (;;) {
        if (it->left == 0) {
            const ft_group *g = ft_group_next(&it->groups, &it->left);
            if (!g)
                return degree;
            it->first = g->first;
        }
        /* The bit of the run's own first node does not end the run. */
        const uint64_t ends = degree ? it->first : it->first & ~(uint64_t)1;
        const unsigned run = ends ? (unsigned)__builtin_ctzll(ends) : FT_GROUP_NODES;
        if (run < it->left) {
            it->first >>= run;
            it->left -= run;
            return degree + run;
        }
        degree += it->left;
        it->left = 0;
    }
}

void ft_levels_free(ft_levels *l)
{
    for (uint64_t i = 0; i < l->n_levels; i++)
        for (ft_chunk *c = l->level[i].head, *next; c; c = next) {
            next = c->next;
            free(c->highs);
            free(c->numbers);
            free(c);
        }
    free(l->level);
    *l = (ft_levels){0};
}
