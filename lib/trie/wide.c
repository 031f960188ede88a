/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/wide.h"

#include "trie/ids.h"
#include "trie/parallel.h"
#include "trie/probe.h"

enum { PIECE_LABELS = 1 << 16 };

static void wide_labels(const ft_trie *t, uint64_t first, uint64_t count, uint32_t *out)
{
    const ft_wide *l = t->layout;
    memcpy(out, l->labels + first - 1, count * sizeof *out);
}

static uint64_t wide_find(const ft_trie *t, ft_range range, uint32_t token)
{
    return ft_wide_find_in(t->layout, range, token);
}

static void wide_probe(const ft_trie *t, const ft_range *runs, uint32_t n,
                       const uint64_t *filter, ft_hits *hits)
{
    const ft_wide *l = t->layout;
    hits->n = 0;
    for (uint32_t run = 0, edge = 0; run < n; edge += (uint32_t)runs[run++].count) {
        const uint32_t *labels = l->labels + runs[run].first - 1;
        uint32_t *edges = hits->edges + hits->n, *codes = hits->codes + hits->n;
        const uint32_t n_hits =
            ft_filter_codes(filter, labels, edge, (uint32_t)runs[run].count, edges);
        for (uint32_t i = 0; i < n_hits; i++)
            codes[i] = labels[edges[i] - edge];
        ft_hits_add(hits, n_hits, run);
    }
}

static void wide_fetch(const ft_trie *t, const ft_range *runs, uint32_t n)
{
    const ft_wide *l = t->layout;
    for (uint32_t i = 0; i < n; i++)
        __builtin_prefetch(l->labels + runs[i].first - 1);
}

static const ft_trie_ops wide_ops = {
    .children = ft_louds_children,
    .labels = wide_labels,
    .find = wide_find,
    .flags = ft_louds_flags,
    .children_many = ft_louds_children_many,
    .flags_many = ft_louds_flags_many,
    .terminal_rank = ft_louds_terminal_rank,
    .seek = ft_louds_seek,
    .visit = ft_louds_visit,
    .codes = wide_labels,
    .probe = wide_probe,
    .fetch = wide_fetch,
};

/* Labels are those of nodes 1, 2, ... */
static ft_status fill_labels(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                             ft_error *err)
{
    uint32_t labels[FT_GROUP_NODES];
    unsigned n_group, skip;
    ft_token_iter it = ft_map_tokens(arg, at / sizeof *labels + 1, &skip);
    (void)err;
    for (uint64_t done = 0; done < n; skip = 0) {
        ft_token_groups_next(&it, &n_group, labels);
        const uint64_t bytes = (n_group - skip) * sizeof *labels, left = n - done;
        const uint64_t here = bytes < left ? bytes : left;
        memcpy(out + done, labels + skip, here);
        done += here;
    }
    return FT_OK;
}

static ft_status wide_build(ft_writer *w, ft_level_map *map)
{
    const uint64_t n = map->levels->n_nodes - 1;
    const ft_section labels = {FT_SECTION_LABELS, 0, n, n * 4};
    ft_status st = ft_louds_build(w, map);
    if (st == FT_OK)
        st = ft_section_fill(w, &labels, fill_labels, (void *)map);
    return st == FT_OK ? ft_ids_build(w, map) : st;
}

static ft_status wide_open(ft_trie *trie, const ft_sections *sections, ft_error *err)
{
    const uint64_t n = trie->n_nodes - 1;
    uint32_t n_used = 1;
    ft_wide *l = ft_new(ft_wide, err);
    if (!l)
        return FT_ENOMEM;
    trie->layout = l;
    trie->ops = &wide_ops;
    ft_status st = ft_louds_open(&l->base, trie, sections, &n_used, err);
    if (st != FT_OK)
        return st;
    const void *data;
    st = ft_sections_find(sections, &(ft_section_want){FT_SECTION_LABELS, 0, n, n * 4},
                          &data, err);
    if (st != FT_OK)
        return st;
    l->labels = data;
    return ft_sections_only(sections, n_used, err);
}

static ft_status check_labels(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const ft_trie *t = arg;
    const ft_wide *l = t->layout;
    uint32_t max = 0;
    for (uint64_t i = begin; i < end; i++)
        max = l->labels[i] > max ? l->labels[i] : max;
    if (max > t->max_token)
        return ft_fail(err, FT_EFORMAT,
                       "section labels: token %u, the largest is to be %u", max,
                       t->max_token);
    return FT_OK;
}

static ft_status wide_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err)
{
    const ft_status st = ft_louds_verify(trie, n_threads, err);
    if (st != FT_OK)
        return st;
    return ft_parallel(trie->n_nodes - 1, PIECE_LABELS, n_threads, check_labels,
                       (void *)trie, err);
}

const ft_layout ft_layout_wide = {
    .name = "wide",
    .summary = "32-bit labels (what MARISA-Opt stores)",
    .id = FT_LAYOUT_WIDE,
    .build = wide_build,
    .open = wide_open,
    .verify = wide_verify,
};
