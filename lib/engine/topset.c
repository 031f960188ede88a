/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/topset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/keysort.h"
#include "base/mem.h"

static uint64_t room(uint64_t want)
{
    return want > FT_TOPSET_ROOM ? want : FT_TOPSET_ROOM;
}

void ft_topset_reset_one(ft_topset *s, uint64_t want, uint32_t n_sets)
{
    s->n = 0;
    s->want = want;
    s->part = (want - 1) / n_sets + 1;
    s->limit = want + room(want) / n_sets;
    s->part_bound = -INFINITY;
    s->bound = -INFINITY;
    s->bound_node = UINT64_MAX;
}

static ft_status grow(ft_topset *s, uint64_t need, ft_error *err)
{
    void *items = s->items;
    const ft_status st = ft_reserve(&items, &s->cap, need, sizeof *s->items, err);
    s->items = items;
    return st;
}

/* Room for a trim of all that the set may hold. */
static ft_status grow_spare(ft_topset *s, ft_error *err)
{
    if (s->cap_spare >= s->cap)
        return FT_OK;
    ft_candidate *spare = ft_calloc(s->cap, sizeof *spare, err);
    uint64_t *keys = ft_calloc(s->cap, 2 * sizeof *keys, err);
    if (!spare || !keys) {
        free(spare);
        free(keys);
        return FT_ENOMEM;
    }
    free(s->spare);
    free(s->keys);
    s->spare = spare;
    s->keys = keys;
    s->cap_spare = s->cap;
    return FT_OK;
}

ft_status ft_topset_merge(ft_topset *s, const ft_topset *from, ft_error *err)
{
    if (!from->n)
        return FT_OK;
    const ft_status st = grow(s, s->n + from->n, err);
    if (st != FT_OK)
        return st;
    memcpy(s->items + s->n, from->items, from->n * sizeof *s->items);
    s->n += from->n;
    return FT_OK;
}

/* Put the k smallest keys first. The pivot is the median of three drawn places, so that
 * no order of the input is quadratic. */
static void select_keys(uint64_t *keys, uint64_t n, uint64_t k)
{
    uint64_t lo = 0, hi = n, seed = n;
    while (hi - lo > 1) {
        uint64_t at[3];
        for (int i = 0; i < 3; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            at[i] = lo + ((seed >> 32) * (hi - lo) >> 32);
        }
        const uint64_t a = keys[at[0]], b = keys[at[1]], c = keys[at[2]];
        const uint64_t m = (a < b) == (b < c)   ? at[1]
                           : (a < b) == (a < c) ? at[2]
                                                : at[0];
        const uint64_t pivot = keys[m];
        keys[m] = keys[hi - 1];
        keys[hi - 1] = pivot;
        uint64_t place = lo;
        for (uint64_t i = lo; i < hi - 1;
             i++) { /* without a branch: half of them move */
            const uint64_t x = keys[i];
            keys[i] = keys[place];
            keys[place] = x;
            place += x < pivot;
        }
        keys[hi - 1] = keys[place];
        keys[place] = pivot;
        if (place == k - 1)
            return;
        if (place < k - 1)
            lo = place + 1;
        else
            hi = place;
    }
}

bool ft_topset_before(const ft_topset *s, const ft_candidate *a, const ft_candidate *b)
{
    if (a->step != b->step)
        return a->step < b->step;
    return a->node != b->node && s->trie->ops->before(s->trie, a->node, b->node);
}

static int compare(const void *x, const void *y, void *set)
{
    const ft_candidate *a = x, *b = y;
    return ft_topset_better(set, b, a) - ft_topset_better(set, a, b);
}

/* Keys ascend from the best: the rounded score, inverted, above the place. */
static inline uint64_t key_of(const ft_candidate *c, uint64_t place)
{
    return (uint64_t)~ft_float_key((float)c->score) << 32 | place;
}

static void swap_spare(ft_topset *s)
{
    ft_candidate *items = s->items;
    s->items = s->spare;
    s->spare = items;
    const uint64_t cap = s->cap;
    s->cap = s->cap_spare;
    s->cap_spare = cap;
}

