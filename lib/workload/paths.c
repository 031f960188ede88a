/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/score.h"
#include "workload/fixmath.h"

/* Of the tokens of a sample: libraries with keys of tens of thousands would take more
 * memory than there is, and not at once. */
static const uint64_t MOST_BYTES = UINT64_C(1) << 32;

/* The trie's levels: nodes start[d] .. start[d + 1] - 1 are d tokens from the root. */
typedef struct levels {
    const ft_trie *t;
    uint64_t *start; /* depth + 2 */
} levels;

/* The first node of from .. end - 1 that has children, or `end`. */
static uint64_t next_inner(const ft_trie *t, uint64_t from, uint64_t end,
                           ft_range *children)
{
    uint64_t place = from < end ? t->ops->seek(t, from) : 0;
    for (uint64_t v = from; v < end; v++) {
        *children = t->ops->visit(t, v, &place).children;
        if (children->count)
            return v;
    }
    return end;
}

static ft_status find_levels(levels *l, const ft_trie *t, ft_error *err)
{
    l->t = t;
    l->start = ft_calloc(t->depth + 2u, sizeof *l->start, err);
    if (!l->start)
        return FT_ENOMEM;
    l->start[1] = 1;
    l->start[t->depth + 1] = t->n_nodes;
    for (uint32_t d = 1; d < t->depth; d++) {
        ft_range children;
        next_inner(t, l->start[d], t->n_nodes, &children);
        l->start[d + 1] = children.first;
    }
    return FT_OK;
}

/* The node of level d - 1 that `node` of level d hangs from: the last one there whose
 * children do not start behind it. */
static uint64_t parent_of(const levels *l, uint32_t d, uint64_t node)
{
    uint64_t lo = l->start[d - 1], hi = l->start[d];
    while (hi - lo > 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        ft_range children;
        const uint64_t v = next_inner(l->t, mid, hi, &children);
        if (v == hi || children.first > node)
            hi = mid;
        else if (node - children.first < children.count)
            return v;
        else
            lo = v;
    }
    return lo;
}

static uint32_t level_of(const levels *l, uint64_t node)
{
    uint32_t d = 1;
    while (node >= l->start[d + 1])
        d++;
    return d;
}

static void put_path(const levels *l, uint64_t node, uint32_t n_steps, uint32_t *tokens)
{
    for (uint32_t i = 0; i < n_steps; i++)
        tokens[i] = FT_NO_TOKEN;
    for (uint32_t d = level_of(l, node); d > 0; d--) {
        if (d <= n_steps)
            l->t->ops->labels(l->t, node, 1, &tokens[d - 1]);
        node = parent_of(l, d, node);
    }
}

/* A node that ends a key; all are equally likely. */
static uint64_t draw_key(const levels *l, uint64_t *random)
{
    const ft_trie *t = l->t;
    for (;;) {
        const uint64_t v = 1 + ft_scale(t->n_nodes - 1, ft_random(random));
        if (t->ops->flags(t, v) & FT_NODE_TERMINAL)
            return v;
    }
}

/* Nodes of one level, in bunches that lie around a node: near ones and far ones, as
 * many in each octave of distance. Without bunches, neighbours in the sample of a large
 * trie would have little in common. */
static void draw_bunches(const levels *l, uint32_t depth, uint64_t *nodes, uint32_t n,
                         uint64_t *random)
{
    enum { BUNCH = 64, OCTAVES = 20 };
    const uint64_t start = l->start[depth], count = l->start[depth + 1] - start;
    uint64_t centre = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i % BUNCH == 0)
            centre = ft_scale(count, ft_random(random));
        const uint64_t octave = ft_scale(OCTAVES + 1, ft_random(random));
        const uint64_t far = ft_random(random) & (((uint64_t)1 << octave) - 1);
        nodes[i] = start + (centre + (i % 2 ? far : count - far % count)) % count;
    }
}

/* The first of the nodes of level d + 1 that hang from `node` of level d, d < depth, or
 * from nodes behind it. */
