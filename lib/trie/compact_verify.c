/* SPDX-License-Identifier: Apache-2.0
 *
 * After these checks every accessor of a compact trie stays in bounds, children have
 * larger numbers than their parents, and every walk ends. Stretches of blocks are
 * checked apart: what one needs from those before it stands in its first block, which
 * the one before checks.
 */
#include "base/score.h"
#include "trie/bitvec.h"
#include "trie/compact.h"
#include "trie/ids.h"
#include "trie/parallel.h"

enum { STRETCH_BLOCKS = 4096 };

/* Stands at the first node of a group; behind the last, at the end's. */
typedef struct group_cursor {
    uint64_t word;
    uint64_t bits; /* first-sibling bits from there on */
} group_cursor;

static uint64_t slot_of(const group_cursor *c)
{
    return c->word * 64 + (unsigned)__builtin_ctzll(c->bits);
}

static bool at_slot(const ft_compact *l, uint64_t slot, group_cursor *c)
{
    if (slot > l->n_slots)
        return false;
    c->word = slot / 64;
    c->bits = l->siblings[c->word] & ~ft_low_mask(slot % 64);
    return c->bits && slot_of(c) == slot;
}

/* Move over k groups; false: there are not so many. */
static bool move(const ft_compact *l, group_cursor *c, unsigned k)
{
    for (unsigned n; (n = ft_popcount(c->bits)) <= k; k -= n) {
        if (c->word == l->n_slots / 64)
            return false;
        c->word++;
        c->bits = l->siblings[c->word];
    }
    while (k--)
        c->bits &= c->bits - 1;
    return true;
}

static unsigned ones(const uint64_t w[2])
{
    return ft_popcount(w[0]) + ft_popcount(w[1]);
}

static ft_status bad_block(ft_error *err, uint64_t block, const char *what)
{
    return ft_fail(err, FT_EFORMAT, "section blocks: block %llu: %s",
                   (unsigned long long)block, what);
}

/* Are the bits of nodes from n on, of a block, zero? */
static bool zero_from(const uint64_t w[2], unsigned n)
{
    return ((n < 64 ? w[0] & ~ft_low_mask(n) : 0) |
            (w[1] & ~ft_low_mask(n < 64 ? 0 : n - 64))) == 0;
}

static unsigned nodes_in_block(const ft_region *r, uint64_t first_block, uint64_t block)
{
    const uint64_t left = r->n_nodes - (block - first_block) * FT_COMPACT_BLOCK;
    return left < FT_COMPACT_BLOCK ? (unsigned)left : FT_COMPACT_BLOCK;
}

/* What is known of a place between two blocks. */
typedef struct progress {
    group_cursor children; /* of the blocks to come */
    uint64_t bits;         /* of the codes, so far */
    uint64_t n_terminals;
} progress;

/* Is what was gone through all there is? */
static ft_status check_end(const ft_trie *t, const progress *p, ft_error *err)
{
    const ft_compact *l = t->layout;
    if (slot_of(&p->children) != l->n_slots || p->bits != l->n_code_bits)
        return ft_fail(err, FT_EFORMAT,
                       "section blocks: more groups or codes than nodes");
    if (p->n_terminals != t->n_keys)
        return ft_fail(err, FT_EFORMAT, "section blocks: %llu keys, %llu expected",
                       (unsigned long long)p->n_terminals,
                       (unsigned long long)t->n_keys);
    return FT_OK;
}

/* Do the numbers of a block, or the end, agree with what is before? */
static ft_status check_place(const ft_trie *t, uint64_t block, const progress *p,
                             ft_error *err)
{
    const ft_compact *l = t->layout;
    if (block == l->n_blocks)
        return check_end(t, p, err);
    const ft_compact_block *b = &l->blocks[block];
    if (ft_block_first_child(b) != slot_of(&p->children))
        return bad_block(err, block, "first child is wrong");
    if (ft_block_codes(b) != p->bits + ones(b->child))
        return bad_block(err, block, "place of its codes is wrong");
    if (ft_block_terminals(b) != p->n_terminals)
        return bad_block(err, block, "count of keys before it is wrong");
    return FT_OK;
}

static ft_status bad_root_block(ft_error *err, uint64_t block, const char *what)
{
    return ft_fail(err, FT_EFORMAT, "section root-blocks: block %llu: %s",
                   (unsigned long long)block, what);
}

