/* SPDX-License-Identifier: Apache-2.0
 *
 * Level arrays to a compact index. The nodes are gone through for the blocks, for the
 * sibling bits and for the codes, and what is written is not kept: memory is the
 * plan's, two bits a node for the classes, and a few hundredths (a third of a bit with
 * key numbers) for the directories.
 */
#include <stdlib.h>

#include "base/score.h"
#include "trie/compact.h"
#include "trie/compact_plan.h"
#include "trie/ids.h"

enum { WORDS = FT_COMPACT_BLOCK / 64, RANK_SLOTS = FT_SIBLING_RANK * 64 };

/* A block's nodes; the words have room for what a group brings beyond them. */
typedef struct node_block {
    unsigned n;
    uint64_t first[WORDS + 1], child[WORDS + 1], terminal[WORDS + 1];
    uint32_t tokens[FT_COMPACT_BLOCK + FT_GROUP_NODES];
} node_block;

/* Cuts the nodes of a region into blocks. */
typedef struct cutter {
    ft_token_iter it;
    uint64_t left;      /* nodes of the region that have not been handed out */
    unsigned n_waiting; /* of them, in `waiting` */
    node_block waiting;
} cutter;

static void put_bits(uint64_t *words, unsigned at, uint64_t bits)
{
    words[at / 64] |= bits << at % 64;
    if (at % 64)
        words[at / 64 + 1] |= bits >> (64 - at % 64);
}

/* Drop the block that has been handed out. */
static void drop(cutter *c)
{
    node_block *b = &c->waiting;
    if (b->n == 0)
        return;
    c->n_waiting -= b->n;
    for (unsigned i = 0; i < WORDS; i++) {
        const bool last = i == 0 && b->n == FT_COMPACT_BLOCK;
        b->first[i] = last ? b->first[WORDS] : 0;
        b->child[i] = last ? b->child[WORDS] : 0;
        b->terminal[i] = last ? b->terminal[WORDS] : 0;
    }
    b->first[WORDS] = b->child[WORDS] = b->terminal[WORDS] = 0;
    memmove(b->tokens, b->tokens + b->n, c->n_waiting * sizeof *b->tokens);
}

/* The next block of the region, or NULL at its end. */
static const node_block *next_block(cutter *c)
{
    node_block *b = &c->waiting;
    drop(c);
    while (c->n_waiting < FT_COMPACT_BLOCK && c->n_waiting < c->left) {
        unsigned n;
        const ft_group *g = ft_tokens_next(&c->it, &n, b->tokens + c->n_waiting);
        put_bits(b->first, c->n_waiting, g->first);
        put_bits(b->child, c->n_waiting, g->child);
        put_bits(b->terminal, c->n_waiting, g->terminal);
        c->n_waiting += n;
    }
    b->n = c->n_waiting < FT_COMPACT_BLOCK ? c->n_waiting : FT_COMPACT_BLOCK;
    c->left -= b->n;
    return b->n ? b : NULL;
}

static cutter cut_region(const ft_levels *levels, const ft_plan_region *r)
{
    return (cutter){.it = ft_tokens_from(levels, r->level), .left = r->n_nodes};
}

/* Stands at the first node of a group of siblings, from level 2 on. */
typedef struct group_cursor {
    ft_group_iter it;
    uint64_t word; /* first-sibling bits from there on, of a group of level arrays */
    uint64_t node; /* of bit 0, nodes of level 2 counted from 0 */
    unsigned n;
    const ft_plan_region *region, *end;
    uint64_t region_node, region_slot;
} group_cursor;

/* Move over k groups; behind the last is the end. */
static void move(group_cursor *c, uint64_t k)
{
    for (unsigned n; (n = ft_popcount(c->word)) <= k;) {
        const ft_group *g = ft_group_next(&c->it, &n);
        k -= ft_popcount(c->word);
        c->node += c->n;
        c->word = g ? g->first : 1;
        c->n = g ? n : 0;
        if (!g)
            return;
    }
    while (k--)
        c->word &= c->word - 1;
}

static group_cursor first_group(const ft_levels *levels, const ft_compact_plan *p)
{
    group_cursor c = {.it = ft_levels_from(levels, 2),
                      .region = p->region,
                      .end = p->region + p->n_regions};
    move(&c, 0);
    return c;
}

