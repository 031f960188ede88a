/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher.h"

void ft_gpu_launcher_close(ft_gpu_launcher *l)
{
    if (l->ready)
        cudaGraphExecDestroy(l->ready);
    if (l->graph)
        cudaGraphDestroy(l->graph);
    *l = {};
}

static ft_status make_ready(ft_gpu_launcher *l, const cudaKernelNodeParams *p,
                            ft_error *err)
{
    ft_gpu_launcher_close(l);
    ft_status st = FT_CUDA(err, cudaGraphCreate(&l->graph, 0));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaGraphAddKernelNode(&l->node, l->graph, NULL, 0, p));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaGraphInstantiate(&l->ready, l->graph, 0));
    if (st != FT_OK) {
        ft_gpu_launcher_close(l);
        return st;
    }
    l->kernel = p->func;
    return FT_OK;
}

ft_status ft_gpu_launch_again(ft_gpu_launcher *l, const cudaKernelNodeParams *p,
                              cudaStream_t stream, ft_error *err)
{
    const bool ready = l->ready && l->kernel == p->func;
    const ft_status st =
        ready ? FT_CUDA(err, cudaGraphExecKernelNodeSetParams(l->ready, l->node, p))
              : make_ready(l, p, err);
    return st == FT_OK ? FT_CUDA(err, cudaGraphLaunch(l->ready, stream)) : st;
}
