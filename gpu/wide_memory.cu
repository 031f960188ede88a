/* SPDX-License-Identifier: Apache-2.0 */
#include "wide_memory.h"

#include "launch.h"

ft_status ft_wide_memory_for(ft_wide_memory *m, const ft_gpu_question *q,
                             uint64_t spare, ft_gpu_wide *wide, ft_error *err)
{
    uint64_t n_slots = 64;
    while (n_slots < 2ull * q->n_proposals)
        n_slots *= 2;
    const uint64_t beam = q->beam, results = q->n_results;
    const uint64_t most = beam > results ? beam : results;
    const uint64_t ranked =
        results > FT_GPU_WIDE_RANKED ? results : (uint64_t)FT_GPU_WIDE_RANKED;
    const uint64_t cap_candidates = beam + spare;
    const uint64_t cap_findings = results + spare;
    const struct {
        ft_gpu_room *room;
        uint64_t bytes;
    } rooms[] = {
        {&m->sums, 4 * beam},
        {&m->children, sizeof(ft_range) * beam},
        {&m->before, 8 * beam},
        {&m->codes, 8ull * q->n_proposals},
        {&m->slots, 12 * n_slots},
        {&m->candidates, sizeof(ft_gpu_wide_item) * cap_candidates},
        {&m->findings, sizeof(ft_gpu_wide_item) * cap_findings},
        {&m->kept, sizeof(ft_gpu_wide_item) * most},
        {&m->ranked, sizeof(ft_gpu_wide_rank) * ranked},
        {&m->order, 4 * results},
        {&m->bins, 4 * 3 * FT_GPU_WIDE_BINS},
        {&m->block_sums, 8 * FT_GPU_WIDE_BLOCKS},
        {&m->counters, FT_GPU_COUNTER_BYTES},
    };
    for (const auto &r : rooms) {
        const ft_status st = ft_room_on_device(r.room, r.bytes, err);
        if (st != FT_OK)
            return st;
    }
    uint32_t *slots = (uint32_t *)m->slots.memory;
    *wide = {};
    wide->sums = (float *)m->sums.memory;
    wide->children = (ft_range *)m->children.memory;
    wide->before = (uint64_t *)m->before.memory;
    wide->codes = (uint32_t *)m->codes.memory;
    wide->tokens = wide->codes + q->n_proposals;
    wide->slot_code = slots;
    wide->slot_logp = slots + n_slots;
    wide->slot_proposal = slots + 2 * n_slots;
    wide->slot_mask = (uint32_t)(n_slots - 1);
    wide->candidates = (ft_gpu_wide_item *)m->candidates.memory;
    wide->findings = (ft_gpu_wide_item *)m->findings.memory;
    wide->kept = (ft_gpu_wide_item *)m->kept.memory;
    wide->cap_candidates = cap_candidates;
    wide->cap_findings = cap_findings;
    wide->ranked = (ft_gpu_wide_rank *)m->ranked.memory;
    wide->cap_ranked = ranked;
    wide->order = (uint32_t *)m->order.memory;
    wide->bins = (uint32_t *)m->bins.memory;
    wide->block_sums = (uint64_t *)m->block_sums.memory;
    wide->counters = m->counters.memory;
    return FT_OK;
}

void ft_wide_memory_close(ft_wide_memory *m)
{
    ft_gpu_room *const rooms[] = {
        &m->sums,       &m->children,   &m->before,  &m->codes,  &m->slots,
        &m->candidates, &m->findings,   &m->kept,    &m->ranked, &m->order,
        &m->bins,       &m->block_sums, &m->counters};
    for (ft_gpu_room *r : rooms)
        ft_room_free_on_device(r);
}