static uint64_t first_below(const levels *l, uint32_t d, uint64_t node)
{
    const uint64_t end = l->start[d + 1];
    ft_range children;
    return next_inner(l->t, node, end, &children) < end ? children.first
                                                        : l->start[d + 2];
}

/* A node below a first token, each of these as likely as another that leads `depth`
 * deep; any of the deepest nodes there. Of 64 first tokens the first that leads so far
 * is taken, else the one that leads farthest: in a large library most lead nowhere. */
static uint64_t draw_even(const levels *l, uint32_t depth, uint64_t *random)
{
    enum { TRIES = 64 };
    uint64_t best = 0;
    uint32_t best_depth = 0;
    for (int i = 0; i < TRIES && best_depth < depth; i++) {
        const uint64_t n_first = l->start[2] - l->start[1];
        uint64_t from = l->start[1] + ft_scale(n_first, ft_random(random));
        uint64_t end = from + 1;
        uint32_t d = 1;
        for (; d < depth; d++) {
            const uint64_t next = first_below(l, d, from);
            const uint64_t next_end = first_below(l, d, end);
            if (next == next_end)
                break;
            from = next;
            end = next_end;
        }
        if (d > best_depth) {
            best_depth = d;
            best = from + ft_scale(end - from, ft_random(random));
        }
    }
    return best;
}

static void draw_nodes(const levels *l, ft_paths_kind kind, uint32_t n_steps,
                       uint64_t *nodes, uint32_t n, uint64_t random)
{
    const uint32_t depth = l->t->depth < n_steps ? l->t->depth : n_steps;
    if (kind == FT_PATHS_DEEP) {
        draw_bunches(l, depth, nodes, n, &random);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        nodes[i] =
            kind == FT_PATHS_EVEN ? draw_even(l, depth, &random) : draw_key(l, &random);
}

static int by_tokens(const void *a, const void *b, void *n_steps)
{
    const uint32_t *x = a, *y = b, n = *(const uint32_t *)n_steps;
    for (uint32_t i = 0; i < n; i++)
        if (x[i] != y[i]) /* FT_NO_TOKEN + 1 is 0: a prefix goes first */
            return x[i] + 1 < y[i] + 1 ? -1 : 1;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

ft_status ft_paths_sample(ft_paths *out, const ft_trie *t, ft_paths_kind kind,
                          uint32_t n, uint32_t n_steps, uint64_t seed, ft_error *err)
{
    levels l = {NULL, NULL};
    uint64_t *nodes = NULL, values;
    uint32_t *tokens = NULL;
    if (t->n_keys == 0)
        return ft_fail(err, FT_EINVAL, "the library has no keys");
    if (n_steps > t->depth)
        n_steps = t->depth;
    if (!ft_mul_ok(n, (uint64_t)n_steps * sizeof *tokens, &values) ||
        values > MOST_BYTES)
        return ft_fail(err, FT_ENOMEM,
                       "%u paths of %u tokens take %llu bytes, and %llu are the most: "
                       "ask for fewer steps",
                       n, n_steps, (unsigned long long)values,
                       (unsigned long long)MOST_BYTES);
    values /= sizeof *tokens;
    ft_status st = FT_ENOMEM;
    if (find_levels(&l, t, err) != FT_OK)
        goto done;
    nodes = ft_calloc(n, sizeof *nodes, err);
    tokens = ft_calloc(values, sizeof *tokens, err);
    if (!nodes || !tokens)
        goto done;
    draw_nodes(&l, kind, n_steps, nodes, n, seed);
    qsort(nodes, n, sizeof *nodes, by_number); /* climbs touch memory in order */
    for (uint32_t i = 0; i < n; i++)
        put_path(&l, nodes[i], n_steps, tokens + (uint64_t)i * n_steps);
    qsort_r(tokens, n, n_steps * sizeof *tokens, by_tokens, &n_steps);
    *out = (ft_paths){n, n_steps, tokens};
    tokens = NULL;
    st = FT_OK;
done:
    free(l.start);
    free(nodes);
    free(tokens);
    return st;
}

void ft_paths_free(ft_paths *p)
{
    free(p->tokens);
    *p = (ft_paths){0, 0, NULL};
}
