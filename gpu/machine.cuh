/* SPDX-License-Identifier: Apache-2.0
 *
 * What C++ has no words for, as functions: instructions, a block's memory, a launch.
 * Other compilers than nvcc get them from what stands in for <cuda_runtime.h>, which is
 * how tests/emulated runs the kernels without a GPU.
 */
#ifndef FT_GPU_MACHINE_CUH
#define FT_GPU_MACHINE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef FT_RACECHECK
#include <cuda/barrier>
#endif

#ifdef __CUDACC__
/* Declares the shared memory that the launch gave to the block. */
#define FT_BLOCK_MEMORY(name) extern __shared__ __align__(16) unsigned char name[]

#define FT_LAUNCH(kernel, blocks, threads, ...) kernel<<<blocks, threads>>>(__VA_ARGS__)

namespace ft
{

/* Where `mine`, in shared memory, lies in block `of` of the cluster. Volatile: computed
 * where it is used, not kept in registers. */
template <class T> static __device__ inline T *in_block(T *mine, unsigned of)
{
    T *there;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(mine), "r"(of));
    return there;
}

/* A second barrier of the block, of `threads` of its threads. All begin it once. */
#ifndef FT_RACECHECK
static __device__ inline void begin_second_barrier(int)
{
}

static __device__ inline void second_barrier(int threads)
{
    asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
}
#else
/* For compute-sanitizer's racecheck: it (2025.3) takes a bar.sync of some of a block's
 * threads amiss, and reports races across later barriers of all. This one it knows. */
typedef cuda::barrier<cuda::thread_scope_block> known_barrier;

static __device__ inline known_barrier *the_second_barrier()
{
    __shared__ __align__(
        alignof(known_barrier)) unsigned char memory[sizeof(known_barrier)];
    return reinterpret_cast<known_barrier *>(memory);
}

static __device__ inline void begin_second_barrier(int threads)
{
    if (threadIdx.x == 0)
        init(the_second_barrier(), threads);
    __syncthreads();
}

static __device__ inline void second_barrier(int)
{
    the_second_barrier()->arrive_and_wait();
}
#endif

/* By 32 and more gives 0. */
static __device__ inline unsigned shift_left(unsigned v, unsigned by)
{
    unsigned r;
    asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(v), "r"(by));
    return r;
}

/* The lowest n bits, n <= 32. */
static __device__ inline unsigned low_bits(unsigned v, unsigned n)
{
    asm("szext.clamp.u32 %0, %0, %1;" : "+r"(v) : "r"(n));
    return v;
}

static __device__ inline void fetch_far(const void *p) /* into the chip's cache */
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

} // namespace ft
#endif

#endif
