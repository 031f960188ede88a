/* SPDX-License-Identifier: Apache-2.0
 *
 * The ft_gpu_kernels of a view: View::of(index) makes it from a device index.
 */
#ifndef FT_GPU_LAUNCH_CUH
#define FT_GPU_LAUNCH_CUH

#include "launch.h"
#include "search.cuh"
#include "step.cuh"
#include "wide.cuh"

namespace ft
{

template <class View> struct kernels {
    typedef void (*kernel)(View, ft_gpu_question);

    enum { BLOCK_BYTES = 1024, PORTABLE_CLUSTER = 8 }; /* a block's, for the system */

    struct variant {
        kernel plain, timed;
        unsigned threads;
        size_t bytes;         /* of shared memory */
        size_t finding_bytes; /* of device memory */
        uint32_t trace_beams;
        bool tells; /* see ft_gpu_plan */
    };

    template <class Mem, int BLOCKS, bool CLUSTER> static variant make()
    {
        static_assert((sizeof(Mem) + BLOCK_BYTES) * BLOCKS <= 228 * 1024,
                      "a multiprocessor's shared memory on compute capability 9.0");
        return {search<View, Mem, BLOCKS, CLUSTER, false>,
                search<View, Mem, BLOCKS, CLUSTER, true>,
                Mem::THREADS,
                sizeof(Mem),
                Mem::SPARING ? Mem::FINDINGS * sizeof(finding) : 0,
                Mem::TRACE_BEAMS,
                Mem::TELLS};
    }

    /* Threads and registers as they measured best. Queries share a multiprocessor,
     * where one works while another is at a barrier, unless latency counts. */
    static variant of(const ft_gpu_plan *p)
    {
        if (p->room == FT_GPU_ROOM_SMALL)
            return p->for_latency ? make<memory<512, FT_GPU_ROOM_SMALL>, 1, false>()
                                  : make<memory<256, FT_GPU_ROOM_SMALL>, 4, false>();
        return p->cluster > 1 ? make<memory<512, FT_GPU_ROOM_LARGE>, 1, true>()
                              : make<memory<512, FT_GPU_ROOM_LARGE, true>, 2, false>();
    }

    static cudaLaunchConfig_t config(const variant &v, uint32_t cluster,
                                     uint32_t n_teams, cudaLaunchAttribute *attribute,
                                     cudaStream_t stream)
    {
        cudaLaunchConfig_t c = {};
        c.gridDim = dim3(n_teams * cluster);
        c.blockDim = dim3(v.threads);
        c.dynamicSmemBytes = v.bytes;
        c.stream = stream;
        attribute->id = cudaLaunchAttributeClusterDimension;
        attribute->val.clusterDim.x = cluster;
        attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
        c.attrs = attribute;
        c.numAttrs = cluster > 1 ? 1 : 0;
        return c;
    }

    /* Does a block's shared memory fit on this device? */
    static ft_status fits(const variant &v, bool *yes, ft_error *err)
    {
        int device = 0, most = 0;
        ft_status st = FT_CUDA(err, cudaGetDevice(&device));
        if (st == FT_OK)
            st = FT_CUDA(err,
                         cudaDeviceGetAttribute(
                             &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
        *yes = v.bytes <= (size_t)most;
        return st;
    }

    /* Let the kernel have it, and so large clusters. This loads the kernel. */
    static ft_status allow(kernel k, const variant &v, uint32_t cluster, ft_error *err)
    {
        ft_status st = FT_CUDA(
            err, cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)v.bytes));
        if (st == FT_OK && cluster > PORTABLE_CLUSTER)
            st =
                FT_CUDA(err, cudaFuncSetAttribute(
                                 k, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
        return st;
    }

    /* Clusters that fit on the device at a time; where it has none so large, 0. */
    static ft_status clusters(const variant &v, const cudaLaunchConfig_t *c, int *n,
                              ft_error *err)
    {
        const cudaError_t e = cudaOccupancyMaxActiveClusters(n, v.plain, c);
        if (e != cudaErrorInvalidClusterSize)
            return ft_cuda_status(err, e, "cudaOccupancyMaxActiveClusters");
        cudaGetLastError();
        *n = 0;
        return FT_OK;
    }

    static ft_status occupancy(ft_gpu_plan *p, ft_error *err)
    {
        const variant v = of(p);
        cudaLaunchAttribute attribute;
        const cudaLaunchConfig_t c = config(v, p->cluster, 1, &attribute, nullptr);
        int n = 0, device = 0, n_sm = 0;
        bool fit;
        p->n_teams = 0;
        p->finding_bytes = v.finding_bytes;
        p->trace_beams = v.trace_beams;
        p->tells = v.tells;
        ft_status st = fits(v, &fit, err);
        if (st != FT_OK || !fit)
            return st;
        st = allow(v.plain, v, p->cluster, err);
        if (st != FT_OK)
            return st;
        if (p->cluster > 1) {
            st = clusters(v, &c, &n, err);
        } else {
            st = FT_CUDA(err, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                  &n, v.plain, (int)v.threads, v.bytes));
            if (st == FT_OK)
                st = FT_CUDA(err, cudaGetDevice(&device));
            if (st == FT_OK)
                st = FT_CUDA(err, cudaDeviceGetAttribute(
                                      &n_sm, cudaDevAttrMultiProcessorCount, device));
            n *= n_sm;
        }
        if (st == FT_OK)
            p->n_teams = (uint32_t)n;
        return st;
    }

    static ft_status run(const ft_device_index *index, const ft_gpu_question *q,
                         const ft_gpu_plan *plan, ft_gpu_launcher *launcher,
                         cudaStream_t stream, ft_error *err)
    {
        const variant v = of(plan);
        const kernel k = q->phases ? v.timed : v.plain;
        if (q->phases) { /* seldom asked for, so not loaded before */
            const ft_status st = allow(k, v, plan->cluster, err);
            if (st != FT_OK)
                return st;
        }
        View view = View::of(index);
        if (plan->for_latency && plan->cluster == 1) {
            ft_gpu_question question = *q;
            void *args[] = {&view, &question};
            cudaKernelNodeParams p = {};
            p.func = (void *)k;
            p.gridDim = dim3(plan->n_teams);
            p.blockDim = dim3(v.threads);
            p.sharedMemBytes = (unsigned)v.bytes;
            p.kernelParams = args;
            return ft_gpu_launch_again(launcher, &p, stream, err);
        }
        cudaLaunchAttribute attribute;
        const cudaLaunchConfig_t c =
            config(v, plan->cluster, plan->n_teams, &attribute, stream);
        return FT_CUDA(err, cudaLaunchKernelEx(&c, k, view, *q));
    }

    /* A launch of a grid-wide kernel, with as many blocks as are at work at once on one
     * of so many parts of the chip. */
    static ft_status run_grid(const void *fn, void **args, uint32_t n_parts,
                              cudaStream_t stream, ft_error *err)
    {
        int n = 0, device = 0, n_sm = 0;
        ft_status st = FT_CUDA(err, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                        &n, fn, WIDE_THREADS, sizeof(wide_block)));
        if (st == FT_OK)
            st = FT_CUDA(err, cudaGetDevice(&device));
        if (st == FT_OK)
            st = FT_CUDA(err, cudaDeviceGetAttribute(
                                  &n_sm, cudaDevAttrMultiProcessorCount, device));
        if (st != FT_OK)
            return st;
        unsigned blocks = (unsigned)(n * n_sm) / n_parts;
        blocks = blocks < FT_GPU_WIDE_BLOCKS ? blocks : (unsigned)FT_GPU_WIDE_BLOCKS;
        return FT_CUDA(err, cudaLaunchCooperativeKernel(fn, dim3(blocks ? blocks : 1),
                                                        dim3(WIDE_THREADS), args,
                                                        sizeof(wide_block), stream));
    }

    static ft_status run_wide(const ft_device_index *index, const ft_gpu_question *q,
                              const ft_gpu_wide *wide, uint32_t n_parts,
                              cudaStream_t stream, ft_error *err)
    {
        View view = View::of(index);
        ft_gpu_question question = *q;
        ft_gpu_wide memory = *wide;
        void *args[] = {&view, &question, &memory};
        return run_grid((const void *)search_wide<View>, args, n_parts, stream, err);
    }

    static ft_status run_extend(const ft_device_index *index, const ft_gpu_question *q,
                                const ft_gpu_wide *wide, const ft_gpu_extension *x,
                                cudaStream_t stream, ft_error *err)
    {
        View view = View::of(index);
        ft_gpu_question question = *q;
        ft_gpu_wide memory = *wide;
        ft_gpu_extension extension = *x;
        void *args[] = {&view, &question, &memory, &extension};
        return run_grid((const void *)extend<View>, args, 1, stream, err);
    }
};

} // namespace ft

#define FT_GPU_KERNELS(name, layout, View)                                             \
    extern const ft_gpu_kernels name = {layout,                                        \
                                        ft::kernels<View>::occupancy,                  \
                                        View::make_tables,                             \
                                        ft::kernels<View>::run,                        \
                                        ft::kernels<View>::run_wide,                   \
                                        ft::kernels<View>::run_extend}

#endif
