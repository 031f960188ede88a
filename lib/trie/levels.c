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

void ft_chunk_free(ft_chunk *c)
{
    free(c->highs);
    free(c->numbers);
    free(c);
}

void ft_levels_free(ft_levels *l)
{
    for (uint64_t i = 0; i < l->n_levels; i++)
        for (ft_chunk *c = l->level[i].head, *next; c; c = next) {
            next = c->next;
            ft_chunk_free(c);
        }
    free(l->level);
    *l = (ft_levels){0};
}
