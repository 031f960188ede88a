/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA calls become statuses: FT_CUDA(err, call) is FT_OK, or FT_ENOMEM for memory, or
 * FT_EIO, with the call and CUDA's words in *err.
 */
#ifndef FT_GPU_CUDA_H
#define FT_GPU_CUDA_H

#include <cuda_runtime.h>

#include "lib.h"

static inline ft_status ft_cuda_status(ft_error *err, cudaError_t e, const char *call)
{
    if (e == cudaSuccess)
        return FT_OK;
    cudaGetLastError(); /* an error that is not sticky does not meet the next call */
    return ft_fail(err, e == cudaErrorMemoryAllocation ? FT_ENOMEM : FT_EIO,
                   "cuda: %s: %s", call, cudaGetErrorString(e));
}

#define FT_CUDA(err, call) ft_cuda_status((err), (call), #call)

#endif
