/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/compact_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/score.h"
#include "trie/parallel.h"

/* Counts of 2^12 and more are told apart by their leading 12 bits: classes need the
 * order of counts, near enough, and a table of it is small. */
enum {
    EXACT_BITS = 12,
    N_EXACT = 1 << EXACT_BITS,
    N_STEPS = N_EXACT / 2, /* a power of two */
    N_FREQS = N_EXACT + (32 - EXACT_BITS) * N_STEPS
};

enum { PIECE_SPANS = 16, PIECE_IDS = 1 << 16 };

static inline uint32_t freq_of(uint32_t count)
{
    if (count < N_EXACT)
        return count;
    const unsigned e = ft_bit_width(count) - EXACT_BITS;
    return N_EXACT + (e - 1) * N_STEPS + (count >> e) - N_STEPS;
}

typedef struct freq {
    uint64_t sum;
    uint32_t n;
} freq;

/* Tokens of a run of spans by falling count: of the first n_tokens[i], `sum[i]`
 * occurrences. */
typedef struct curve {
    freq *freqs; /* N_FREQS of them */
    uint32_t *n;
    uint64_t *sum;
    uint32_t n_points;
    uint32_t n_tokens;
} curve;

typedef struct choice {
    uint64_t bits; /* codes and tables */
    uint32_t size[FT_CODE_CLASSES], width[FT_CODE_CLASSES];
} choice;

/* Levels that may have codes of their own: early levels differ most. */
static unsigned span_of(uint64_t level)
{
    return level < 5 ? (unsigned)level - 2 : level < 7 ? 3 : level < 11 ? 4 : 5;
}

static const uint64_t span_level[FT_PLAN_SPANS + 1] = {2, 3, 4, 5, 7, 11, UINT64_MAX};

static inline uint32_t add_counts(uint32_t a, uint32_t b)
{
    return a + b < a ? UINT32_MAX : a + b;
}

/* A part of the level arrays whose tokens are counted: all of a span of levels, or a
 * share of it with counts of its own. */
typedef struct share {
    unsigned level_span;
    uint64_t first, last; /* spans of the map */
    uint32_t *counts;
    bool apart;
} share;

enum { MAX_SHARES = 2 * FT_MAX_THREADS + FT_PLAN_SPANS };

typedef struct counting {
    ft_compact_plan *plan;
    const ft_level_map *map;
    uint64_t first; /* span of the map at level 2 */
    share shares[MAX_SHARES];
    uint32_t n_shares;
} counting;

/* Tokens of the map's spans first .. last - 1, a group at a time. */
typedef struct token_walk {
    ft_token_iter it;
    uint64_t node, end;
    unsigned n;
    uint32_t tokens[FT_GROUP_NODES];
} token_walk;

static token_walk walk_spans(const ft_level_map *m, uint64_t first, uint64_t last)
{
    token_walk w = {.node = m->spans[first].node, .end = m->spans[last].node};
    unsigned at;
    if (first < last)
        w.it = ft_map_tokens(m, w.node, &at);
    return w;
}

static bool next_tokens(token_walk *w)
{
    if (w->node >= w->end)
        return false;
    ft_token_groups_next(&w->it, &w->n, w->tokens);
    w->node += w->n;
    return true;
}

static ft_status gather_ids(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const counting *c = arg;
    token_walk w = walk_spans(c->map, c->first + begin, c->first + end);
    ft_status st = FT_OK;
    while (st == FT_OK && next_tokens(&w))
        st = ft_token_ids_add(&c->plan->ids, w.tokens, w.n, err);
    return st;
}

static ft_status count_shares(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const counting *c = arg;
    for (uint64_t k = begin; k < end; k++) {
        const share *s = &c->shares[k];
        token_walk w = walk_spans(c->map, s->first, s->last);
        memset(s->counts, 0, c->plan->ids.n * sizeof *s->counts);
        while (next_tokens(&w)) {
            uint32_t ids[FT_GROUP_NODES];
            ft_token_ids_of(&c->plan->ids, w.tokens, w.n, ids);
            for (unsigned i = 0; i < w.n; i++)
                s->counts[ids[i]] = add_counts(s->counts[ids[i]], 1);
        }
    }
    (void)err;
    return FT_OK;
}

static ft_status add_up(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const counting *c = arg;
    (void)err;
    for (uint32_t k = 0; k < c->n_shares; k++) {
        const share *s = &c->shares[k];
        uint32_t *counts = c->plan->counts[s->level_span];
        for (uint64_t id = begin; s->apart && id < end; id++)
            counts[id] = add_counts(counts[id], s->counts[id]);
    }
    return FT_OK;
}

