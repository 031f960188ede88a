/* SPDX-License-Identifier: Apache-2.0
 *
 * Level arrays to a compact index. Tokens become codes in place, so that what follows
 * needs no lookup and no memory of its own. Then the nodes are gone through once to
 * count: every MARK_BLOCKS blocks a mark says what is before. From a mark on, any part
 * of any section can be written by itself. Memory: the plan's and the marks.
 */
#include <stdlib.h>

#include "base/score.h"
#include "trie/bits_out.h"
#include "trie/compact.h"
#include "trie/compact_nodes.h"
#include "trie/ids.h"
#include "trie/parallel.h"

enum { MARK_BLOCKS = 64, PIECE_MARKS = 16, RANK_SLOTS = FT_SIBLING_RANK * 64 };

static_assert(FT_SECTION_PIECE % (MARK_BLOCKS * sizeof(ft_compact_block)) == 0,
              "pieces of the blocks start at marks");

/* What is before a block. */
typedef struct mark {
    uint64_t codes;     /* bits */
    uint64_t parents;   /* nodes with children, all from the root on */
    uint64_t terminals; /* nodes that end keys */
} mark;

typedef struct build {
    ft_writer *w;
    const ft_level_map *map;
    ft_compact_plan plan;
    ft_compact_shape shape;
    uint64_t n_root_blocks, n_blocks;
    mark before; /* the first block */
    mark *marks; /* and one more, the end */
} build;

static uint64_t n_marks_of(const build *b)
{
    return b->n_blocks / MARK_BLOCKS + (b->n_blocks % MARK_BLOCKS != 0);
}

static void add_block(mark *m, const ft_node_block *nodes)
{
    const unsigned parents = ft_node_ones(nodes->child);
    m->codes += parents + ft_node_block_bits(nodes);
    m->parents += parents;
    m->terminals += ft_node_ones(nodes->terminal);
}

static ft_status count_marks(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    build *b = arg;
    ft_node_blocks blocks;
    ft_node_blocks_from(&blocks, &b->shape, begin * MARK_BLOCKS);
    (void)err;
    for (uint64_t i = begin; i < end; i++) {
        const ft_node_block *nodes;
        for (unsigned k = 0; k < MARK_BLOCKS && (nodes = ft_node_blocks_next(&blocks));
             k++)
            add_block(&b->marks[i], nodes);
    }
    return FT_OK;
}

/* From what is between the marks to what is before them. */
static void add_up_marks(build *b)
{
    mark sum = b->before;
    for (uint64_t i = 0; i <= n_marks_of(b); i++) {
        const mark here = b->marks[i];
        b->marks[i] = sum;
        sum.codes += here.codes;
        sum.parents += here.parents;
        sum.terminals += here.terminals;
    }
}

static ft_status put_root_blocks(build *b)
{
    const ft_section s = {FT_SECTION_ROOT_BLOCKS, 0, b->n_root_blocks,
                          b->n_root_blocks * sizeof(ft_compact_root_block)};
    mark sum = {.parents = 1};
    uint64_t root = 1; /* its bit, in the first block */
    ft_sibling_cursor children = ft_map_siblings(b->map, sum.parents);
    ft_node_blocks blocks;
    ft_root_blocks_from(&blocks, &b->shape);
    ft_section_begin(b->w, &s);
    for (const ft_node_block *nodes; (nodes = ft_node_blocks_next(&blocks));)
        for (unsigned i = 0; i * FT_COMPACT_ROOT_BLOCK < nodes->n; i++, root = 0) {
            const ft_compact_root_block block = {
                .first_child = ft_shape_slot(&b->shape, ft_siblings_node(&children)),
                .child = nodes->child[i] & ~root,
                .terminal = nodes->terminal[i],
                .terminals = sum.terminals,
            };
            const unsigned parents = ft_popcount(block.child);
            ft_section_put(b->w, &block, sizeof block);
            ft_siblings_move(&children, parents);
            sum.parents += parents;
            sum.terminals += ft_popcount(block.terminal);
        }
    b->before = sum;
    return ft_section_end(b->w);
}

