/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches of grids that are on the device already.
 */
#include "engine.h"

struct ft_loaded {
    ft_slot slot; /* its input is the batch */
    ft_gpu_grids grids;
};

void ft_cuda_unload(ft_engine *engine, ft_loaded *l)
{
    cudaSetDevice(((ft_cuda_engine *)engine)->device);
    ft_slot_close(&l->slot);
    free(l);
}

ft_status ft_cuda_load(ft_engine *engine, const ft_batch *batch, ft_loaded **out,
                       ft_error *err)
{
    ft_cuda_engine *e = (ft_cuda_engine *)engine;
    ft_loaded *l = ft_new(ft_loaded, err);
    if (!l)
        return FT_ENOMEM;
    ft_status st = FT_CUDA(err, cudaSetDevice(e->device));
    if (st == FT_OK)
        st = ft_slot_open(&l->slot, err);
    if (st == FT_OK)
        st = ft_slot_send(&l->slot, batch, 0, batch->n_queries, false, e->pool,
                          &l->grids, err);
    if (st == FT_OK)
        st = FT_CUDA(err, cudaStreamSynchronize(l->slot.stream));
    if (st != FT_OK) {
        ft_cuda_unload(engine, l);
        return st;
    }
    ft_room_free_pinned(&l->slot.pinned_in);
    *out = l;
    return FT_OK;
}

ft_status ft_cuda_search_loaded(ft_engine *engine, ft_loaded *l,
                                const ft_search_params *params, ft_results *out,
                                ft_error *err)
{
    ft_cuda_engine *e = (ft_cuda_engine *)engine;
    ft_slot *s = &l->slot;
    const ft_search_params p = ft_search_params_for(params, l->grids.n_proposals);
    const ft_gpu_plan plan = ft_cuda_plan(e, &l->grids, &p);
    ft_gpu_question q;
    ft_status st = FT_CUDA(err, cudaSetDevice(e->device));
    if (st == FT_OK) /* records that stay are not counted, so counters start anew */
        st = ft_slot_reset(s, err);
    if (st == FT_OK && out)
        st = ft_results_reset(out, l->grids.n_queries, err);
    if (st == FT_OK)
        st = ft_slot_ask(s, &l->grids, &p, &plan, true, NULL, &q, err);
    if (st == FT_OK)
        st = ft_cuda_launch(e, s, &plan, &q, err);
    if (st == FT_OK)
        st = ft_slot_fetch(s, out != NULL, err);
    if (st == FT_OK)
        st = ft_slot_wait(s, err);
    if (st != FT_OK || !out)
        return st;
    out->offset[0] = 0;
    return ft_slot_gather(s, e->pool, out, err);
}
