/* SPDX-License-Identifier: Apache-2.0
 *
 * A depth-first walk meets the nodes of each level in the order of their numbers, so
 * each level keeps a place that moves forward, and no node but the first of a level is
 * searched for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trie/trie.h"

/* Where the walk is on one level. */
typedef struct step {
    uint64_t node;   /* the next node to visit */
    uint64_t place;  /* of that node, for ops->visit; known once the level is `open` */
    uint64_t left;   /* siblings not visited yet */
    uint64_t n, cap; /* labels of the group */
    uint32_t *labels;
    bool open;
} step;

struct ft_cursor {
    const ft_trie *trie;
    uint32_t *tokens; /* the path; trie->depth of them */
    step *steps;      /* steps[d]: nodes of d + 1 tokens below the prefix */
    uint64_t n_steps, cap_steps;
    uint32_t n_prefix;
    uint32_t depth; /* steps in use */
    uint64_t start; /* node of the prefix, UINT64_MAX once it is under way */
};

/* At no node yet. */
static ft_status new_cursor(ft_cursor **out, const ft_trie *t, ft_error *err)
{
    ft_cursor *c = ft_new(ft_cursor, err);
    if (!c)
        return FT_ENOMEM;
    c->trie = t;
    c->start = UINT64_MAX;
    c->tokens = ft_calloc(t->depth, sizeof *c->tokens, err);
    if (!c->tokens) {
        ft_cursor_close(c);
        return FT_ENOMEM;
    }
    *out = c;
    return FT_OK;
}

ft_status ft_cursor_open(ft_cursor **out, const ft_trie *t, const uint32_t *prefix,
                         uint32_t n_prefix, ft_error *err)
{
    const ft_status st = new_cursor(out, t, err);
    if (st != FT_OK)
        return st;
    ft_cursor *c = *out;
    c->start = ft_trie_walk(t, prefix, n_prefix);
    if (c->start != UINT64_MAX && n_prefix) {
        memcpy(c->tokens, prefix, n_prefix * sizeof *prefix);
        c->n_prefix = n_prefix;
    }
    return FT_OK;
}

/* Go down to the children in r. */
static ft_status descend(ft_cursor *c, ft_range r, ft_error *err)
{
    const ft_trie *t = c->trie;
    void *memory = c->steps;
    ft_status st =
        ft_reserve(&memory, &c->cap_steps, c->depth + 1, sizeof *c->steps, err);
    c->steps = memory;
    if (st != FT_OK)
        return st;
    if (c->depth == c->n_steps)
        c->steps[c->n_steps++] = (step){0};
    step *s = &c->steps[c->depth];
    memory = s->labels;
    st = ft_reserve(&memory, &s->cap, r.count, sizeof *s->labels, err);
    s->labels = memory;
    if (st != FT_OK)
        return st;
    t->ops->labels(t, r.first, r.count, s->labels);
    if (!s->open) {
        s->place = t->ops->seek(t, r.first);
        s->open = true;
    }
    s->node = r.first;
    s->n = s->left = r.count;
    c->depth++;
    return FT_OK;
}

ft_status ft_cursor_open_run(ft_cursor **out, const ft_trie *t, uint64_t first,
                             uint64_t n, ft_error *err)
{
    ft_status st = new_cursor(out, t, err);
    if (st != FT_OK)
        return st;
    const uint64_t root = t->ops->children(t, 0).first;
    st = descend(*out, (ft_range){root + first, n}, err);
    if (st != FT_OK)
        ft_cursor_close(*out);
    return st;
}

/* Visit the prefix itself. */
static ft_status begin(ft_cursor *c, bool *terminal, uint64_t *node, ft_error *err)
{
    const ft_trie *t = c->trie;
    const uint64_t start = c->start;
    uint64_t place = t->ops->seek(t, start);
    const ft_visit v = t->ops->visit(t, start, &place);
    const ft_status st = v.children.count ? descend(c, v.children, err) : FT_OK;
    if (st == FT_OK) {
        c->start = UINT64_MAX;
        *terminal = v.terminal;
        *node = start;
    }
    return st;
}

ft_status ft_cursor_next(ft_cursor *c, const uint32_t **tokens, uint32_t *n,
                         uint64_t *node, ft_error *err)
{
    const ft_trie *t = c->trie;
    bool terminal = false;
    uint64_t at = 0;
    uint32_t length = c->n_prefix;
    if (c->start != UINT64_MAX) {
        const ft_status st = begin(c, &terminal, &at, err);
        if (st != FT_OK)
            return st;
    }
    while (!terminal && c->depth) {
        step *s = &c->steps[c->depth - 1];
        if (s->left == 0) {
            c->depth--;
            continue;
        }
        length = c->n_prefix + c->depth;
        at = s->node++;
        c->tokens[length - 1] = s->labels[s->n - s->left--];
        const ft_visit v = t->ops->visit(t, at, &s->place);
        terminal = v.terminal;
        if (v.children.count) {
            const ft_status st = descend(c, v.children, err);
            if (st != FT_OK)
                return st;
        }
    }
    *tokens = c->tokens;
    *n = terminal ? length : 0;
    *node = at;
    return FT_OK;
}

void ft_cursor_close(ft_cursor *c)
{
    if (!c)
        return;
    for (uint64_t i = 0; i < c->n_steps; i++)
        free(c->steps[i].labels);
    free(c->steps);
    free(c->tokens);
    free(c);
}
