/* SPDX-License-Identifier: Apache-2.0
 *
 * A depth-first walk meets the nodes of each level in their order, so each level is
 * read once from its start to its end.
 */
#include <stdlib.h>

#include "trie/tails_fold.h"

/* The nodes of a level that are still to come. */
typedef struct level_rest {
    ft_token_iter it;
    const ft_group *group; /* NULL: none is read yet */
    unsigned at, n;        /* of the group */
    bool ended;
    uint32_t tokens[FT_GROUP_NODES];
} level_rest;

struct ft_key_walk {
    ft_levels *levels;
    bool spend;
    uint64_t n_levels;
    level_rest *rest;
    uint32_t *path;
    uint32_t depth; /* of the key handed out last */
    uint32_t next;  /* tokens that the key behind it shares with it */
    bool more;      /* there is such a key */
};

ft_status ft_key_walk_open(ft_key_walk **out, ft_levels *levels, bool spend,
                           ft_error *err)
{
    ft_key_walk *w = ft_new(ft_key_walk, err);
    if (!w)
        return FT_ENOMEM;
    *w = (ft_key_walk){.levels = levels,
                       .spend = spend,
                       .n_levels = levels->n_levels,
                       .more = levels->n_nodes > 1};
    w->rest = ft_calloc(w->n_levels, sizeof *w->rest, err);
    w->path = ft_calloc(w->n_levels, sizeof *w->path, err);
    if (!w->rest || !w->path) {
        ft_key_walk_close(w);
        return FT_ENOMEM;
    }
    for (uint64_t i = 0; i < w->n_levels; i++)
        w->rest[i].it = ft_token_groups_from(levels, i);
    *out = w;
    return FT_OK;
}

/* Chunks of a level before one of them, or, NULL, all. */
static void free_chunks(ft_level *level, const ft_chunk *before)
{
    while (level->head && level->head != before) {
        ft_chunk *c = level->head;
        level->head = c->next;
        ft_chunk_free(c);
    }
}

/* Is there a node to come on a level? */
static bool fill(ft_key_walk *w, uint32_t level)
{
    level_rest *r = &w->rest[level];
    if (r->at < r->n || r->ended)
        return !r->ended;
    r->group = ft_token_groups_next(&r->it, &r->n, r->tokens);
    r->ended = !r->group || r->it.groups.level != level;
    r->at = 0;
    if (w->spend)
        free_chunks(&w->levels->level[level], r->ended ? NULL : r->it.groups.chunk);
    return !r->ended;
}

/* Is the next node of a level a sibling of the one before it? */
static bool sibling_follows(ft_key_walk *w, uint32_t level)
{
    const level_rest *r = &w->rest[level];
    return fill(w, level) && !(r->group->first >> r->at & 1);
}

bool ft_key_walk_next(ft_key_walk *w, ft_walked_key *key)
{
    const uint32_t lcp = w->next;
    bool child = true, ends = false;
    if (!w->more)
        return false;
    for (w->depth = lcp; !ends;) {
        level_rest *r = &w->rest[++w->depth];
        fill(w, w->depth);
        const unsigned i = r->at++;
        w->path[w->depth - 1] = r->tokens[i];
        child = r->group->child >> i & 1;
        ends = r->group->terminal >> i & 1;
    }
    w->next = w->depth;
    if (!child) {
        uint32_t level = w->depth;
        while (level && !sibling_follows(w, level))
            level--;
        w->more = level > 0;
        w->next = level ? level - 1 : 0;
    }
    *key = (ft_walked_key){w->path, w->depth, lcp, lcp > w->next ? lcp : w->next};
    return true;
}

void ft_key_walk_close(ft_key_walk *w)
{
    if (!w)
        return;
    free(w->rest);
    free(w->path);
    free(w);
}
