/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/compact.h"

#include "base/score.h"
#include "trie/probe.h"

enum {
    NEAR_WORDS = 16,    /* of sibling bits, looked at before the ranks are */
    LINEAR_LABELS = 16, /* so few are decoded faster than searched (measured) */
    FETCH_CODES = 256,  /* codes fetched ahead, at most */
    STRETCH = 32,       /* codes decoded at a time */
    SURE = 4,
    LINE_WORDS = 8      /* of a cache line */
};

/* Slot of the first-sibling bit number k from `word` on, where that may be far off: the
 * ranks say in which 32 blocks it is. */
static uint64_t skip_far(const ft_compact *l, uint64_t word, uint64_t k)
{
    for (; word % FT_SIBLING_RANK; word++) {
        const uint64_t w = l->siblings[word];
        const unsigned n = ft_popcount(w);
        if (n > k)
            return word * 64 + ft_select_in_word(w, (unsigned)k);
        k -= n;
    }
    /* Steps double, then halve. */
    uint64_t lo = word / FT_SIBLING_RANK, step = 1;
    const uint64_t last = l->n_slots / 64 / FT_SIBLING_RANK;
    k += l->sibling_rank[lo];
    for (; last - lo >= step && l->sibling_rank[lo + step] <= k; step *= 2)
        lo += step;
    for (; step; step /= 2)
        if (last - lo >= step && l->sibling_rank[lo + step] <= k)
            lo += step;
    k -= l->sibling_rank[lo];
    for (word = lo * FT_SIBLING_RANK;; word++) {
        const uint64_t w = l->siblings[word];
        const unsigned n = ft_popcount(w);
        if (n > k)
            return word * 64 + ft_select_in_word(w, (unsigned)k);
        k -= n;
    }
}

/* The same, where it is likely to be near. There is such a bit, if only the end's:
 * nothing checks for a border. */
static uint64_t skip_words(const ft_compact *l, uint64_t word, uint64_t k)
{
    for (unsigned i = 0; i < NEAR_WORDS; i++, word++) {
        const uint64_t w = l->siblings[word];
        const unsigned n = ft_popcount(w);
        if (n > k)
            return word * 64 + ft_select_in_word(w, (unsigned)k);
        k -= n;
    }
    return skip_far(l, word, k);
}

/* A group: the slots of its first node and of the next group's. */
typedef struct group {
    uint64_t first, end;
} group;

/* Group number k from `slot` on. Mostly it starts within four words and ends where it
 * starts; four words are looked at without a branch (the end blocks make them exist).
 */
static inline group find_group(const ft_compact *l, uint64_t slot, uint64_t k)
{
    const uint64_t word = slot / 64;
    const uint64_t w[4] = {l->siblings[word] & ~ft_low_mask(slot % 64),
                           l->siblings[word + 1], l->siblings[word + 2],
                           l->siblings[word + 3]};
    const unsigned n0 = ft_popcount(w[0]), n1 = n0 + ft_popcount(w[1]);
    const unsigned n2 = n1 + ft_popcount(w[2]), n3 = n2 + ft_popcount(w[3]);
    group g;
    if (k >= n3) {
        g.first = skip_words(l, word + 4, k - n3);
        const uint64_t rest = l->siblings[g.first / 64] & ~ft_low_mask(g.first % 64) &
                              ~((uint64_t)1 << g.first % 64);
        g.end = rest ? g.first / 64 * 64 + (unsigned)__builtin_ctzll(rest)
                     : skip_words(l, g.first / 64 + 1, 0);
        return g;
    }
    const unsigned i = (k >= n0) + (k >= n1) + (k >= n2);
    const unsigned before = k >= n2 ? n2 : k >= n1 ? n1 : k >= n0 ? n0 : 0;
    const uint64_t in = w[i];
    const unsigned bit = ft_select_in_word(in, (unsigned)k - before);
    const uint64_t rest = in & ~ft_low_mask(bit) & ~((uint64_t)1 << bit);
    g.first = (word + i) * 64 + bit;
    g.end = rest ? (word + i) * 64 + (unsigned)__builtin_ctzll(rest)
                 : skip_words(l, word + i + 1, 0);
    return g;
}

static inline uint64_t slot_of(const ft_compact *l, uint64_t node)
{
    const ft_region *r = ft_compact_region_of(l, node);
    return node - r->node + r->slot;
}

/* Where a node is, and what its children's group is told by. */
typedef struct place {
    uint64_t block;
    unsigned at;
    bool top;    /* in region 0 */
    bool parent; /* has children */
    unsigned k;  /* parents before it in the block */
} place;

