/* SPDX-License-Identifier: Apache-2.0
 *
 * After these checks every accessor stays in bounds and every walk ends: a tail is
 * marked at its end and is no longer than the depth allows, and a link is a leaf of the
 * tree.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/score.h"
#include "trie/louds.h"
#include "trie/parallel.h"
#include "trie/tails.h"

enum { PIECE_TOKENS = 1 << 16, PIECE_SLOTS = 1 << 14, RUN_LABELS = 4096 };

typedef struct survey {
    const ft_trie *trie;
    const uint64_t *ends; /* of the tree's levels: the node behind the last */
    uint32_t n_levels;
    _Atomic uint64_t n_in_tails; /* nodes */
    _Atomic uint32_t depth;
} survey;

static ft_status check_tokens(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const ft_trie *t = arg;
    bool last;
    for (uint64_t i = begin; i < end; i++) {
        const uint32_t token = ft_tails_token(t->layout, i, &last);
        if (token > t->max_token)
            return ft_fail(err, FT_EFORMAT,
                           "section tail: token %u, the largest is to be %u", token,
                           t->max_token);
    }
    return FT_OK;
}

static ft_status check_tail(const ft_trie *t, uint32_t n_threads, ft_error *err)
{
    const ft_tails *l = t->layout;
    bool last = true;
    if (!ft_packed_padding_ok(l->tail, l->n_tail, l->tail_bits))
        return ft_fail(err, FT_EFORMAT, "section tail: bits beyond the last are set");
    if (!ft_packed_padding_ok(l->high, l->links.n_ones, l->high_bits))
        return ft_fail(err, FT_EFORMAT,
                       "section link-high: bits beyond the last are set");
    if (l->n_tail)
        ft_tails_token(l, l->n_tail - 1, &last);
    if (!last)
        return ft_fail(err, FT_EFORMAT, "section tail: the last suffix has no end");
    return ft_parallel(l->n_tail, PIECE_TOKENS, n_threads, check_tokens, (void *)t,
                       err);
}

static uint32_t level_of(const survey *s, uint64_t node)
{
    uint32_t lo = 0, hi = s->n_levels - 1;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (s->ends[mid] <= node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static ft_status bad_link(uint64_t node, const char *what, ft_error *err)
{
    return ft_fail(err, FT_EFORMAT, "section link-flags: node %llu %s",
                   (unsigned long long)node, what);
}

/* A link, how many nodes are in its tail and how deep that goes. The last tail has an
 * end, so that the scan of one that starts in bounds stays there. */
static ft_status check_link(const survey *s, uint64_t node, uint32_t *n_below,
                            uint32_t *depth, ft_error *err)
{
    const ft_tails *l = s->trie->layout;
    uint64_t at = ft_tails_start(l, node);
    uint32_t label;
    bool last = false;
    if (l->inner.ops->flags(&l->inner, node) != FT_NODE_TERMINAL)
        return bad_link(node, "is no leaf that ends a key", err);
    if (at >= l->n_tail)
        return bad_link(node, "starts beyond the tail", err);
    if (l->slots) {
        l->inner.ops->labels(&l->inner, node, 1, &label);
        if (label >> FT_TAIL_SLOT_BITS)
            return bad_link(node, "has a label", err);
        ft_tails_token(l, at++, &last); /* of the link itself */
        if (last)
            return bad_link(node, "has a tail of one token", err);
    }
    *depth = level_of(s, node);
    for (*n_below = 0; !last; ++*n_below, ++*depth) {
        if (*depth >= s->trie->depth)
            return bad_link(node, "goes deeper than the trie", err);
        ft_tails_token(l, at++, &last);
    }
    return FT_OK;
}

static ft_status check_links(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    survey *s = arg;
    const ft_tails *l = s->trie->layout;
    uint64_t sum = 0;
    uint32_t deepest = 0;
    for (uint64_t slot = begin; slot < end; slot++) {
        uint32_t n_below = 0, depth = 0;
        if (!ft_bit_get(l->links.words, slot))
            continue;
        const ft_status st = check_link(s, slot + 1, &n_below, &depth, err);
        if (st != FT_OK)
            return st;
        sum += n_below;
        deepest = depth > deepest ? depth : deepest;
    }
    atomic_fetch_add(&s->n_in_tails, sum);
    uint32_t depth = atomic_load(&s->depth);
    while (deepest > depth && !atomic_compare_exchange_weak(&s->depth, &depth, deepest))
        ;
    return FT_OK;
}

static ft_status check_all_links(survey *s, uint32_t n_threads, ft_error *err)
{
    const ft_trie *t = s->trie;
    const ft_tails *l = t->layout;
    const uint64_t n_slots = t->n_numbered - 1;
    ft_status st = ft_vector_verify(&l->links, "link-flags", n_threads, err);
    if (st == FT_OK)
        st = ft_parallel(n_slots, PIECE_SLOTS, n_threads, check_links, s, err);
    if (st != FT_OK)
        return st;
    if (t->n_numbered + s->n_in_tails != t->n_nodes)
        return ft_fail(err, FT_EFORMAT,
                       "section tail: %llu nodes in all, %llu expected",
                       (unsigned long long)(t->n_numbered + s->n_in_tails),
                       (unsigned long long)t->n_nodes);
    if (s->depth != t->depth)
        return ft_fail(err, FT_EFORMAT, "section tail: depth %u, %u expected", s->depth,
                       t->depth);
    return FT_OK;
}

/* The inner layout took what is in slots for labels, with all of 16 bits. */
static ft_status check_labels(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const ft_trie *t = arg;
    uint32_t labels[RUN_LABELS];
    for (uint64_t i = begin; i < end; i += RUN_LABELS) {
        const uint64_t n = end - i < RUN_LABELS ? end - i : RUN_LABELS;
        t->ops->labels(t, i + 1, n, labels);
        for (uint64_t j = 0; j < n; j++)
            if (labels[j] > t->max_token)
                return ft_fail(
                    err, FT_EFORMAT, "node %llu: token %u, the largest is to be %u",
                    (unsigned long long)(i + j + 1), labels[j], t->max_token);
    }
    return FT_OK;
}

/* A level ends where the first child of its own first nodes is. */
void ft_tails_levels(const ft_trie *inner, uint64_t *ends)
{
    uint64_t node = 0;
    for (uint32_t level = 0; level <= inner->depth; level++) {
        uint64_t place = inner->ops->seek(inner, node);
        node = inner->ops->visit(inner, node, &place).children.first;
        ends[level] = node;
    }
}

ft_status ft_tails_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err)
{
    const ft_tails *l = trie->layout;
    const ft_layout *inner = l->form->inner;
    survey s = {.trie = trie, .n_levels = l->inner.depth + 1, .depth = l->inner.depth};
    ft_status st = inner->verify(&l->inner, n_threads, err);
    if (st == FT_OK)
        st = check_tail(trie, n_threads, err);
    if (st != FT_OK)
        return st;
    uint64_t *ends = ft_calloc(s.n_levels, sizeof *ends, err);
    if (!ends)
        return FT_ENOMEM;
    ft_tails_levels(&l->inner, ends);
    s.ends = ends;
    st = check_all_links(&s, n_threads, err);
    if (st == FT_OK && l->slots)
        st = ft_parallel(trie->n_numbered - 1, PIECE_TOKENS, n_threads, check_labels,
                         (void *)trie, err);
    free(ends);
    return st;
}