static ft_status check_root_blocks(const ft_trie *t, ft_error *err)
{
    const ft_compact *l = t->layout;
    const ft_compact_root_block *b = l->root_blocks;
    progress p = {.bits = 0};
    if (!at_slot(l, 0, &p.children))
        return bad_block(err, 0, "its first node does not start a group");
    if ((b->child | b->terminal) & 1)
        return bad_root_block(err, 0, "the root's bits are set");
    for (uint64_t i = 0; i < l->n_root_blocks; i++, b++) {
        const uint64_t left = l->n_root_children + 1 - i * FT_COMPACT_ROOT_BLOCK;
        if (left < 64 && (b->child | b->terminal) & ~ft_low_mask((unsigned)left))
            return bad_root_block(err, i, "bits beyond the last node are set");
        if (b->first_child != slot_of(&p.children))
            return bad_root_block(err, i, "first child is wrong");
        if (b->terminals != p.n_terminals)
            return bad_root_block(err, i, "count of keys before it is wrong");
        if (!move(l, &p.children, ft_popcount(b->child)))
            return bad_root_block(err, i, "more parents than groups of children");
        p.n_terminals += ft_popcount(b->terminal);
    }
    return check_place(t, 0, &p, err);
}

/* Nodes whose children may be in their own block: each child behind its parent. */
static bool children_follow(const ft_compact *l, uint64_t block, group_cursor c)
{
    for (unsigned word = 0; word < 2; word++)
        for (uint64_t w = l->blocks[block].child[word]; w; w &= w - 1) {
            const uint64_t node = block * 2 + word;
            if (slot_of(&c) <= node * 64 + (unsigned)__builtin_ctzll(w) ||
                !move(l, &c, 1))
                return false;
        }
    return true;
}

/* The codes of a block whose bits start at `bit`: all within their classes, literal
 * ones of tokens that have no other code. */
static bool codes_exist(const ft_compact *l, const ft_region *r, uint64_t block,
                        uint64_t bit, unsigned n)
{
    const ft_compact_block *c = &l->blocks[block];
    const unsigned literal = r->literal ? FT_CODE_CLASSES - 1 : FT_CODE_CLASSES;
    uint64_t end[FT_CODE_CLASSES];
    for (unsigned i = 0; i < FT_CODE_CLASSES; i++)
        end[i] = i == literal ? r->set.n_ids : r->classes.size[i];
    for (unsigned i = 0; i < n; i++) {
        const unsigned cls = ft_bit_get(c->low, i) | ft_bit_get(c->high, i) << 1;
        const uint64_t v = ft_code_bits(l->codes, bit) & ft_low_mask(r->width[cls]);
        if (v >= end[cls])
            return false;
        if (cls == literal && ft_token_set_rank(&r->set, (uint32_t)v) != FT_NO_TOKEN)
            return false;
        bit += r->width[cls];
    }
    return true;
}

static ft_status check_codes(const ft_compact *l, const ft_region *r, uint64_t block,
                             unsigned n, progress *p, ft_error *err)
{
    const ft_compact_block *b = &l->blocks[block];
    const uint64_t both[2] = {b->low[0] & b->high[0], b->low[1] & b->high[1]};
    const unsigned parents = ones(b->child);
    const uint32_t bits = n * r->width[0] + ones(b->low) * r->low_more +
                          ones(b->high) * r->high_more + ones(both) * r->both_more;
    if (l->n_code_bits - p->bits < (uint64_t)parents + bits)
        return bad_block(err, block, "codes beyond the last");
    if (!codes_exist(l, r, block, p->bits + parents, n))
        return bad_block(err, block, "a code that no token has");
    p->n_terminals += n - parents;
    for (unsigned i = 0; i < parents; i++)
        p->n_terminals += ft_bit_get(l->codes, p->bits + i);
    p->bits += parents + bits;
    return FT_OK;
}

/* Check a block and move on to the next. */
static ft_status check_block(const ft_compact *l, const ft_region *r, uint64_t block,
                             progress *p, ft_error *err)
{
    const ft_compact_block *b = &l->blocks[block];
    const unsigned n = nodes_in_block(r, r->slot / FT_COMPACT_BLOCK, block);
    if (!zero_from(b->child, n) || !zero_from(l->siblings + block * 2, n) ||
        !zero_from(b->low, n) || !zero_from(b->high, n))
        return bad_block(err, block, "bits beyond the last node are set");
    if (slot_of(&p->children) < (block + 1) * FT_COMPACT_BLOCK &&
        !children_follow(l, block, p->children))
        return bad_block(err, block, "a node comes before its parent");
    if (!move(l, &p->children, ones(b->child)))
        return bad_block(err, block, "more parents than groups of children");
    return check_codes(l, r, block, n, p, err);
}

static ft_status check_rank(const ft_compact *l, uint64_t block, uint64_t n_groups,
                            ft_error *err)
{
    const uint64_t word = block * 2;
    if (word % FT_SIBLING_RANK == 0 &&
        l->sibling_rank[word / FT_SIBLING_RANK] != n_groups)
        return ft_fail(err, FT_EFORMAT, "section sibling-rank: wrong at block %llu",
                       (unsigned long long)block);
    return FT_OK;
}