static uint64_t slot_of(group_cursor *c)
{
    const uint64_t node = c->node + (unsigned)__builtin_ctzll(c->word);
    while (c->region < c->end && node >= c->region_node + c->region->n_nodes) {
        c->region_node += c->region->n_nodes;
        c->region_slot += ft_compact_n_blocks(c->region->n_nodes) * FT_COMPACT_BLOCK;
        c->region++;
    }
    return node - c->region_node + c->region_slot;
}

/* Everything on the way. */
typedef struct build {
    ft_writer *w;
    const ft_levels *levels;
    ft_compact_plan plan;
    uint64_t n_root_blocks, n_blocks;
    group_cursor children;
    uint64_t n_code_bits;
    ft_compact_super *supers;
    uint64_t *sibling_rank;
    ft_code_classes *classes;
    uint64_t n_terminals;
    uint64_t *terminals_super; /* NULL without key numbers */
    uint32_t *terminals;
} build;

static unsigned ones(const uint64_t *words)
{
    return ft_popcount(words[0]) + ft_popcount(words[1]);
}

static void count_terminals(build *b, uint64_t block, unsigned n)
{
    if (!b->terminals)
        return;
    uint64_t *super = &b->terminals_super[block / FT_COMPACT_SUPER];
    if (block % FT_COMPACT_SUPER == 0)
        *super = b->n_terminals;
    b->terminals[block] = (uint32_t)(b->n_terminals - *super);
    b->n_terminals += n;
}

static void put_root_block(build *b, uint64_t i, uint64_t child, uint64_t terminal)
{
    const ft_compact_root_block block = {
        .first_child = slot_of(&b->children),
        .child = (uint32_t)child,
        .terminal = (uint32_t)terminal,
    };
    ft_section_put(b->w, &block, sizeof block);
    move(&b->children, ft_popcount(block.child));
    count_terminals(b, i, ft_popcount(block.terminal));
}

static ft_status put_root_blocks(build *b)
{
    cutter c = {.it = ft_tokens_from(b->levels, 0),
                .left = b->plan.n_root_children + 1};
    const node_block *nodes;
    uint64_t i = 0;
    ft_section_begin(b->w, FT_SECTION_ROOT_BLOCKS, b->n_root_blocks, 0,
                     b->n_root_blocks * sizeof(ft_compact_root_block));
    while ((nodes = next_block(&c)))
        for (unsigned at = 0; at < nodes->n; at += FT_COMPACT_ROOT_BLOCK, i++) {
            const uint64_t root = i == 0;
            put_root_block(b, i, nodes->child[at / 64] >> at % 64 & ~root,
                           nodes->terminal[at / 64] >> at % 64);
        }
    return ft_section_end(b->w);
}

/* Apart from what is done with them: the cache misses overlap. */
static void look_up(const ft_compact_plan *p, const ft_plan_region *r,
                    const node_block *nodes, uint32_t *codes)
{
    uint32_t ids[FT_COMPACT_BLOCK];
    ft_token_ids_of(&p->ids, nodes->tokens, nodes->n, ids);
    for (unsigned i = 0; i < nodes->n; i++)
        codes[i] = r->codes[ids[i]];
}

/* Classes of a block's codes; returns the codes' bits. */
static uint64_t classify(const ft_compact_plan *p, const ft_plan_region *r,
                         const node_block *nodes, ft_code_classes *classes)
{
    uint32_t codes[FT_COMPACT_BLOCK];
    uint64_t bits = 0;
    look_up(p, r, nodes, codes);
    for (unsigned i = 0; i < nodes->n; i++) {
        const unsigned cls = ft_code_class(&r->classes, codes[i]);
        classes->low[i / 64] |= (uint64_t)(cls & 1) << i % 64;
        classes->high[i / 64] |= (uint64_t)(cls >> 1) << i % 64;
        bits += r->width[cls];
    }
    return bits;
}

