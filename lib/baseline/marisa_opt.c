/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "baseline/baseline.h"
#include "baseline/sorted_proposals.h"
#include "engine/cpu.h"

/* The step's beams so far: a heap with the worst on top, at most B of them. It lies in
 * workers[0]->beams.items; `bound` is the top's sum once the heap is full. */
typedef struct opt_state {
    ft_sorted_proposals sorted[FT_CPU_POSITIONS];
    pthread_mutex_t lock;
    _Atomic double bound;
} opt_state;

static ft_status opt_open_query(ft_cpu_query *q, ft_error *err)
{
    opt_state *s = ft_new(opt_state, err);
    if (!s)
        return FT_ENOMEM;
    pthread_mutex_init(&s->lock, NULL);
    atomic_init(&s->bound, -INFINITY);
    q->state = s;
    return FT_OK;
}

static void opt_close_query(ft_cpu_query *q)
{
    opt_state *s = q->state;
    if (!s)
        return;
    pthread_mutex_destroy(&s->lock);
    for (uint32_t i = 0; i < FT_CPU_POSITIONS; i++)
        ft_sorted_proposals_free(&s->sorted[i]);
    free(s);
}

static ft_status opt_prepare(ft_cpu_query *q, uint32_t step, ft_error *err)
{
    opt_state *s = q->state;
    if (step == 0) /* a query that failed may have left its own */
        atomic_store_explicit(&s->bound, -INFINITY, memory_order_relaxed);
    return ft_sorted_proposals_set(&s->sorted[ft_cpu_place(q, step)], q, step, err);
}

/* Put c on the heap's top and let it sink below the worse of its children. */
static void sink_top(ft_topset *heap, const ft_candidate *c)
{
    uint64_t hole = 0;
    for (;;) {
        uint64_t child = 2 * hole + 1;
        if (child >= heap->n)
            break;
        if (child + 1 < heap->n &&
            ft_topset_better(heap, &heap->items[child], &heap->items[child + 1]))
            child++;
        if (ft_topset_better(heap, &heap->items[child], c))
            break;
        heap->items[hole] = heap->items[child];
        hole = child;
    }
    heap->items[hole] = *c;
}

static ft_status heap_push(ft_topset *heap, const ft_candidate *c, ft_error *err)
{
    if (heap->n == heap->want) {
        if (ft_topset_better(heap, c, &heap->items[0]))
            sink_top(heap, c);
        return FT_OK;
    }
    void *items = heap->items;
    const ft_status st =
        ft_reserve(&items, &heap->cap, heap->n + 1, sizeof *heap->items, err);
    heap->items = items;
    if (st != FT_OK)
        return st;
    uint64_t hole = heap->n++;
    while (hole && ft_topset_better(heap, &heap->items[(hole - 1) / 2], c)) {
        heap->items[hole] = heap->items[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap->items[hole] = *c;
    return FT_OK;
}

static void push_beam(const ft_cpu_extension *x, opt_state *s, const ft_candidate *c)
{
    if (c->score < atomic_load_explicit(&s->bound, memory_order_relaxed))
        return;
    ft_topset *heap = &x->q->workers[0]->beams;
    pthread_mutex_lock(&s->lock);
    ft_cpu_note(x->w, heap_push(heap, c, &x->w->error));
    if (heap->n == heap->want)
        atomic_store_explicit(&s->bound, heap->items[0].score, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
}

static void admit(const ft_cpu_extension *x, opt_state *s, uint64_t node,
                  const ft_proposal *p)
{
    const ft_cpu_query *q = x->q;
    float sum;
    if (!ft_admit(x->sigma, p->logp, q->params->token_threshold,
                  q->params->sentence_threshold, &sum))
        return;
    x->w->n_candidates++;
    const unsigned flags = q->trie->ops->flags(q->trie, node);
    ft_candidate c = {sum, node, x->beam, p->token, x->step};
    if ((flags & FT_NODE_HAS_CHILDREN) && !x->last)
        push_beam(x, s, &c);
    if (flags & FT_NODE_TERMINAL) {
        c.score = (double)sum * q->norm[x->step + 1];
        ft_cpu_note(x->w, ft_topset_push(&x->w->results, &c, &x->w->error));
    }
}

/* The two-pointer merge of one beam: O(K + children). */
static void merge(const ft_cpu_extension *x, opt_state *s)
{
    const ft_trie *trie = x->q->trie;
    const ft_sorted_proposals *sorted = &s->sorted[ft_cpu_place(x->q, x->step)];
    const ft_proposal *p = sorted->v, *const end = p + sorted->n;
    const ft_range all = trie->ops->children(trie, x->q->nodes[x->beam]);
    uint32_t *labels = x->w->labels;
    for (uint64_t done = 0; done < all.count && p < end; done += FT_CPU_RUN) {
        const uint64_t left = all.count - done;
        const uint32_t n = left < FT_CPU_RUN ? (uint32_t)left : FT_CPU_RUN;
        trie->ops->labels(trie, all.first + done, n, labels);
        for (uint32_t i = 0; i < n && p < end;) {
            x->w->n_probes++;
            if (labels[i] < p->token) {
                i++;
            } else if (labels[i] > p->token) {
                p++;
            } else {
                admit(x, s, all.first + done + i, p);
                i++;
                p++;
            }
        }
    }
}

/* Slices would repeat the merge: the whole beam is the first slice's. */
static void opt_expand(ft_cpu_query *q, ft_cpu_worker *w, uint32_t step)
{
    ft_cpu_item items[FT_CPU_CHUNK];
    for (uint32_t n; (n = ft_cpu_take(q, w, step, items)) > 0;)
        for (uint32_t i = 0; i < n; i++)
            if (items[i].slice == 0)
                merge(&items[i].x, q->state);
}

static ft_status opt_prune(ft_cpu_query *q, ft_error *err)
{
    (void)err; /* the heap holds just the best B already */
    opt_state *s = q->state;
    atomic_store_explicit(&s->bound, -INFINITY, memory_order_relaxed);
    return FT_OK;
}

static const ft_cpu_policy policy = {
    .open = opt_open_query,
    .close = opt_close_query,
    .prepare = opt_prepare,
    .expand = opt_expand,
    .prune = opt_prune,
};

static ft_status opt_open(ft_engine **out, const ft_index *index,
                          const ft_engine_options *options, ft_error *err)
{
    return ft_cpu_open(out, &ft_engine_marisa_opt, &policy, index, options, err);
}

const ft_engine_ops ft_engine_marisa_opt = {
    .name = "marisa-opt",
    .summary = "paper Appendix B.2: two-pointer merge, shared bounded heap",
    .open = opt_open,
    .search = ft_cpu_search,
    .close = ft_cpu_close,
};
