/* SPDX-License-Identifier: Apache-2.0
 *
 * One step where each beam has its own proposals (SPEC: autoregressive use). The whole
 * grid searches the proposals among the children of their beams and hashes the children
 * that it finds, each with the highest log-prob that reaches it: a child has one parent
 * and one token, so that settles what a beam proposes twice. Then it goes over the hash
 * and keeps the best, with the grid-wide selection of wide.cuh.
 */
#ifndef FT_GPU_STEP_CUH
#define FT_GPU_STEP_CUH

#include "wide.cuh"

namespace ft
{

/* Slots between two selections; a power of two. */
enum { STEP_ROUND = FT_GPU_SPARE_ITEMS };

template <class View> struct stepper {
    wide_searcher<View> &s;
    const ft_gpu_extension &x;

    __device__ void clear()
    {
        for (uint64_t i = s.thread; i <= x.slot_mask; i += s.n_threads)
            x.slots[i] = {UINT64_MAX, 0, 0, 0, 0};
        for (uint64_t i = s.thread; i < x.n_beams; i += s.n_threads)
            s.w.children[i] = s.view.children(x.nodes[i], x.step);
        s.begin();
        s.sync();
    }

    __device__ void insert(uint64_t child, uint32_t beam, uint32_t token, float rho)
    {
        uint64_t i = (child * 0x9E3779B97F4A7C15ull >> 20) & x.slot_mask;
        for (;; i = (i + 1) & x.slot_mask) {
            const unsigned long long was =
                atomicCAS(&x.slots[i].child, ~0ull, (unsigned long long)child);
            if (was == ~0ull || was == child)
                break;
        }
        x.slots[i].beam = beam; /* the same from all that come here */
        x.slots[i].token = token;
        atomicMax(&x.slots[i].logp, ft_float_key(rho));
    }

    __device__ void join()
    {
        const uint64_t n_pairs = x.n_beams * x.n_proposals;
        for (uint64_t i = s.thread; i < n_pairs; i += s.n_threads) {
            const uint32_t beam = (uint32_t)(i / x.n_proposals), token = x.tokens[i];
            const ft_range children = s.w.children[beam];
            float sum;
            if (token == FT_NO_TOKEN || !children.count ||
                !ft_admit(x.sums[beam], x.logp[i], s.q.token_threshold,
                          s.q.sentence_threshold, &sum))
                continue;
            const uint64_t child = s.view.find(children, token, x.step);
            if (child != UINT64_MAX)
                insert(child, beam, token, x.logp[i]);
        }
        s.sync();
    }

    __device__ void keep(const ft_gpu_extension_slot &slot, bool there)
    {
        unsigned flags = 0;
        float sum = 0;
        if (there) {
            sum = x.sums[slot.beam] + key_float(slot.logp);
            flags = s.view.flags(slot.child, x.step);
        }
        s.append(&s.c.candidates, s.w.candidates, flags & FT_NODE_HAS_CHILDREN,
                 {sum, slot.child, slot.token, slot.beam, x.step, 0});
        s.append(&s.c.findings, s.w.findings, flags & FT_NODE_TERMINAL,
                 {(double)sum * x.norm, slot.child, slot.token, slot.beam, x.step, 0});
    }

    __device__ void run()
    {
        clear();
        join();
        for (uint64_t from = 0; from <= x.slot_mask; from += STEP_ROUND) {
            const uint64_t n = min((uint64_t)STEP_ROUND, x.slot_mask + 1 - from);
            for (uint64_t base = s.thread - threadIdx.x % 32; base < n;
                 base += s.n_threads) {
                const uint64_t i = from + base + threadIdx.x % 32; /* n is even in 32 */
                keep(x.slots[i], x.slots[i].child != ~0ull);
            }
            s.sync();
            s.trim(s.w.candidates, &s.c.candidates, s.q.beam);
            s.trim(s.w.findings, &s.c.findings, s.q.n_results);
            s.sync();
        }
        if (s.leader()) {
            x.found[0] = s.c.candidates.n;
            x.found[1] = s.c.findings.n;
        }
    }
};

template <class View>
__global__ void __launch_bounds__(WIDE_THREADS)
    extend(const __grid_constant__ View view, const __grid_constant__ ft_gpu_question q,
           const __grid_constant__ ft_gpu_wide w,
           const __grid_constant__ ft_gpu_extension x)
{
    FT_BLOCK_MEMORY(raw);
    wide_searcher<View> s(view, q, w, *reinterpret_cast<wide_block *>(raw));
    stepper<View>{s, x}.run();
}

} // namespace ft

#endif