static ft_status put_block(build *b, const ft_plan_region *r, const node_block *nodes,
                           uint64_t i)
{
    const uint64_t child = slot_of(&b->children);
    ft_compact_super *super = &b->supers[i / FT_COMPACT_SUPER];
    if (i % FT_COMPACT_SUPER == 0)
        *super = (ft_compact_super){child, b->n_code_bits};
    if (child - super->first_child > UINT32_MAX)
        return ft_fail(b->w->err, FT_EINVAL,
                       "layout compact: 2^32 children of nodes near node %llu; layouts "
                       "narrow and wide hold them",
                       (unsigned long long)i * FT_COMPACT_BLOCK);
    const unsigned parents = ones(nodes->child);
    const ft_compact_block block = {
        .first_child = (uint32_t)(child - super->first_child),
        .codes = (uint32_t)(b->n_code_bits + parents - super->codes),
        .child = {nodes->child[0], nodes->child[1]},
    };
    ft_section_put(b->w, &block, sizeof block);
    b->n_code_bits += parents + classify(&b->plan, r, nodes, &b->classes[i]);
    move(&b->children, parents);
    count_terminals(b, b->n_root_blocks + i, ones(nodes->terminal));
    return FT_OK;
}

static ft_status put_blocks(build *b)
{
    uint64_t i = 0;
    ft_section_begin(b->w, FT_SECTION_BLOCKS, b->n_blocks, 0,
                     b->n_blocks * sizeof(ft_compact_block));
    for (unsigned k = 0; k < b->plan.n_regions; k++) {
        const ft_plan_region *r = &b->plan.region[k];
        cutter c = cut_region(b->levels, r);
        for (const node_block *nodes; (nodes = next_block(&c)); i++) {
            const ft_status st = put_block(b, r, nodes, i);
            if (st != FT_OK)
                return st;
        }
    }
    b->supers[ft_compact_n_supers(i)] =
        (ft_compact_super){slot_of(&b->children), b->n_code_bits};
    return ft_section_end(b->w);
}

/* Every region starts a block; behind the last there is the end. */
static ft_status put_siblings(build *b)
{
    const uint64_t n_words = b->n_blocks * WORDS + FT_SIBLING_END;
    ft_bits_out bits = {.w = b->w};
    ft_group_iter it = ft_levels_from(b->levels, 2);
    uint64_t n_groups = 0, slot = 0;
    ft_section_begin(b->w, FT_SECTION_SIBLINGS, n_words, 0, n_words * 8);
    for (unsigned k = 0; k < b->plan.n_regions; k++) {
        const uint64_t end = slot + b->plan.region[k].n_nodes;
        for (unsigned n; slot < end; slot += n) {
            const ft_group *g = ft_group_next(&it, &n);
            /* A group of nodes may lie across a word that has a rank. */
            const uint64_t next = (slot + n) / RANK_SLOTS * RANK_SLOTS;
            if (slot % RANK_SLOTS == 0)
                b->sibling_rank[slot / RANK_SLOTS] = n_groups;
            if (next > slot)
                b->sibling_rank[next / RANK_SLOTS] =
                    n_groups + ft_popcount(g->first & ft_low_mask(next - slot));
            n_groups += ft_popcount(g->first);
            ft_bits_put(&bits, g->first, n);
        }
        const uint64_t pad = -slot % FT_COMPACT_BLOCK;
        ft_bits_fill(&bits, false, pad);
        slot += pad;
    }
    if (slot % RANK_SLOTS == 0)
        b->sibling_rank[slot / RANK_SLOTS] = n_groups;
    ft_bits_put(&bits, 1, 64);
    for (unsigned i = 1; i < FT_SIBLING_END; i++)
        ft_bits_put(&bits, 0, 64);
    return ft_section_end(b->w);
}

static ft_status put_codes(build *b)
{
    ft_bits_out bits = {.w = b->w};
    uint32_t codes[FT_COMPACT_BLOCK];
    ft_section_begin(b->w, FT_SECTION_CODES, b->n_code_bits, 0,
                     (ft_words(b->n_code_bits) + 1) * 8);
    for (unsigned k = 0; k < b->plan.n_regions; k++) {
        const ft_plan_region *r = &b->plan.region[k];
        cutter c = cut_region(b->levels, r);
        for (const node_block *nodes; (nodes = next_block(&c));) {
            for (unsigned word = 0; word < WORDS; word++)
                for (uint64_t w = nodes->child[word]; w; w &= w - 1) {
                    const unsigned i = word * 64 + (unsigned)__builtin_ctzll(w);
                    ft_bits_put(&bits, ft_bit_get(nodes->terminal, i), 1);
                }
            look_up(&b->plan, r, nodes, codes);
            for (unsigned i = 0; i < nodes->n; i++) {
                const unsigned cls = ft_code_class(&r->classes, codes[i]);
                ft_bits_put(&bits, codes[i] - r->classes.base[cls], r->width[cls]);
            }
        }
    }
    return ft_bits_end_packed(&bits);
}