static ft_status fill_blocks(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                             ft_error *err)
{
    const build *b = arg;
    ft_compact_block *block = (ft_compact_block *)(void *)out;
    const uint64_t first = at / sizeof *block;
    mark sum = b->marks[first / MARK_BLOCKS];
    ft_sibling_cursor children = ft_map_siblings(b->map, sum.parents);
    ft_node_blocks blocks;
    ft_node_blocks_from(&blocks, &b->shape, first);
    (void)err;
    for (uint64_t i = 0; i < n / sizeof *block; i++, block++) {
        const ft_node_block *nodes = ft_node_blocks_next(&blocks);
        const uint64_t child = ft_shape_slot(&b->shape, ft_siblings_node(&children));
        const unsigned parents = ft_node_ones(nodes->child);
        ft_block_place(block, child, sum.codes + parents, sum.terminals);
        memcpy(block->child, nodes->child, sizeof block->child);
        ft_node_block_classes(nodes, block->low, block->high);
        ft_siblings_move(&children, parents);
        add_block(&sum, nodes);
    }
    return FT_OK;
}

/* Every region starts a block; behind the last there is the end. */
static ft_status fill_siblings(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                               ft_error *err)
{
    const build *b = arg;
    const ft_compact_shape *s = &b->shape;
    const uint64_t n_slots = b->n_blocks * FT_COMPACT_BLOCK;
    ft_bits_out bits = ft_bits_window(out, at, n);
    uint64_t slot = at * 8 < n_slots ? at * 8 : n_slots;
    unsigned k = 0;
    (void)err;
    while (k < b->plan.n_regions && slot >= s->place[k + 1].slot)
        k++;
    ft_bits_seek(&bits, slot);
    for (; k < b->plan.n_regions && !ft_bits_full(&bits); k++) {
        const uint64_t end = s->place[k].slot + b->plan.region[k].n_nodes;
        if (slot < end) {
            unsigned skip, n_group;
            ft_group_iter it = ft_map_groups(
                b->map, s->place[k].node + slot - s->place[k].slot, &skip);
            while (slot < end && !ft_bits_full(&bits)) {
                const ft_group *g = ft_group_next(&it, &n_group);
                ft_bits_put(&bits, g->first >> skip, n_group - skip);
                slot += n_group - skip;
                skip = 0;
            }
        }
        for (; slot < s->place[k + 1].slot && !ft_bits_full(&bits); slot++)
            ft_bits_put(&bits, 0, 1);
    }
    if (!ft_bits_full(&bits))
        ft_bits_put(&bits, 1, 64);
    ft_bits_close(&bits);
    return FT_OK;
}

static ft_status fill_sibling_rank(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                                   ft_error *err)
{
    const build *b = arg;
    const ft_compact_shape *s = &b->shape;
    const uint64_t above = ft_map_siblings_before(b->map, s->place[0].node);
    uint64_t *rank = (uint64_t *)(void *)out;
    unsigned k = 0;
    (void)err;
    for (uint64_t i = 0; i < n / sizeof *rank; i++) {
        const uint64_t slot = (at / sizeof *rank + i) * RANK_SLOTS;
        while (k < b->plan.n_regions && slot >= s->place[k + 1].slot)
            k++;
        const uint64_t node = s->place[k].node + slot - s->place[k].slot;
        rank[i] = ft_map_siblings_before(b->map, node) - above;
    }
    return FT_OK;
}

static void put_codes(ft_bits_out *bits, const ft_node_block *nodes)
{
    const ft_plan_region *r = nodes->region;
    for (unsigned word = 0; word < FT_BLOCK_WORDS; word++)
        for (uint64_t w = nodes->child[word]; w; w &= w - 1) {
            const unsigned i = word * 64 + (unsigned)__builtin_ctzll(w);
            ft_bits_put(bits, ft_bit_get(nodes->terminal, i), 1);
        }
    for (unsigned i = 0; i < nodes->n; i++) {
        const unsigned cls = ft_code_class(&r->classes, nodes->codes[i]);
        ft_bits_put(bits, nodes->codes[i] - r->classes.base[cls], r->width[cls]);
    }
}

