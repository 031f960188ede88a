/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/compact.h"

#include "base/score.h"

enum {
    NEAR_WORDS = 16, /* first-sibling words looked at before the ranks are */
    RANK_WORDS = FT_COMPACT_RANK_BLOCKS * 2,
    LINEAR_LABELS = 16 /* so few are decoded faster than searched (measured) */
};

static inline uint64_t first_word(const ft_compact *l, uint64_t word)
{
    return l->blocks[word / 2].first[word % 2];
}

/* Slot of the first-sibling bit number k from `word` on, where that may be far off: the
 * ranks say in which 32 blocks it is. */
static uint64_t skip_far(const ft_compact *l, uint64_t word, uint64_t k)
{
    for (; word % RANK_WORDS; word++) {
        const uint64_t w = first_word(l, word);
        const unsigned n = ft_popcount(w);
        if (n > k)
            return word * 64 + ft_select_in_word(w, (unsigned)k);
        k -= n;
    }
    /* Steps double, then halve. */
    uint64_t lo = word / RANK_WORDS, step = 1;
    const uint64_t last = l->n_blocks / FT_COMPACT_RANK_BLOCKS;
    k += l->sibling_rank[lo];
    for (; last - lo >= step && l->sibling_rank[lo + step] <= k; step *= 2)
        lo += step;
    for (; step; step /= 2)
        if (last - lo >= step && l->sibling_rank[lo + step] <= k)
            lo += step;
    k -= l->sibling_rank[lo];
    for (word = lo * RANK_WORDS;; word++) {
        const uint64_t w = first_word(l, word);
        const unsigned n = ft_popcount(w);
        if (n > k)
            return word * 64 + ft_select_in_word(w, (unsigned)k);
        k -= n;
    }
}

/* The same from `slot` on. There is such a bit, if only the end's: nothing checks for a
 * border. */
static inline uint64_t skip_groups(const ft_compact *l, uint64_t slot, uint64_t k)
{
    uint64_t word = slot / 64;
    uint64_t w = first_word(l, word) & ~ft_low_mask(slot % 64);
    for (unsigned i = 0; i < NEAR_WORDS; i++) {
        const unsigned n = ft_popcount(w);
        if (n > k)
            return word * 64 + ft_select_in_word(w, (unsigned)k);
        k -= n;
        w = first_word(l, ++word);
    }
    return skip_far(l, word, k);
}

/* The children that start at group number k from `slot` on. */
static inline ft_range group(const ft_compact *l, uint64_t slot, uint64_t k)
{
    const uint64_t first = skip_groups(l, slot, k);
    const uint64_t end = skip_groups(l, first + 1, 0);
    const uint64_t node = ft_compact_node(l, first);
    /* Siblings are of one region; the end may lie behind empty slots, in the next. */
    return (ft_range){node, ft_compact_node(l, end) - node};
}

/* Where a node is: its bits of has-child and, behind it, what is told apart by region.
 */
typedef struct place {
    const uint64_t *child;
    uint64_t block;
    unsigned at;
    bool top; /* of region 0 */
} place;

static inline place place_of(const ft_compact *l, uint64_t node)
{
    if (node <= l->n_root_children) {
        const uint64_t block = node / FT_COMPACT_BLOCK;
        return (place){l->root_blocks[block].child, block, node % FT_COMPACT_BLOCK,
                       true};
    }
    const ft_region *r = ft_compact_region_of(l, node);
    const uint64_t slot = node - r->node + r->slot, block = slot / FT_COMPACT_BLOCK;
    return (place){l->blocks[block].child, block, slot % FT_COMPACT_BLOCK, false};
}

static inline uint64_t block_children(const ft_compact *l, const place *p)
{
    return p->top ? l->root_blocks[p->block].first_child
                  : ft_compact_children(l, p->block);
}

static inline bool is_terminal(const ft_compact *l, const place *p)
{
    if (p->top)
        return ft_bit_get(l->root_blocks[p->block].terminal, p->at);
    if (!ft_bit_get(p->child, p->at))
        return true;
    return ft_bit_get(l->codes,
                      ft_compact_codes(l, p->block) + ft_block_rank(p->child, p->at));
}

static ft_range compact_children(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return (ft_range){1, l->n_root_children};
    const place p = place_of(l, node);
    if (!ft_bit_get(p.child, p.at))
        return (ft_range){0, 0};
    return group(l, block_children(l, &p), ft_block_rank(p.child, p.at));
}

static unsigned compact_flags(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return l->n_root_children ? FT_NODE_HAS_CHILDREN : 0;
    const place p = place_of(l, node);
    return (is_terminal(l, &p) ? FT_NODE_TERMINAL : 0) |
           (ft_bit_get(p.child, p.at) ? FT_NODE_HAS_CHILDREN : 0);
}