static ft_status put_array(ft_writer *w, uint32_t type, const void *items, uint64_t n,
                           uint64_t bytes)
{
    ft_section_begin(w, type, n, 0, n * bytes);
    ft_section_put(w, items, n * bytes);
    return ft_section_end(w);
}

static ft_status reserve(build *b)
{
    ft_error *err = b->w->err;
    const uint64_t n = b->n_root_blocks + b->n_blocks;
    b->supers = ft_calloc(ft_compact_n_supers(b->n_blocks) + 1, sizeof *b->supers, err);
    b->sibling_rank =
        ft_calloc(ft_compact_n_ranks(b->n_blocks), sizeof *b->sibling_rank, err);
    b->classes = ft_calloc(b->n_blocks, sizeof *b->classes, err);
    if (!b->supers || !b->sibling_rank || !b->classes)
        return FT_ENOMEM;
    if (!b->levels->ids)
        return FT_OK;
    b->terminals = ft_calloc(n, sizeof *b->terminals, err);
    b->terminals_super =
        ft_calloc(ft_compact_n_supers(n), sizeof *b->terminals_super, err);
    return b->terminals && b->terminals_super ? FT_OK : FT_ENOMEM;
}

static ft_status put_terminals(build *b)
{
    const uint64_t n = b->n_root_blocks + b->n_blocks;
    if (!b->terminals)
        return FT_OK;
    ft_status st = put_array(b->w, FT_SECTION_SUPER_TERMINALS, b->terminals_super,
                             ft_compact_n_supers(n), sizeof *b->terminals_super);
    if (st == FT_OK)
        st = put_array(b->w, FT_SECTION_BLOCK_TERMINALS, b->terminals, n,
                       sizeof *b->terminals);
    return st;
}

/* The sections in the order of the file. */
static ft_status put_sections(build *b)
{
    ft_status st = ft_compact_plan_write(&b->plan, b->levels, b->w);
    if (st == FT_OK)
        st = put_root_blocks(b);
    if (st == FT_OK)
        st = put_blocks(b);
    if (st == FT_OK)
        st = put_array(b->w, FT_SECTION_SUPERBLOCKS, b->supers,
                       ft_compact_n_supers(b->n_blocks) + 1, sizeof *b->supers);
    if (st == FT_OK)
        st = put_siblings(b);
    if (st == FT_OK)
        st = put_array(b->w, FT_SECTION_SIBLING_RANK, b->sibling_rank,
                       ft_compact_n_ranks(b->n_blocks), sizeof *b->sibling_rank);
    if (st == FT_OK)
        st = put_array(b->w, FT_SECTION_CODE_CLASSES, b->classes, b->n_blocks,
                       sizeof *b->classes);
    if (st == FT_OK)
        st = put_codes(b);
    if (st == FT_OK)
        st = put_terminals(b);
    return st == FT_OK ? ft_ids_build(b->w, b->levels) : st;
}

ft_status ft_compact_build(ft_writer *w, const ft_levels *levels)
{
    build b = {.w = w, .levels = levels};
    ft_status st = ft_compact_plan_make(&b.plan, levels, w->err);
    if (st != FT_OK)
        return st;
    b.n_root_blocks = ft_compact_n_root_blocks(b.plan.n_root_children);
    for (unsigned k = 0; k < b.plan.n_regions; k++)
        b.n_blocks += ft_compact_n_blocks(b.plan.region[k].n_nodes);
    b.children = first_group(levels, &b.plan);
    st = reserve(&b);
    if (st == FT_OK)
        st = put_sections(&b);
    free(b.supers);
    free(b.sibling_rank);
    free(b.classes);
    free(b.terminals);
    free(b.terminals_super);
    ft_compact_plan_free(&b.plan);
    return st;
}
