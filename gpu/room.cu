/* SPDX-License-Identifier: Apache-2.0 */
#include "room.h"

static const char way_out[] = "fewer queries a batch, or fewer slots, need less";

ft_status ft_room_on_device(ft_gpu_room *r, uint64_t bytes, ft_error *err)
{
    if (bytes <= r->bytes)
        return FT_OK;
    ft_room_free_on_device(r);
    const cudaError_t e = cudaMalloc(&r->memory, bytes);
    if (e == cudaErrorMemoryAllocation) {
        size_t free_bytes = 0, all_bytes = 0;
        cudaGetLastError();
        cudaMemGetInfo(&free_bytes, &all_bytes);
        r->memory = NULL;
        return ft_fail(err, FT_ENOMEM,
                       "the batch needs %llu more bytes of device memory, %llu of %llu "
                       "are free: %s",
                       (unsigned long long)bytes, (unsigned long long)free_bytes,
                       (unsigned long long)all_bytes, way_out);
    }
    const ft_status st = FT_CUDA(err, e);
    if (st == FT_OK)
        r->bytes = bytes;
    return st;
}

ft_status ft_room_pinned(ft_gpu_room *r, uint64_t bytes, ft_error *err)
{
    if (bytes <= r->bytes)
        return FT_OK;
    ft_room_free_pinned(r);
    const cudaError_t e = cudaHostAlloc(&r->memory, bytes, cudaHostAllocMapped);
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        r->memory = NULL;
        return ft_fail(err, FT_ENOMEM,
                       "the batch needs %llu more bytes of pinned host memory: %s",
                       (unsigned long long)bytes, way_out);
    }
    ft_status st = FT_CUDA(err, e);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaHostGetDevicePointer(&r->mapped, r->memory, 0));
    if (st == FT_OK)
        r->bytes = bytes;
    return st;
}

void ft_room_free_on_device(ft_gpu_room *r)
{
    cudaFree(r->memory);
    *r = {};
}

void ft_room_free_pinned(ft_gpu_room *r)
{
    cudaFreeHost(r->memory);
    *r = {};
}
