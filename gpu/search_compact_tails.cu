/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernels over the layout "compact-tails". To what is above it, the tree
 * speaks of nodes by number, since nodes in tails are named after their heads', and of
 * tokens, since tails are shared by levels that have different codes.
 */
#include "compact_tables.cuh"
#include "launch.cuh"
#include "tails_view.cuh"

namespace ft
{

struct compact_tree {
    compact_view base;
    uint64_t shift[FT_COMPACT_REGIONS]; /* handles less numbers, by region, mod 2^64 */

    static ft_status make_tables(ft_device_index *d, ft_error *err)
    {
        return compact_view::make_tables(d, err);
    }

    static compact_tree of(const ft_device_index *d)
    {
        const ft_compact *l = (const ft_compact *)d->trie->layout;
        compact_tree v = {compact_view::of(d), {}};
        for (uint32_t i = 1; i < l->n_regions; i++)
            v.shift[i] = v.base.n_top + l->region[i].slot - l->region[i].node;
        return v;
    }

    /* What makes handles of the numbers of a level's nodes. */
    __device__ uint64_t shift_of(uint32_t level) const
    {
        uint64_t s = 0;
#pragma unroll
        for (uint32_t i = 1; i < FT_COMPACT_REGIONS; i++)
            if (i < base.n_regions && level >= base.region[i].level)
                s = shift[i];
        return s;
    }

    __device__ ft_range children(uint64_t parent, uint32_t step) const
    {
        const ft_range r = base.children(parent + shift_of(step), step);
        return {r.first - shift_of(step + 1), r.count};
    }

    __device__ uint32_t code_of(uint64_t child, uint32_t step) const
    {
        const uint32_t code = base.code_of(child + shift_of(step + 1), step);
        return compact_view::token(base.region_of(step + 1), code);
    }

    __device__ unsigned flags(uint64_t child, uint32_t step) const
    {
        return base.flags(child + shift_of(step + 1), step);
    }
};

} // namespace ft

FT_GPU_KERNELS(ft_gpu_compact_tails, "compact-tails", ft::tails_view<ft::compact_tree>);
