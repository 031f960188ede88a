/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/build.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/score.h"
#include "trie/builder.h"
#include "trie/tails.h"

ft_status ft_builder_open(ft_builder **out, const ft_build_options *options,
                          ft_error *err)
{
    const ft_layout *layout = ft_layout_by_name(options->layout);
    if (!layout)
        return ft_fail(err, FT_EINVAL, "no layout is called '%s'", options->layout);
    if (options->tails && !ft_tails_form_over(layout))
        return ft_fail(err, FT_EINVAL, "layout %s takes no tails", layout->name);
    if (options->compress_level < 0 || options->compress_level > ZSTD_maxCLevel())
        return ft_fail(err, FT_EINVAL, "compression level %d is not within 0 to %d",
                       options->compress_level, ZSTD_maxCLevel());
    ft_builder *b = ft_new(ft_builder, err);
    if (!b)
        return FT_ENOMEM;
    b->layout = layout;
    b->tails = ft_tails_form_of(layout) ? FT_TAILS_ALWAYS : options->tails;
    b->form = ft_tails_form_of(layout) ? ft_tails_form_of(layout)
                                       : ft_tails_form_over(layout);
    b->compress_level = options->compress_level;
    b->n_threads = options->n_threads;
    b->block_bytes = options->block_bytes;
    const ft_status st = ft_levels_open(&b->levels, options->ids, err);
    if (st != FT_OK) {
        ft_builder_close(b);
        return st;
    }
    *out = b;
    return FT_OK;
}

ft_status ft_builder_add(ft_builder *b, const uint32_t *tokens, uint32_t n,
                         uint32_t lcp, ft_error *err)
{
    assert(!b->spent);
    if (n > FT_MAX_KEY_TOKENS)
        return ft_fail(err, FT_EINVAL, "a key of %u tokens (at most %d)", n,
                       FT_MAX_KEY_TOKENS);
    if (b->levels.n_nodes + n >= FT_MAX_NODES)
        return ft_builder_full(err);
    return ft_levels_add(&b->levels, tokens, n, lcp, err);
}

ft_status ft_builder_full(ft_error *err)
{
    return ft_fail(err, FT_EINVAL, "more nodes than an index can hold (2^40)");
}

ft_status ft_builder_finish(ft_builder *b, ft_sink *out, ft_build_summary *summary,
                            ft_error *err)
{
    ft_levels *l = &b->levels;
    ft_level_map map;
    ft_writer w;
    b->spent = true;
    ft_status st = ft_level_map_open(&map, l, b->n_threads, err);
    if (st == FT_OK)
        st = ft_writer_open(&w, out, b->compress_level, b->n_threads, err);
    if (st != FT_OK) {
        ft_level_map_close(&map);
        return st;
    }
    ft_index_header *h = &w.front.header;
    h->layout = b->layout->id;
    h->flags = FT_INDEX_LEVEL_ORDER | (l->ids ? FT_INDEX_HAS_IDS : 0);
    h->n_keys = l->n_keys;
    h->n_nodes = l->n_nodes;
    h->depth = (uint32_t)l->n_levels - 1;
    h->max_token = l->max_token;
    l->n_highs = map.spans[map.n_spans].highs;
    ft_tail_summary tails = {0};
    st = b->tails ? ft_tails_build(&w, &map, b->form, b->tails == FT_TAILS_IF_THEY_PAY,
                                   &tails)
                  : b->layout->build(&w, &map);
    if (st == FT_OK)
        st = ft_writer_finish(&w);
    if (st == FT_OK)
        *summary = (ft_build_summary){
            .n_keys = h->n_keys,
            .n_nodes = h->n_nodes,
            .file_bytes = h->file_bytes,
            .bits_per_node = (double)h->file_bytes * 8 / (double)h->n_nodes,
            .tails = tails,
        };
    ft_writer_close(&w);
    ft_level_map_close(&map);
    return st;
}

void ft_builder_close(ft_builder *b)
{
    if (!b)
        return;
    ft_levels_free(&b->levels);
    free(b);
}
