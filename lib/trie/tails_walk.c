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
    const ft_group *group; /* NULL: none is read yet, or the level is at its end */
    unsigned at, n;        /* of the group */
    uint32_t tokens[FT_GROUP_NODES];
} level_rest;

struct ft_key_walk {
    uint64_t n_levels;
    level_rest *levels;
    uint32_t *path;
    uint32_t depth; /* of the node visited last */
    bool child;     /* it has children */
};

ft_status ft_key_walk_open(ft_key_walk **out, const ft_levels *levels, ft_error *err)
{
    ft_key_walk *w = ft_new(ft_key_walk, err);
    if (!w)
        return FT_ENOMEM;
    w->n_levels = levels->n_levels;
    w->levels = ft_calloc(w->n_levels, sizeof *w->levels, err);
    w->path = ft_calloc(w->n_levels, sizeof *w->path, err);
    if (!w->levels || !w->path) {
        ft_key_walk_close(w);
        return FT_ENOMEM;
    }
    for (uint64_t i = 0; i < w->n_levels; i++)
        w->levels[i].it = ft_token_groups_from(levels, i);
    w->child = levels->n_nodes > 1;
    *out = w;
    return FT_OK;
}

/* Is there a node to come on the level, and does it have the bit `first`? */
static bool next_is(ft_key_walk *w, uint32_t level, bool first)
{
    level_rest *r = &w->levels[level];
    if (r->at == r->n) {
        r->group = ft_token_groups_next(&r->it, &r->n, r->tokens);
        r->at = 0;
        if (r->group && r->it.groups.level != level) {
            r->group = NULL;
            r->n = 0;
        }
    }
    return r->group && (r->group->first >> r->at & 1) == first;
}

/* Visit the next node of the level that the walk is on. Does it end a key? */
static bool visit(ft_key_walk *w)
{
    level_rest *r = &w->levels[w->depth];
    const unsigned i = r->at++;
    w->path[w->depth - 1] = r->tokens[i];
    w->child = r->group->child >> i & 1;
    return r->group->terminal >> i & 1;
}

bool ft_key_walk_next(ft_key_walk *w, const uint32_t **tokens, uint32_t *n,
                      uint32_t *lcp)
{
    uint32_t shared = w->depth;
    bool ends = false;
    while (!ends) {
        if (w->child) {
            w->depth++;
            next_is(w, w->depth, true);
        } else {
            while (w->depth && !next_is(w, w->depth, false))
                w->depth--;
            if (w->depth == 0)
                return false;
            shared = w->depth - 1 < shared ? w->depth - 1 : shared;
        }
        ends = visit(w);
    }
    *tokens = w->path;
    *n = w->depth;
    *lcp = shared;
    return true;
}

void ft_key_walk_close(ft_key_walk *w)
{
    if (!w)
        return;
    free(w->levels);
    free(w->path);
    free(w);
}
