/* SPDX-License-Identifier: Apache-2.0
 *
 * What a compact index is built by: the regions, and in each the classes and codes of
 * its tokens. The levels from 2 on are cut where codes of their own save more than
 * their tables cost; the widths of the classes, and whether rare tokens are literal,
 * are those that make codes and tables smallest. Both by exact search over counts of
 * the tokens, so the outcome depends on the keys alone.
 */
#ifndef FT_TRIE_COMPACT_PLAN_H
#define FT_TRIE_COMPACT_PLAN_H

#include "trie/compact_format.h"
#include "trie/level_map.h"
#include "trie/token_classes.h"
#include "trie/token_ids.h"

enum { FT_PLAN_SPANS = 6, FT_PLAN_REGIONS = FT_COMPACT_REGIONS - 1 };

typedef struct ft_plan_region {
    uint64_t level, end;            /* levels level .. end - 1 */
    unsigned first_span, last_span; /* of those that have counts of their own */
    uint64_t n_nodes;
    uint32_t width[FT_CODE_CLASSES];
    ft_token_classes classes; /* sizes and bases alone */
    uint32_t max_code;
    uint32_t *codes; /* by id; FT_NO_TOKEN: not in the region */
} ft_plan_region;

typedef struct ft_compact_plan {
    uint32_t max_token;
    uint64_t n_root_children;
    ft_token_ids ids;   /* of the tokens from level 2 on */
    uint32_t n_regions; /* region 0 is not among them */
    ft_plan_region region[FT_PLAN_REGIONS];
    uint32_t *counts[FT_PLAN_SPANS]; /* the codes' memory */
} ft_compact_plan;

ft_status ft_compact_plan_make(ft_compact_plan *p, const ft_level_map *map,
                               uint32_t n_threads, ft_error *err);
void ft_compact_plan_free(ft_compact_plan *p);

/* Write the regions, the token sets and the token classes. */
ft_status ft_compact_plan_write(const ft_compact_plan *p, const ft_levels *levels,
                                ft_writer *w);

static inline uint64_t ft_level_nodes(const ft_levels *l, uint64_t level)
{
    uint64_t n = 0;
    for (const ft_chunk *c = l->level[level].head; c; c = c->next)
        n += c->n_nodes;
    return n;
}

#endif