/* The first span of the map at or behind a level. */
static uint64_t span_from(const ft_level_map *m, uint64_t level)
{
    uint64_t i = 0;
    while (i < m->n_spans && m->spans[i].level < level)
        i++;
    return i;
}

/* Cut a span of levels into `n` shares; the first has the plan's counts. */
static ft_status add_shares(counting *c, unsigned level_span, uint64_t n, ft_error *err)
{
    ft_compact_plan *p = c->plan;
    const uint64_t first = span_from(c->map, span_level[level_span]);
    const uint64_t last = span_from(c->map, span_level[level_span + 1]);
    assert(c->n_shares + n <= MAX_SHARES);
    for (uint64_t k = 0; k < n; k++) {
        share *s = &c->shares[c->n_shares];
        *s = (share){
            .level_span = level_span,
            .first = first + (last - first) * k / n,
            .last = first + (last - first) * (k + 1) / n,
            .counts = ft_realloc(NULL, p->ids.n, sizeof *s->counts, err),
            .apart = k > 0,
        };
        if (!s->counts)
            return FT_ENOMEM;
        if (k == 0)
            p->counts[level_span] = s->counts;
        c->n_shares++;
    }
    return FT_OK;
}

/* A share for each span of levels, and more where there are so many nodes that adding
 * up costs little: those have half as many bytes as there are nodes at most. */
static ft_status cut_shares(counting *c, uint32_t n_threads, ft_error *err)
{
    const ft_level_map *m = c->map;
    const uint64_t n_levels = m->levels->n_levels, n_nodes = m->levels->n_nodes;
    const uint64_t least = 8 * (uint64_t)c->plan->ids.n;
    const uint64_t fair = n_nodes / (n_threads > 1 ? 2 * (uint64_t)n_threads : 1) + 1;
    const uint64_t size = fair > least ? fair : least;
    ft_status st = FT_OK;
    for (unsigned i = 0; i < FT_PLAN_SPANS && span_level[i] < n_levels; i++) {
        const uint64_t nodes = m->spans[span_from(m, span_level[i + 1])].node -
                               m->spans[span_from(m, span_level[i])].node;
        if (st == FT_OK)
            st = add_shares(c, i, 1 + nodes / size, err);
    }
    return st;
}

static ft_status count_tokens(ft_compact_plan *p, const ft_level_map *map,
                              uint32_t n_threads, ft_error *err)
{
    const ft_levels *levels = map->levels;
    counting c = {.plan = p, .map = map, .first = span_from(map, 2)};
    ft_status st = ft_token_ids_open(&p->ids, levels->n_nodes, levels->max_token, err);
    if (st != FT_OK)
        return st;
    st = ft_parallel(map->n_spans - c.first, PIECE_SPANS,
                     ft_token_ids_shared(&p->ids) ? n_threads : 1, gather_ids, &c, err);
    if (st == FT_OK)
        st = ft_token_ids_number(&p->ids, err);
    if (st == FT_OK)
        st = cut_shares(&c, n_threads, err);
    if (st == FT_OK)
        st = ft_parallel(c.n_shares, 1, n_threads, count_shares, &c, err);
    if (st == FT_OK)
        st = ft_parallel(p->ids.n, PIECE_IDS, n_threads, add_up, &c, err);
    for (uint32_t k = 0; k < c.n_shares; k++)
        if (c.shares[k].apart)
            free(c.shares[k].counts);
    return st;
}

static ft_status curve_open(curve *c, ft_error *err)
{
    c->freqs = ft_calloc(N_FREQS, sizeof *c->freqs, err);
    c->n = ft_calloc(N_FREQS + 1, sizeof *c->n, err);
    c->sum = ft_calloc(N_FREQS + 1, sizeof *c->sum, err);
    return c->freqs && c->n && c->sum ? FT_OK : FT_ENOMEM;
}

static void curve_close(curve *c)
{
    free(c->freqs);
    free(c->n);
    free(c->sum);
}

/* The curve of spans first .. last. */
static void draw(curve *c, const ft_compact_plan *p, unsigned first, unsigned last)
{
    memset(c->freqs, 0, N_FREQS * sizeof *c->freqs);
    for (uint32_t id = 0; id < p->ids.n; id++) {
        uint32_t count = p->counts[first][id];
        for (unsigned i = first + 1; i <= last; i++)
            count = add_counts(count, p->counts[i][id]);
        freq *f = &c->freqs[freq_of(count)];
        f->n++;
        f->sum += count;
    }
    c->n_points = 0;
    c->n_tokens = 0;
    uint64_t sum = 0;
    for (uint32_t f = N_FREQS; f-- > 1;) {
        if (c->freqs[f].n == 0)
            continue;
        c->n[c->n_points] = c->n_tokens += c->freqs[f].n;
        c->sum[c->n_points++] = sum += c->freqs[f].sum;
    }
}