/* The part_bound, of which the rounded score of the part's worst falls short by less
 * than one step. Only keys that are among the best `want` are asked. */
static void bound_part(ft_topset *s)
{
    select_keys(s->keys, s->want, s->part);
    const double worst = s->items[(uint32_t)s->keys[s->part - 1]].score;
    s->part_bound = nextafterf((float)worst, -INFINITY);
}

static ft_status trim(ft_topset *s, bool part, ft_error *err)
{
    if (s->n <= s->want)
        return FT_OK;
    if (s->n > UINT32_MAX)
        return ft_fail(err, FT_ENOMEM, "too many candidates");
    const ft_status st = grow_spare(s, err);
    if (st != FT_OK)
        return st;
    for (uint64_t i = 0; i < s->n; i++)
        s->keys[i] = key_of(&s->items[i], i);
    select_keys(s->keys, s->n, s->want);

    /* All that beat the border's rounded score stay; then the best of those on it. */
    const uint64_t border = s->keys[s->want - 1] >> 32;
    if (part)
        bound_part(s);
    uint64_t n = 0, n_tied = 0;
    ft_candidate *tied = s->spare + s->want; /* behind those that surely stay */
    for (uint64_t i = 0; i < s->want; i++)
        if (s->keys[i] >> 32 < border)
            s->spare[n++] = s->items[(uint32_t)s->keys[i]];
    const uint64_t n_sure = n;
    for (uint64_t i = 0; i < s->want; i++)
        if (s->keys[i] >> 32 == border)
            s->spare[n++] = s->items[(uint32_t)s->keys[i]];
    for (uint64_t i = s->want; i < s->n; i++)
        if (s->keys[i] >> 32 == border)
            tied[n_tied++] = s->items[(uint32_t)s->keys[i]];
    qsort_r(s->spare + n_sure, n - n_sure + n_tied, sizeof *s->spare, compare, s);

    swap_spare(s);
    s->n = s->want;
    s->bound = s->items[s->want - 1].score;
    s->bound_node = s->trie ? UINT64_MAX : s->items[s->want - 1].node;
    return FT_OK;
}

ft_status ft_topset_trim(ft_topset *s, ft_error *err)
{
    return trim(s, false, err);
}

ft_status ft_topset_reserve(ft_topset *s, uint64_t n, ft_error *err)
{
    ft_status st = FT_OK;
    if (s->n + n > s->limit) {
        st = trim(s, s->part < s->want, err);
        s->limit = s->want + 2 * room(s->want); /* the bound rises ever slower */
    }
    return st == FT_OK ? grow(s, s->n + n, err) : st;
}

/* Sort n candidates that share a rounded score. Mostly they are few. */
static void sort_ties(ft_topset *s, ft_candidate *items, uint64_t n)
{
    enum { FEW = 16 };
    if (n > FEW) {
        qsort_r(items, n, sizeof *items, compare, s);
        return;
    }
    for (uint64_t i = 1; i < n; i++) {
        const ft_candidate c = items[i];
        uint64_t hole = i;
        for (; hole && ft_topset_better(s, &c, &items[hole - 1]); hole--)
            items[hole] = items[hole - 1];
        items[hole] = c;
    }
}

ft_status ft_topset_sort(ft_topset *s, ft_error *err)
{
    const ft_status st = grow_spare(s, err);
    if (st != FT_OK)
        return st;
    for (uint64_t i = 0; i < s->n; i++)
        s->keys[i] = key_of(&s->items[i], i);
    ft_keysort(s->keys, s->keys + s->cap_spare, s->n);
    for (uint64_t i = 0; i < s->n; i++)
        s->spare[i] = s->items[(uint32_t)s->keys[i]];
    swap_spare(s);
    for (uint64_t i = 0, end; i < s->n;
         i = end) { /* those that share a rounded score */
        for (end = i + 1; end < s->n && s->keys[end] >> 32 == s->keys[i] >> 32; end++)
            ;
        if (end > i + 1)
            sort_ties(s, s->items + i, end - i);
    }
    return FT_OK;
}

void ft_topset_free(ft_topset *s)
{
    free(s->items);
    free(s->spare);
    free(s->keys);
    *s = (ft_topset){0};
}