/* The place of a walk is the number of the first node of the next group. */
static uint64_t compact_seek(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return 1;
    const place p = place_of(l, node);
    return ft_compact_node(
        l, skip_groups(l, block_children(l, &p), ft_block_rank(p.child, p.at)));
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
    if (ft_bit_get(p.child, p.at)) {
        const ft_region *r = ft_compact_region_of(l, *at);
        const uint64_t end = skip_groups(l, *at - r->node + r->slot + 1, 0);
        *at = ft_compact_node(l, end);
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
        return before + ft_block_rank(l->root_blocks[p.block].terminal, p.at);
    const unsigned parents = ft_block_rank(p.child, p.at);
    uint64_t n = p.at - parents, bit = ft_compact_codes(l, p.block);
    for (unsigned left = parents; left;) {
        const unsigned some = left < 32 ? left : 32;
        n += ft_popcount(ft_code_bits(l->codes, bit) & ft_low_mask(some));
        bit += some;
        left -= some;
    }
    return before + n;
}

/* Bit of the code of the node in place `at` of a block. */
static inline uint64_t code_place(const ft_compact *l, const ft_region *r,
                                  uint64_t block, unsigned at)
{
    const ft_compact_block *b = &l->blocks[block];
    const uint64_t both[2] = {b->low[0] & b->high[0], b->low[1] & b->high[1]};
    const uint32_t bits = ft_popcount(b->child[0]) + ft_popcount(b->child[1]) +
                          at * r->width[0] + ft_block_rank(b->low, at) * r->more[1] +
                          ft_block_rank(b->high, at) * r->more[2] +
                          ft_block_rank(both, at) * r->more[3];
    return ft_compact_codes(l, block) + bits;
}

/* The next n codes of one word of a block; returns the bit behind them. */
static inline uint64_t decode(const ft_compact *l, const ft_region *r, uint64_t bit,
                              uint64_t low, uint64_t high, unsigned n, uint32_t *out)
{
    const uint32_t *base = r->classes.base, *width = r->width;
    for (unsigned i = 0; i < n; i++, low >>= 1, high >>= 1) {
        const unsigned class = (low & 1) | (high & 1) << 1;
        const uint64_t v = ft_code_bits(l->codes, bit);
        out[i] = base[class] + (uint32_t)(v & ft_low_mask(width[class]));
        bit += width[class];
    }
    return bit;
}

static void region_codes(const ft_compact *l, const ft_region *r, uint64_t first,
                         uint64_t count, uint32_t *out)
{
    uint64_t slot = first - r->node + r->slot;
    while (count) {
        const uint64_t block = slot / FT_COMPACT_BLOCK;
        const ft_compact_block *b = &l->blocks[block];
        unsigned at = slot % FT_COMPACT_BLOCK;
        uint64_t bit = code_place(l, r, block, at);
        for (; count && at < FT_COMPACT_BLOCK;) {
            const unsigned word = at / 64, shift = at % 64;
            const unsigned n = count < 64 - shift ? (unsigned)count : 64 - shift;
            bit = decode(l, r, bit, b->low[word] >> shift, b->high[word] >> shift, n,
                         out);
            out += n;
            at += n;
            slot += n;
            count -= n;
        }
    }
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

static void compact_labels(const ft_trie *t, uint64_t first, uint64_t count,
                           uint32_t *out)
{
    const ft_compact *l = t->layout;
    const bool top = first <= l->n_root_children;
    const ft_region *r = top ? l->region : ft_compact_region_of(l, first);
    compact_codes(t, first, count, out);
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t id = top ? out[i] : ft_token_classes_id(&r->classes, out[i]);
        out[i] = ft_token_set_select(&r->set, id);
    }
}

static inline uint32_t one_code(const ft_compact *l, const ft_region *r, uint64_t slot,
                                unsigned *class)
{
    const uint64_t block = slot / FT_COMPACT_BLOCK;
    const unsigned at = slot % FT_COMPACT_BLOCK;
    const ft_compact_block *b = &l->blocks[block];
    *class = ft_bit_get(b->low, at) | ft_bit_get(b->high, at) << 1;
    const uint64_t v = ft_code_bits(l->codes, code_place(l, r, block, at));
    return r->classes.base[*class] + (uint32_t)(v & ft_low_mask(r->width[*class]));
}

/* Codes of one class are in the order of their tokens: that is enough to tell on which
 * side of a token a sibling is. */
static uint64_t region_find(const ft_compact *l, const ft_region *r, ft_range range,
                            uint32_t token)
{
    const uint32_t id = ft_token_set_rank(&r->set, token);
    if (id == FT_NO_TOKEN)
        return UINT64_MAX;
    const ft_code_place want = ft_token_classes_place(&r->classes, id);
    uint64_t base = range.first - r->node + r->slot, n = range.count;
    unsigned class;
    while (n > LINEAR_LABELS) {
        const uint64_t half = n / 2;
        const uint32_t code = one_code(l, r, base + half - 1, &class);
        base += code < want.before[class] ? half : 0;
        n -= half;
    }
    uint32_t codes[LINEAR_LABELS];
    const uint64_t first = base - r->slot + r->node;
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

const ft_trie_ops ft_compact_ops = {
    .children = compact_children,
    .labels = compact_labels,
    .find = compact_find,
    .flags = compact_flags,
    .terminal_rank = compact_terminal_rank,
    .seek = compact_seek,
    .visit = compact_visit,
    .codes = compact_codes,
    .code = compact_code,
};
