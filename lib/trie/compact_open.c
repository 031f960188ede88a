/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/compact_codes.h"

#include <stdlib.h>

#include "trie/ids.h"

/* Where a section stands that several regions share. */
typedef struct share {
    const uint8_t *data;
    uint64_t used;
} share;

static ft_status find(const ft_sections *s, uint32_t type, uint64_t items,
                      uint64_t raw_bytes, uint32_t *n_used, const void **data,
                      ft_error *err)
{
    const ft_section_want want = {type, 0, items, raw_bytes};
    ++*n_used;
    return ft_sections_find(s, &want, data, err);
}

static ft_status bad_region(ft_error *err, uint32_t i, const char *what)
{
    return ft_fail(err, FT_EFORMAT, "section regions: region %u: %s", i, what);
}

/* Check a region's entry; *node is its first node and becomes the one behind it. */
static ft_status check_region(const ft_trie *t, const ft_compact_region *r, uint32_t i,
                              uint64_t *node, ft_error *err)
{
    uint64_t n = 0;
    uint32_t widths = 0;
    for (unsigned c = 0; c < FT_CODE_CLASSES; c++) {
        if (r->width[c] > 32 || r->size[c] > (uint64_t)1 << r->width[c])
            return bad_region(err, i, "a class of more codes than its width has");
        n += r->size[c];
        widths |= r->width[c];
    }
    if (r->n_tokens > (uint64_t)t->max_token + 1)
        return bad_region(err, i, "more tokens than there are");
    if (r->n_nodes == 0 || r->n_nodes > t->n_nodes - *node)
        return bad_region(err, i, "nodes out of range");
    if (i == 0 && (r->level != 0 || n != 0 || widths != 0 ||
                   r->n_nodes != (uint64_t)r->n_tokens + 1))
        return bad_region(err, i, "not the root and its children");
    if (i > 0 && (r->level < 2 || r->level <= r[-1].level || r->level > t->depth))
        return bad_region(err, i, "level out of range");
    if (i > 0 && n != r->n_tokens)
        return bad_region(err, i, "classes do not add up to its tokens");
    if (i > 0 && ft_region_is_literal(r)
            ? !ft_literals_fit(r->n_tokens, t->max_token) ||
                  r->width[FT_CODE_CLASSES - 1] != ft_bit_width(t->max_token)
            : i > 0 && n == 0)
        return bad_region(err, i, "its last class is wrong");
    *node += r->n_nodes;
    return FT_OK;
}

static ft_status open_regions(ft_compact *l, const ft_trie *t, const ft_sections *s,
                              const ft_compact_region **regions, uint32_t *n_used,
                              ft_error *err)
{
    const void *data;
    const ft_section_entry *e = ft_sections_entry(s, FT_SECTION_REGIONS);
    if (e && (e->items < 1 || e->items > FT_COMPACT_REGIONS))
        return ft_fail(err, FT_EFORMAT,
                       "section regions: %llu regions, 1 to %d expected",
                       (unsigned long long)e->items, FT_COMPACT_REGIONS);
    const uint64_t n = e ? e->items : 1;
    ft_status st =
        find(s, FT_SECTION_REGIONS, n, n * sizeof **regions, n_used, &data, err);
    if (st != FT_OK)
        return st;
    *regions = data;
    l->n_regions = (uint32_t)n;
    uint64_t node = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ft_compact_region *from = &(*regions)[i];
        ft_region *r = &l->region[i];
        r->node = node;
        if ((st = check_region(t, from, i, &node, err)) != FT_OK)
            return st;
        r->n_nodes = from->n_nodes;
        r->level = from->level;
        memcpy(r->width, from->width, sizeof r->width);
        r->literal = ft_region_is_literal(from);
        r->slot = l->n_blocks * FT_COMPACT_BLOCK;
        if (i > 0)
            l->n_blocks += ft_compact_n_blocks(r->n_nodes);
    }
    if (node != t->n_nodes)
        return ft_fail(err, FT_EFORMAT, "section regions: %llu nodes, %llu expected",
                       (unsigned long long)node, (unsigned long long)t->n_nodes);
    l->n_slots = l->n_blocks * FT_COMPACT_BLOCK;
    l->region[n] = (ft_region){.node = node, .slot = l->n_slots, .level = UINT32_MAX};
    memset(l->first, 0xFF, sizeof l->first);
    for (uint32_t i = 0; i < n; i++) {
        l->first[i] = l->region[i].node;
        l->shift[i] = l->region[i].slot - l->region[i].node;
    }
    l->n_root_children = (*regions)[0].n_tokens;
    l->n_root_blocks = ft_compact_n_root_blocks(l->n_root_children);
    return FT_OK;
}

