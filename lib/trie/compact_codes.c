/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of the compact layout's edges: where they are, decoded, probed, searched.
 */
#include "base/score.h"
#include "trie/compact_codes.h"

enum {
    LINEAR_LABELS = 16, /* so few are decoded faster than searched (measured) */
    STRETCH = 32        /* nodes of which no more is looked at at a time */
};

void ft_region_set_widths(ft_region *r)
{
    const uint32_t *width = r->width, *base = r->classes.base;
    r->low_more = width[1] - width[0];
    r->high_more = width[2] - width[0];
    r->both_more = width[3] - width[0] - r->low_more - r->high_more;
    r->paired = true;
    for (unsigned i = 0; i < FT_CODE_CLASSES * FT_CODE_CLASSES; i++) {
        const unsigned first = i % FT_CODE_CLASSES, second = i / FT_CODE_CLASSES;
        r->pairs.mask[i] = ft_low_mask(width[first]) | ft_low_mask(width[second]) << 32;
        r->pairs.base[i] = base[first] | (uint64_t)base[second] << 32;
        r->pairs.width[i] = width[first] + width[second];
        r->paired = r->paired && r->pairs.width[i] <= FT_CODE_BITS;
    }
}

/* Every bit i of v at place 2 i. */
static inline uint64_t spread(uint32_t v)
{
#ifdef __BMI2__
    return _pdep_u64(v, UINT64_C(0x5555555555555555));
#else
    uint64_t x = v;
    x = (x | x << 16) & UINT64_C(0x0000FFFF0000FFFF);
    x = (x | x << 8) & UINT64_C(0x00FF00FF00FF00FF);
    x = (x | x << 4) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    x = (x | x << 2) & UINT64_C(0x3333333333333333);
    return (x | x << 1) & UINT64_C(0x5555555555555555);
#endif
}

/* Two codes, the first in the low half, out of the bits that start with them. */
static inline uint64_t take_pair(const ft_code_pairs *p, uint64_t classes,
                                 uint64_t bits)
{
    const uint64_t mask = p->mask[classes];
#ifdef __BMI2__
    return _pdep_u64(bits, mask) + p->base[classes];
#else
    const unsigned width = ft_popcount((uint32_t)mask);
    return ((bits & (uint32_t)mask) | (bits >> width << 32 & mask)) + p->base[classes];
#endif
}

/* Some siblings of a run, in one half of a word. */
typedef struct stretch {
    uint64_t bit;     /* of their codes: who decodes moves it on */
    uint64_t classes; /* two bits each, from the lowest on */
    unsigned n;
    uint64_t slot, left; /* the run behind them */
} stretch;

static inline stretch stretch_at(const ft_compact *l, const ft_region *r,
                                 uint64_t first, uint64_t count)
{
    const uint64_t slot = first - r->node + r->slot;
    return (stretch){
        .slot = slot,
        .left = count,
        .bit = ft_code_bit(r, &l->blocks[slot / FT_COMPACT_BLOCK],
                           slot % FT_COMPACT_BLOCK),
    };
}

/* The next ones, at first the first. False: there are none. */
static inline bool stretch_next(stretch *s, const ft_compact *l)
{
    if (s->left == 0)
        return false;
    const uint64_t block = s->slot / FT_COMPACT_BLOCK;
    const unsigned at = s->slot % FT_COMPACT_BLOCK, room = STRETCH - at % STRETCH;
    const ft_compact_block *c = &l->blocks[block];
    if (at == 0)
        s->bit = ft_block_codes(c);
    s->n = s->left < room ? (unsigned)s->left : room;
    s->classes = spread((uint32_t)(c->low[at / 64] >> at % 64)) |
                 spread((uint32_t)(c->high[at / 64] >> at % 64)) << 1;
    s->slot += s->n;
    s->left -= s->n;
    return true;
}

static void region_codes(const ft_compact *l, const ft_region *r, uint64_t first,
                         uint64_t count, uint32_t *out)
{
    const uint64_t *bits = l->codes;
    for (stretch s = stretch_at(l, r, first, count); stretch_next(&s, l); out += s.n) {
        unsigned i = 0;
        for (; r->paired && i + 2 <= s.n; i += 2, s.classes >>= 4) {
            const uint64_t both = s.classes & 15;
            const uint64_t pair = take_pair(&r->pairs, both, ft_code_bits(bits, s.bit));
            memcpy(out + i, &pair, sizeof pair);
            s.bit += r->pairs.width[both];
        }
        for (; i < s.n; i++, s.classes >>= 2) {
            const unsigned cls = s.classes & 3;
            const uint64_t v = ft_code_bits(bits, s.bit);
            out[i] = r->classes.base[cls] + (uint32_t)(v & ft_low_mask(r->width[cls]));
            s.bit += r->width[cls];
        }
    }
}

