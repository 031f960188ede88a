/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks of the grid that search one query after another (paper, section 5: a fixed
 * partition a query), their barrier, and their clock.
 */
#ifndef FT_GPU_PAPER_PARTITION_CUH
#define FT_GPU_PAPER_PARTITION_CUH

#include <cooperative_groups.h>
#include <cuda/atomic>

#include "paper_question.h"

namespace ft::paper
{

enum { THREADS = 512 }; /* of a block (section 2.2) */

struct partition {
    uint32_t number, rank, size; /* of this block among `size` */
    uint32_t *arrived;           /* zero at launch */
    uint32_t goal;               /* of the barrier to come */

    /* A barrier of the partition's threads; what they wrote before it is seen after it.
     * The launch is cooperative: all blocks are running. */
    __device__ void sync()
    {
        __syncthreads();
        if (threadIdx.x == 0) {
            cuda::atomic_ref<uint32_t, cuda::thread_scope_device> counter(*arrived);
            goal += size;
            counter.fetch_add(1, cuda::memory_order_acq_rel);
            while ((int32_t)(counter.load(cuda::memory_order_acquire) - goal) < 0)
                ;
        }
        __syncthreads();
    }

    __device__ bool leader() const
    {
        return rank == 0 && threadIdx.x == 0;
    }

    /* This thread's number among the partition's, and how many there are. */
    __device__ uint32_t thread() const
    {
        return rank * THREADS + threadIdx.x;
    }

    __device__ uint32_t n_threads() const
    {
        return size * THREADS;
    }
};

/* Cycles by phase, taken by a partition's leader (Appendix D.4); without Timed,
 * nothing. */
template <bool Timed> struct stopwatch {
    long long last, spent[FT_N_PHASES];

    __device__ void start()
    {
        for (int i = 0; i < FT_N_PHASES; i++)
            spent[i] = 0;
        last = clock64();
    }

    /* The time since the last call was this phase's. */
    __device__ void charge(ft_phase phase)
    {
        const long long now = clock64();
        spent[phase] += now - last;
        last = now;
    }

    /* It was a mixture of expansion and validation, in the ratio that `leader` has
     * measured. */
    __device__ void charge_split(const stopwatch &leader)
    {
        const long long now = clock64();
        const double e = (double)leader.spent[FT_PHASE_EXPANSION];
        const double v = (double)leader.spent[FT_PHASE_VALIDATION];
        const double whole = (double)(now - last);
        const long long part = e + v > 0 ? (long long)(whole * (v / (e + v))) : 0;
        spent[FT_PHASE_VALIDATION] += part;
        spent[FT_PHASE_EXPANSION] += now - last - part;
        last = now;
    }

    __device__ void write(unsigned long long *phases) const
    {
        for (int i = 0; i < FT_N_PHASES; i++)
            phases[i] = (unsigned long long)spent[i];
    }
};

template <> struct stopwatch<false> {
    __device__ void start()
    {
    }

    __device__ void charge(ft_phase)
    {
    }

    __device__ void charge_split(const stopwatch &)
    {
    }

    __device__ void write(unsigned long long *) const
    {
    }
};

} // namespace ft::paper

#endif
