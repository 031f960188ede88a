/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's trie: the layout narrow-tails, or narrow, which has no links. A beam
 * stands on a node in LOUDS, or in the tail before the token at a place.
 *
 * A view tells the kernel
 *
 *     proposes(token, step)       may a beam of `step` tokens go on with the token?
 *     TAILS, in_link(node)        are there any; is the beam in one (Algorithm 2)?
 *     children_by_warp(node)      children of a node; all lanes of a warp call it
 *     enter(child, step)          what a beam that goes there becomes
 */
#ifndef FT_GPU_PAPER_TRIE_VIEW_CUH
#define FT_GPU_PAPER_TRIE_VIEW_CUH

#include "../views.cuh"

extern "C" {
#include "trie/narrow.h"
#include "trie/tails.h"
}

namespace ft::paper
{

/* A beam has arrived at a node: does a key end there, can it go on, and from where? */
struct arrival {
    uint64_t node;
    bool terminal, goes_on;
};

static const uint64_t IN_LINK = (uint64_t)1 << 63; /* | place in the tail */

/* The first zero at or after place i; all lanes of a warp call it (Algorithm 4). Words
 * behind the vector's end count as zeros. */
static __device__ inline uint64_t warp_next_unset(const ft_bitvec &b, uint64_t i)
{
    const uint64_t n_words = ft_bitvec_bytes(b.n_bits) / 8;
    const unsigned lane = threadIdx.x % 32;
    uint64_t w = i / 64;
    const uint64_t word = b.words[w] | ft_low_mask(i % 64);
    if (~word)
        return w * 64 + ft_lowest_bit(~word);
    for (w++;; w += 32) {
        const uint64_t zeros = w + lane < n_words ? ~b.words[w + lane] : ~(uint64_t)0;
        const unsigned lanes = __ballot_sync(~0u, zeros != 0);
        if (lanes) {
            w += __ffs((int)lanes) - 1;
            return w * 64 + ft_lowest_bit(~b.words[w]);
        }
    }
}

struct trie_view {
    enum { TAILS = true };
    ft_narrow tree;
    ft_tails tails; /* where has_links */
    bool has_links;

    static trie_view of(const ft_device_index *d)
    {
        trie_view v = {};
        v.has_links = strcmp(ft_index_layout(d->index), "narrow-tails") == 0;
        if (v.has_links)
            v.tails = *(const ft_tails *)d->trie->layout;
        v.tree =
            *(const ft_narrow *)(v.has_links ? v.tails.inner.layout : d->trie->layout);
        louds_on_device(d, &v.tree.base);
        vector_on_device(d, &v.tree.flags);
        ft_on_device(d, &v.tree.low);
        ft_on_device(d, &v.tree.high);
        vector_on_device(d, &v.tails.links);
        ft_on_device(d, &v.tails.slots);
        ft_on_device(d, &v.tails.high);
        ft_on_device(d, &v.tails.tail);
        return v;
    }

    __device__ bool proposes(uint32_t, uint32_t) const
    {
        return true;
    }

    __device__ bool in_link(uint64_t node) const
    {
        return node & IN_LINK;
    }

    /* The token that a beam in a tail goes on with, and what it becomes. */
    __device__ uint32_t next_token(uint64_t node, arrival *a) const
    {
        bool last;
        const uint32_t token = ft_tails_token(&tails, node & ~IN_LINK, &last);
        *a = {node + 1, last, !last};
        return token;
    }

    __device__ ft_range children_by_warp(uint64_t node) const
    {
        const uint64_t start = ft_louds_run_start(&tree.base, node);
        const uint64_t end = warp_next_unset(tree.base.louds, start);
        return {start - node + 1, end - start};
    }

    /* The same by one thread. */
    __device__ ft_range children(uint64_t node) const
    {
        return ft_louds_children_of(&tree.base, node);
    }

    __device__ bool is_link(uint64_t child) const
    {
        return has_links && ft_tails_is_link(&tails, child);
    }

    /* The token on the edge into a child; of a link the tail has it (Appendix C). */
    __device__ uint32_t label(uint64_t child) const
    {
        bool last;
        return is_link(child)
                   ? ft_tails_token(&tails, ft_tails_start(&tails, child), &last)
                   : ft_narrow_label(&tree, child);
    }

    /* A leaf ends a key, so a node that ends none has children. */
    __device__ arrival enter(uint64_t child, uint32_t) const
    {
        if (is_link(child))
            return {IN_LINK | (ft_tails_start(&tails, child) + 1), false, true};
        const ft_louds &base = tree.base;
        const bool terminal = ft_bit_get(base.terminal.words, child);
        return {child, terminal,
                !terminal ||
                    ft_bit_get(base.louds.words, ft_louds_run_start(&base, child))};
    }
};

} // namespace ft::paper

#endif
