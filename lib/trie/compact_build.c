/* SPDX-License-Identifier: Apache-2.0
 *
 * Level arrays to a compact index. Tokens become codes in place, so that what follows
 * needs no lookup and no memory of its own. Then the nodes are gone through once to
 * count: every FT_MARK_BLOCKS blocks a mark says what is before. From a mark on, any
 * part of any section can be written by itself. Memory: the plan's, the marks, and with
 * key numbers a quarter of a bit a node.
 */
#include <stdlib.h>

#include "base/score.h"
#include "trie/bits_out.h"
#include "trie/compact.h"
#include "trie/compact_nodes.h"
#include "trie/ids.h"
#include "trie/parallel.h"

enum {
    MARK_BLOCKS = 64, /* a divisor of FT_COMPACT_SUPER */
    PIECE_MARKS = 16,
    RANK_SLOTS = FT_SIBLING_RANK * 64
};

/* What is before a block. */
typedef struct mark {
    uint64_t codes;   /* bits */
    uint64_t parents; /* nodes with children, all from the root on */
} mark;

typedef struct build {
    ft_writer *w;
    const ft_level_map *map;
    ft_compact_plan plan;
    ft_compact_shape shape;
    uint64_t n_root_blocks, n_blocks;
    mark *marks; /* and one more, the end */
    ft_compact_super *supers;
    uint64_t *terminals_super; /* NULL without key numbers */
    uint32_t *terminals;
} build;

static uint64_t n_marks_of(const build *b)
{
    return b->n_blocks / MARK_BLOCKS + (b->n_blocks % MARK_BLOCKS != 0);
}

static ft_status count_marks(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    build *b = arg;
    ft_node_blocks blocks;
    ft_node_blocks_from(&blocks, &b->shape, begin * MARK_BLOCKS);
    (void)err;
    for (uint64_t i = begin; i < end; i++) {
        const ft_node_block *nodes = NULL;
        for (unsigned k = 0; k < MARK_BLOCKS && (nodes = ft_node_blocks_next(&blocks));
             k++) {
            const unsigned parents = ft_node_ones(nodes->child);
            b->marks[i].codes += parents + ft_node_block_bits(nodes);
            b->marks[i].parents += parents;
            if (b->terminals)
                b->terminals[b->n_root_blocks + i * MARK_BLOCKS + k] =
                    ft_node_ones(nodes->terminal);
        }
    }
    return FT_OK;
}

static uint64_t child_slot(const build *b, uint64_t parents)
{
    const ft_sibling_cursor c = ft_map_siblings(b->map, parents);
    return ft_shape_slot(&b->shape, ft_siblings_node(&c));
}

/* From what is between the marks to what is before them. */
static void add_up_marks(build *b)
{
    const uint64_t n = n_marks_of(b), per_super = FT_COMPACT_SUPER / MARK_BLOCKS;
    mark sum = {0, ft_map_parents_before(b->map, b->plan.n_root_children + 1)};
    for (uint64_t i = 0; i <= n; i++) {
        const mark here = b->marks[i];
        b->marks[i] = sum;
        if (i % per_super == 0 && i < n)
            b->supers[i / per_super] =
                (ft_compact_super){child_slot(b, sum.parents), sum.codes};
        sum.codes += here.codes;
        sum.parents += here.parents;
    }
    b->supers[ft_compact_n_supers(b->n_blocks)] =
        (ft_compact_super){b->shape.place[b->plan.n_regions].slot, sum.codes};
}

/* From the terminals of each block to those before it. */
static void add_up_terminals(build *b)
{
    uint64_t n = 0;
    if (!b->terminals)
        return;
    for (uint64_t i = 0; i < b->n_root_blocks + b->n_blocks; i++) {
        const uint32_t here = b->terminals[i];
        uint64_t *super = &b->terminals_super[i / FT_COMPACT_SUPER];
        if (i % FT_COMPACT_SUPER == 0)
            *super = n;
        b->terminals[i] = (uint32_t)(n - *super);
        n += here;
    }
}

