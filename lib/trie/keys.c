/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/keys.h"

#include <stdlib.h>
#include <string.h>

#include "trie/keys_input.h"
#include "trie/sort.h"
#include "trie/sort_input.h"

/* Inputs merged by a binary heap of those that have a key, the smallest on top. */
typedef struct merger {
    ft_keys_input *inputs;
    uint32_t n_inputs;
    ft_keys_input **heap;
    uint32_t n_heap;
    bool started;
    uint32_t *last; /* the key handed out last, where there are several inputs */
    uint64_t cap_last;
    uint32_t n_last;
    uint64_t n_duplicates; /* between inputs */
} merger;

/* Unique keys in order, one way or the other. */
typedef struct ordered {
    ft_sort_input *sorted; /* or, where it is NULL: */
    merger merged;
    bool to_gather; /* there is something to read before the first key */
} ordered;

struct ft_keys {
    ordered keys, subtract;
    ft_key taken_out; /* the next key to subtract; n = 0: none is left */
    uint64_t n_subtracted;
};

static ft_status merger_open(merger *m, const char *const *paths, uint32_t n,
                             ft_error *err)
{
    m->inputs = ft_calloc(n, sizeof *m->inputs, err);
    m->heap = ft_calloc(n, sizeof *m->heap, err);
    if (!m->inputs || !m->heap)
        return FT_ENOMEM;
    for (; m->n_inputs < n; m->n_inputs++) {
        const ft_status st =
            ft_keys_input_open(&m->inputs[m->n_inputs], paths[m->n_inputs], err);
        if (st != FT_OK) {
            m->n_inputs++; /* close it too */
            return st;
        }
    }
    return FT_OK;
}

static void merger_close(merger *m)
{
    for (uint32_t i = 0; i < m->n_inputs; i++)
        ft_keys_input_close(&m->inputs[i]);
    free(m->inputs);
    free(m->heap);
    free(m->last);
}

static bool goes_before(const ft_keys_input *a, const ft_keys_input *b)
{
    uint32_t lcp;
    const int order = ft_keys_compare(a->tokens, a->n, b->tokens, b->n, &lcp);
    return order < 0 || (order == 0 && a < b);
}

static void sift_down(merger *m, uint32_t i)
{
    ft_keys_input *moving = m->heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= m->n_heap)
            break;
        if (child + 1 < m->n_heap && goes_before(m->heap[child + 1], m->heap[child]))
            child++;
        if (!goes_before(m->heap[child], moving))
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = moving;
}

static ft_status start(merger *m, ft_error *err)
{
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        const ft_status st = ft_keys_input_next(&m->inputs[i], err);
        if (st != FT_OK)
            return st;
        if (m->inputs[i].n)
            m->heap[m->n_heap++] = &m->inputs[i];
    }
    for (uint32_t i = m->n_heap / 2; i-- > 0;)
        sift_down(m, i);
    m->started = true;
    return FT_OK;
}

/* Replace the top by the key behind it in its input. */
static ft_status advance(merger *m, ft_error *err)
{
    const ft_status st = ft_keys_input_next(m->heap[0], err);
    if (st != FT_OK)
        return st;
    if (m->heap[0]->n == 0)
        m->heap[0] = m->heap[--m->n_heap];
    if (m->n_heap)
        sift_down(m, 0);
    return FT_OK;
}

static ft_status merge(merger *m, ft_key *key, ft_error *err)
{
    for (;;) {
        ft_status st = FT_OK;
        if (!m->started)
            st = start(m, err);
        else if (m->n_heap)
            st = advance(m, err);
        if (st != FT_OK)
            return st;
        if (m->n_heap == 0) {
            *key = (ft_key){0};
            return FT_OK;
        }
        const ft_keys_input *top = m->heap[0];
        uint32_t lcp;
        if (ft_keys_compare(m->last, m->n_last, top->tokens, top->n, &lcp) == 0) {
            m->n_duplicates++;
            continue;
        }
        void *room = m->last;
        st = ft_reserve(&room, &m->cap_last, top->n, sizeof *m->last, err);
        m->last = room;
        if (st != FT_OK)
            return st;
        memcpy(m->last + lcp, top->tokens + lcp, (top->n - lcp) * sizeof *m->last);
        m->n_last = top->n;
        *key = (ft_key){m->last, top->n, lcp};
        return FT_OK;
    }
}

static ft_status merger_next(merger *m, ft_key *key, ft_error *err)
{
    if (m->n_inputs != 1)
        return merge(m, key, err);
    /* The order check of a single input has all that is asked for. */
    ft_keys_input *in = &m->inputs[0];
    const ft_status st = ft_keys_input_next(in, err);
    if (st == FT_OK)
        *key = (ft_key){in->tokens, in->n, in->lcp};
    return st;
}

static ft_status ordered_open(ordered *o, const char *const *paths, uint32_t n,
                              uint64_t memory_bytes, const ft_keys_options *options,
                              ft_error *err)
{
    if (!options->sort || n == 0)
        return merger_open(&o->merged, paths, n, err);
    o->to_gather = true;
    return ft_sort_input_open(&o->sorted, paths, n, memory_bytes, options->tmpdir, err);
}

static ft_status ordered_next(ordered *o, ft_key *key, ft_error *err)
{
    return o->sorted ? ft_sort_input_next(o->sorted, key, err)
                     : merger_next(&o->merged, key, err);
}

static void ordered_close(ordered *o)
{
    ft_sort_input_close(o->sorted);
    merger_close(&o->merged);
}