static ft_status fill_codes(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                            ft_error *err)
{
    const build *b = arg;
    ft_bits_out bits = ft_bits_window(out, at, n);
    uint64_t lo = 0, hi = n_marks_of(b);
    (void)err;
    while (lo < hi) { /* the last mark that has at most so many bits before it */
        const uint64_t mid = lo + (hi - lo + 1) / 2;
        if (b->marks[mid].codes <= at * 8)
            lo = mid;
        else
            hi = mid - 1;
    }
    ft_bits_seek(&bits, b->marks[lo].codes);
    if (lo < n_marks_of(b)) {
        ft_node_blocks blocks;
        const ft_node_block *nodes;
        ft_node_blocks_from(&blocks, &b->shape, lo * MARK_BLOCKS);
        while (!ft_bits_full(&bits) && (nodes = ft_node_blocks_next(&blocks)))
            put_codes(&bits, nodes);
    }
    ft_bits_close(&bits);
    return FT_OK;
}

/* The sections of the blocks in the order of the file. */
static ft_status put_blocks(build *b)
{
    const uint64_t n = b->n_blocks;
    const uint64_t n_words = n * FT_BLOCK_WORDS + FT_SIBLING_END;
    const uint64_t n_ranks = ft_compact_n_ranks(n);
    const uint64_t n_bits = b->marks[n_marks_of(b)].codes;
    const struct {
        ft_section s;
        ft_fill_fn *fill;
    } sections[] = {
        {{FT_SECTION_BLOCKS, 0, n, n * sizeof(ft_compact_block)}, fill_blocks},
        {{FT_SECTION_SIBLINGS, 0, n_words, n_words * 8}, fill_siblings},
        {{FT_SECTION_SIBLING_RANK, 0, n_ranks, n_ranks * 8}, fill_sibling_rank},
        {{FT_SECTION_CODES, 0, n_bits, (ft_words(n_bits) + 1) * 8}, fill_codes},
    };
    ft_status st = FT_OK;
    for (size_t i = 0; i < sizeof sections / sizeof *sections && st == FT_OK; i++)
        st = ft_section_fill(b->w, &sections[i].s, sections[i].fill, b);
    return st;
}

static ft_status put_sections(build *b)
{
    const uint32_t n_threads = b->w->n_threads;
    ft_status st = ft_compact_plan_write(&b->plan, b->map->levels, b->w);
    if (st == FT_OK)
        st = ft_parallel(n_marks_of(b), PIECE_MARKS, n_threads, count_marks, b,
                         b->w->err);
    if (st == FT_OK)
        st = put_root_blocks(b);
    if (st == FT_OK) {
        add_up_marks(b);
        st = put_blocks(b);
    }
    return st == FT_OK ? ft_ids_build(b->w, b->map) : st;
}

ft_status ft_compact_build(ft_writer *w, ft_level_map *map)
{
    build b = {.w = w, .map = map};
    ft_levels *levels = map->levels;
    ft_status st = ft_compact_plan_make(&b.plan, map, w->n_threads, w->err);
    if (st != FT_OK)
        return st;
    st = ft_compact_recode(levels, &b.plan, w->n_threads, w->err);
    if (st == FT_OK) { /* high parts have changed */
        ft_level_map_close(map);
        st = ft_level_map_open(map, levels, w->n_threads, w->err);
    }
    b.shape = ft_compact_shape_of(map, &b.plan);
    b.n_blocks = b.shape.n_blocks;
    b.n_root_blocks = ft_compact_n_root_blocks(b.plan.n_root_children);
    if (st == FT_OK) {
        b.marks = ft_calloc(n_marks_of(&b) + 1, sizeof *b.marks, w->err);
        st = b.marks ? put_sections(&b) : FT_ENOMEM;
    }
    free(b.marks);
    ft_compact_plan_free(&b.plan);
    return st;
}
