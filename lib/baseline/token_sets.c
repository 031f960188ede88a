/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes are numbered level by level, so a level is a range of numbers that threads
 * visit in pieces, and what they meet becomes bits: a bit vector a level, in pages that
 * are made where they are needed, because tokens may be large and few.
 */
#include "baseline/token_sets.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "trie/parallel.h"

enum {
    PAGE_BITS = 1 << 16,
    PAGE_WORDS = PAGE_BITS / 64,
    PIECE_NODES = 1 << 14,
    RUN_LABELS = 1024
};

typedef struct page {
    _Atomic uint64_t words[PAGE_WORDS];
} page;

typedef struct marks {
    const ft_trie *trie;
    uint64_t n_pages; /* of a position */
    _Atomic(page *) *pages;
    _Atomic uint8_t *ends;
    uint64_t first;              /* node of the level at hand */
    uint32_t level;              /* which is its children's position, too */
    _Atomic uint64_t n_children; /* of the level, but for those in tails */
} marks;

static page *add_page(_Atomic(page *) *at, ft_error *err)
{
    page *fresh = ft_new(page, err), *other = NULL;
    if (fresh && !atomic_compare_exchange_strong(at, &other, fresh)) {
        free(fresh); /* another thread was faster */
        return other;
    }
    return fresh;
}

static ft_status mark(marks *m, uint32_t position, uint32_t token, ft_error *err)
{
    _Atomic(page *) *at = &m->pages[position * m->n_pages + token / PAGE_BITS];
    page *p = atomic_load_explicit(at, memory_order_acquire);
    if (!p && !(p = add_page(at, err)))
        return FT_ENOMEM;
    _Atomic uint64_t *word = &p->words[token % PAGE_BITS / 64];
    const uint64_t bit = UINT64_C(1) << token % 64;
    /* Most are there: lines that are only read stay in all caches. */
    if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    return FT_OK;
}

static ft_status mark_run(marks *m, ft_range run, ft_error *err)
{
    uint32_t labels[RUN_LABELS];
    ft_status st = FT_OK;
    for (uint64_t done = 0; done < run.count && st == FT_OK; done += RUN_LABELS) {
        const uint64_t left = run.count - done;
        const uint64_t n = left < RUN_LABELS ? left : RUN_LABELS;
        m->trie->ops->labels(m->trie, run.first + done, n, labels);
        for (uint64_t i = 0; i < n && st == FT_OK; i++)
            st = mark(m, m->level, labels[i], err);
    }
    return st;
}

static void mark_end(marks *m, uint32_t n_tokens)
{
    if (n_tokens)
        atomic_store_explicit(&m->ends[n_tokens - 1], 1, memory_order_relaxed);
}

/* A chain of only children in a tail, which no level has. */
static ft_status mark_tail(marks *m, ft_range run, ft_error *err)
{
    const ft_trie *t = m->trie;
    ft_status st = FT_OK;
    for (uint32_t position = m->level; run.count && st == FT_OK; position++) {
        uint64_t place = 0; /* nodes in tails have none */
        uint32_t token;
        t->ops->labels(t, run.first, 1, &token);
        st = mark(m, position, token, err);
        const ft_visit v = t->ops->visit(t, run.first, &place);
        if (v.terminal)
            mark_end(m, position + 1);
        run = v.children;
    }
    return st;
}

static ft_status mark_piece(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    marks *m = arg;
    const ft_trie *t = m->trie;
    const uint64_t last = m->first + end;
    uint64_t node = m->first + begin, place = t->ops->seek(t, node), n_children = 0;
    bool terminal = false;
    ft_status st = FT_OK;
    for (; node < last && st == FT_OK; node++) {
        const ft_visit v = t->ops->visit(t, node, &place);
        terminal = terminal || v.terminal;
        if (v.children.count == 0)
            continue;
        if (v.children.first < t->n_numbered) {
            n_children += v.children.count;
            st = mark_run(m, v.children, err);
        } else {
            st = mark_tail(m, v.children, err);
        }
    }
    if (terminal)
        mark_end(m, m->level);
    atomic_fetch_add(&m->n_children, n_children);
    return st;
}

static ft_status mark_all(marks *m, uint32_t n_threads, ft_error *err)
{
    ft_status st = FT_OK;
    for (uint64_t n = 1; n && st == FT_OK; m->level++) {
        m->n_children = 0;
        st = ft_parallel(n, PIECE_NODES, n_threads, mark_piece, m, err);
        m->first += n;
        n = m->n_children;
    }
    return st;
}

/* The set bits of a position, to `out` where there is one; how many. */
static uint64_t list_position(const marks *m, uint32_t position, uint32_t *out)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < m->n_pages; i++) {
        page *p = m->pages[position * m->n_pages + i];
        for (uint32_t w = 0; p && w < PAGE_WORDS; w++) {
            uint64_t word = p->words[w];
            if (!out)
                n += ft_popcount(word);
            for (; out && word; word &= word - 1)
                out[n++] = (uint32_t)(i * PAGE_BITS) + 64 * w + ft_lowest_bit(word);
        }
    }
    return n;
}

static ft_status list_all(ft_token_sets *s, const marks *m, ft_error *err)
{
    for (uint32_t d = 0; d < s->depth; d++) {
        s->offsets[d + 1] = s->offsets[d] + list_position(m, d, NULL);
        s->ends[d] = m->ends[d];
    }
    s->tokens = ft_calloc(s->offsets[s->depth], sizeof *s->tokens, err);
    if (!s->tokens)
        return FT_ENOMEM;
    for (uint32_t d = 0; d < s->depth; d++)
        list_position(m, d, s->tokens + s->offsets[d]);
    return FT_OK;
}

ft_status ft_token_sets_make(ft_token_sets *out, const ft_trie *trie,
                             uint32_t n_threads, ft_error *err)
{
    marks m = {.trie = trie, .n_pages = trie->max_token / PAGE_BITS + UINT64_C(1)};
    ft_token_sets s = {.depth = trie->depth};
    const uint64_t n_pages = s.depth * m.n_pages; /* both have 32 bits */
    s.offsets = ft_calloc(s.depth + UINT64_C(1), sizeof *s.offsets, err);
    s.ends = ft_calloc(s.depth, sizeof *s.ends, err);
    m.ends = ft_calloc(s.depth, sizeof *m.ends, err);
    m.pages = ft_calloc(n_pages, sizeof *m.pages, err);
    ft_status st = s.offsets && s.ends && m.ends && m.pages ? FT_OK : FT_ENOMEM;
    if (st == FT_OK)
        st = mark_all(&m, n_threads, err);
    if (st == FT_OK)
        st = list_all(&s, &m, err);
    for (uint64_t i = 0; m.pages && i < n_pages; i++)
        free(m.pages[i]);
    free(m.pages);
    free(m.ends);
    if (st == FT_OK)
        *out = s;
    else
        ft_token_sets_free(&s);
    return st;
}

void ft_token_sets_free(ft_token_sets *s)
{
    free(s->offsets);
    free(s->tokens);
    free(s->ends);
    *s = (ft_token_sets){0};
}
