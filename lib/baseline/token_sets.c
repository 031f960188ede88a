/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes are numbered level by level, so a level is a range of numbers that threads
 * visit in pieces, and what they meet becomes bits. They are in small pages, made where
 * they are needed and found by a hash: tokens may be large and few.
 */
#include "baseline/token_sets.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "trie/parallel.h"

enum {
    PAGE_BITS = 1 << 10,
    PAGE_WORDS = PAGE_BITS / 64,
    PIECE_NODES = 1 << 14,
    RUN_LABELS = 1024
};

typedef struct page {
    struct page *next; /* in the slot */
    uint64_t number;
    _Atomic uint64_t words[PAGE_WORDS];
} page;

typedef struct marks {
    const ft_trie *trie;
    uint64_t n_numbers; /* of pages, a position */
    _Atomic(page *) *slots;
    unsigned shift; /* hash >> shift is a slot */
    _Atomic uint64_t n_pages;
    _Atomic uint8_t *ends;
    uint64_t first;              /* node of the level at hand */
    uint32_t level;              /* which is its children's position, too */
    _Atomic uint64_t n_children; /* of the level, but for those in tails */
} marks;

/* No more slots than nodes or than numbers of pages; two at least, for a shift. */
static ft_status open_slots(marks *m, ft_error *err)
{
    const ft_trie *t = m->trie;
    m->n_numbers = t->max_token / PAGE_BITS + UINT64_C(1);
    const uint64_t all = t->depth * m->n_numbers; /* both have 32 bits */
    const unsigned log = ft_bit_width((all < t->n_nodes ? all : t->n_nodes) | 2) - 1;
    m->shift = 64 - log;
    m->slots = ft_calloc(UINT64_C(1) << log, sizeof *m->slots, err);
    return m->slots ? FT_OK : FT_ENOMEM;
}

static uint64_t n_slots(const marks *m)
{
    return UINT64_C(1) << (64 - m->shift);
}

static page *find(page *p, uint64_t number)
{
    while (p && p->number != number)
        p = p->next;
    return p;
}

static page *add_page(marks *m, _Atomic(page *) *slot, uint64_t number, ft_error *err)
{
    page *fresh = ft_new(page, err), *other;
    if (!fresh)
        return NULL;
    fresh->number = number;
    fresh->next = atomic_load(slot);
    do {
        other = find(fresh->next, number);
        if (other) {
            free(fresh); /* another thread was faster */
            return other;
        }
    } while (!atomic_compare_exchange_weak(slot, &fresh->next, fresh));
    atomic_fetch_add(&m->n_pages, 1);
    return fresh;
}

static ft_status mark(marks *m, uint32_t position, uint32_t token, ft_error *err)
{
    const uint64_t number = position * m->n_numbers + token / PAGE_BITS;
    const uint64_t hash = number * UINT64_C(0x9E3779B97F4A7C15);
    _Atomic(page *) *slot = &m->slots[hash >> m->shift];
    page *p = find(atomic_load_explicit(slot, memory_order_acquire), number);
    if (!p && !(p = add_page(m, slot, number, err)))
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

static int by_number(const void *x, const void *y)
{
    const page *a = *(page *const *)x, *b = *(page *const *)y;
    return (a->number > b->number) - (a->number < b->number);
}

/* All pages, by number: the order of positions, and of tokens in each. */
static ft_status sort_pages(page ***out, const marks *m, ft_error *err)
{
    page **pages = ft_calloc(m->n_pages, sizeof(page *), err);
    uint64_t n = 0;
    if (!pages)
        return FT_ENOMEM;
    for (uint64_t i = 0; i < n_slots(m); i++)
        for (page *p = m->slots[i]; p; p = p->next)
            pages[n++] = p;
    qsort(pages, n, sizeof(page *), by_number);
    *out = pages;
    return FT_OK;
}

static uint64_t count_page(page *p)
{
    uint64_t n = 0;
    for (uint32_t w = 0; w < PAGE_WORDS; w++)
        n += ft_popcount(p->words[w]);
    return n;
}

/* Its tokens, from `first` on; where the next go. */
static uint32_t *list_page(page *p, uint32_t first, uint32_t *out)
{
    for (uint32_t w = 0; w < PAGE_WORDS; w++)
        for (uint64_t word = p->words[w]; word; word &= word - 1)
            *out++ = first + 64 * w + ft_lowest_bit(word);
    return out;
}

static ft_status list_all(ft_token_sets *s, const marks *m, ft_error *err)
{
    page **pages;
    const ft_status st = sort_pages(&pages, m, err);
    if (st != FT_OK)
        return st;
    for (uint64_t i = 0; i < m->n_pages; i++)
        s->offsets[pages[i]->number / m->n_numbers + 1] += count_page(pages[i]);
    for (uint32_t d = 0; d < s->depth; d++) {
        s->offsets[d + 1] += s->offsets[d];
        s->ends[d] = m->ends[d];
    }
    s->tokens = ft_calloc(s->offsets[s->depth], sizeof *s->tokens, err);
    uint32_t *to = s->tokens;
    for (uint64_t i = 0; to && i < m->n_pages; i++) {
        const uint64_t of_position = pages[i]->number % m->n_numbers;
        to = list_page(pages[i], (uint32_t)(of_position * PAGE_BITS), to);
    }
    free(pages);
    return s->tokens ? FT_OK : FT_ENOMEM;
}

static void free_slots(marks *m)
{
    for (uint64_t i = 0; m->slots && i < n_slots(m); i++)
        for (page *p = m->slots[i], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    free(m->slots);
}

ft_status ft_token_sets_make(ft_token_sets *out, const ft_trie *trie,
                             uint32_t n_threads, ft_error *err)
{
    marks m = {.trie = trie};
    ft_token_sets s = {.depth = trie->depth};
    s.offsets = ft_calloc(s.depth + UINT64_C(1), sizeof *s.offsets, err);
    s.ends = ft_calloc(s.depth, sizeof *s.ends, err);
    m.ends = ft_calloc(s.depth, sizeof *m.ends, err);
    ft_status st = s.offsets && s.ends && m.ends ? FT_OK : FT_ENOMEM;
    if (st == FT_OK)
        st = open_slots(&m, err);
    if (st == FT_OK)
        st = mark_all(&m, n_threads, err);
    if (st == FT_OK)
        st = list_all(&s, &m, err);
    free_slots(&m);
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