static inline place place_of(const ft_compact *l, uint64_t node)
{
    if (node <= l->n_root_children) {
        const uint64_t block = node / FT_COMPACT_ROOT_BLOCK;
        const unsigned at = node % FT_COMPACT_ROOT_BLOCK;
        const uint64_t child = l->root_blocks[block].child;
        return (place){block, at, true, child >> at & 1,
                       ft_popcount(child & ft_low_mask(at))};
    }
    const uint64_t slot = slot_of(l, node), block = slot / FT_COMPACT_BLOCK;
    const unsigned at = slot % FT_COMPACT_BLOCK;
    const uint64_t *child = l->blocks[block].child;
    return (place){block, at, false, ft_bit_get(child, at),
                   ft_bits_rank(child, ft_bits_before(at))};
}

static inline group children_group(const ft_compact *l, const place *p)
{
    return find_group(l,
                      p->top ? l->root_blocks[p->block].first_child
                             : ft_compact_children(l, p->block),
                      p->k);
}

/* Bit of the codes that tells whether a block's first parent ends a key. */
static inline uint64_t terminal_bits(const ft_compact *l, uint64_t block)
{
    const uint64_t *child = l->blocks[block].child;
    return ft_compact_codes(l, block) - ft_popcount(child[0]) - ft_popcount(child[1]);
}

static inline bool is_terminal(const ft_compact *l, const place *p)
{
    if (p->top)
        return l->root_blocks[p->block].terminal >> p->at & 1;
    if (!p->parent)
        return true;
    return ft_bit_get(l->codes, terminal_bits(l, p->block) + p->k);
}

/* Bit of the code of the node in place `at` of a block. */
static inline uint64_t code_place(const ft_compact *l, const ft_region *r,
                                  uint64_t block, unsigned at)
{
    const ft_code_classes *c = &l->code_classes[block];
    const ft_block_bits before = ft_bits_before(at);
    const uint64_t both[2] = {c->low[0] & c->high[0], c->low[1] & c->high[1]};
    const uint32_t bits = at * r->width[0] +
                          ft_bits_rank(c->low, before) * r->low_more +
                          ft_bits_rank(c->high, before) * r->high_more +
                          ft_bits_rank(both, before) * r->both_more;
    return ft_compact_codes(l, block) + bits;
}

static ft_range compact_children(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return (ft_range){1, l->n_root_children};
    const place p = place_of(l, node);
    if (!p.parent)
        return (ft_range){0, 0};
    const group g = children_group(l, &p);
    /* The end may be in the next region, behind slots that no node is in. */
    const ft_region *r = ft_compact_region_at(l, g.first);
    const uint64_t first = g.first - r->slot + r->node;
    return (ft_range){first, ft_compact_node(l, g.end) - first};
}

static unsigned compact_flags(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return l->n_root_children ? FT_NODE_HAS_CHILDREN : 0;
    const place p = place_of(l, node);
    return (is_terminal(l, &p) ? FT_NODE_TERMINAL : 0) |
           (p.parent ? FT_NODE_HAS_CHILDREN : 0);
}

/* The place of a walk is the number of the first node of the next group. */
static uint64_t compact_seek(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return 1;
    const place p = place_of(l, node);
    const uint64_t slot =
        p.top ? l->root_blocks[p.block].first_child : ft_compact_children(l, p.block);
    const uint64_t word = slot / 64;
    const uint64_t before = l->siblings[word] & ft_low_mask(slot % 64);
    return ft_compact_node(l, skip_words(l, word, p.k + ft_popcount(before)));
}

static ft_visit compact_visit(const ft_trie *t, uint64_t node, uint64_t *at)
{
    const ft_compact *l = t->layout;
    if (node == 0) {
        *at = 1 + l->n_root_children;
        return (ft_visit){{1, l->n_root_children}, false};
    }
    const place p = place_of(l, node);
    ft_visit v = {{*at, 0}, is_terminal(l, &p)};
    if (p.parent) {
        *at = ft_compact_node(l, find_group(l, slot_of(l, *at), 0).end);
        v.children.count = *at - v.children.first;
    }
    return v;
}

