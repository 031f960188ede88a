/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of a layout with tails, over a view of its inner one whose handles are node
 * numbers and whose codes are tokens. Handles are node numbers (trie/tails.h), which
 * are in no order; a table gives each node of the tree the number of leaves before it,
 * and that settles ties: of nodes with as many tokens none is below another, and the
 * leaf that a tail hangs from is its node's.
 */
#ifndef FT_GPU_TAILS_VIEW_CUH
#define FT_GPU_TAILS_VIEW_CUH

#include "views.cuh"

extern "C" {
#include "trie/tails.h"
}

namespace ft
{

template <class Inner> struct tails_view {
    Inner inner;
    ft_tails t;
    const uint32_t *leaves; /* before each node of the tree */

    static ft_status make_tables(ft_device_index *d, ft_error *err);

    static tails_view of(const ft_device_index *d)
    {
        const ft_tails *t = (const ft_tails *)d->trie->layout;
        ft_device_index tree = *d;
        tree.trie = &t->inner;
        tails_view v = {Inner::of(&tree), *t, d->leaves};
        vector_on_device(d, &v.t.links);
        ft_on_device(d, &v.t.slots);
        ft_on_device(d, &v.t.high);
        ft_on_device(d, &v.t.tail);
        return v;
    }

    __device__ bool chained(uint64_t node) const
    {
        return ft_tails_depth(node) || ft_tails_is_link(&t, node);
    }

    /* The only child of a link or of a node in a tail, if it has one. */
    __device__ ft_range next(uint64_t node) const
    {
        bool last = false;
        if (ft_tails_depth(node))
            ft_tails_peek(&t, node, &last);
        return {node + ((uint64_t)1 << FT_TAIL_SHIFT), !last};
    }

    __device__ ft_range children(uint64_t parent, uint32_t step) const
    {
        return chained(parent) ? next(parent) : inner.children(parent, step);
    }

    __device__ uint32_t code(uint32_t token, uint32_t) const
    {
        return token;
    }

    /* Links without slots keep their labels in the tree. */
    __device__ uint32_t code_of(uint64_t child, uint32_t step) const
    {
        bool last;
        return ft_tails_depth(child) || (t.slots && ft_tails_is_link(&t, child))
                   ? ft_tails_peek(&t, child, &last)
                   : inner.code_of(child, step);
    }

    __device__ unsigned flags(uint64_t child, uint32_t step) const
    {
        if (!chained(child))
            return inner.flags(child, step);
        return next(child).count ? FT_NODE_HAS_CHILDREN : FT_NODE_TERMINAL;
    }

    __device__ uint64_t find(ft_range range, uint32_t token, uint32_t step) const
    {
        uint64_t lo = range.first, n = range.count;
        while (n > 1) {
            const uint64_t half = n / 2;
            lo += code_of(lo + half - 1, step) < token ? half : 0;
            n -= half;
        }
        return n && code_of(lo, step) == token ? lo : UINT64_MAX;
    }

    __device__ uint64_t place(uint64_t node) const
    {
        return leaves[ft_tails_head(node)];
    }
};

/* Leaves below each node of a level, from those below its children. */
template <class Inner>
static __global__ void count_leaves(const __grid_constant__ Inner tree, uint32_t level,
                                    uint64_t from, uint64_t to, uint32_t *leaves)
{
    const uint64_t n_threads = gridDim.x * (uint64_t)blockDim.x;
    for (uint64_t v = from + blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; v < to;
         v += n_threads) {
        const ft_range r = tree.children(v, level);
        uint32_t n = r.count == 0;
        for (uint64_t i = 0; i < r.count; i++)
            n += leaves[r.first + i];
        leaves[v] = n;
    }
}

/* Where the leaves before each node of a level are known: those before its children,
 * in place of those below them. */
template <class Inner>
static __global__ void place_leaves(const __grid_constant__ Inner tree, uint32_t level,
                                    uint64_t from, uint64_t to, uint32_t *leaves)
{
    const uint64_t n_threads = gridDim.x * (uint64_t)blockDim.x;
    for (uint64_t v = from + blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; v < to;
         v += n_threads) {
        const ft_range r = tree.children(v, level);
        uint32_t before = leaves[v];
        for (uint64_t i = 0; i < r.count; i++) {
            const uint32_t below = leaves[r.first + i];
            leaves[r.first + i] = before;
            before += below;
        }
    }
}

/* ends[i] is where level i of the tree ends. */
template <class Inner>
static ft_status number_leaves(const Inner &tree, const uint64_t *ends, uint32_t depth,
                               uint32_t *leaves, ft_error *err)
{
    enum { BLOCKS = 1056, THREADS = 128 };
    for (uint32_t i = depth + 1; i-- > 0;)
        count_leaves<<<BLOCKS, THREADS>>>(tree, i, i ? ends[i - 1] : 0, ends[i],
                                          leaves);
    ft_status st = FT_CUDA(err, cudaGetLastError());
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMemsetAsync(leaves, 0, sizeof *leaves, 0));
    if (st != FT_OK)
        return st;
    for (uint32_t i = 0; i < depth; i++)
        place_leaves<<<BLOCKS, THREADS>>>(tree, i, i ? ends[i - 1] : 0, ends[i],
                                          leaves);
    st = FT_CUDA(err, cudaGetLastError());
    return st == FT_OK ? FT_CUDA(err, cudaDeviceSynchronize()) : st;
}

template <class Inner>
ft_status tails_view<Inner>::make_tables(ft_device_index *d, ft_error *err)
{
    const ft_trie *inner = &((const ft_tails *)d->trie->layout)->inner;
    if (d->trie->n_keys > UINT32_MAX)
        return ft_fail(
            err, FT_EUNAVAILABLE,
            "%s: the GPU reads tails of up to %u keys: build without --tails",
            ft_index_name(d->index), UINT32_MAX);
    ft_device_index tree = *d;
    tree.trie = inner;
    ft_status st = Inner::make_tables(&tree, err);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMalloc(&tree.leaves, inner->n_nodes * 4));
    tree.trie = d->trie;
    *d = tree; /* and what it has, where that failed too */
    if (st != FT_OK)
        return st;
    uint64_t *ends = (uint64_t *)ft_calloc(inner->depth + 1, sizeof *ends, err);
    if (!ends)
        return FT_ENOMEM;
    ft_tails_levels(inner, ends);
    st = number_leaves(of(d).inner, ends, inner->depth, d->leaves, err);
    free(ends);
    return st;
}

} // namespace ft

#endif
