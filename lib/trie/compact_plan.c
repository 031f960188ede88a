/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/compact_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/score.h"

/* Counts of 2^12 and more are told apart by their leading 12 bits: classes need the
 * order of counts, near enough, and a table of it is small. */
enum {
    EXACT_BITS = 12,
    N_EXACT = 1 << EXACT_BITS,
    N_STEPS = N_EXACT / 2, /* a power of two */
    N_FREQS = N_EXACT + (32 - EXACT_BITS) * N_STEPS
};

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
    unsigned form;
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

static ft_status count_tokens(ft_compact_plan *p, const ft_levels *levels,
                              ft_error *err)
{
    uint32_t tokens[FT_GROUP_NODES];
    unsigned n;
    ft_status st = ft_token_ids_open(&p->ids, levels->n_nodes, levels->max_token, err);
    ft_token_iter it = ft_tokens_from(levels, 2);
    while (st == FT_OK && ft_tokens_next(&it, &n, tokens))
        st = ft_token_ids_add(&p->ids, tokens, n, err);
    if (st == FT_OK)
        st = ft_token_ids_number(&p->ids, err);
    for (unsigned i = 0; i < FT_PLAN_SPANS && span_level[i] < levels->n_levels; i++) {
        if (st != FT_OK)
            return st;
        p->counts[i] = ft_calloc(p->ids.n, sizeof *p->counts[i], err);
        st = p->counts[i] ? FT_OK : FT_ENOMEM;
    }
    if (st != FT_OK)
        return st;
    it = ft_tokens_from(levels, 2);
    while (ft_tokens_next(&it, &n, tokens)) {
        uint32_t *counts = p->counts[span_of(it.groups.level)];
        uint32_t ids[FT_GROUP_NODES];
        ft_token_ids_of(&p->ids, tokens, n, ids);
        for (unsigned i = 0; i < n; i++)
            counts[ids[i]] = add_counts(counts[ids[i]], 1);
    }
    return FT_OK;
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

/* Widths of the classes: every rising choice of three, the last takes the rest. */
static void choose_widths(const curve *c, choice *best)
{
    const uint64_t n = c->n_tokens, all = c->sum[c->n_points - 1];
    const unsigned top = width_for(n);
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
                const uint64_t bits =
                    s0 * w0 + (s1 - s0) * w1 + (s2 - s1) * w2 + (all - s2) * w3;
                if (bits >= best->bits)
                    continue;
                *best = (choice){.bits = bits,
                                 .size = {(uint32_t)n0, (uint32_t)(n1 - n0),
                                          (uint32_t)(n2 - n1), (uint32_t)(n - n2)},
                                 .width = {w0, w1, w2, w3}};
            }
        }
    }
}

static choice choose(curve *c, const ft_compact_plan *p, unsigned first, unsigned last)
{
    choice best;
    draw(c, p, first, last);
    choose_widths(c, &best);
    best.form = ft_token_set_form(c->n_tokens, p->n_ids);
    best.bits += 8 * (ft_token_set_bytes(best.form, c->n_tokens, p->n_ids) +
                      ft_token_classes_bytes(best.size) + sizeof(ft_compact_region) +
                      sizeof(ft_compact_block) / 2);
    return best;
}

/* Codes of a region's tokens, in place of its first span's counts: its tokens by
 * falling count, equal ones by id, are dealt out to the classes, and in each keep their
 * order. */
static void assign(ft_plan_region *r, const ft_compact_plan *p, curve *c,
                   unsigned first, unsigned last)
{
    uint32_t *codes = p->counts[first], next[FT_CODE_CLASSES];
    draw(c, p, first, last);
    uint32_t start = 0;
    for (uint32_t f = N_FREQS; f-- > 1;) {
        const uint32_t n = c->freqs[f].n;
        c->freqs[f].n = start; /* from here on: the next place of that count */
        start += n;
    }
    memcpy(next, r->classes.base, sizeof next);
    for (uint32_t id = 0; id < p->ids.n; id++) {
        uint32_t count = codes[id];
        for (unsigned i = first + 1; i <= last; i++)
            count = add_counts(count, p->counts[i][id]);
        if (count == 0) {
            codes[id] = FT_NO_TOKEN;
            continue;
        }
        const uint32_t place = c->freqs[freq_of(count)].n++;
        codes[id] = next[ft_code_class(&r->classes, place)]++;
    }
    r->codes = codes;
}

static void choose_regions(ft_compact_plan *p, const ft_levels *levels, curve *c,
                           unsigned n_spans)
{
    choice choices[FT_PLAN_SPANS][FT_PLAN_SPANS];
    for (unsigned i = 0; i < n_spans; i++)
        for (unsigned j = i; j < n_spans; j++)
            choices[i][j] = choose(c, p, i, j);

    /* Bit i of `cuts`: a region ends with span i. */
    unsigned best_cuts = 0;
    uint64_t best = UINT64_MAX;
    for (unsigned cuts = 0; cuts < 1u << (n_spans - 1); cuts++) {
        uint64_t bits = 0;
        if (ft_popcount(cuts) >= FT_PLAN_REGIONS)
            continue;
        for (unsigned first = 0, i = 0; i < n_spans; i++)
            if (cuts >> i & 1 || i == n_spans - 1) {
                bits += choices[first][i].bits;
                first = i + 1;
            }
        if (bits < best) {
            best = bits;
            best_cuts = cuts;
        }
    }
    for (unsigned first = 0, i = 0; i < n_spans; i++) {
        if (!(best_cuts >> i & 1) && i != n_spans - 1)
            continue;
        const choice *is = &choices[first][i];
        ft_plan_region *r = &p->region[p->n_regions++];
        *r = (ft_plan_region){
            .level = span_level[first],
            .end = min_u64(span_level[i + 1], levels->n_levels),
            .form = is->form,
        };
        memcpy(r->width, is->width, sizeof r->width);
        r->classes = ft_token_classes_of(is->size);
        assign(r, p, c, first, i);
        for (unsigned j = first + 1; j <= i; j++) {
            free(p->counts[j]);
            p->counts[j] = NULL;
        }
        for (uint64_t level = r->level; level < r->end; level++)
            r->n_nodes += ft_level_nodes(levels, level);
        first = i + 1;
    }
}

ft_status ft_compact_plan_make(ft_compact_plan *p, const ft_levels *levels,
                               ft_error *err)
{
    *p = (ft_compact_plan){.n_ids = (uint64_t)levels->max_token + 1};
    if (levels->n_levels > 1)
        p->n_root_children = ft_level_nodes(levels, 1);
    if (levels->n_levels < 3)
        return FT_OK;
    curve c = {0};
    ft_status st = count_tokens(p, levels, err);
    if (st == FT_OK)
        st = curve_open(&c, err);
    if (st == FT_OK)
        choose_regions(p, levels, &c, span_of(levels->n_levels - 1) + 1);
    curve_close(&c);
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
