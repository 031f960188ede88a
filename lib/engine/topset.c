/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/topset.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum { SLACK = 1024 }; /* least room between want and limit */

void ft_topset_reset(ft_topset *s, uint64_t want)
{
    s->n = 0;
    s->want = want;
    s->limit = want + (want > SLACK ? want : SLACK);
    s->bound = -INFINITY;
    s->bound_node = UINT64_MAX;
}

static void swap(ft_candidate *a, ft_candidate *b)
{
    const ft_candidate c = *a;
    *a = *b;
    *b = c;
}

/* Order items[lo .. hi) around a pivot; return its final place. The pivot is the median
 * of three places drawn from `seed`, so that no input order is quadratic. */
static uint64_t partition(ft_candidate *items, uint64_t lo, uint64_t hi, uint64_t *seed)
{
    uint64_t at[3];
    for (int i = 0; i < 3; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at[i] = lo + (*seed >> 33) % (hi - lo);
    }
    const bool ab = ft_candidate_better(&items[at[0]], &items[at[1]]);
    const bool bc = ft_candidate_better(&items[at[1]], &items[at[2]]);
    const bool ac = ft_candidate_better(&items[at[0]], &items[at[2]]);
    const uint64_t median = ab == bc ? at[1] : ab == ac ? at[2] : at[0];
    swap(&items[median], &items[hi - 1]);
    const ft_candidate pivot = items[hi - 1];
    uint64_t place = lo;
    for (uint64_t i = lo; i < hi - 1; i++) {
        const ft_candidate c = items[i]; /* without a branch: half of them move */
        const bool better = ft_candidate_better(&c, &pivot);
        items[i] = items[place];
        items[place] = c;
        place += better;
    }
    swap(&items[place], &items[hi - 1]);
    return place;
}

void ft_topset_trim(ft_topset *s)
{
    if (s->n <= s->want)
        return;
    uint64_t lo = 0, hi = s->n, seed = s->n;
    const uint64_t last = s->want - 1; /* the worst that stays gets this place */
    for (;;) {
        const uint64_t p = partition(s->items, lo, hi, &seed);
        if (p == last)
            break;
        if (p < last)
            lo = p + 1;
        else
            hi = p;
    }
    s->n = s->want;
    s->bound = s->items[last].score;
    s->bound_node = s->items[last].node;
}

ft_status ft_topset_push(ft_topset *s, const ft_candidate *c, ft_error *err)
{
    if (c->score < s->bound || (c->score == s->bound && c->node > s->bound_node))
        return FT_OK;
    if (s->n == s->cap) {
        void *items = s->items;
        const ft_status st =
            ft_reserve(&items, &s->cap, s->n + 1, sizeof *s->items, err);
        s->items = items;
        if (st != FT_OK)
            return st;
    }
    s->items[s->n++] = *c;
    if (s->n >= s->limit)
        ft_topset_trim(s);
    return FT_OK;
}

ft_status ft_topset_merge(ft_topset *s, const ft_topset *from, ft_error *err)
{
    for (uint64_t i = 0; i < from->n; i++) {
        const ft_status st = ft_topset_push(s, &from->items[i], err);
        if (st != FT_OK)
            return st;
    }
    return FT_OK;
}

static int compare(const void *x, const void *y)
{
    const ft_candidate *a = x, *b = y;
    return ft_candidate_better(b, a) - ft_candidate_better(a, b);
}

void ft_topset_sort(ft_topset *s)
{
    if (s->n)
        qsort(s->items, s->n, sizeof *s->items, compare);
}

void ft_topset_free(ft_topset *s)
{
    free(s->items);
    *s = (ft_topset){0};
}
