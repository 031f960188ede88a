/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections of a compact index that follow from the plan alone: regions, their token
 * sets and the classes of their tokens.
 */
#include "base/score.h"
#include "trie/compact_plan.h"

static uint64_t n_ids_of(const ft_compact_plan *p)
{
    return (uint64_t)p->max_token + 1;
}

static ft_status put_regions(const ft_compact_plan *p, ft_writer *w)
{
    const ft_section s = {FT_SECTION_REGIONS, 0, p->n_regions + 1,
                          (p->n_regions + 1) * sizeof(ft_compact_region)};
    ft_section_begin(w, &s);
    const ft_compact_region root = {
        .n_nodes = p->n_root_children + 1,
        .n_tokens = (uint32_t)p->n_root_children,
    };
    ft_section_put(w, &root, sizeof root);
    for (unsigned k = 0; k < p->n_regions; k++) {
        const ft_plan_region *r = &p->region[k];
        ft_compact_region region = {
            .n_nodes = r->n_nodes,
            .level = (uint32_t)r->level,
            .n_tokens = r->classes.n,
        };
        memcpy(region.size, r->classes.size, sizeof region.size);
        memcpy(region.width, r->width, sizeof region.width);
        ft_section_put(w, &region, sizeof region);
    }
    return ft_section_end(w);
}

static ft_status put_root_set(const ft_compact_plan *p, const ft_levels *levels,
                              ft_writer *w)
{
    uint32_t tokens[FT_GROUP_NODES];
    unsigned n;
    ft_token_set_out out;
    const ft_status st = ft_token_set_begin(&out, w, p->n_root_children, n_ids_of(p));
    if (st != FT_OK)
        return st;
    ft_token_iter it = ft_token_groups_from(levels, 1);
    while (ft_token_groups_next(&it, &n, tokens) && it.groups.level == 1)
        for (unsigned i = 0; i < n; i++)
            ft_token_set_put(&out, tokens[i]);
    ft_token_set_end(&out);
    return FT_OK;
}

static ft_status put_region_set(const ft_compact_plan *p, const ft_plan_region *r,
                                ft_writer *w)
{
    ft_token_set_out out;
    const ft_status st = ft_token_set_begin(&out, w, r->classes.n, n_ids_of(p));
    if (st != FT_OK)
        return st;
    uint64_t at = 0;
    for (uint32_t id = 0; id < p->ids.n; id++) {
        const uint32_t token = ft_token_ids_next(&p->ids, &at);
        if (r->codes[id] < r->classes.n)
            ft_token_set_put(&out, token);
    }
    ft_token_set_end(&out);
    return FT_OK;
}

static ft_status put_sets(const ft_compact_plan *p, const ft_levels *levels,
                          ft_writer *w)
{
    uint64_t bytes = ft_token_set_bytes(p->n_root_children, n_ids_of(p));
    uint64_t n = p->n_root_children;
    for (unsigned k = 0; k < p->n_regions; k++) {
        const ft_plan_region *r = &p->region[k];
        bytes += ft_token_set_bytes(r->classes.n, n_ids_of(p));
        n += r->classes.n;
    }
    ft_section_begin(w, &(ft_section){FT_SECTION_TOKEN_SETS, 0, n, bytes});
    ft_status st = put_root_set(p, levels, w);
    for (unsigned k = 0; k < p->n_regions && st == FT_OK; k++)
        st = put_region_set(p, &p->region[k], w);
    return st == FT_OK ? ft_section_end(w) : st;
}

static ft_status put_token_classes(const ft_compact_plan *p, ft_writer *w)
{
    uint64_t bytes = 0, n = 0;
    for (unsigned k = 0; k < p->n_regions; k++) {
        bytes += ft_token_classes_bytes(p->region[k].classes.size);
        n += p->region[k].classes.n;
    }
    ft_section_begin(w, &(ft_section){FT_SECTION_TOKEN_CLASSES, 0, n, bytes});
    for (unsigned k = 0; k < p->n_regions; k++) {
        const ft_plan_region *r = &p->region[k];
        const ft_status st = ft_token_classes_write(w, &r->classes, r->codes, p->ids.n);
        if (st != FT_OK)
            return st;
    }
    return ft_section_end(w);
}

ft_status ft_compact_plan_write(const ft_compact_plan *p, const ft_levels *levels,
                                ft_writer *w)
{
    ft_status st = put_regions(p, w);
    if (st == FT_OK)
        st = put_sets(p, levels, w);
    return st == FT_OK ? put_token_classes(p, w) : st;
}
