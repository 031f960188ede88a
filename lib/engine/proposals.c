/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/proposals.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    LEAST_ROOM = 32,
    AHEAD = 16 /* look-ups whose cache misses overlap */
};

static ft_status reserve(ft_proposals *p, uint32_t n, ft_error *err)
{
    if (n <= p->cap)
        return FT_OK;
    uint64_t room = LEAST_ROOM;
    while (room < n)
        room *= 2;
    ft_proposal *list = ft_calloc(room, sizeof *list, err);
    ft_proposal_slot *slots = ft_calloc(2 * room, sizeof *slots, err);
    if (!list || !slots) {
        free(list);
        free(slots);
        return FT_ENOMEM;
    }
    ft_proposals_free(p);
    p->list = list;
    p->slots = slots;
    p->cap = (uint32_t)room;
    return FT_OK;
}

static int by_logp(const void *x, const void *y)
{
    const ft_proposal *a = x, *b = y;
    return (a->logp < b->logp) - (a->logp > b->logp);
}

/* Gather the admitted slots best first. Models hand them out in that order. */
static uint32_t gather(ft_proposal *list, const ft_code_memo *memo, uint32_t level,
                       const uint32_t *tokens, const float *logp, uint32_t n,
                       float token_threshold)
{
    const ft_trie *trie = memo->trie;
    atomic_uint *known =
        trie->ops->code ? memo->known[trie->ops->code_set(trie, level)] : NULL;
    uint32_t m = 0;
    bool ordered = true;
    for (uint32_t i = 0; i < n; i++) {
        if (known && i + AHEAD < n && tokens[i + AHEAD] <= trie->max_token)
            __builtin_prefetch(&known[tokens[i + AHEAD]]);
        if (tokens[i] == FT_NO_TOKEN || !(logp[i] > token_threshold))
            continue;
        const uint32_t code = trie->ops->code
                                  ? ft_code_remembered(memo, known, tokens[i], level)
                                  : tokens[i];
        if (code == FT_NO_TOKEN)
            continue;
        ordered &= m == 0 || list[m - 1].logp >= logp[i];
        list[m++] = (ft_proposal){tokens[i], code, logp[i]};
    }
    if (!ordered)
        qsort(list, m, sizeof *list, by_logp);
    return m;
}

/* The hash's size follows this position's n, not the room: few proposals, few lines. */
static void clear_hash(ft_proposals *p, uint32_t n)
{
    unsigned log_n = 5;
    while ((UINT64_C(1) << log_n) < n)
        log_n++;
    p->slot_shift = 32 - (log_n + 1);
    p->slot_mask = (UINT32_C(1) << (log_n + 1)) - 1;
    memset(p->filter, 0, sizeof p->filter);
    memset(p->slots, 0xff, sizeof *p->slots * ((size_t)p->slot_mask + 1));
}

ft_status ft_proposals_build(ft_proposals *p, const ft_code_memo *memo, uint32_t level,
                             const uint32_t *tokens, const float *logp, uint32_t n,
                             float token_threshold, ft_error *err)
{
    const ft_status st = reserve(p, n, err);
    if (st != FT_OK)
        return st;
    const uint32_t m = gather(p->list, memo, level, tokens, logp, n, token_threshold);
    clear_hash(p, m);
    p->n = 0;
    for (uint32_t i = 0; i < m; i++) {
        const uint32_t code = p->list[i].code;
        uint32_t s = ft_code_hash(code) >> p->slot_shift;
        while (p->slots[s].code != FT_NO_TOKEN && p->slots[s].code != code)
            s = (s + 1) & p->slot_mask;
        if (p->slots[s].code == code)
            continue; /* again, with a log-prob that is no higher */
        p->slots[s] = (ft_proposal_slot){code, p->n};
        p->filter[code / 64 % FT_FILTER_WORDS] |= UINT64_C(1) << (code % 64);
        p->list[p->n++] = p->list[i];
    }
    return FT_OK;
}

void ft_proposals_free(ft_proposals *p)
{
    free(p->list);
    free(p->slots);
    *p = (ft_proposals){0};
}
