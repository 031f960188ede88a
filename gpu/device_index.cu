/* SPDX-License-Identifier: Apache-2.0 */
#include "device_index.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_STAGES = 2, STAGE_BYTES = 16 << 20 };

/* Pinned memory through which pageable memory goes: one stage fills while another is on
 * the bus. */
struct stages {
    void *memory[N_STAGES];
    cudaEvent_t done[N_STAGES];
    cudaStream_t stream;
    unsigned next;
};

static void close_stages(stages *s)
{
    for (int i = 0; i < N_STAGES; i++) {
        if (s->memory[i])
            cudaFreeHost(s->memory[i]);
        if (s->done[i])
            cudaEventDestroy(s->done[i]);
    }
    if (s->stream)
        cudaStreamDestroy(s->stream);
}

static ft_status open_stages(stages *s, ft_error *err)
{
    ft_status st =
        FT_CUDA(err, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    for (int i = 0; i < N_STAGES && st == FT_OK; i++) {
        st = FT_CUDA(err, cudaMallocHost(&s->memory[i], STAGE_BYTES));
        if (st == FT_OK)
            st = FT_CUDA(err,
                         cudaEventCreateWithFlags(&s->done[i], cudaEventDisableTiming));
    }
    return st;
}

static ft_status copy(stages *s, void *to, const void *from, uint64_t bytes,
                      ft_error *err)
{
    for (uint64_t done = 0; done < bytes;) {
        const unsigned i = s->next++ % N_STAGES;
        const size_t n =
            bytes - done < STAGE_BYTES ? (size_t)(bytes - done) : (size_t)STAGE_BYTES;
        ft_status st = FT_CUDA(err, cudaEventSynchronize(s->done[i]));
        if (st != FT_OK)
            return st;
        memcpy(s->memory[i], (const uint8_t *)from + done, n);
        st = FT_CUDA(err, cudaMemcpyAsync((uint8_t *)to + done, s->memory[i], n,
                                          cudaMemcpyHostToDevice, s->stream));
        if (st == FT_OK)
            st = FT_CUDA(err, cudaEventRecord(s->done[i], s->stream));
        if (st != FT_OK)
            return st;
        done += n;
    }
    return FT_OK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ft_status copy_all(ft_device_index *d, stages *s, ft_error *err)
{
    ft_status st = open_stages(s, err);
    for (uint32_t i = 0; i < d->n_sections && st == FT_OK; i++) {
        const ft_section_info info = ft_index_section(d->index, i);
        st = FT_CUDA(err,
                     cudaMalloc(&d->sections[i], info.raw_bytes ? info.raw_bytes : 1));
        if (st == FT_OK)
            st = copy(s, d->sections[i], info.data, info.raw_bytes, err);
        if (st == FT_OK)
            d->bytes += info.raw_bytes;
    }
    return st == FT_OK ? FT_CUDA(err, cudaStreamSynchronize(s->stream)) : st;
}

static ft_status check_room(const ft_index *index, ft_error *err)
{
    size_t free_bytes, all_bytes;
    uint64_t need = 0;
    for (uint32_t i = 0; i < ft_index_n_sections(index); i++)
        need += ft_index_section(index, i).raw_bytes;
    const ft_status st = FT_CUDA(err, cudaMemGetInfo(&free_bytes, &all_bytes));
    if (st == FT_OK && need > free_bytes)
        return ft_fail(err, FT_ENOMEM,
                       "%s: the index needs %llu bytes of device memory, %llu of %llu "
                       "are free",
                       ft_index_name(index), (unsigned long long)need,
                       (unsigned long long)free_bytes, (unsigned long long)all_bytes);
    return st;
}

ft_status ft_device_index_open(ft_device_index *d, const ft_index *index, ft_error *err)
{
    ft_device_index fresh = {};
    fresh.index = index;
    fresh.trie = ft_index_trie(index);
    fresh.n_sections = ft_index_n_sections(index);
    ft_status st = check_room(index, err);
    if (st != FT_OK)
        return st;
    fresh.sections = (void **)ft_calloc(fresh.n_sections, sizeof *fresh.sections, err);
    if (!fresh.sections)
        return FT_ENOMEM;
    stages s = {};
    const double start = now();
    st = copy_all(&fresh, &s, err);
    close_stages(&s);
    fresh.seconds = now() - start;
    if (st != FT_OK) {
        ft_device_index_close(&fresh);
        return st;
    }
    *d = fresh;
    return FT_OK;
}

void ft_device_index_close(ft_device_index *d)
{
    for (uint32_t i = 0; d->sections && i < d->n_sections; i++)
        cudaFree(d->sections[i]);
    cudaFree(d->tables);
    cudaFree(d->starts);
    cudaFree(d->lists);
    cudaFree(d->leaves);
    free(d->sections);
    *d = {};
}

const void *ft_device_address(const ft_device_index *d, const void *host)
{
    const uint8_t *p = (const uint8_t *)host;
    for (uint32_t i = 0; i < d->n_sections; i++) {
        const ft_section_info info = ft_index_section(d->index, i);
        const uint8_t *data = (const uint8_t *)info.data;
        if (p && p >= data && p < data + info.raw_bytes)
            return (const uint8_t *)d->sections[i] + (p - data);
    }
    return NULL;
}
