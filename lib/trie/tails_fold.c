/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys are gone through twice: to gather what each has to itself, below all that it
 * shares with its neighbours in order, and to make levels in which the keys of folded
 * chains end at their links. Memory: the first time 4 bytes a token of the chains and
 * 16 a chain; the second time what they come to once they are shared, and the levels,
 * of which the old ones go as the new ones come.
 */
#include "trie/tails_fold.h"

#include <stdlib.h>
#include <string.h>

static ft_status add_chain(ft_fold *f, const ft_walked_key *k, ft_error *err)
{
    const uint32_t first = k->shared + f->labels, n = k->n - first;
    void *chains = f->chains, *tokens = f->tokens;
    ft_status st =
        ft_reserve(&chains, &f->cap_chains, f->n_chains + 1, sizeof *f->chains, err);
    f->chains = chains;
    if (st == FT_OK)
        st = ft_reserve(&tokens, &f->cap_tokens, f->n_tokens + n, sizeof *f->tokens,
                        err);
    f->tokens = tokens;
    if (st != FT_OK)
        return st;
    memcpy(f->tokens + f->n_tokens, k->tokens + first, n * sizeof *f->tokens);
    f->n_tokens += n;
    f->chains[f->n_chains] = (ft_chain){ft_chain_pair(f->n_tokens, n),
                                        ft_chain_pair(f->n_chains, k->shared + 1)};
    f->n_chains++;
    return FT_OK;
}

ft_status ft_fold_gather(ft_fold *f, const ft_levels *levels, bool labels,
                         ft_error *err)
{
    ft_key_walk *w = NULL;
    ft_walked_key key;
    f->labels = labels;
    f->n_left = levels->n_nodes;
    ft_status st = ft_key_walk_open(&w, (ft_levels *)levels, false, err);
    while (st == FT_OK && ft_key_walk_next(w, &key))
        if (ft_walked_chain(&key))
            st = add_chain(f, &key, err);
    ft_key_walk_close(w);
    return st;
}

/* Where the next node and the next link of each level go. */
typedef struct places {
    uint64_t *node, *link; /* by level */
} places;

/* From counts of the levels before and of what is folded to the first of each. */
static ft_status find_places(places *p, const ft_fold *f, const ft_levels *levels,
                             ft_error *err)
{
    const uint64_t n_levels = levels->n_levels;
    uint64_t node = 0, link = 0, folded = 0;
    p->node = ft_calloc(n_levels + 1, sizeof *p->node, err);
    p->link = ft_calloc(n_levels + 1, sizeof *p->link, err);
    if (!p->node || !p->link)
        return FT_ENOMEM;
    for (uint64_t i = 0; i < f->n_chains; i++) {
        const ft_chain *c = &f->chains[i];
        const uint32_t level = ft_chain_small(c->link_level);
        if (ft_chain_large(c->place_n) == FT_NO_CHAIN)
            continue;
        p->link[level]++;
        p->node[level + 1]++; /* chains that begin here, less those that end */
        p->node[level + ft_chain_small(c->place_n) + f->labels]--;
    }
    for (uint64_t i = 0; i < n_levels; i++) {
        uint64_t n = 0;
        for (const ft_chunk *c = levels->level[i].head; c; c = c->next)
            n += c->n_nodes;
        folded += p->node[i];
        p->node[i] = node;
        node += n - folded;
        const uint64_t n_links = p->link[i];
        p->link[i] = link;
        link += n_links;
    }
    return FT_OK;
}

/* Add a key, with the chain of its end if that may be folded. */
static ft_status add_key(ft_fold *f, places *p, ft_walked_key *k, const ft_chain *chain,
                         ft_error *err)
{
    uint32_t n = k->n;
    if (chain && ft_chain_large(chain->place_n) != FT_NO_CHAIN) {
        const uint64_t start = ft_chain_large(chain->link_level);
        n = k->shared + 1;
        ft_bit_set(f->links, p->node[n] - 1);
        f->starts[p->link[n]++] = start;
        if (!f->labels)
            k->tokens[k->shared] = (uint16_t)start;
    }
    for (uint32_t level = k->lcp + 1; level <= n; level++)
        p->node[level]++;
    return ft_levels_add(&f->levels, k->tokens, n, k->lcp, err);
}

ft_status ft_fold_levels(ft_fold *f, ft_levels *levels, ft_error *err)
{
    const uint32_t max_token = levels->max_token;
    ft_key_walk *w = NULL;
    places p = {0};
    ft_walked_key key;
    uint64_t n = 0;
    f->links = ft_calloc(ft_words(f->n_left), sizeof *f->links, err);
    f->starts = ft_calloc(f->n_links, sizeof *f->starts, err);
    ft_status st = f->links && f->starts ? find_places(&p, f, levels, err) : FT_ENOMEM;
    if (st == FT_OK)
        st = ft_levels_open(&f->levels, levels->ids, err);
    if (st == FT_OK)
        st = ft_key_walk_open(&w, levels, true, err);
    while (st == FT_OK && ft_key_walk_next(w, &key))
        st = add_key(f, &p, &key, ft_walked_chain(&key) ? &f->chains[n++] : NULL, err);
    f->levels.max_token = max_token;
    ft_key_walk_close(w);
    ft_levels_free(levels);
    free(p.node);
    free(p.link);
    free(f->chains);
    f->chains = NULL;
    return st;
}

void ft_fold_free(ft_fold *f)
{
    ft_levels_free(&f->levels);
    free(f->chains);
    free(f->tokens);
    free(f->last);
    free(f->links);
    free(f->starts);
    *f = (ft_fold){0};
}