/* The place that a block says it has. */
static ft_status start_at(const ft_compact *l, uint64_t block, progress *p,
                          ft_error *err)
{
    const ft_compact_block *b = &l->blocks[block];
    const uint64_t codes = ft_block_codes(b), parents = ones(b->child);
    if (!at_slot(l, ft_block_first_child(b), &p->children))
        return bad_block(err, block, "first child is wrong");
    if (codes < parents || codes - parents > l->n_code_bits)
        return bad_block(err, block, "place of its codes is wrong");
    p->bits = codes - parents;
    p->n_terminals = ft_block_terminals(b);
    return FT_OK;
}

static ft_status check_stretch(const ft_trie *t, uint64_t stretch, ft_error *err)
{
    const ft_compact *l = t->layout;
    const uint64_t first = stretch * STRETCH_BLOCKS, left = l->n_blocks - first;
    const uint64_t last = first + (left < STRETCH_BLOCKS ? left : STRETCH_BLOCKS);
    uint64_t n_groups = l->sibling_rank[first * 2 / FT_SIBLING_RANK];
    const ft_region *r = &l->region[1];
    progress p;
    ft_status st = start_at(l, first, &p, err);
    for (uint64_t block = first; block < last && st == FT_OK; block++) {
        while (block * FT_COMPACT_BLOCK >= r[1].slot)
            r++;
        st = check_rank(l, block, n_groups, err);
        if (st == FT_OK)
            st = check_block(l, r, block, &p, err);
        if (st == FT_OK)
            st = check_place(t, block + 1, &p, err);
        n_groups += ones(l->siblings + block * 2);
    }
    return st == FT_OK ? check_rank(l, last, n_groups, err) : st;
}

static ft_status check_stretches(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    ft_status st = FT_OK;
    for (uint64_t i = begin; i < end && st == FT_OK; i++)
        st = check_stretch(arg, i, err);
    return st;
}

static ft_status check_ends(const ft_compact *l, ft_error *err)
{
    static const uint64_t end[FT_SIBLING_END] = {1};
    if (memcmp(&l->siblings[l->n_slots / 64], end, sizeof end) != 0)
        return ft_fail(err, FT_EFORMAT, "section siblings: the end is wrong");
    if (l->sibling_rank[0] != 0)
        return ft_fail(err, FT_EFORMAT, "section sibling-rank: does not start at 0");
    if (!ft_packed_padding_ok(l->codes, l->n_code_bits, 1))
        return ft_fail(err, FT_EFORMAT, "section codes: bits beyond the last are set");
    return FT_OK;
}

static ft_status check_tokens(const ft_compact *l, ft_error *err)
{
    for (uint32_t i = 0; i < l->n_regions; i++) {
        ft_status st = ft_token_set_check(&l->region[i].set, err);
        if (st != FT_OK)
            return ft_fail_prefix(err, "section token-sets: region %u", i);
        if (i && ft_token_classes_check(&l->region[i].classes, err) != FT_OK)
            return ft_fail_prefix(err, "section token-classes: region %u", i);
    }
    return FT_OK;
}

/* Every level starts with the children of the first node with children from the start
 * of the level before it on; regions start where levels do. */
static ft_status check_levels(const ft_trie *t, ft_error *err)
{
    const ft_compact *l = t->layout;
    uint32_t region = 1, depth = l->n_root_children > 0;
    for (uint64_t node = 1; node < t->n_nodes; depth++) {
        if (depth == FT_MAX_KEY_TOKENS + 1)
            return ft_fail(err, FT_EFORMAT,
                           "section blocks: keys of more than %d tokens",
                           FT_MAX_KEY_TOKENS);
        if (l->region[region].level == depth && l->region[region].node == node)
            region++;
        const uint64_t next = t->ops->seek(t, node);
        if (next == t->n_nodes)
            break;
        node = next;
    }
    if (region != l->n_regions)
        return ft_fail(err, FT_EFORMAT,
                       "section regions: region %u does not start a level", region);
    if (depth != t->depth)
        return ft_fail(err, FT_EFORMAT, "section blocks: depth %u, %u expected", depth,
                       t->depth);
    return FT_OK;
}

ft_status ft_compact_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err)
{
    const ft_compact *l = trie->layout;
    const uint64_t n =
        l->n_blocks / STRETCH_BLOCKS + (l->n_blocks % STRETCH_BLOCKS != 0);
    ft_status st = check_ends(l, err);
    if (st == FT_OK)
        st = check_tokens(l, err);
    if (st == FT_OK)
        st = check_root_blocks(trie, err);
    if (st == FT_OK)
        st = ft_parallel(n, 1, n_threads, check_stretches, (void *)trie, err);
    if (st == FT_OK)
        st = check_levels(trie, err);
    return st == FT_OK ? ft_ids_verify(trie, n_threads, err) : st;
}