/* The sets and classes of the regions, whose sizes are theirs. */
static ft_status open_tokens(ft_compact *l, const ft_trie *t, const ft_sections *s,
                             const ft_compact_region *regions, uint32_t *n_used,
                             ft_error *err)
{
    const uint64_t n_ids = (uint64_t)t->max_token + 1;
    uint64_t set_bytes = 0, class_bytes = 0, n = 0;
    for (uint32_t i = 0; i < l->n_regions; i++) {
        const ft_compact_region *r = &regions[i];
        set_bytes += ft_token_set_bytes(r->n_tokens, n_ids);
        class_bytes += i ? ft_token_classes_bytes(r->size) : 0;
        n += r->n_tokens;
    }
    const void *sets, *classes;
    ft_status st = find(s, FT_SECTION_TOKEN_SETS, n, set_bytes, n_used, &sets, err);
    if (st == FT_OK)
        st = find(s, FT_SECTION_TOKEN_CLASSES, n - regions[0].n_tokens, class_bytes,
                  n_used, &classes, err);
    if (st != FT_OK)
        return st;
    const uint8_t *set = sets, *of_tokens = classes;
    for (uint32_t i = 0; i < l->n_regions; i++) {
        const ft_compact_region *r = &regions[i];
        l->region[i].set = ft_token_set_at(r->n_tokens, n_ids, set);
        set += ft_token_set_bytes(r->n_tokens, n_ids);
        if (i == 0)
            continue;
        l->region[i].classes = ft_token_classes_at(r->size, of_tokens);
        of_tokens += ft_token_classes_bytes(r->size);
        ft_region_set_widths(&l->region[i]);
    }
    return FT_OK;
}

/* Codes of a region lie from its first block's to the next region's, says what is not
 * verified yet: a guess of where codes are. */
static void set_means(ft_compact *l)
{
    for (uint32_t i = 1; i < l->n_regions; i++) {
        ft_region *r = &l->region[i];
        const uint64_t begin = ft_block_codes(&l->blocks[r->slot / FT_COMPACT_BLOCK]);
        const uint64_t end =
            i + 1 < l->n_regions
                ? ft_block_codes(&l->blocks[r[1].slot / FT_COMPACT_BLOCK])
                : l->n_code_bits;
        const uint64_t bits = (end - begin) / r->n_nodes;
        r->mean_bits = bits < FT_CODE_BITS ? (uint32_t)bits : FT_CODE_BITS;
    }
}

static ft_status open_blocks(ft_compact *l, const ft_sections *s, uint32_t *n_used,
                             ft_error *err)
{
    struct {
        uint32_t type;
        uint64_t items, item_bytes;
        const void *data;
    } a[] = {
        {FT_SECTION_ROOT_BLOCKS, l->n_root_blocks, sizeof *l->root_blocks, NULL},
        {FT_SECTION_BLOCKS, l->n_blocks, sizeof *l->blocks, NULL},
        {FT_SECTION_SIBLINGS, l->n_slots / 64 + FT_SIBLING_END, sizeof *l->siblings,
         NULL},
        {FT_SECTION_SIBLING_RANK, ft_compact_n_ranks(l->n_blocks),
         sizeof *l->sibling_rank, NULL},
    };
    ft_status st = FT_OK;
    for (size_t i = 0; i < sizeof a / sizeof *a && st == FT_OK; i++)
        st = find(s, a[i].type, a[i].items, a[i].items * a[i].item_bytes, n_used,
                  &a[i].data, err);
    if (st != FT_OK)
        return st;
    l->root_blocks = a[0].data;
    l->blocks = a[1].data;
    l->siblings = a[2].data;
    l->sibling_rank = a[3].data;

    const void *codes;
    const ft_section_entry *e = ft_sections_entry(s, FT_SECTION_CODES);
    l->n_code_bits = e ? e->items : 0;
    st = find(s, FT_SECTION_CODES, l->n_code_bits,
              (ft_words(l->n_code_bits) + 1) * sizeof *l->codes, n_used, &codes, err);
    if (st != FT_OK)
        return st;
    l->codes = codes;
    set_means(l);
    return FT_OK;
}

/* Put the room for label tables behind the view. */
static ft_status add_tables(ft_trie *trie, ft_compact *l, ft_error *err)
{
    uint64_t n_tokens = 0;
    for (uint32_t i = 0; i < l->n_regions; i++)
        n_tokens += l->region[i].set.n;
    const uint64_t bytes = ft_label_tables_bytes(n_tokens);
    if (bytes == 0)
        return FT_OK;
    const uint64_t head = (sizeof *l + 63) / 64 * 64;
    ft_compact *both = ft_calloc(head + bytes, 1, err);
    if (!both)
        return FT_ENOMEM;
    *both = *l;
    free(l);
    trie->layout = both;
    ft_label_tables_init(both, (uint8_t *)both + head);
    return FT_OK;
}

ft_status ft_compact_open(ft_trie *trie, const ft_sections *sections, ft_error *err)
{
    const ft_compact_region *regions = NULL;
    uint32_t n_used = 0;
    if (!trie->level_order)
        return ft_fail(err, FT_EFORMAT,
                       "header: flags say no level order, layout compact has it");
    ft_compact *l = ft_new(ft_compact, err);
    if (!l)
        return FT_ENOMEM;
    trie->layout = l;
    trie->ops = &ft_compact_ops;
    l->avx512 = ft_compact_has_avx512();
    ft_status st = open_regions(l, trie, sections, &regions, &n_used, err);
    if (st == FT_OK)
        st = open_tokens(l, trie, sections, regions, &n_used, err);
    if (st == FT_OK)
        st = open_blocks(l, sections, &n_used, err);
    if (st == FT_OK)
        st = ft_ids_open(trie, sections, &n_used, err);
    if (st == FT_OK)
        st = ft_sections_only(sections, n_used, err);
    return st == FT_OK ? add_tables(trie, l, err) : st;
}

const ft_layout ft_layout_compact = {
    .name = "compact",
    .summary = "blocks of 128 nodes, codes of four widths: the smallest",
    .id = FT_LAYOUT_COMPACT,
    .build = ft_compact_build,
    .open = ft_compact_open,
    .verify = ft_compact_verify,
};
