/* SPDX-License-Identifier: Apache-2.0
 *
 * The ft_gpu_kernels of a view: View::of(index) makes it from a device index.
 */
#ifndef FT_GPU_LAUNCH_CUH
#define FT_GPU_LAUNCH_CUH

#include "launch.h"
#include "search.cuh"
#include "wide.cuh"

namespace ft
{

template <class View> struct kernels {
    enum { SMALL_THREADS = 256, LARGE_THREADS = 1024, STATIC_BYTES = 64 };
    static_assert(sizeof(memory<LARGE_THREADS, FT_GPU_ROOM_LARGE>) + STATIC_BYTES <=
                      227 * 1024,
                  "a block's shared memory on compute capability 9.0");

    typedef void (*kernel)(View, ft_gpu_question);

    static kernel of(uint32_t room)
    {
        return room == FT_GPU_ROOM_SMALL
                   ? search<View, SMALL_THREADS, FT_GPU_ROOM_SMALL>
                   : search<View, LARGE_THREADS, FT_GPU_ROOM_LARGE>;
    }

    static cudaLaunchConfig_t config(uint32_t room, uint32_t cluster, uint32_t n_teams,
                                     cudaLaunchAttribute *attribute,
                                     cudaStream_t stream)
    {
        const bool small = room == FT_GPU_ROOM_SMALL;
        cudaLaunchConfig_t c = {};
        c.gridDim = dim3(n_teams * cluster);
        c.blockDim = dim3(small ? SMALL_THREADS : LARGE_THREADS);
        c.dynamicSmemBytes = small ? sizeof(memory<SMALL_THREADS, FT_GPU_ROOM_SMALL>)
                                   : sizeof(memory<LARGE_THREADS, FT_GPU_ROOM_LARGE>);
        c.stream = stream;
        attribute->id = cudaLaunchAttributeClusterDimension;
        attribute->val.clusterDim.x = cluster;
        attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
        c.attrs = attribute;
        c.numAttrs = cluster > 1 ? 1 : 0;
        return c;
    }

    /* May the kernel have the shared memory that it needs, on this device? */
    static ft_status allow_memory(uint32_t room, bool *fits, ft_error *err)
    {
        cudaLaunchAttribute attribute;
        const int bytes = (int)config(room, 1, 1, &attribute, nullptr).dynamicSmemBytes;
        int device = 0, most = 0;
        ft_status st = FT_CUDA(err, cudaGetDevice(&device));
        if (st == FT_OK)
            st = FT_CUDA(err,
                         cudaDeviceGetAttribute(
                             &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
        *fits = bytes + (int)STATIC_BYTES <= most;
        if (st == FT_OK && *fits)
            st = FT_CUDA(
                err, cudaFuncSetAttribute(
                         of(room), cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        return st;
    }

    static ft_status occupancy(uint32_t room, uint32_t cluster, uint32_t *n_teams,
                               ft_error *err)
    {
        cudaLaunchAttribute attribute;
        cudaLaunchConfig_t c = config(room, cluster, 1, &attribute, nullptr);
        int n = 0, device = 0, n_sm = 0;
        bool fits;
        *n_teams = 0;
        ft_status st = allow_memory(room, &fits, err);
        if (st != FT_OK || !fits)
            return st;
        if (cluster > 1) {
            st = FT_CUDA(err, cudaOccupancyMaxActiveClusters(&n, of(room), &c));
        } else {
            st = FT_CUDA(err, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                  &n, of(room), c.blockDim.x, c.dynamicSmemBytes));
            if (st == FT_OK)
                st = FT_CUDA(err, cudaGetDevice(&device));
            if (st == FT_OK)
                st = FT_CUDA(err, cudaDeviceGetAttribute(
                                      &n_sm, cudaDevAttrMultiProcessorCount, device));
            n *= n_sm;
        }
        if (st == FT_OK)
            *n_teams = (uint32_t)n;
        return st;
    }

    static ft_status run(const ft_device_index *index, const ft_gpu_question *q,
                         const ft_gpu_plan *plan, cudaStream_t stream, ft_error *err)
    {
        cudaLaunchAttribute attribute;
        const cudaLaunchConfig_t c =
            config(plan->room, plan->cluster, plan->n_teams, &attribute, stream);
        return FT_CUDA(err,
                       cudaLaunchKernelEx(&c, of(plan->room), View::of(index), *q));
    }

    static ft_status run_wide(const ft_device_index *index, const ft_gpu_question *q,
                              const ft_gpu_wide *wide, cudaStream_t stream,
                              ft_error *err)
    {
        static_assert(sizeof(wide_counters) <= FT_GPU_COUNTER_BYTES, "room");
        int n = 0, device = 0, n_sm = 0;
        ft_status st = FT_CUDA(err, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                        &n, search_wide<View>, WIDE_THREADS, 0));
        if (st == FT_OK)
            st = FT_CUDA(err, cudaGetDevice(&device));
        if (st == FT_OK)
            st = FT_CUDA(err, cudaDeviceGetAttribute(
                                  &n_sm, cudaDevAttrMultiProcessorCount, device));
        if (st != FT_OK)
            return st;
        View view = View::of(index);
        ft_gpu_question question = *q;
        ft_gpu_wide memory = *wide;
        void *args[] = {&view, &question, &memory};
        return FT_CUDA(err, cudaLaunchCooperativeKernel(
                                search_wide<View>, dim3((unsigned)(n * n_sm)),
                                dim3(WIDE_THREADS), args, 0, stream));
    }
};

} // namespace ft

#define FT_GPU_KERNELS(name, layout, View)                                             \
    extern const ft_gpu_kernels name = {layout, ft::kernels<View>::occupancy,          \
                                        View::make_tables, ft::kernels<View>::run,     \
                                        ft::kernels<View>::run_wide}

#endif