static ft_status put_root_blocks(build *b)
{
    const ft_section s = {FT_SECTION_ROOT_BLOCKS, 0, b->n_root_blocks,
                          b->n_root_blocks * sizeof(ft_compact_root_block)};
    ft_sibling_cursor children = ft_map_siblings(b->map, 1);
    ft_node_blocks blocks;
    uint64_t i = 0;
    ft_root_blocks_from(&blocks, &b->shape);
    ft_section_begin(b->w, &s);
    for (const ft_node_block *nodes; (nodes = ft_node_blocks_next(&blocks));)
        for (unsigned at = 0; at < nodes->n; at += FT_COMPACT_ROOT_BLOCK, i++) {
            const uint64_t root = i == 0;
            const ft_compact_root_block block = {
                .first_child = ft_shape_slot(&b->shape, ft_siblings_node(&children)),
                .child = (uint32_t)(nodes->child[at / 64] >> at % 64 & ~root),
                .terminal = (uint32_t)(nodes->terminal[at / 64] >> at % 64),
            };
            ft_section_put(b->w, &block, sizeof block);
            ft_siblings_move(&children, ft_popcount(block.child));
            if (b->terminals)
                b->terminals[i] = ft_popcount(block.terminal);
        }
    return ft_section_end(b->w);
}

/* Goes from block to block with what is before each. */
typedef struct walk {
    ft_node_blocks blocks;
    ft_sibling_cursor children;
    uint64_t codes;
    uint64_t block; /* the next */
} walk;

static void walk_from(walk *x, const build *b, uint64_t mark_number)
{
    const mark *m = &b->marks[mark_number];
    x->block = mark_number * MARK_BLOCKS;
    x->codes = m->codes;
    x->children = ft_map_siblings(b->map, m->parents);
    ft_node_blocks_from(&x->blocks, &b->shape, x->block);
}

static ft_status next_block(walk *x, const build *b, ft_compact_block *block,
                            ft_error *err)
{
    const ft_node_block *nodes = ft_node_blocks_next(&x->blocks);
    const ft_compact_super *super = &b->supers[x->block / FT_COMPACT_SUPER];
    const uint64_t child = ft_shape_slot(&b->shape, ft_siblings_node(&x->children));
    const unsigned parents = ft_node_ones(nodes->child);
    if (child - super->first_child > UINT32_MAX)
        return ft_fail(err, FT_EINVAL,
                       "layout compact: 2^32 children of nodes near node %llu; layouts "
                       "narrow and wide hold them",
                       (unsigned long long)x->block * FT_COMPACT_BLOCK);
    *block = (ft_compact_block){
        .first_child = (uint32_t)(child - super->first_child),
        .codes = (uint32_t)(x->codes + parents - super->codes),
        .child = {nodes->child[0], nodes->child[1]},
    };
    x->codes += parents + ft_node_block_bits(nodes);
    ft_siblings_move(&x->children, parents);
    x->block++;
    return FT_OK;
}

static ft_status fill_blocks(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                             ft_error *err)
{
    const build *b = arg;
    const uint64_t size = sizeof(ft_compact_block), first = at / size;
    const uint64_t end = at + n;
    walk x;
    walk_from(&x, b, first / MARK_BLOCKS);
    while (x.block * size < end) {
        const uint64_t start = x.block * size;
        ft_compact_block block;
        const ft_status st = next_block(&x, b, &block, err);
        if (st != FT_OK)
            return st;
        if (start + size <= at)
            continue;
        const uint64_t from = start < at ? at : start;
        const uint64_t to = start + size < end ? start + size : end;
        memcpy(out + (from - at), (const uint8_t *)&block + (from - start), to - from);
    }
    return FT_OK;
}

