/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys are gone through once more. What a key has to itself, below all that it
 * shares with its neighbours in order, is a chain down to a leaf: from two tokens on it
 * becomes a link, and the levels get a key that ends there.
 */
#include "trie/tails_fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/score.h"

typedef struct folding {
    ft_fold *fold;
    ft_key_walk *walk;
    uint64_t n_levels;
    uint64_t *n_nodes; /* of each level, so far */
    uint32_t *key;     /* the one that waits for its neighbour */
    uint32_t n, lcp;
} folding;

static ft_status add_link(ft_fold *f, uint64_t node, uint32_t level,
                          const uint32_t *tokens, uint32_t n, ft_error *err)
{
    void *links = f->links, *pool = f->tokens;
    ft_status st =
        ft_reserve(&links, &f->cap_links, f->n_links + 1, sizeof *f->links, err);
    f->links = links;
    if (st == FT_OK)
        st = ft_reserve(&pool, &f->cap_tokens, f->n_tokens + n, sizeof *tokens, err);
    f->tokens = pool;
    if (st != FT_OK)
        return st;
    f->links[f->n_links++] = (ft_link){node, f->n_tokens, level, n};
    memcpy(f->tokens + f->n_tokens, tokens, n * sizeof *tokens);
    f->n_tokens += n;
    return FT_OK;
}

/* The key that waits, which shares `next` tokens with the one after it, is added. */
static ft_status settle(folding *x, uint32_t next, ft_error *err)
{
    ft_fold *f = x->fold;
    const uint32_t shared = x->lcp > next ? x->lcp : next;
    const bool link = x->n > shared + 1;
    uint32_t n = x->n;
    if (link) {
        const ft_status st = add_link(f, x->n_nodes[shared + 1], shared + 1,
                                      x->key + shared, n - shared, err);
        if (st != FT_OK)
            return st;
        n = shared + 1;
        x->key[shared] = 0;
    }
    for (uint32_t level = x->lcp + 1; level <= n; level++)
        x->n_nodes[level]++;
    return ft_levels_add(&f->levels, x->key, n, x->lcp, err);
}

static ft_status fold_keys(folding *x, ft_error *err)
{
    const uint32_t *tokens;
    uint32_t n, lcp;
    ft_status st = FT_OK;
    while (st == FT_OK && ft_key_walk_next(x->walk, &tokens, &n, &lcp)) {
        if (x->n)
            st = settle(x, lcp, err);
        memcpy(x->key + lcp, tokens + lcp, (n - lcp) * sizeof *tokens);
        x->n = n;
        x->lcp = lcp;
    }
    return st == FT_OK && x->n ? settle(x, 0, err) : st;
}

/* From the order of the keys to that of the nodes, which are numbered within their
 * level until then. */
static ft_status sort_links(folding *x, ft_error *err)
{
    ft_fold *f = x->fold;
    const uint64_t n_levels = x->n_levels;
    uint64_t *place = ft_calloc(n_levels + 1, sizeof *place, err);
    ft_link *sorted = ft_calloc(f->n_links, sizeof *sorted, err);
    if (!place || !sorted) {
        free(place);
        free(sorted);
        return FT_ENOMEM;
    }
    for (uint64_t i = 0; i < f->n_links; i++)
        place[f->links[i].level + 1]++;
    uint64_t node = 1; /* behind the root, which x->n_nodes leaves out */
    for (uint64_t level = 1; level < n_levels; level++) {
        const uint64_t n = x->n_nodes[level];
        x->n_nodes[level] = node; /* the level's first from here on */
        node += n;
        place[level] += place[level - 1];
    }
    for (uint64_t i = 0; i < f->n_links; i++) {
        ft_link *to = &sorted[place[f->links[i].level]++];
        *to = f->links[i];
        to->node += x->n_nodes[to->level];
    }
    free(place);
    free(f->links);
    f->links = sorted;
    f->cap_links = f->n_links;
    return FT_OK;
}

ft_status ft_fold_make(ft_fold *f, const ft_levels *levels, ft_error *err)
{
    folding x = {.fold = f, .n_levels = levels->n_levels};
    ft_status st = ft_levels_open(&f->levels, levels->ids, err);
    if (st == FT_OK)
        st = ft_key_walk_open(&x.walk, levels, err);
    if (st == FT_OK) {
        x.n_nodes = ft_calloc(x.n_levels, sizeof *x.n_nodes, err);
        x.key = ft_calloc(x.n_levels, sizeof *x.key, err);
        st = x.n_nodes && x.key ? fold_keys(&x, err) : FT_ENOMEM;
    }
    if (st == FT_OK)
        st = sort_links(&x, err);
    f->levels.max_token = levels->max_token;
    ft_key_walk_close(x.walk);
    free(x.n_nodes);
    free(x.key);
    return st;
}

void ft_fold_free(ft_fold *f)
{
    ft_levels_free(&f->levels);
    free(f->links);
    free(f->tokens);
    free(f->last);
    *f = (ft_fold){0};
}
