/* SPDX-License-Identifier: Apache-2.0
 *
 * PPT, the ablation without a trie (paper, section 4.6 and Appendix I): a token is
 * admitted at a position if some key has it there, whatever comes before it. Which
 * proposals those are is the same for all beams, so it is found out once a query; every
 * beam then takes them all.
 *
 * What it lets through beside keys: any sequence as long as some key whose tokens all
 * stand at their positions in some keys, each in another one maybe. Where neither B nor
 * N cuts anything off, its results contain those of the trie.
 */
#include "paper_launch.cuh"

extern "C" {
#include "baseline/token_sets.h"
}

namespace ft::paper
{

struct ppt_view {
    enum { TAILS = false };
    uint32_t depth;
    const uint64_t *offsets;
    const uint32_t *tokens;
    const uint8_t *ends;

    static ppt_view of(const ft_paper_constraint *c)
    {
        return {c->sets.depth, c->sets.offsets, c->sets.tokens, c->sets.ends};
    }

    __device__ bool proposes(uint32_t token, uint32_t step) const
    {
        if (step >= depth)
            return false;
        uint64_t lo = offsets[step], end = offsets[step + 1], hi = end;
        while (lo < hi) {
            const uint64_t mid = (lo + hi) / 2;
            if (tokens[mid] < token)
                lo = mid + 1;
            else
                hi = mid;
        }
        return lo < end && tokens[lo] == token;
    }

    __device__ bool in_link(uint64_t) const
    {
        return false;
    }

    __device__ ft_range children_by_warp(uint64_t) const
    {
        return {0, 0};
    }

    __device__ arrival enter(uint64_t, uint32_t step) const
    {
        return {0, ends[step] != 0, step + 1 < depth};
    }
};

/* Proposals that cannot be meant are not admitted any more: all others match. */
struct match_all {
    template <class Extension> static __device__ void extend(Extension &x)
    {
        for (uint32_t k = threadIdx.x; k < x.q.n_proposals; k += THREADS) {
            uint32_t token;
            float sum;
            x.n_probes++;
            if (x.admits(k, &token, &sum))
                x.append_child(token, sum, 0);
        }
    }
};

} // namespace ft::paper

/* Offsets, tokens and ends lie one behind the other. */
static ft_status load_sets(ft_paper_constraint *c, const ft_index *index, ft_error *err)
{
    ft_token_sets sets = {};
    ft_status st = ft_token_sets_make(&sets, ft_index_trie(index), 0, err);
    const uint64_t offset_bytes = 8 * (sets.depth + 1ull);
    const uint64_t token_bytes = st == FT_OK ? 4 * sets.offsets[sets.depth] : 0;
    ft_paper_sets *s = &c->sets;
    if (st == FT_OK)
        st = ft_room_on_device(&s->memory, offset_bytes + token_bytes + sets.depth + 1,
                               err);
    uint8_t *memory = (uint8_t *)s->memory.memory;
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMemcpy(memory, sets.offsets, offset_bytes,
                                     cudaMemcpyHostToDevice));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMemcpy(memory + offset_bytes, sets.tokens, token_bytes,
                                     cudaMemcpyHostToDevice));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMemcpy(memory + offset_bytes + token_bytes, sets.ends,
                                     sets.depth, cudaMemcpyHostToDevice));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaDeviceSynchronize()); /* copies of pageable memory lag */
    s->depth = sets.depth;
    s->offsets = (const uint64_t *)memory;
    s->tokens = (const uint32_t *)(memory + offset_bytes);
    s->ends = memory + offset_bytes + token_bytes;
    ft_token_sets_free(&sets);
    return st;
}

FT_PAPER_KERNELS(ft_paper_ppt, load_sets, ft::paper::ppt_view, ft::paper::match_all,
                 ft::paper::ppt_view::of);