static ft_status check_standard_input(const ft_keys_options *o, ft_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->n_paths; i++)
        n += strcmp(o->paths[i], "-") == 0;
    for (uint32_t i = 0; i < o->n_subtract; i++)
        n += strcmp(o->subtract[i], "-") == 0;
    if (n > 1)
        return ft_fail(err, FT_EINVAL, "standard input is given more than once");
    return FT_OK;
}

/* The memory that the keys to subtract may take. */
static ft_status share_memory(const ft_keys_options *o, uint64_t *for_subtract,
                              ft_error *err)
{
    const bool two = o->n_subtract != 0;
    *for_subtract = 0;
    if (!o->sort)
        return FT_OK;
    const uint64_t least = FT_SORT_MIN_MEMORY, need = two ? 2 * least : least;
    if (o->memory_bytes < need)
        return ft_fail(err, FT_EINVAL,
                       "sorting in %llu bytes of memory: at least %llu%s",
                       (unsigned long long)o->memory_bytes, (unsigned long long)need,
                       two ? ", since keys to subtract are sorted too" : "");
    const uint64_t quarter = o->memory_bytes / 4;
    if (two)
        *for_subtract = quarter > least ? quarter : least;
    return FT_OK;
}

ft_status ft_keys_open(ft_keys **out, const ft_keys_options *options, ft_error *err)
{
    uint64_t for_subtract;
    ft_status st = check_standard_input(options, err);
    if (st == FT_OK)
        st = share_memory(options, &for_subtract, err);
    if (st != FT_OK)
        return st;
    ft_keys *k = ft_new(ft_keys, err);
    if (!k)
        return FT_ENOMEM;
    st = ordered_open(&k->keys, options->paths, options->n_paths,
                      options->memory_bytes - for_subtract, options, err);
    if (st == FT_OK)
        st = ordered_open(&k->subtract, options->subtract, options->n_subtract,
                          for_subtract, options, err);
    if (st == FT_OK && !k->subtract.to_gather)
        st = ordered_next(&k->subtract, &k->taken_out, err);
    if (st != FT_OK) {
        ft_keys_close(k);
        return st;
    }
    *out = k;
    return FT_OK;
}

ft_status ft_keys_gather(ft_keys *k, bool *more, ft_error *err)
{
    ordered *o = k->subtract.to_gather ? &k->subtract : &k->keys;
    ft_status st = FT_OK;
    if (o->to_gather) {
        st = ft_sort_input_gather(o->sorted, &o->to_gather, err);
        if (st == FT_OK && o == &k->subtract && !o->to_gather)
            st = ordered_next(o, &k->taken_out, err);
    }
    *more = k->subtract.to_gather || k->keys.to_gather;
    return st;
}

ft_keys_input *ft_keys_only_input(ft_keys *k)
{
    const merger *m = &k->keys.merged;
    const bool others = k->subtract.sorted || k->subtract.merged.n_inputs;
    const bool only = !k->keys.sorted && m->n_inputs == 1 && !others &&
                      m->inputs[0].reader && m->inputs[0].n_read == 0;
    return only ? &m->inputs[0] : NULL;
}

/* Is the key one of those to subtract? Moves the subtracted stream up to it. */
static ft_status is_taken_out(ft_keys *k, const ft_key *key, bool *yes, ft_error *err)
{
    ft_key *out = &k->taken_out;
    *yes = false;
    while (out->n) {
        uint32_t lcp;
        const int order =
            ft_keys_compare(out->tokens, out->n, key->tokens, key->n, &lcp);
        *yes = order == 0;
        if (order >= 0)
            return FT_OK;
        const ft_status st = ordered_next(&k->subtract, out, err);
        if (st != FT_OK)
            return st;
    }
    return FT_OK;
}

ft_status ft_keys_next(ft_keys *k, ft_key *key, ft_error *err)
{
    /* Of keys a < b < c, a and c share what both share with b. */
    uint32_t lcp = UINT32_MAX;
    for (bool more = true; more;) {
        const ft_status st = ft_keys_gather(k, &more, err);
        if (st != FT_OK)
            return st;
    }
    for (;;) {
        bool out;
        ft_status st = ordered_next(&k->keys, key, err);
        if (st != FT_OK || key->n == 0)
            return st;
        lcp = key->lcp < lcp ? key->lcp : lcp;
        key->lcp = lcp;
        if (k->taken_out.n == 0)
            return FT_OK;
        if ((st = is_taken_out(k, key, &out, err)) != FT_OK)
            return st;
        if (!out)
            return FT_OK;
        k->n_subtracted++;
    }
}

ft_keys_counts ft_keys_counts_of(const ft_keys *k)
{
    const merger *m = &k->keys.merged;
    ft_keys_counts c = {
        .n_duplicates = m->n_duplicates,
        .n_subtracted = k->n_subtracted,
    };
    if (k->keys.sorted)
        ft_sort_input_count(k->keys.sorted, &c);
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        const ft_keys_input *in = &m->inputs[i];
        c.n_read += in->n_read;
        c.n_duplicates += in->n_duplicates;
        c.n_skipped += in->reader ? ft_tokens_n_skipped(in->reader) : 0;
        c.input_bytes += ft_keys_input_bytes(in);
    }
    return c;
}

void ft_keys_close(ft_keys *k)
{
    if (!k)
        return;
    ordered_close(&k->keys);
    ordered_close(&k->subtract);
    free(k);
}
