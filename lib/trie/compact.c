/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/compact.h"

enum {
    NEAR_WORDS = 64,   /* of sibling bits, looked at before the ranks are */
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

/* The same, where it is likely to be near: among four words, no branch chooses. There
 * is such a bit, if only the end's, and three words behind it: nothing checks for a
 * border.
 */
static inline uint64_t skip_near(const ft_compact *l, uint64_t at, uint64_t k)
{
    const uint64_t *word = &l->siblings[at];
    uint64_t n_pair, n;
    for (unsigned i = 0;; i++, word += 4, k -= n) {
        n_pair = ft_popcount(word[0]) + ft_popcount(word[1]);
        n = n_pair + ft_popcount(word[2]) + ft_popcount(word[3]);
        if (k < n)
            break;
        if (i == NEAR_WORDS / 4)
            return skip_far(l, (uint64_t)(word - l->siblings), k);
    }
    const uint64_t behind_pair = -(uint64_t)(k >= n_pair);
    k -= n_pair & behind_pair;
    word += 2 & behind_pair;
    const uint64_t n_word = ft_popcount(*word), behind_word = -(uint64_t)(k >= n_word);
    k -= n_word & behind_word;
    word += 1 & behind_word;
    return (uint64_t)(word - l->siblings) * 64 + ft_select_in_word(*word, (unsigned)k);
}

static uint64_t skip_words(const ft_compact *l, uint64_t at, uint64_t k)
{
    return skip_near(l, at, k);
}

/* A group: the slots of its first node and of the next group's. */
typedef struct group {
    uint64_t first, end;
} group;

/* Group number k from `slot` on. Mostly it is shorter than a word. */
static inline group find_group(const ft_compact *l, uint64_t slot, uint64_t k)
{
    const uint64_t before = l->siblings[slot / 64] & ft_low_mask(slot % 64);
    const uint64_t first = skip_near(l, slot / 64, k + ft_popcount(before));
    const uint64_t *word = &l->siblings[first / 64];
    const uint64_t behind = *word >> first % 64 >> 1 | word[1] << (63 - first % 64);
    return (group){first, behind ? first + 1 + ft_lowest_bit(behind)
                                 : skip_words(l, first / 64 + 1, 0)};
}

static inline uint64_t slot_of(const ft_compact *l, uint64_t node)
{
    return node + l->shift[ft_compact_region_number(l, node)];
}

/* Nodes asked about together are mostly of one region, of which this is kept at hand:
 * at first none. */
typedef struct near_region {
    uint64_t first, n; /* nodes */
    uint64_t shift;    /* slots less nodes */
} near_region;

static inline near_region near_of(const ft_region *r)
{
    return (near_region){r->node, r->n_nodes, r->slot - r->node};
}

/* Slot of a node that is not in region 0. */
static inline uint64_t slot_near(const ft_compact *l, uint64_t node, near_region *r)
{
    if (node - r->first >= r->n)
        *r = near_of(ft_compact_region_of(l, node));
    return node + r->shift;
}

/* Nodes of a group. */
static inline ft_range nodes_near(const ft_compact *l, group g, near_region *r)
{
    if (g.first - r->shift - r->first >= r->n)
        *r = near_of(ft_compact_region_at(l, g.first));
    /* Behind the last one there may be slots that no node is in. */
    const uint64_t first = g.first - r->shift, end = g.end - r->shift;
    const uint64_t next = r->first + r->n;
    return (ft_range){first, (end < next ? end : next) - first};
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
                          : ft_block_first_child(&l->blocks[p->block]);
}

/* Bit of the codes that tells whether a block's first parent ends a key. */
static inline uint64_t terminal_bits(const ft_compact *l, uint64_t block)
{
    const ft_compact_block *b = &l->blocks[block];
    return ft_block_codes(b) - ft_popcount(b->child[0]) - ft_popcount(b->child[1]);
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
    near_region none = {0};
    return nodes_near(l, find_group(l, first_child(l, p), p->k), &none);
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
    if (p.region == 0) {
        const ft_compact_root_block *b = &l->root_blocks[p.block];
        return b->terminals + ft_popcount(b->terminal & ft_low_mask(p.at));
    }
    uint64_t n = ft_block_terminals(&l->blocks[p.block]) + p.at - p.k;
    uint64_t bit = terminal_bits(l, p.block);
    for (unsigned left = p.k; left;) {
        const unsigned some = left < 32 ? left : 32;
        n += ft_popcount(ft_code_bits(l->codes, bit) & ft_low_mask(some));
        bit += some;
        left -= some;
    }
    return n;
}

/* Nodes with children from place `at` of a block on. */
static inline unsigned parents_from(const ft_compact_block *b, unsigned at)
{
    const ft_block_bits before = ft_bits_before(at);
    return ft_popcount(b->child[0] & ~before.w[0]) +
           ft_popcount(b->child[1] & ~before.w[1]);
}

/* Ask for the sibling bits behind the first group of a block of root's children: where
 * the next block's start is not too far. */
static inline void fetch_groups(const ft_compact *l, const place *p, uint64_t first)
{
    if (p->block + 1 == l->n_root_blocks)
        return;
    const uint64_t all = l->root_blocks[p->block + 1].first_child - first;
    const uint64_t some = all < 4096 ? all : 4096;
    for (uint64_t at = 512; at < some; at += 512)
        __builtin_prefetch(&l->siblings[(first + at) / 64]);
}

static void compact_children_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                                  ft_range *out)
{
    enum { NO_PARENT = 255 };
    const ft_compact *l = t->layout;
    near_region near = {0}, below = {0};
    uint64_t first[FT_MANY];
    uint8_t before[FT_MANY]; /* groups from there to the node's */
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] > l->n_root_children)
            __builtin_prefetch(
                &l->blocks[slot_near(l, nodes[i], &near) / FT_COMPACT_BLOCK]);
        else
            __builtin_prefetch(&l->root_blocks[nodes[i] / FT_COMPACT_ROOT_BLOCK]);
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i] <= l->n_root_children) {
            const place p = place_of(l, nodes[i]);
            first[i] = first_child(l, &p);
            before[i] = p.parent ? (uint8_t)p.k : NO_PARENT;
            fetch_groups(l, &p, first[i]);
        } else {
            const uint64_t slot = slot_near(l, nodes[i], &near);
            const ft_compact_block *b = &l->blocks[slot / FT_COMPACT_BLOCK];
            const unsigned at = slot % FT_COMPACT_BLOCK;
            first[i] = ft_block_first_child(b);
            before[i] = (uint8_t)ft_bits_rank(b->child, ft_bits_before(at));
            before[i] = ft_bit_get(b->child, at) ? before[i] : NO_PARENT;
        }
        __builtin_prefetch(&l->siblings[first[i] / 64]);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (before[i] != NO_PARENT) {
            const group g = find_group(l, first[i], before[i]);
            __builtin_prefetch(&l->blocks[g.first / FT_COMPACT_BLOCK]);
            out[i] = nodes_near(l, g, &below);
        } else
            out[i] = nodes[i] ? (ft_range){0, 0} : (ft_range){1, l->n_root_children};
    }
}

