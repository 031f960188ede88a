/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of the layouts whose trees are LOUDS, ft_narrow and ft_wide, which differ in
 * how they store labels: handles are node numbers, tokens are their own codes, access
 * is the CPU's inline functions.
 */
#ifndef FT_GPU_LOUDS_VIEW_CUH
#define FT_GPU_LOUDS_VIEW_CUH

#include "views.cuh"

extern "C" {
#include "trie/narrow.h"
#include "trie/wide.h"
}

namespace ft
{

static inline void labels_on_device(const ft_device_index *d, ft_narrow *l)
{
    vector_on_device(d, &l->flags);
    ft_on_device(d, &l->low);
    ft_on_device(d, &l->high);
}

static inline void labels_on_device(const ft_device_index *d, ft_wide *l)
{
    ft_on_device(d, &l->labels);
}

static __device__ inline uint32_t label_of(const ft_narrow &l, uint64_t node)
{
    return ft_narrow_label(&l, node);
}

static __device__ inline uint32_t label_of(const ft_wide &l, uint64_t node)
{
    return l.labels[node - 1];
}

static __device__ inline uint64_t find_in(const ft_narrow &l, ft_range range,
                                          uint32_t token)
{
    return ft_narrow_find_in(&l, range, token);
}

static __device__ inline uint64_t find_in(const ft_wide &l, ft_range range,
                                          uint32_t token)
{
    return ft_wide_find_in(&l, range, token);
}

template <class Layout> struct louds_view {
    Layout l;

    static ft_status make_tables(ft_device_index *, ft_error *)
    {
        return FT_OK;
    }

    static louds_view of(const ft_device_index *d)
    {
        louds_view v = {*(const Layout *)d->trie->layout};
        louds_on_device(d, &v.l.base);
        labels_on_device(d, &v.l);
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
        return label_of(l, child);
    }

    __device__ unsigned flags(uint64_t child, uint32_t) const
    {
        return ft_louds_flags_of(&l.base, child);
    }

    __device__ uint64_t find(ft_range range, uint32_t token, uint32_t) const
    {
        return find_in(l, range, token);
    }
};

} // namespace ft

#endif
