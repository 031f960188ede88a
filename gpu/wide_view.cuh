/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of the layout "wide": handles are node numbers, tokens are their own codes,
 * access is the CPU's inline functions.
 */
#ifndef FT_GPU_WIDE_VIEW_CUH
#define FT_GPU_WIDE_VIEW_CUH

#include "views.cuh"

extern "C" {
#include "trie/wide.h"
}

namespace ft
{

struct wide_view {
    ft_wide l;

    static ft_status make_tables(ft_device_index *, ft_error *)
    {
        return FT_OK;
    }

    static wide_view of(const ft_device_index *d)
    {
        wide_view v = {*(const ft_wide *)d->trie->layout};
        louds_on_device(d, &v.l.base);
        ft_on_device(d, &v.l.labels);
        return v;
    }

    __device__ ft_range children(uint64_t parent, uint32_t) const
    {
        return ft_louds_children_of(&l.base, parent);
    }

    __device__ uint32_t code(uint32_t token, uint32_t) const
    {
        return token;
    }

    __device__ uint32_t code_of(uint64_t child, uint32_t) const
    {
        return l.labels[child - 1];
    }

    __device__ unsigned flags(uint64_t child, uint32_t) const
    {
        return ft_louds_flags_of(&l.base, child);
    }

    __device__ uint64_t find(ft_range range, uint32_t token, uint32_t) const
    {
        return ft_wide_find_in(&l, range, token);
    }
};

} // namespace ft

#endif
