/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/compact.h"

enum {
    NEAR_WORDS = 16,   /* of sibling bits, looked at before the ranks are */
    FETCH_CODES = 256, /* codes fetched ahead, at most */
    FETCH_SLACK = 16,  /* bytes that a guess where codes are may be off */
    LINE_BYTES = 64    /* of a cache line */
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

/* Slot of the first node of group number k from `slot` on. Mostly it is within four
 * words, which are looked at without a branch (the end blocks make them exist). */
static inline uint64_t group_first(const ft_compact *l, uint64_t slot, uint64_t k)
{
    const uint64_t word = slot / 64;
    const uint64_t w[4] = {l->siblings[word] & ~ft_low_mask(slot % 64),
                           l->siblings[word + 1], l->siblings[word + 2],
                           l->siblings[word + 3]};
    const unsigned n0 = ft_popcount(w[0]), n1 = n0 + ft_popcount(w[1]);
    const unsigned n2 = n1 + ft_popcount(w[2]), n3 = n2 + ft_popcount(w[3]);
    if (k >= n3)
        return skip_words(l, word + 4, k - n3);
    const unsigned i = (k >= n0) + (k >= n1) + (k >= n2);
    const unsigned before = k >= n2 ? n2 : k >= n1 ? n1 : k >= n0 ? n0 : 0;
    return (word + i) * 64 + ft_select_in_word(w[i], (unsigned)k - before);
}

/* The same and the next group's. Most groups are shorter than a word. */
static inline group find_group(const ft_compact *l, uint64_t slot, uint64_t k)
{
    const uint64_t first = group_first(l, slot, k);
    const uint64_t *word = &l->siblings[first / 64];
    const uint64_t behind = *word >> first % 64 >> 1 | word[1] << (63 - first % 64);
    return (group){first, behind ? first + 1 + ft_lowest_bit(behind)
                                 : skip_words(l, first / 64 + 1, 0)};
}

static inline uint64_t slot_of(const ft_compact *l, uint64_t node)
{
    return node + l->shift[ft_compact_region_number(l, node)];
}

/* Where a node is, and what its children's group is told by. */
typedef struct place {
    uint64_t block;
    unsigned at;
    unsigned region;
    bool parent; /* has children */
    unsigned k;  /* parents before it in the block */
} place;

static inline place place_of(const ft_compact *l, uint64_t node)
{
    if (node <= l->n_root_children) {
        const uint64_t block = node / FT_COMPACT_ROOT_BLOCK;
        const unsigned at = node % FT_COMPACT_ROOT_BLOCK;
        const uint64_t child = l->root_blocks[block].child;
        return (place){block, at, 0, child >> at & 1,
                       ft_popcount(child & ft_low_mask(at))};
    }
    const unsigned region = ft_compact_region_number(l, node);
    const uint64_t slot = node + l->shift[region], block = slot / FT_COMPACT_BLOCK;
    const unsigned at = slot % FT_COMPACT_BLOCK;
    const uint64_t *child = l->blocks[block].child;
    return (place){block, at, region, ft_bit_get(child, at),
                   ft_bits_rank(child, ft_bits_before(at))};
}

/* Slot of the first child of the first parent of the place's block. */
static inline uint64_t first_child(const ft_compact *l, const place *p)
{
    return p->region == 0 ? l->root_blocks[p->block].first_child
                          : ft_compact_children(l, p->block);
}

/* Bit of the codes that tells whether a block's first parent ends a key. */
static inline uint64_t terminal_bits(const ft_compact *l, uint64_t block)
{
    const uint64_t *child = l->blocks[block].child;
    return ft_compact_codes(l, block) - ft_popcount(child[0]) - ft_popcount(child[1]);
}

static inline bool is_terminal(const ft_compact *l, const place *p)
{
    if (p->region == 0)
        return l->root_blocks[p->block].terminal >> p->at & 1;
    if (!p->parent)
        return true;
    return ft_bit_get(l->codes, terminal_bits(l, p->block) + p->k);
}

/* Children of a node but the root. */
static inline ft_range children_at(const ft_compact *l, const place *p)
{
    if (!p->parent)
        return (ft_range){0, 0};
    const group g = find_group(l, first_child(l, p), p->k);
    unsigned r = p->region ? p->region : 1; /* theirs is the parent's or the next */
    while (g.first - l->shift[r] >= l->first[r + 1])
        r++;
    /* The end may be in the next region, behind slots that no node is in. */
    const uint64_t first = g.first - l->shift[r], end = g.end - l->shift[r];
    const uint64_t next = l->region[r + 1].node;
    return (ft_range){first, (end < next ? end : next) - first};
}

static ft_range compact_children(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return (ft_range){1, l->n_root_children};
    const place p = place_of(l, node);
    return children_at(l, &p);
}

/* Flags of a node but the root. */
static inline unsigned flags_at(const ft_compact *l, const place *p)
{
    return (is_terminal(l, p) ? FT_NODE_TERMINAL : 0) |
           (p->parent ? FT_NODE_HAS_CHILDREN : 0);
}

static unsigned compact_flags(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return l->n_root_children ? FT_NODE_HAS_CHILDREN : 0;
    const place p = place_of(l, node);
    return flags_at(l, &p);
}

/* The place of a walk is the number of the first node of the next group. */
static uint64_t compact_seek(const ft_trie *t, uint64_t node)
{
    const ft_compact *l = t->layout;
    if (node == 0)
        return 1;
    const place p = place_of(l, node);
    const uint64_t slot = first_child(l, &p);
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
    const uint64_t block = p.block + (p.region == 0 ? 0 : l->n_root_blocks);
    const uint64_t before =
        l->terminals_super[block / FT_COMPACT_SUPER] + l->terminals[block];
    if (p.region == 0)
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

static void fetch_block(const ft_compact *l, uint64_t node)
{
    if (node <= l->n_root_children)
        __builtin_prefetch(&l->root_blocks[node / FT_COMPACT_ROOT_BLOCK]);
    else
        __builtin_prefetch(&l->blocks[slot_of(l, node) / FT_COMPACT_BLOCK]);
}

static void compact_children_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                                  ft_range *out)
{
    const ft_compact *l = t->layout;
    place places[FT_MANY];
    for (uint32_t i = 0; i < n; i++)
        fetch_block(l, nodes[i]);
    for (uint32_t i = 0; i < n; i++) {
        places[i] = place_of(l, nodes[i]);
        __builtin_prefetch(&l->siblings[first_child(l, &places[i]) / 64]);
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] =
            nodes[i] ? children_at(l, &places[i]) : (ft_range){1, l->n_root_children};
}

/* Without a branch on what differs from node to node: leaves, which end keys, look at
 * bit 0. */
static void compact_flags_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                               uint8_t *out)
{
    const ft_compact *l = t->layout;
    uint64_t bits[FT_MANY];
    for (uint32_t i = 0; i < n; i++)
        fetch_block(l, nodes[i]);
    for (uint32_t i = 0; i < n; i++) {
        const place p = place_of(l, nodes[i]);
        if (p.region == 0) {
            out[i] = (uint8_t)flags_at(l, &p);
            continue;
        }
        out[i] = p.parent ? FT_NODE_HAS_CHILDREN : FT_NODE_TERMINAL;
        bits[i] = (terminal_bits(l, p.block) + p.k) & -(uint64_t)p.parent;
        __builtin_prefetch((const uint8_t *)l->codes + bits[i] / 8);
    }
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] > l->n_root_children)
            out[i] |= (out[i] == FT_NODE_HAS_CHILDREN) & ft_bit_get(l->codes, bits[i]);
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
    /* Where exactly would cost more than a line too many. */
    const uint64_t bit = ft_compact_codes(l, slot / FT_COMPACT_BLOCK) +
                         slot % FT_COMPACT_BLOCK * r->mean_bits;
    const uint8_t *begin = (const uint8_t *)l->codes + bit / 8;
    const uint8_t *end = begin + n * r->mean_bits / 8 + FETCH_SLACK;
    __builtin_prefetch(begin);
    for (; end > begin; end -= LINE_BYTES)
        __builtin_prefetch(end);
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
    .find = ft_compact_find,
    .flags = compact_flags,
    .children_many = compact_children_many,
    .flags_many = compact_flags_many,
    .terminal_rank = compact_terminal_rank,
    .seek = compact_seek,
    .visit = compact_visit,
    .codes = ft_compact_edge_codes,
    .code = ft_compact_edge_code,
    .probe = ft_compact_probe,
    .code_set = compact_code_set,
    .fetch_run = compact_fetch_run,
    .fetch_codes = compact_fetch_codes,
};