static uint64_t compact_terminal_rank(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    const place p = place_of(l, node);
    const uint64_t block = p.block + (p.top ? 0 : l->n_root_blocks);
    const uint64_t before =
        l->terminals_super[block / FT_COMPACT_SUPER] + l->terminals[block];
    if (p.top)
        return before +
               ft_popcount(l->root_blocks[p.block].terminal & ft_low_mask(p.at));
    uint64_t n = p.at - p.k, bit = terminal_bits(l, p.block);
    for (unsigned left = p.k; left;) {
        const unsigned some = left < 32 ? left : 32;
        n += ft_popcount(ft_code_bits(l->codes, bit) & ft_low_mask(some));
        bit += some;
        left -= some;
    }
    return before + n;
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
static inline uint64_t take_pair(const ft_code_pairs *p, uint64_t classes, uint64_t bits)
{
    const uint64_t mask = p->mask[classes];
#ifdef __BMI2__
    return _pdep_u64(bits, mask) + p->base[classes];
#else
    const unsigned width = ft_popcount((uint32_t)mask);
    return ((bits & (uint32_t)mask) | (bits >> width << 32 & mask)) + p->base[classes];
#endif
}

/* A run of siblings, at most STRETCH at a time: of those, the first bit of their codes and
 * two bits of class each. */
typedef struct stretch {
    uint64_t slot, left; /* behind them */
    uint64_t bit, classes;
    unsigned n;
} stretch;

static inline stretch stretch_at(const ft_compact *l, const ft_region *r,
                                 uint64_t first, uint64_t count)
{
    const uint64_t slot = first - r->node + r->slot;
    return (stretch){
        .slot = slot,
        .left = count,
        .bit = code_place(l, r, slot / FT_COMPACT_BLOCK, slot % FT_COMPACT_BLOCK),
    };
}

/* Go on, `bit` being behind the codes before. */
static inline bool stretch_next(stretch *s, const ft_compact *l)
{
    if (s->left == 0)
        return false;
    const uint64_t block = s->slot / FT_COMPACT_BLOCK;
    const unsigned at = s->slot % FT_COMPACT_BLOCK, room = STRETCH - at % STRETCH;
    const ft_code_classes *c = &l->code_classes[block];
    if (at == 0)
        s->bit = ft_compact_codes(l, block);
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
            const unsigned both = s.classes & 15;
            const uint64_t codes =
                take_pair(&r->pairs, both, ft_code_bits(bits, s.bit));
            memcpy(out + i, &codes, sizeof codes);
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

/* Decode a stretch into `codes`, two at a time: where their number is odd, what follows
 * the last too. Bit i of the answer: code i is in the filter. */
static inline uint32_t stretch_probe(stretch *s, const ft_compact *l,
                                     const ft_region *r, const uint64_t *filter,
                                     uint32_t codes[STRETCH])
{
    const uint64_t *bits = l->codes;
    uint64_t hits = 0, both = 0;
    for (unsigned i = 0; i < s->n; i += 2) {
        both = s->classes & 15;
        s->classes >>= 4;
        const uint64_t pair = take_pair(&r->pairs, both, ft_code_bits(bits, s->bit));
        s->bit += r->pairs.width[both];
        memcpy(codes + i, &pair, sizeof pair);
        const uint64_t first = ft_filter_has(filter, (uint32_t)pair);
        const uint64_t second = ft_filter_has(filter, (uint32_t)(pair >> 32));
        hits |= (first + 2 * second) << i;
    }
    s->bit -= s->n % 2 * r->width[both / FT_CODE_CLASSES];
    return (uint32_t)(hits & ft_low_mask(s->n));
}

/* Few codes of a stretch are in the filter, but how many is hard to predict: of so many
 * each is noted without a branch. */
static uint32_t region_probe(const ft_compact *l, const ft_region *r, uint64_t first,
                             uint32_t count, const uint64_t *filter, uint32_t *places,
                             uint32_t *codes)
{
    const uint32_t end = UINT32_C(1) << (STRETCH - 1);
    uint32_t decoded[STRETCH] = {0};
    uint64_t n = 0, place = 0;
    for (stretch s = stretch_at(l, r, first, count); stretch_next(&s, l);) {
        uint32_t hits = stretch_probe(&s, l, r, filter, decoded);
        for (unsigned k = 0; (k < SURE) | (hits != 0); k++) {
            const unsigned i = ft_lowest_bit(hits | end);
            places[n] = (uint32_t)place + i;
            codes[n] = decoded[i];
            n += hits != 0;
            hits &= hits - 1;
        }
        place += s.n;
    }
    return (uint32_t)n;
}

static void compact_codes(const ft_trie *t, uint64_t first, uint64_t count,
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

static uint32_t compact_code(const ft_trie *t, uint32_t token, uint32_t level)
{
    const ft_compact *l = t->layout;
    const ft_region *r = l->region;
    while (r + 1 < l->region + l->n_regions && level >= r[1].level)
        r++;
    const uint32_t id = ft_token_set_rank(&r->set, token);
    if (id == FT_NO_TOKEN || r == l->region)
        return id;
    return ft_token_classes_place(&r->classes, id).code;
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
        const ft_code_classes *c = &l->code_classes[block + half];
        const unsigned cls = (c->low[0] & 1) | (c->high[0] & 1) << 1;
        const bool below = is_below(l, r, ft_compact_codes(l, block + half), cls, want);
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
    const uint32_t id = ft_token_set_rank(&r->set, token);
    if (id == FT_NO_TOKEN)
        return UINT64_MAX;
    const ft_code_place want = ft_token_classes_place(&r->classes, id);
    uint64_t slot = range.first - r->node + r->slot, n = range.count;
    if (n > FT_COMPACT_BLOCK)
        find_block(l, r, &want, &slot, &n);
    while (n > LINEAR_LABELS) {
        const uint64_t half = n / 2, middle = slot + half - 1;
        const uint64_t block = middle / FT_COMPACT_BLOCK;
        const unsigned at = middle % FT_COMPACT_BLOCK;
        const ft_code_classes *c = &l->code_classes[block];
        const unsigned cls = ft_bit_get(c->low, at) | ft_bit_get(c->high, at) << 1;
        const bool below = is_below(l, r, code_place(l, r, block, at), cls, &want);
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

static uint64_t compact_find(const ft_trie *t, ft_range range, uint32_t token)
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

static uint32_t compact_probe(const ft_trie *t, uint64_t first, uint32_t count,
                              const uint64_t *filter, uint32_t *places, uint32_t *codes)
{
    const ft_compact *l = t->layout;
    if (first > l->n_root_children) {
        const ft_region *r = ft_compact_region_of(l, first);
        if (r->paired)
            return region_probe(l, r, first, count, filter, places, codes);
    }
    compact_codes(t, first, count, codes);
    const uint32_t n = ft_filter_codes(filter, codes, count, places);
    for (uint32_t i = 0; i < n; i++)
        codes[i] = codes[places[i]]; /* places ascend: none is overwritten unread */
    return n;
}

static void compact_fetch_node(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node <= l->n_root_children)
        __builtin_prefetch(&l->root_blocks[node / FT_COMPACT_ROOT_BLOCK]);
    else
        __builtin_prefetch(&l->blocks[slot_of(l, node) / FT_COMPACT_BLOCK]);
}

static void compact_fetch_children(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return;
    const uint64_t slot =
        node <= l->n_root_children
            ? l->root_blocks[node / FT_COMPACT_ROOT_BLOCK].first_child
            : ft_compact_children(l, slot_of(l, node) / FT_COMPACT_BLOCK);
    __builtin_prefetch(&l->siblings[slot / 64]);
}

static void compact_fetch_run(const ft_trie *t, ft_range children)
{
    const ft_compact *l = t->layout;
    if (children.first <= l->n_root_children)
        return; /* their codes are not stored; or there are none */
    const uint64_t block = slot_of(l, children.first) / FT_COMPACT_BLOCK;
    __builtin_prefetch(&l->code_classes[block]);
    __builtin_prefetch(&l->blocks[block]);
}

static void compact_fetch_codes(const ft_trie *t, ft_range children)
{
    const ft_compact *l = t->layout;
    if (children.first <= l->n_root_children)
        return;
    const ft_region *r = ft_compact_region_of(l, children.first);
    const uint64_t slot = children.first - r->node + r->slot;
    const uint64_t n = children.count < FETCH_CODES ? children.count : FETCH_CODES;
    const uint64_t bit =
        code_place(l, r, slot / FT_COMPACT_BLOCK, slot % FT_COMPACT_BLOCK);
    const uint64_t *codes = l->codes + bit / 64;
    const uint64_t *end = codes + n * r->width[2] / 64;
    for (; codes <= end; codes += LINE_WORDS)
        __builtin_prefetch(codes);
}

static uint32_t compact_code_set(const ft_trie *t, uint32_t level)
{
    const ft_compact *l = t->layout;
    uint32_t r = 0;
    while (r + 1 < l->n_regions && level >= l->region[r + 1].level)
        r++;
    return r;
}

const ft_trie_ops ft_compact_ops = {
    .children = compact_children,
    .labels = ft_compact_labels,
    .find = compact_find,
    .flags = compact_flags,
    .terminal_rank = compact_terminal_rank,
    .seek = compact_seek,
    .visit = compact_visit,
    .codes = compact_codes,
    .code = compact_code,
    .probe = compact_probe,
    .code_set = compact_code_set,
    .fetch_node = compact_fetch_node,
    .fetch_children = compact_fetch_children,
    .fetch_run = compact_fetch_run,
    .fetch_codes = compact_fetch_codes,
};
