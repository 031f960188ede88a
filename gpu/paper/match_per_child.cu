/* SPDX-License-Identifier: Apache-2.0
 *
 * The per-child scan (Appendix J): a thread a child, which it looks for among all
 * proposals, one after the other. Nothing is shared: each thread finds the children and
 * decodes their labels itself.
 */
#include "paper_launch.cuh"

namespace ft::paper
{

struct match_per_child {
    template <class Extension> static __device__ void extend(Extension &x)
    {
        const ft_range c = x.view.children(x.node);
        const uint32_t n = x.q.n_proposals;
        for (uint64_t i = threadIdx.x; i < c.count; i += THREADS) {
            const uint32_t label = x.view.label(c.first + i);
            uint32_t token, k = 0;
            float sum;
            x.n_probes++;
            while (k < n && proposal_token(x.proposals[k]) < label)
                k++;
            const bool found = k < n && proposal_token(x.proposals[k]) == label;
            x.watch.charge(FT_PHASE_EXPANSION);
            if (found && x.admits(k, &token, &sum))
                x.append_child(token, sum, c.first + i);
        }
    }
};

} // namespace ft::paper

FT_PAPER_TRIE_KERNELS(ft_paper_per_child, ft::paper::match_per_child);
