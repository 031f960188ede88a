/* SPDX-License-Identifier: Apache-2.0
 *
 * The ft_paper_kernels of a View and a Match: view_of(constraint) makes the view.
 */
#ifndef FT_GPU_PAPER_LAUNCH_CUH
#define FT_GPU_PAPER_LAUNCH_CUH

#include "cooperative.cuh"
#include "paper_launch.h"

namespace ft::paper
{

static inline trie_view trie_of(const ft_paper_constraint *c)
{
    return trie_view::of(&c->index);
}

template <class View, class Match, View (*view_of)(const ft_paper_constraint *)>
struct kernels {
    typedef void (*kernel)(View, ft_paper_question);

    static kernel of(bool timed)
    {
        return timed ? search<View, Match, true> : search<View, Match, false>;
    }

    static ft_status occupancy(bool timed, int *n_blocks, ft_error *err)
    {
        return FT_CUDA(err, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                n_blocks, of(timed), THREADS, 0));
    }

    static ft_status launch(const ft_paper_constraint *c, const ft_paper_question *q,
                            bool timed, uint32_t n_blocks, cudaStream_t stream,
                            ft_error *err)
    {
        View view = view_of(c);
        ft_paper_question question = *q;
        void *args[] = {&view, &question};
        return FT_CUDA(err,
                       cudaLaunchCooperativeKernel(of(timed), dim3(n_blocks),
                                                   dim3(THREADS), args, 0, stream));
    }
};

} // namespace ft::paper

#define FT_PAPER_KERNELS(name, load, View, Match, view_of)                             \
    extern const ft_paper_kernels name = {                                             \
        load, ft::paper::kernels<View, Match, view_of>::occupancy,                     \
        ft::paper::kernels<View, Match, view_of>::launch}

#define FT_PAPER_TRIE_KERNELS(name, Match)                                             \
    FT_PAPER_KERNELS(name, ft_paper_load_trie, ft::paper::trie_view, Match,            \
                     ft::paper::trie_of)

#endif
