/* SPDX-License-Identifier: Apache-2.0
 *
 * What the search kernels ask of a trie, by layout. A view is a plain struct of device
 * addresses. Nodes are named by handles, which ascend as node numbers do: the root is
 * 0. `step` is the depth of the node where it is a parent, so a child is of depth step
 * + 1.
 *
 *     children(parent, step)       handles of the children, a run
 *     code(token, step)            what edges into children store for the token,
 *                                  FT_NO_TOKEN if none does
 *     code_of(child, step)         what is stored on the edge into the child
 *     flags(child, step)           FT_NODE_TERMINAL | FT_NODE_HAS_CHILDREN
 *     find(children, token, step)  the child with that token, or UINT64_MAX
 *
 * A view whose handles are in no order has place(node) as well, below 2^38: of nodes
 * with as many tokens, the one with the smaller place goes first among ties.
 *
 * A view whose edges tell leaves from inner nodes at no cost has these as well:
 *
 *     edge(child, step, asks, &hint) code_of, and EDGE_LEAF or EDGE_INNER; ASK_FLAGS
 *                                    asks for one more access at the same time, that
 *                                    tells whether the inner node ends a key;
 *                                    ASK_AHEAD fetches what its children will need
 *     lean_edge(child, level, &hint) edge for throughput, asking for nothing; level is
 *                                    what level(step) says
 *     flags(child, step, hint)       flags, with what edge said or EDGE_UNKNOWN
 *
 * And one that would rather be asked ahead has these. What fetch_code has copied to
 * shared memory, asynchronously, is handed to code later; fetch_edges fetches into the
 * chip's cache.
 *
 *     fetch_code(token, step, &to), code(token, step, fetched)
 *     fetch_edges(first child, step), fetch_children(parent, step)
 *     visit(child, step)           `visited`, with all accesses at the same time
 *     fetch_visit(first child, step) what visit reads, behind fetch_edges
 *     fetch_top(code)              the root's child with that code
 */
#ifndef FT_GPU_VIEWS_CUH
#define FT_GPU_VIEWS_CUH

#include "device_index.h"
#include "machine.cuh"

extern "C" {
#include "trie/louds.h"
}

