/* SPDX-License-Identifier: Apache-2.0
 *
 * The per-key linear probe (Appendix J): as match_binary.cu, but each thread scans the
 * cached labels for its proposal, up to the first that is not smaller. More children
 * than the cache holds pass through it in parts.
 */
#include "paper_launch.cuh"

namespace ft::paper
{

struct match_linear {
    template <class Extension>
    static __device__ void scan(Extension &x, uint64_t from, uint32_t n)
    {
        const uint32_t *labels = x.m.labels;
        for (uint32_t k = threadIdx.x; k < x.q.n_proposals; k += THREADS) {
            uint32_t token, i = 0;
            float sum;
            if (!x.admits(k, &token, &sum))
                continue;
            x.n_probes++;
            while (i < n && labels[i] < token)
                i++;
            const bool found = i < n && labels[i] == token;
            x.watch.charge(FT_PHASE_EXPANSION);
            if (found)
                x.append_child(token, sum, x.children.first + from + i);
        }
    }

    template <class Extension> static __device__ void extend(Extension &x)
    {
        for (uint64_t from = 0; from < x.children.count; from += CACHED_LABELS) {
            const uint64_t left = x.children.count - from;
            const uint32_t n = left < CACHED_LABELS ? (uint32_t)left : CACHED_LABELS;
            x.cache_labels(from, n);
            scan(x, from, n);
            __syncthreads();
        }
    }
};

} // namespace ft::paper

FT_PAPER_TRIE_KERNELS(ft_paper_linear, ft::paper::match_linear);
