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
 */
#ifndef FT_GPU_VIEWS_CUH
#define FT_GPU_VIEWS_CUH

#include "device_index.h"

extern "C" {
#include "trie/louds.h"
}

namespace ft
{

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
