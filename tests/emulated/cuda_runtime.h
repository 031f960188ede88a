/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for CUDA's, and for gpu/machine.cuh's functions: as much as the search
 * kernel uses, for compute capability 9.0.
 */
#ifndef EMULATED_CUDA_RUNTIME_H
#define EMULATED_CUDA_RUNTIME_H

#include <algorithm>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>

#include "machine.h"

#define __CUDA_ARCH__ 900
#define __device__
#define __global__
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_assume(condition) ((void)0)

#define threadIdx emulated::thread_index
#define blockIdx emulated::block_index
#define blockDim emulated::block_size
#define gridDim emulated::grid_size

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};

/* ---- between threads ---- */

static inline void __syncthreads()
{
    emulated::sync_block();
}

static inline int __syncthreads_or(int any)
{
    return emulated::sync_block(any);
}

static inline void __threadfence_system()
{
}

static inline void __syncwarp()
{
    emulated::sync_warp();
}

template <class To, class From> FT_UNSEEN To bits_as(From v)
{
    To to = {};
    memcpy(&to, &v, std::min(sizeof to, sizeof v));
    return to;
}

template <class T>
FT_UNSEEN T __shfl_sync(unsigned, T v, unsigned from, unsigned width = 32)
{
    const unsigned first = threadIdx.x % 32 / width * width;
    return bits_as<T>(emulated::exchange(bits_as<uint64_t>(v))[first + from % width]);
}

template <class T>
FT_UNSEEN T __shfl_up_sync(unsigned, T v, unsigned by, unsigned width = 32)
{
    const unsigned lane = threadIdx.x % 32;
    const uint64_t *all = emulated::exchange(bits_as<uint64_t>(v));
    return lane % width >= by ? bits_as<T>(all[lane - by]) : v;
}

template <class T> FT_UNSEEN T __shfl_xor_sync(unsigned, T v, unsigned with)
{
    return bits_as<T>(
        emulated::exchange(bits_as<uint64_t>(v))[(threadIdx.x % 32) ^ with]);
}

template <class Join> FT_UNSEEN unsigned reduce(unsigned v, const Join &join)
{
    const uint64_t *all = emulated::exchange(v);
    v = (unsigned)all[0];
    for (int lane = 1; lane < 32; lane++)
        v = join(v, (unsigned)all[lane]);
    return v;
}

static inline unsigned __reduce_or_sync(unsigned, unsigned v)
{
    return reduce(v, [](unsigned a, unsigned b) { return a | b; });
}

static inline unsigned __reduce_add_sync(unsigned, unsigned v)
{
    return reduce(v, [](unsigned a, unsigned b) { return a + b; });
}

static inline unsigned __reduce_max_sync(unsigned, unsigned v)
{
    return reduce(v, [](unsigned a, unsigned b) { return std::max(a, b); });
}

static inline unsigned __ballot_sync(unsigned, bool yes)
{
    return __reduce_or_sync(~0u, (unsigned)yes << threadIdx.x % 32);
}

static inline bool __any_sync(unsigned, bool yes)
{
    return __ballot_sync(~0u, yes) != 0;
}

template <class T, class Change> FT_UNSEEN T change(T *p, const Change &to)
{
    const T was = *p;
    emulated::atomic_access(p, sizeof *p, __builtin_return_address(0));
    *p = to(was);
    return was;
}

template <class T, class U> static inline T atomicAdd(T *p, U v)
{
    return change(p, [=](T was) { return (T)(was + v); });
}

template <class T, class U> static inline T atomicMax(T *p, U v)
{
    return change(p, [=](T was) { return std::max(was, (T)v); });
}

template <class T, class U> static inline T atomicMin(T *p, U v)
{
    return change(p, [=](T was) { return std::min(was, (T)v); });
}

template <class T, class U> static inline T atomicOr(T *p, U v)
{
    return change(p, [=](T was) { return (T)(was | v); });
}

template <class T, class U> static inline T atomicExch(T *p, U v)
{
    return change(p, [=](T) { return (T)v; });
}

template <class T, class U, class V> static inline T atomicCAS(T *p, U if_, V then)
{
    return change(p, [=](T was) { return was == (T)if_ ? (T)then : was; });
}

/* ---- of a thread alone ---- */

template <class A, class B> static inline std::common_type_t<A, B> min(A a, B b)
{
    typedef std::common_type_t<A, B> both;
    return std::min((both)a, (both)b);
}

template <class A, class B> static inline std::common_type_t<A, B> max(A a, B b)
{
    typedef std::common_type_t<A, B> both;
    return std::max((both)a, (both)b);
}

static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}

static inline int __popcll(unsigned long long v)
{
    return __builtin_popcountll(v);
}

static inline int __clz(unsigned v)
{
    return v ? __builtin_clz(v) : 32;
}

static inline int __clzll(unsigned long long v)
{
    return v ? __builtin_clzll(v) : 64;
}

static inline int __ffsll(long long v)
{
    return __builtin_ffsll(v);
}

static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> by % 32);
}

static inline float __fdividef(float a, float b)
{
    return a / b;
}

static inline float __double2float_rd(double d)
{
    const float f = (float)d;
    return f > d ? nextafterf(f, -INFINITY) : f;
}

static inline float __uint_as_float(unsigned v)
{
    return bits_as<float>(v);
}

static inline unsigned __float_as_uint(float v)
{
    return bits_as<unsigned>(v);
}

static inline long long __double_as_longlong(double v)
{
    return bits_as<long long>(v);
}

static inline long long clock64()
{
    return 0;
}

#define FT_BLOCK_MEMORY(name)                                                          \
    unsigned char *name = emulated::block_memory(emulated::block_rank())

namespace ft
{

template <class T> FT_UNSEEN T *in_block(T *mine, unsigned of)
{
    FT_BLOCK_MEMORY(raw);
    return (T *)((unsigned char *)mine - raw + emulated::block_memory(of));
}

static inline void begin_second_barrier(unsigned)
{
}

static inline void second_barrier(unsigned threads)
{
    emulated::sync_second(threads);
}

static inline unsigned shift_left(unsigned v, unsigned by)
{
    return by < 32 ? v << by : 0;
}

static inline unsigned low_bits(unsigned v, unsigned n)
{
    return n < 32 ? v & ((1u << n) - 1) : v;
}

static inline void fetch_far(const void *)
{
}

/* In a grid of one thread: kernels that are launched so share out their work. */
#define FT_LAUNCH(kernel, blocks, threads, ...)                                        \
    run_alone([&] { kernel(__VA_ARGS__); }, blocks, threads)

template <class Body> static inline void run_alone(const Body &body, unsigned, unsigned)
{
    blockDim = gridDim = {1};
    threadIdx = blockIdx = {0};
    body();
}

} // namespace ft

/* ---- the host's ---- */

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

template <class T> static inline cudaError_t cudaMalloc(T **p, size_t n)
{
    *p = (T *)malloc(n);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t n,
                                     cudaMemcpyKind)
{
    memcpy(to, from, n);
    return cudaSuccess;
}

static inline cudaError_t cudaMemset(void *to, int v, size_t n)
{
    memset(to, v, n);
    return cudaSuccess;
}

static inline cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}

static inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

static inline cudaError_t cudaDeviceSynchronize()
{
    return cudaSuccess;
}

static inline const char *cudaGetErrorString(cudaError_t)
{
    return "out of memory";
}

#endif
