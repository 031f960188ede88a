/* SPDX-License-Identifier: Apache-2.0 */
#include "wide_memory.h"

#include "launch.h"

ft_status ft_wide_memory_for(ft_wide_memory *m, const ft_gpu_question *q,
                             ft_gpu_wide *wide, ft_error *err)
{
    uint64_t n_slots = 64, n_sorted = 1;
    while (n_slots < 2ull * q->n_proposals)
        n_slots *= 2;
    while (n_sorted < q->n_results)
        n_sorted *= 2;
    const uint64_t beam = q->beam, results = q->n_results;
    const uint64_t most = beam + 1 > results ? beam + 1 : results;
    const uint64_t cap_candidates = beam + FT_GPU_SPARE_ITEMS;
    const uint64_t cap_findings = results + FT_GPU_SPARE_ITEMS > n_sorted
                                      ? results + FT_GPU_SPARE_ITEMS
                                      : n_sorted;
    const struct {
        ft_gpu_room *room;
        uint64_t bytes;
    } rooms[] = {
        {&m->nodes, 8 * beam},
        {&m->sums, 4 * beam},
        {&m->children, sizeof(ft_range) * beam},
        {&m->items, 8 * most},
        {&m->codes, 4ull * q->n_proposals},
        {&m->slots, 12 * n_slots},
        {&m->candidates, sizeof(ft_gpu_wide_item) * cap_candidates},
        {&m->findings, sizeof(ft_gpu_wide_item) * cap_findings},
        {&m->kept, sizeof(ft_gpu_wide_item) * most},
        {&m->bins, 4 * 2048},
        {&m->counters, FT_GPU_COUNTER_BYTES},
    };
    for (const auto &r : rooms) {
        const ft_status st = ft_room_on_device(r.room, r.bytes, err);
        if (st != FT_OK)
            return st;
    }
    uint32_t *slots = (uint32_t *)m->slots.memory;
    *wide = {};
    wide->nodes = (uint64_t *)m->nodes.memory;
    wide->sums = (float *)m->sums.memory;
    wide->children = (ft_range *)m->children.memory;
    wide->items_before = (uint64_t *)m->items.memory;
    wide->codes = (uint32_t *)m->codes.memory;
    wide->slot_code = slots;
    wide->slot_logp = slots + n_slots;
    wide->slot_proposal = slots + 2 * n_slots;
    wide->slot_mask = (uint32_t)(n_slots - 1);
    wide->candidates = (ft_gpu_wide_item *)m->candidates.memory;
    wide->findings = (ft_gpu_wide_item *)m->findings.memory;
    wide->kept = (ft_gpu_wide_item *)m->kept.memory;
    wide->cap_candidates = cap_candidates;
    wide->cap_findings = cap_findings;
    wide->bins = (uint32_t *)m->bins.memory;
    wide->counters = m->counters.memory;
    return FT_OK;
}

void ft_wide_memory_close(ft_wide_memory *m)
{
    ft_gpu_room *const rooms[] = {&m->nodes, &m->sums,  &m->children,   &m->items,
                                  &m->codes, &m->slots, &m->candidates, &m->findings,
                                  &m->kept,  &m->bins,  &m->counters};
    for (ft_gpu_room *r : rooms)
        ft_room_free_on_device(r);
}