namespace ft
{

/* Of nodes with as many tokens, the one with the smaller place goes first among ties.
 */
template <class View>
static __device__ auto place_of(const View &view, uint64_t node)
    -> decltype(view.place(node))
{
    return view.place(node);
}

template <class View, class... None>
static __device__ uint64_t place_of(const View &, uint64_t node, None...)
{
    return node;
}

/* The same over all steps, from the place of a child of `step`. */
template <class View>
static __device__ auto order_of(const View &view, uint64_t place, uint32_t step)
    -> decltype(view.place(place))
{
    return (uint64_t)step << 40 | place;
}

template <class View, class... None>
static __device__ uint64_t order_of(const View &, uint64_t place, uint32_t, None...)
{
    return place;
}

enum { EDGE_LEAF, EDGE_INNER, EDGE_INNER_END, EDGE_INNER_NO_END, EDGE_UNKNOWN };
enum { ASK_FLAGS = 1, ASK_AHEAD = 2 };

template <class View>
static __device__ auto edge_of(const View &view, uint64_t child, uint32_t step,
                               unsigned asks, unsigned *hint)
    -> decltype(view.edge(child, step, asks, hint))
{
    return view.edge(child, step, asks, hint);
}

template <class View, class... None>
static __device__ uint32_t edge_of(const View &view, uint64_t child, uint32_t step,
                                   unsigned, unsigned *hint, None...)
{
    *hint = EDGE_UNKNOWN;
    return view.code_of(child, step);
}

template <class View>
static __device__ auto level_of(const View &view, uint32_t step)
    -> decltype(view.level(step))
{
    return view.level(step);
}

template <class View, class... None>
static __device__ uint32_t level_of(const View &, uint32_t step, None...)
{
    return step;
}

template <class View>
static __device__ auto lean_edge_of(const View &view, uint64_t child, uint32_t level,
                                    unsigned *hint)
    -> decltype(view.lean_edge(child, level, hint))
{
    return view.lean_edge(child, level, hint);
}

template <class View, class... None>
static __device__ uint32_t lean_edge_of(const View &view, uint64_t child, uint32_t step,
                                        unsigned *hint, None...)
{
    *hint = EDGE_UNKNOWN;
    return view.code_of(child, step);
}

template <class View>
static __device__ auto flags_of(const View &view, uint64_t child, uint32_t step,
                                unsigned hint)
    -> decltype(view.flags(child, step, hint))
{
    return view.flags(child, step, hint);
}

template <class View, class... None>
static __device__ unsigned flags_of(const View &view, uint64_t child, uint32_t step,
                                    unsigned, None...)
{
    return view.flags(child, step);
}

/* Of a row of 32-bit words, word i's bits that are number `at` of the row or behind. */
static __device__ inline unsigned ones_from(unsigned at, unsigned i)
{
    return shift_left(~0u, max((int)(at - 32 * i), 0));
}

template <class View>
static __device__ auto fetch_code_of(const View &view, uint32_t token, uint32_t step,
                                     uint32_t *to)
    -> decltype(view.fetch_code(token, step, to))
{
    view.fetch_code(token, step, to);
}

template <class View, class... None>
static __device__ void fetch_code_of(const View &, uint32_t, uint32_t, uint32_t *,
                                     None...)
{
}

template <class View>
static __device__ auto fetched_code_of(const View &view, uint32_t token, uint32_t step,
                                       uint32_t fetched)
    -> decltype(view.code(token, step, fetched))
{
    return view.code(token, step, fetched);
}

template <class View, class... None>
static __device__ uint32_t fetched_code_of(const View &view, uint32_t token,
                                           uint32_t step, uint32_t, None...)
{
    return view.code(token, step);
}

template <class View>
static __device__ auto fetch_edges_of(const View &view, uint64_t first, uint32_t step)
    -> decltype(view.fetch_edges(first, step))
{
    view.fetch_edges(first, step);
}

template <class View, class... None>
static __device__ void fetch_edges_of(const View &, uint64_t, uint32_t, None...)
{
}

template <class View>
static __device__ auto fetch_visit_of(const View &view, uint64_t first, uint32_t step)
    -> decltype(view.fetch_visit(first, step))
{
    view.fetch_visit(first, step);
}

template <class View, class... None>
static __device__ void fetch_visit_of(const View &, uint64_t, uint32_t, None...)
{
}

/* What a search asks of a child: the code, and later, maybe, the rest. */
struct visited {
    uint32_t code;

    template <class View>
    __device__ unsigned flags(const View &view, uint64_t node, uint32_t step) const
    {
        return view.flags(node, step);
    }

    template <class View>
    __device__ ft_range children(const View &view, uint64_t node, uint32_t step) const
    {
        return view.children(node, step + 1);
    }
};

template <class View>
static __device__ auto visit_of(const View &view, uint64_t child, uint32_t step)
    -> decltype(view.visit(child, step))
{
    return view.visit(child, step);
}

template <class View, class... None>
static __device__ visited visit_of(const View &view, uint64_t child, uint32_t step,
                                   None...)
{
    return {view.code_of(child, step)};
}

template <class View>
static __device__ auto fetch_children_of(const View &view, uint64_t parent,
                                         uint32_t step)
    -> decltype(view.fetch_children(parent, step))
{
    view.fetch_children(parent, step);
}

template <class View, class... None>
static __device__ void fetch_children_of(const View &, uint64_t, uint32_t, None...)
{
}

template <class View>
static __device__ auto fetch_top_of(const View &view, uint32_t code)
    -> decltype(view.fetch_top(code))
{
    view.fetch_top(code);
}

template <class View, class... None>
static __device__ void fetch_top_of(const View &, uint32_t, None...)
{
}

static inline void vector_on_device(const ft_device_index *d, ft_bitvec *b)
{
    ft_on_device(d, &b->words);
    ft_on_device(d, &b->rank);
    ft_on_device(d, &b->hints);
}

static inline void louds_on_device(const ft_device_index *d, ft_louds *l)
{
    vector_on_device(d, &l->louds);
    vector_on_device(d, &l->terminal);
}

} // namespace ft

#endif
