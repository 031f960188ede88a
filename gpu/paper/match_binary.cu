/* SPDX-License-Identifier: Apache-2.0
 *
 * FlashTrie's inner loop (Algorithm 3): a thread a proposal, a binary search among the
 * sorted labels of the children. The block decodes the labels once into shared memory
 * where they fit there (Appendix J says that the variants share this); else every
 * comparison decodes one.
 */
#include "paper_launch.cuh"

namespace ft::paper
{

/* Among n >= 1 ascending labels, the place of `token` or n. */
template <class Label>
static __device__ uint64_t find_label(const Label &label, uint64_t n, uint32_t token)
{
    uint64_t base = 0, left = n;
    while (left > 1) {
        const uint64_t half = left / 2;
        base += label(base + half - 1) < token ? half : 0;
        left -= half;
    }
    return label(base) == token ? base : n;
}

struct match_binary {
    template <class Extension> static __device__ void extend(Extension &x)
    {
        const ft_range c = x.children;
        const bool cached = c.count <= CACHED_LABELS;
        const uint32_t *labels = x.m.labels;
        if (c.count == 0)
            return;
        if (cached)
            x.cache_labels(0, (uint32_t)c.count);
        const auto in_cache = [&](uint64_t i) { return labels[i]; };
        const auto in_trie = [&](uint64_t i) { return x.view.label(c.first + i); };
        for (uint32_t k = threadIdx.x; k < x.q.n_proposals; k += THREADS) {
            uint32_t token;
            float sum;
            if (!x.admits(k, &token, &sum))
                continue;
            x.n_probes++;
            const uint64_t place = cached ? find_label(in_cache, c.count, token)
                                          : find_label(in_trie, c.count, token);
            x.watch.charge(FT_PHASE_EXPANSION);
            if (place < c.count)
                x.append_child(token, sum, c.first + place);
        }
    }
};

} // namespace ft::paper

FT_PAPER_TRIE_KERNELS(ft_paper_binary, ft::paper::match_binary);
