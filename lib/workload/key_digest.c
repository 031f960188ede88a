/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys below runs of the root's children, by threads. As in a cursor each level keeps a
 * place that moves forward, but it is opened for a run, not for each first token: of
 * these there may be as many as keys.
 */
#include "workload/key_digest.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "trie/parallel.h"
#include "workload/fixmath.h"

enum { PIECE = 1024 }; /* of the root's children: pieces of one take turns */

typedef struct summing {
    const ft_trie *t;
    _Atomic uint64_t sum;
} summing;

/* Where a walk is on one level. */
typedef struct step {
    uint64_t hash;        /* of the tokens before */
    uint64_t node, place; /* the next node, for ops->visit; once the level is `open` */
    uint64_t at, n;       /* its label; labels of the siblings */
    uint64_t cap;
    uint32_t *labels;
    bool open;
} step;

typedef struct walk {
    const ft_trie *t;
    step *steps;
    uint64_t n_steps, cap_steps;
    uint32_t depth; /* steps in use */
} walk;

static uint64_t add_token(uint64_t hash, uint32_t token)
{
    return ft_mix(hash, token);
}

static uint64_t end_key(uint64_t hash, uint32_t n)
{
    return ft_mix(hash, n);
}

uint64_t ft_key_digest(const uint32_t *tokens, uint32_t n)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < n; i++)
        hash = add_token(hash, tokens[i]);
    return end_key(hash, n);
}

/* Go down to these siblings. */
static ft_status descend(walk *w, ft_range r, uint64_t hash, ft_error *err)
{
    void *memory = w->steps;
    ft_status st =
        ft_reserve(&memory, &w->cap_steps, w->depth + 1, sizeof *w->steps, err);
    w->steps = memory;
    if (st != FT_OK)
        return st;
    if (w->depth == w->n_steps)
        w->steps[w->n_steps++] = (step){0};
    step *s = &w->steps[w->depth];
    memory = s->labels;
    st = ft_reserve(&memory, &s->cap, r.count, sizeof *s->labels, err);
    s->labels = memory;
    if (st != FT_OK)
        return st;
    w->t->ops->labels(w->t, r.first, r.count, s->labels);
    if (!s->open)
        s->place = w->t->ops->seek(w->t, r.first);
    s->open = true;
    s->node = r.first;
    s->hash = hash;
    s->at = 0;
    s->n = r.count;
    w->depth++;
    return FT_OK;
}

static ft_status sum_below(walk *w, ft_range siblings, uint64_t *sum, ft_error *err)
{
    ft_status st = descend(w, siblings, 0, err);
    while (st == FT_OK && w->depth) {
        step *s = &w->steps[w->depth - 1];
        if (s->at == s->n) {
            w->depth--;
            continue;
        }
        const uint64_t hash = add_token(s->hash, s->labels[s->at++]);
        const ft_visit v = w->t->ops->visit(w->t, s->node++, &s->place);
        if (v.terminal)
            *sum += end_key(hash, w->depth);
        if (v.children.count)
            st = descend(w, v.children, hash, err);
    }
    return st;
}

static ft_status add_piece(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    summing *s = arg;
    walk w = {.t = s->t};
    uint64_t sum = 0;
    const uint64_t first = s->t->ops->children(s->t, 0).first;
    const ft_status st =
        sum_below(&w, (ft_range){first + begin, end - begin}, &sum, err);
    atomic_fetch_add(&s->sum, sum);
    for (uint64_t i = 0; i < w.n_steps; i++)
        free(w.steps[i].labels);
    free(w.steps);
    return st;
}

ft_status ft_library_digest(const ft_trie *t, uint32_t n_threads, uint64_t *digest,
                            ft_error *err)
{
    summing s = {.t = t};
    const uint64_t n = t->ops->children(t, 0).count;
    const uint64_t fair = n / ft_thread_count(n_threads) / 8 + 1;
    const ft_status st =
        ft_parallel(n, fair < PIECE ? fair : PIECE, n_threads, add_piece, &s, err);
    if (st == FT_OK)
        *digest = atomic_load(&s.sum);
    return st;
}