/* Without a branch on what differs from node to node: leaves, which end keys, look at
 * bit 0. Who asks has just found the nodes in their blocks, which need no fetching. */
static void compact_flags_many(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                               uint8_t *out)
{
    const ft_compact *l = t->layout;
    const ft_compact_block *blocks = l->blocks;
    const uint64_t *codes = l->codes;
    near_region near = {0};
    uint64_t bits[FT_MANY];
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i] <= l->n_root_children) {
            const place p = place_of(l, nodes[i]);
            out[i] = (uint8_t)flags_at(l, &p);
            continue;
        }
        const uint64_t slot = slot_near(l, nodes[i], &near);
        const ft_compact_block *b = &blocks[slot / FT_COMPACT_BLOCK];
        const unsigned at = slot % FT_COMPACT_BLOCK;
        const bool parent = ft_bit_get(b->child, at);
        bits[i] = (ft_block_codes(b) - parents_from(b, at)) & -(uint64_t)parent;
        out[i] = parent ? FT_NODE_HAS_CHILDREN : FT_NODE_TERMINAL;
        __builtin_prefetch((const uint8_t *)codes + bits[i] / 8);
    }
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] > l->n_root_children)
            out[i] |= ft_bit_get(codes, bits[i]); /* a leaf ends a key as it is */
}

/* The codes that the blocks tell of, at about the place: where exactly would cost more
 * than a line too many. Codes of the root's children are not stored. */
static void compact_fetch(const ft_trie *t, const ft_range *runs, uint32_t n)
{
    const ft_compact *l = t->layout;
    for (uint32_t i = 0; i < n; i++) {
        if (runs[i].first <= l->n_root_children)
            continue;
        const ft_region *r = ft_compact_region_of(l, runs[i].first);
        const uint64_t slot = runs[i].first - r->node + r->slot;
        const uint64_t bit = ft_block_codes(&l->blocks[slot / FT_COMPACT_BLOCK]) +
                             slot % FT_COMPACT_BLOCK * r->mean_bits;
        const uint64_t some = runs[i].count < FETCH_CODES ? runs[i].count : FETCH_CODES;
        const uint8_t *begin = (const uint8_t *)l->codes + bit / 8;
        const uint8_t *end = begin + some * r->mean_bits / 8 + FETCH_SLACK;
        __builtin_prefetch(begin);
        for (; end > begin; end -= LINE_BYTES)
            __builtin_prefetch(end);
    }
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
    .fetch = compact_fetch,
};
