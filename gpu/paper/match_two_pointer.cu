/* SPDX-License-Identifier: Apache-2.0
 *
 * The two-pointer merge (Appendix J): MARISA's loop as it is, by one thread of the
 * block; the others wait.
 */
#include "paper_launch.cuh"

namespace ft::paper
{

struct match_two_pointer {
    template <class Extension> static __device__ void extend(Extension &x)
    {
        const ft_range c = x.children;
        const uint32_t n = x.q.n_proposals;
        uint32_t k = 0;
        if (threadIdx.x != 0)
            return;
        for (uint64_t i = 0; i < c.count; i++) {
            const uint32_t label = x.view.label(c.first + i);
            x.n_probes++;
            while (k < n && proposal_token(x.proposals[k]) < label)
                k++;
            x.watch.charge(FT_PHASE_EXPANSION);
            if (k == n)
                return;
            uint32_t token;
            float sum;
            if (proposal_token(x.proposals[k]) == label && x.admits(k, &token, &sum))
                x.append_child(token, sum, c.first + i);
        }
    }
};

} // namespace ft::paper

FT_PAPER_TRIE_KERNELS(ft_paper_two_pointer, ft::paper::match_two_pointer);