static ft_status fill_classes(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                              ft_error *err)
{
    const build *b = arg;
    ft_code_classes *classes = (ft_code_classes *)(void *)out;
    ft_node_blocks blocks;
    ft_node_blocks_from(&blocks, &b->shape, at / sizeof *classes);
    (void)err;
    for (uint64_t i = 0; i < n / sizeof *classes; i++)
        ft_node_block_classes(ft_node_blocks_next(&blocks), &classes[i]);
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

static ft_status reserve(build *b)
{
    ft_error *err = b->w->err;
    const uint64_t n = b->n_root_blocks + b->n_blocks;
    b->marks = ft_calloc(n_marks_of(b) + 1, sizeof *b->marks, err);
    b->supers = ft_calloc(ft_compact_n_supers(b->n_blocks) + 1, sizeof *b->supers, err);
    if (!b->marks || !b->supers)
        return FT_ENOMEM;
    if (!b->map->levels->ids)
        return FT_OK;
    b->terminals = ft_calloc(n, sizeof *b->terminals, err);
    b->terminals_super =
        ft_calloc(ft_compact_n_supers(n), sizeof *b->terminals_super, err);
    return b->terminals && b->terminals_super ? FT_OK : FT_ENOMEM;
}

static ft_status put_terminals(build *b)
{
    const uint64_t n = b->n_root_blocks + b->n_blocks, supers = ft_compact_n_supers(n);
    const ft_section super = {FT_SECTION_SUPER_TERMINALS, 0, supers,
                              supers * sizeof *b->terminals_super};
    const ft_section block = {FT_SECTION_BLOCK_TERMINALS, 0, n,
                              n * sizeof *b->terminals};
    if (!b->terminals)
        return FT_OK;
    const ft_status st = ft_section_copy(b->w, &super, b->terminals_super);
    return st == FT_OK ? ft_section_copy(b->w, &block, b->terminals) : st;
}

/* The sections of the blocks in the order of the file. */
static ft_status put_blocks(build *b)
{
    const uint64_t n = b->n_blocks, n_supers = ft_compact_n_supers(n) + 1;
    const uint64_t n_words = n * FT_BLOCK_WORDS + FT_SIBLING_END;
    const uint64_t n_ranks = ft_compact_n_ranks(n);
    const uint64_t n_bits = b->marks[n_marks_of(b)].codes;
    const ft_section supers = {FT_SECTION_SUPERBLOCKS, 0, n_supers,
                               n_supers * sizeof *b->supers};
    const struct {
        ft_section s;
        ft_fill_fn *fill; /* NULL: the superblocks */
    } sections[] = {
        {{FT_SECTION_BLOCKS, 0, n, n * sizeof(ft_compact_block)}, fill_blocks},
        {supers, NULL},
        {{FT_SECTION_SIBLINGS, 0, n_words, n_words * 8}, fill_siblings},
        {{FT_SECTION_SIBLING_RANK, 0, n_ranks, n_ranks * 8}, fill_sibling_rank},
        {{FT_SECTION_CODE_CLASSES, 0, n, n * sizeof(ft_code_classes)}, fill_classes},
        {{FT_SECTION_CODES, 0, n_bits, (ft_words(n_bits) + 1) * 8}, fill_codes},
    };
    ft_status st = FT_OK;
    for (size_t i = 0; i < sizeof sections / sizeof *sections && st == FT_OK; i++)
        st = sections[i].fill
                 ? ft_section_fill(b->w, &sections[i].s, sections[i].fill, b)
                 : ft_section_copy(b->w, &sections[i].s, b->supers);
    return st;
}

static ft_status put_sections(build *b)
{
    const uint32_t n_threads = b->w->n_threads;
    ft_status st = ft_compact_plan_write(&b->plan, b->map->levels, b->w);
    if (st == FT_OK)
        st = ft_parallel(n_marks_of(b), PIECE_MARKS, n_threads, count_marks, b,
                         b->w->err);
    if (st == FT_OK) {
        add_up_marks(b);
        st = put_root_blocks(b);
    }
    if (st == FT_OK) {
        add_up_terminals(b);
        st = put_blocks(b);
    }
    if (st == FT_OK)
        st = put_terminals(b);
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
    if (st == FT_OK)
        st = reserve(&b);
    if (st == FT_OK)
        st = put_sections(&b);
    free(b.marks);
    free(b.supers);
    free(b.terminals);
    free(b.terminals_super);
    ft_compact_plan_free(&b.plan);
    return st;
}
