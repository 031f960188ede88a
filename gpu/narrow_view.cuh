/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of the layout "narrow": handles are node numbers, tokens are their own
 * codes, access is the CPU's inline functions.
 */
#ifndef FT_GPU_NARROW_VIEW_CUH
#define FT_GPU_NARROW_VIEW_CUH

#include "views.cuh"

extern "C" {
#include "trie/narrow.h"
}

namespace ft
{

struct narrow_view {
    ft_narrow l;

    static ft_status make_tables(ft_device_index *, ft_error *)
    {
        return FT_OK;
    }

    static narrow_view of(const ft_device_index *d)
    {
        narrow_view v = {*(const ft_narrow *)d->trie->layout};
        louds_on_device(d, &v.l.base);
        vector_on_device(d, &v.l.flags);
        ft_on_device(d, &v.l.low);
        ft_on_device(d, &v.l.high);
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
        return ft_narrow_label(&l, child);
    }

    __device__ unsigned flags(uint64_t child, uint32_t) const
    {
        return ft_louds_flags_of(&l.base, child);
    }

    __device__ uint64_t find(ft_range range, uint32_t token, uint32_t) const
    {
        return ft_narrow_find_in(&l, range, token);
    }
};

} // namespace ft

#endif
