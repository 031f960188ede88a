/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/compact_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "trie/compact.h"
#include "trie/parallel.h"

ft_compact_shape ft_compact_shape_of(const ft_level_map *map,
                                     const ft_compact_plan *plan)
{
    ft_compact_shape s = {.map = map, .plan = plan};
    ft_region_place at = {.node = plan->n_root_children + 1};
    for (unsigned k = 0; k < plan->n_regions; k++) {
        s.place[k] = at;
        at.node += plan->region[k].n_nodes;
        at.block += ft_compact_n_blocks(plan->region[k].n_nodes);
        at.slot = at.block * FT_COMPACT_BLOCK;
    }
    s.place[plan->n_regions] = at;
    s.n_blocks = at.block;
    return s;
}

uint64_t ft_shape_slot(const ft_compact_shape *s, uint64_t node)
{
    unsigned k = 0;
    while (k < s->plan->n_regions && node >= s->place[k + 1].node)
        k++;
    return node - s->place[k].node + s->place[k].slot;
}

static void put_bits(uint64_t *words, unsigned at, uint64_t bits)
{
    words[at / 64] |= bits << at % 64;
    if (at % 64)
        words[at / 64 + 1] |= bits >> (64 - at % 64);
}

static void drop_bits(uint64_t *words, unsigned n)
{
    for (; n >= 64; n -= 64) {
        memmove(words, words + 1, FT_BLOCK_WORDS * sizeof *words);
        words[FT_BLOCK_WORDS] = 0;
    }
    for (unsigned i = 0; n && i <= FT_BLOCK_WORDS; i++) {
        words[i] >>= n;
        if (i < FT_BLOCK_WORDS)
            words[i] |= words[i + 1] << (64 - n);
    }
}

/* Drop the first n nodes that wait. */
static void drop(ft_node_blocks *b, unsigned n)
{
    ft_node_block *nodes = &b->block;
    b->n_waiting -= n;
    drop_bits(nodes->child, n);
    drop_bits(nodes->terminal, n);
    memmove(nodes->codes, nodes->codes + n, b->n_waiting * sizeof *nodes->codes);
}

static void fetch(ft_node_blocks *b)
{
    ft_node_block *nodes = &b->block;
    unsigned n;
    const ft_group *g = ft_token_groups_next(&b->it, &n, nodes->codes + b->n_waiting);
    put_bits(nodes->child, b->n_waiting, g->child);
    put_bits(nodes->terminal, b->n_waiting, g->terminal);
    b->n_waiting += n;
}

void ft_node_blocks_from(ft_node_blocks *b, const ft_compact_shape *s, uint64_t block)
{
    unsigned k = 0, at;
    while (block >= s->place[k + 1].block)
        k++;
    const uint64_t node =
        s->place[k].node + (block - s->place[k].block) * FT_COMPACT_BLOCK;
    *b = (ft_node_blocks){
        .shape = s,
        .region = k,
        .left = s->place[k + 1].node - node,
    };
    b->it = ft_map_tokens(s->map, node, &at);
    b->block.region = &s->plan->region[k];
    if (at) {
        fetch(b);
        drop(b, at);
    }
}

void ft_root_blocks_from(ft_node_blocks *b, const ft_compact_shape *s)
{
    *b = (ft_node_blocks){
        .shape = s,
        .region = s->plan->n_regions,
        .left = s->plan->n_root_children + 1,
        .it = ft_token_groups_from(s->map->levels, 0),
    };
}

const ft_node_block *ft_node_blocks_next(ft_node_blocks *b)
{
    ft_node_block *nodes = &b->block;
    const ft_compact_plan *p = b->shape->plan;
    drop(b, nodes->n);
    if (b->left == 0 && b->region + 1 < p->n_regions) {
        nodes->region = &p->region[++b->region];
        b->left = nodes->region->n_nodes;
    }
    while (b->n_waiting < FT_COMPACT_BLOCK && b->n_waiting < b->left)
        fetch(b);
    nodes->n = b->n_waiting < FT_COMPACT_BLOCK ? b->n_waiting : FT_COMPACT_BLOCK;
    b->left -= nodes->n;
    return nodes->n ? nodes : NULL;
}

uint64_t ft_node_block_bits(const ft_node_block *b)
{
    const uint32_t *base = b->region->classes.base, *width = b->region->width;
    uint32_t n[FT_CODE_CLASSES] = {b->n};
    if (b->n == FT_COMPACT_BLOCK) {
        for (unsigned i = 0; i < FT_COMPACT_BLOCK; i++) { /* becomes vectors */
            n[1] += b->codes[i] >= base[1];
            n[2] += b->codes[i] >= base[2];
            n[3] += b->codes[i] >= base[3];
        }
    } else {
        for (unsigned i = 0; i < b->n; i++)
            for (unsigned cls = ft_code_class(&b->region->classes, b->codes[i]); cls;
                 cls--)
                n[cls]++;
    }
    return (uint64_t)(n[0] - n[1]) * width[0] + (uint64_t)(n[1] - n[2]) * width[1] +
           (uint64_t)(n[2] - n[3]) * width[2] + (uint64_t)n[3] * width[3];
}