/* Edges from number `edge` on whose codes are in the filter, and these: without a
 * branch, each written where the next one goes. A code behind an odd stretch is decoded
 * too, and taken back. About one in ten is in the filter, in clusters: a word of hits a
 * stretch, and a loop over its bits, made searches 15% slower. */
static uint32_t region_probe(const ft_compact *l, const ft_region *r, ft_range run,
                             uint32_t edge, const uint64_t *filter, uint32_t *edges,
                             uint32_t *codes)
{
    const uint64_t *bits = l->codes;
    uint64_t n = 0, at = edge;
    for (stretch s = stretch_at(l, r, run.first, run.count); stretch_next(&s, l);) {
        const unsigned odd = s.n % 2;
        uint64_t both = 0, second = 0;
        for (const uint64_t end = at + s.n; at < end; at += 2) {
            both = s.classes & 15;
            s.classes >>= 4;
            const uint64_t pair = take_pair(&r->pairs, both, ft_code_bits(bits, s.bit));
            s.bit += r->pairs.width[both];
            edges[n] = (uint32_t)at;
            codes[n] = (uint32_t)pair;
            n += ft_filter_has(filter, (uint32_t)pair);
            edges[n] = (uint32_t)at + 1;
            codes[n] = (uint32_t)(pair >> 32);
            second = ft_filter_has(filter, (uint32_t)(pair >> 32));
            n += second;
        }
        n -= second & odd;
        at -= odd;
        s.bit -= odd * r->width[both / FT_CODE_CLASSES];
    }
    return (uint32_t)n;
}