/* Occurrences of the m most frequent tokens, m <= n_tokens. */
static uint64_t occurrences(const curve *c, uint64_t m)
{
    uint32_t lo = 0;
    for (uint32_t n = c->n_points; n > 1;) {
        const uint32_t half = n / 2;
        lo += c->n[lo + half - 1] < m ? half : 0;
        n -= half;
    }
    const uint64_t n = lo ? c->n[lo - 1] : 0, sum = lo ? c->sum[lo - 1] : 0;
    return sum + (c->sum[lo] - sum) / (c->n[lo] - n) * (m - n);
}

static unsigned width_for(uint64_t n)
{
    return n > 1 ? ft_bit_width(n - 1) : 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Take the better choice, tables included. */
static void offer(const ft_compact_plan *p, choice *best, choice is)
{
    const uint32_t n = is.size[0] + is.size[1] + is.size[2] + is.size[3];
    if (is.bits >= best->bits)
        return;
    is.bits += 8 * (ft_token_set_bytes(n, (uint64_t)p->max_token + 1) +
                    ft_token_classes_bytes(is.size));
    if (is.bits < best->bits)
        *best = is;
}

/* Widths of the classes: every rising choice of three, the last takes the rest, or they
 * are literal. */
static void choose_widths(const ft_compact_plan *p, const curve *c, choice *best)
{
    const uint64_t n = c->n_tokens, all = c->sum[c->n_points - 1];
    const unsigned top = width_for(n), literal = ft_bit_width(p->max_token);
    best->bits = UINT64_MAX;
    for (unsigned w0 = 0; w0 <= top; w0++) {
        const uint64_t n0 = min_u64(n, (uint64_t)1 << w0), s0 = occurrences(c, n0);
        for (unsigned w1 = w0; w1 <= top; w1++) {
            const uint64_t n1 = min_u64(n, n0 + ((uint64_t)1 << w1));
            const uint64_t s1 = occurrences(c, n1);
            for (unsigned w2 = w1; w2 <= top; w2++) {
                const uint64_t n2 = min_u64(n, n1 + ((uint64_t)1 << w2));
                const uint64_t s2 = occurrences(c, n2);
                const unsigned w3 = width_for(n - n2);
                const uint64_t bits = s0 * w0 + (s1 - s0) * w1 + (s2 - s1) * w2;
                choice is = {.bits = bits + (all - s2) * w3,
                             .size = {(uint32_t)n0, (uint32_t)(n1 - n0),
                                      (uint32_t)(n2 - n1), (uint32_t)(n - n2)},
                             .width = {w0, w1, w2, w3}};
                offer(p, best, is);
                if (n2 == n || !ft_literals_fit((uint32_t)n2, p->max_token))
                    continue;
                is.bits = bits + (all - s2) * literal;
                is.size[3] = 0;
                is.width[3] = literal;
                offer(p, best, is);
            }
        }
    }
}

/* What regions of spans `first` .. `last` would cost, for all pairs. */
typedef struct choosing {
    const ft_compact_plan *plan;
    unsigned n_spans;
    choice choices[FT_PLAN_SPANS][FT_PLAN_SPANS];
} choosing;

/* Pair number `begin` of spans; those that are not in order are none. */
static ft_status choose(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    choosing *all = arg;
    const ft_compact_plan *p = all->plan;
    const unsigned first = (unsigned)begin / all->n_spans;
    const unsigned last = (unsigned)begin % all->n_spans;
    choice *best = &all->choices[first][last];
    curve c = {0};
    (void)end;
    if (first > last)
        return FT_OK;
    const ft_status st = curve_open(&c, err);
    if (st == FT_OK) {
        draw(&c, p, first, last);
        choose_widths(p, &c, best);
        best->bits += 8 * (sizeof(ft_compact_region) + sizeof(ft_compact_block) / 2);
    }
    curve_close(&c);
    return st;
}

/* Codes of a region's tokens, in place of its first span's counts: its tokens by
 * falling count, equal ones by id, are dealt out to the classes, and in each keep their
 * order; those that are left are literal. */
static ft_status assign(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const ft_compact_plan *p = arg;
    ft_plan_region *r = &((ft_compact_plan *)arg)->region[begin];
    uint32_t *codes = p->counts[r->first_span], next[FT_CODE_CLASSES];
    curve c = {0};
    (void)end;
    const ft_status st = curve_open(&c, err);
    if (st != FT_OK) {
        curve_close(&c);
        return st;
    }
    draw(&c, p, r->first_span, r->last_span);
    uint32_t start = 0;
    for (uint32_t f = N_FREQS; f-- > 1;) {
        const uint32_t n = c.freqs[f].n;
        c.freqs[f].n = start; /* from here on: the next place of that count */
        start += n;
    }
    memcpy(next, r->classes.base, sizeof next);
    uint64_t at = 0;
    for (uint32_t id = 0; id < p->ids.n; id++) {
        const uint32_t token = ft_token_ids_next(&p->ids, &at);
        uint32_t count = codes[id];
        for (unsigned i = r->first_span + 1; i <= r->last_span; i++)
            count = add_counts(count, p->counts[i][id]);
        if (count == 0) {
            codes[id] = FT_NO_TOKEN;
            continue;
        }
        const uint32_t place = c.freqs[freq_of(count)].n++;
        codes[id] = place < r->classes.n ? next[ft_code_class(&r->classes, place)]++
                                         : r->classes.n + token;
    }
    r->codes = codes;
    curve_close(&c);
    return FT_OK;
}

/* The cuts that cost least. Bit i: a region ends with span i. */
static unsigned choose_cuts(const choosing *all)
{
    const unsigned n_spans = all->n_spans;
    unsigned best_cuts = 0;
    uint64_t best = UINT64_MAX;
    for (unsigned cuts = 0; cuts < 1u << (n_spans - 1); cuts++) {
        uint64_t bits = 0;
        if (ft_popcount(cuts) >= FT_PLAN_REGIONS)
            continue;
        for (unsigned first = 0, i = 0; i < n_spans; i++)
            if (cuts >> i & 1 || i == n_spans - 1) {
                bits += all->choices[first][i].bits;
                first = i + 1;
            }
        if (bits < best) {
            best = bits;
            best_cuts = cuts;
        }
    }
    return best_cuts;
}

static void set_region(ft_plan_region *r, const choice *is, unsigned first,
                       unsigned last, const ft_levels *levels, uint32_t max_token)
{
    *r = (ft_plan_region){
        .level = span_level[first],
        .end = min_u64(span_level[last + 1], levels->n_levels),
        .first_span = first,
        .last_span = last,
    };
    memcpy(r->width, is->width, sizeof r->width);
    r->classes = ft_token_classes_of(is->size);
    r->max_code =
        r->width[3] && !is->size[3] ? r->classes.n + max_token : r->classes.n - 1;
    for (uint64_t level = r->level; level < r->end; level++)
        r->n_nodes += ft_level_nodes(levels, level);
}

static ft_status choose_regions(ft_compact_plan *p, const ft_levels *levels,
                                uint32_t n_threads, ft_error *err)
{
    choosing all = {.plan = p, .n_spans = span_of(levels->n_levels - 1) + 1};
    ft_status st = ft_parallel((uint64_t)all.n_spans * all.n_spans, 1, n_threads,
                               choose, &all, err);
    if (st != FT_OK)
        return st;
    const unsigned cuts = choose_cuts(&all);
    for (unsigned first = 0, i = 0; i < all.n_spans; i++) {
        if (!(cuts >> i & 1) && i != all.n_spans - 1)
            continue;
        set_region(&p->region[p->n_regions++], &all.choices[first][i], first, i, levels,
                   p->max_token);
        first = i + 1;
    }
    st = ft_parallel(p->n_regions, 1, n_threads, assign, p, err);
    for (unsigned k = 0; k < p->n_regions; k++)
        for (unsigned i = p->region[k].first_span + 1; i <= p->region[k].last_span;
             i++) {
            free(p->counts[i]);
            p->counts[i] = NULL;
        }
    return st;
}

ft_status ft_compact_plan_make(ft_compact_plan *p, const ft_level_map *map,
                               uint32_t n_threads, ft_error *err)
{
    const ft_levels *levels = map->levels;
    *p = (ft_compact_plan){.max_token = levels->max_token};
    if (levels->n_levels > 1)
        p->n_root_children = ft_level_nodes(levels, 1);
    if (levels->n_levels < 3)
        return FT_OK;
    ft_status st = count_tokens(p, map, n_threads, err);
    if (st == FT_OK)
        st = choose_regions(p, levels, n_threads, err);
    if (st != FT_OK)
        ft_compact_plan_free(p);
    return st;
}

void ft_compact_plan_free(ft_compact_plan *p)
{
    ft_token_ids_free(&p->ids);
    for (unsigned i = 0; i < FT_PLAN_SPANS; i++)
        free(p->counts[i]);
    *p = (ft_compact_plan){0};
}