void ft_node_block_classes(const ft_node_block *b, uint64_t *low, uint64_t *high)
{
    const uint32_t *base = b->region->classes.base;
    for (unsigned i = 0; i < FT_BLOCK_WORDS; i++)
        low[i] = high[i] = 0;
    for (unsigned i = 0; i < b->n; i++) {
        const unsigned one = b->codes[i] >= base[1], two = b->codes[i] >= base[2];
        const unsigned three = b->codes[i] >= base[3];
        low[i / 64] |= (uint64_t)(one ^ two ^ three) << i % 64;
        high[i / 64] |= (uint64_t)two << i % 64;
    }
}

/* Chunks whose tokens become codes. */
typedef struct recoding {
    const ft_compact_plan *plan;
    struct {
        ft_chunk *chunk;
        const ft_plan_region *region;
    } * list;
    uint64_t n;
} recoding;

/* Apart from what is done with them: the cache misses overlap. */
static void look_up(const ft_compact_plan *p, const ft_plan_region *r,
                    const uint32_t *tokens, unsigned n, uint32_t *codes)
{
    uint32_t ids[FT_GROUP_NODES];
    ft_token_ids_of(&p->ids, tokens, n, ids);
    for (unsigned i = 0; i < n; i++)
        codes[i] = r->codes[ids[i]];
}

static void recode_group(ft_group *g, const uint32_t *codes, unsigned n, ft_chunk *c)
{
    g->high = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint32_t high = codes[i] >> 16;
        g->low[i] = (uint16_t)codes[i];
        g->high |= (uint64_t)(high != 0) << i;
        ft_highs_put(c->highs, c->n_highs, c->high_bits, high);
        c->n_highs += high != 0;
    }
}

static ft_status recode_chunk(const ft_compact_plan *p, const ft_plan_region *r,
                              ft_chunk *c, ft_error *err)
{
    const uint64_t cap = c->n_nodes; /* no more will come */
    const unsigned bits = ft_bit_width(r->max_code >> 16);
    ft_chunk from =
        *c; /* its high parts; the groups are read before they are written */
    uint64_t n_highs = 0;
    c->highs = ft_highs_room(cap, bits ? bits : 1, err);
    if (!c->highs) {
        c->highs = from.highs;
        return FT_ENOMEM;
    }
    c->high_bits = bits ? bits : 1;
    c->n_highs = 0;
    for (uint64_t done = 0; done < c->n_nodes; done += FT_GROUP_NODES) {
        const uint64_t left = c->n_nodes - done;
        const unsigned n = left < FT_GROUP_NODES ? (unsigned)left : FT_GROUP_NODES;
        ft_group *g = &c->groups[done / FT_GROUP_NODES];
        uint32_t tokens[FT_GROUP_NODES], codes[FT_GROUP_NODES];
        for (unsigned i = 0; i < n; i++)
            tokens[i] = g->low[i];
        for (uint64_t high = g->high; high; high &= high - 1)
            tokens[__builtin_ctzll(high)] |= ft_chunk_high(&from, n_highs++) << 16;
        look_up(p, r, tokens, n, codes);
        recode_group(g, codes, n, c);
    }
    free(from.highs);
    return FT_OK;
}

static ft_status recode_chunks(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const recoding *r = arg;
    ft_status st = FT_OK;
    for (uint64_t i = begin; i < end && st == FT_OK; i++)
        st = recode_chunk(r->plan, r->list[i].region, r->list[i].chunk, err);
    return st;
}

static void list_chunks(recoding *r, const ft_levels *levels)
{
    r->n = 0;
    for (unsigned k = 0; k < r->plan->n_regions; k++) {
        const ft_plan_region *region = &r->plan->region[k];
        for (uint64_t level = region->level; level < region->end; level++)
            for (ft_chunk *c = levels->level[level].head; c && c->n_nodes;
                 c = c->next) {
                if (r->list) {
                    r->list[r->n].chunk = c;
                    r->list[r->n].region = region;
                }
                r->n++;
            }
    }
}

ft_status ft_compact_recode(ft_levels *levels, const ft_compact_plan *plan,
                            uint32_t n_threads, ft_error *err)
{
    recoding r = {.plan = plan};
    list_chunks(&r, levels); /* to count them */
    r.list = ft_calloc(r.n, sizeof *r.list, err);
    if (!r.list)
        return FT_ENOMEM;
    list_chunks(&r, levels);
    const ft_status st = ft_parallel(r.n, 1, n_threads, recode_chunks, &r, err);
    free(r.list);
    return st;
}