void ft_compact_edge_codes(const ft_trie *t, uint64_t first, uint64_t count,
                           uint32_t *out)
{
    const ft_compact *l = t->layout;
    if (first > l->n_root_children) {
        region_codes(l, ft_compact_region_of(l, first), first, count, out);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        out[i] = (uint32_t)(first - 1 + i);
}

/* Where a token stands among the codes of a region but the first; false: it has none.
 */
static bool place_of(const ft_region *r, uint32_t token, ft_code_place *place)
{
    const uint32_t id = ft_token_set_rank(&r->set, token);
    const uint32_t literal = r->classes.n + token;
    if (id != FT_NO_TOKEN) {
        *place = ft_token_classes_place(&r->classes, id);
    } else if (r->literal && token < r->set.n_ids) {
        *place =
            ft_token_classes_place(&r->classes, ft_token_set_below(&r->set, token));
        place->code = literal;
    } else {
        return false;
    }
    if (r->literal)
        place->before[FT_CODE_CLASSES - 1] = literal;
    return true;
}

uint32_t ft_compact_edge_code(const ft_trie *t, uint32_t token, uint32_t level)
{
    const ft_compact *l = t->layout;
    const ft_region *r = l->region;
    ft_code_place place;
    while (r + 1 < l->region + l->n_regions && level >= r[1].level)
        r++;
    if (r == l->region)
        return ft_token_set_rank(&r->set, token);
    return place_of(r, token, &place) ? place.code : FT_NO_TOKEN;
}

/* Is the token on the edge whose code is at `bit`, of class `cls`, smaller than the one
 * that `want` is of? Codes of one class are in the order of their tokens. */
static inline bool is_below(const ft_compact *l, const ft_region *r, uint64_t bit,
                            unsigned cls, const ft_code_place *want)
{
    const uint64_t rank = ft_code_bits(l->codes, bit) & ft_low_mask(r->width[cls]);
    return r->classes.base[cls] + rank < want->before[cls];
}

/* Narrow the slots of siblings down to those from the start of a block to that of the
 * next, which is cheaper to look at than other places. */
static void find_block(const ft_compact *l, const ft_region *r,
                       const ft_code_place *want, uint64_t *slot, uint64_t *n)
{
    const uint64_t first = *slot / FT_COMPACT_BLOCK, end = *slot + *n;
    uint64_t block = first;
    for (uint64_t left = (end - 1) / FT_COMPACT_BLOCK - first + 1; left > 1;) {
        const uint64_t half = left / 2;
        const ft_compact_block *c = &l->blocks[block + half];
        const unsigned cls = (c->low[0] & 1) | (c->high[0] & 1) << 1;
        const bool below = is_below(l, r, ft_block_codes(c), cls, want);
        block += half & -(uint64_t)below;
        left -= half;
    }
    /* The first slot of the next block may be the token's own. */
    const uint64_t next = (block + 1) * FT_COMPACT_BLOCK + 1;
    if (block > first)
        *slot = block * FT_COMPACT_BLOCK;
    *n = (next < end ? next : end) - *slot;
}

static uint64_t region_find(const ft_compact *l, const ft_region *r, ft_range range,
                            uint32_t token)
{
    ft_code_place want;
    if (!place_of(r, token, &want))
        return UINT64_MAX;
    uint64_t slot = range.first - r->node + r->slot, n = range.count;
    if (n > FT_COMPACT_BLOCK)
        find_block(l, r, &want, &slot, &n);
    while (n > LINEAR_LABELS) {
        const uint64_t half = n / 2, middle = slot + half - 1;
        const uint64_t block = middle / FT_COMPACT_BLOCK;
        const unsigned at = middle % FT_COMPACT_BLOCK;
        const ft_compact_block *c = &l->blocks[block];
        const unsigned cls = ft_bit_get(c->low, at) | ft_bit_get(c->high, at) << 1;
        const bool below = is_below(l, r, ft_code_bit(r, c, at), cls, &want);
        slot += half & -(uint64_t)below;
        n -= half;
    }
    uint32_t codes[LINEAR_LABELS];
    const uint64_t first = slot - r->slot + r->node;
    region_codes(l, r, first, n, codes);
    for (uint64_t i = 0; i < n; i++)
        if (codes[i] == want.code)
            return first + i;
    return UINT64_MAX;
}

uint64_t ft_compact_find(const ft_trie *t, ft_range range, uint32_t token)
{
    const ft_compact *l = t->layout;
    if (range.count == 0)
        return UINT64_MAX;
    if (range.first > l->n_root_children)
        return region_find(l, ft_compact_region_of(l, range.first), range, token);
    const uint32_t rank = ft_token_set_rank(&l->region->set, token);
    if (rank == FT_NO_TOKEN || rank < range.first - 1 ||
        rank - (range.first - 1) >= range.count)
        return UINT64_MAX;
    return 1 + (uint64_t)rank;
}

/* A run whose codes the probe does not decode on its way. */
static uint32_t probe_decoded(const ft_trie *t, ft_range run, uint32_t edge,
                              const uint64_t *filter, uint32_t *edges, uint32_t *codes)
{
    ft_compact_edge_codes(t, run.first, run.count, codes);
    const uint32_t n = ft_filter_codes(filter, codes, edge, (uint32_t)run.count, edges);
    for (uint32_t i = 0; i < n; i++)
        codes[i] = codes[edges[i] - edge]; /* they ascend: not overwritten yet */
    return n;
}

uint32_t ft_compact_probe_run(const ft_trie *t, ft_range run, uint32_t edge,
                              const uint64_t *filter, uint32_t *edges, uint32_t *codes)
{
    const ft_compact *l = t->layout;
    if (run.first > l->n_root_children) {
        const ft_region *r = ft_compact_region_of(l, run.first);
        if (r->paired)
            return region_probe(l, r, run, edge, filter, edges, codes);
    }
    return probe_decoded(t, run, edge, filter, edges, codes);
}

void ft_compact_probe_portable(const ft_trie *t, const ft_range *runs, uint32_t n,
                               const uint64_t *filter, ft_hits *hits)
{
    hits->n = 0;
    for (uint32_t run = 0, edge = 0; run < n; edge += (uint32_t)runs[run++].count) {
        const uint32_t n_hits = ft_compact_probe_run(
            t, runs[run], edge, filter, hits->edges + hits->n, hits->codes + hits->n);
        ft_hits_add(hits, n_hits, run);
    }
}

void ft_compact_probe(const ft_trie *t, const ft_range *runs, uint32_t n,
                      const uint64_t *filter, ft_hits *hits)
{
    const ft_compact *l = t->layout;
    if (l->avx512)
        ft_compact_probe_avx512(t, runs, n, filter, hits);
    else
        ft_compact_probe_portable(t, runs, n, filter, hits);
}
