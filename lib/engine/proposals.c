/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/proposals.h"

#include <stdlib.h>
#include <string.h>

#include "base/keysort.h"
#include "base/mem.h"

enum {
    LEAST_ROOM = 32,
    AHEAD = 128 /* look-ups whose cache misses overlap */
};

static ft_status reserve(ft_proposals *p, uint32_t n, ft_error *err)
{
    if (n <= p->cap)
        return FT_OK;
    uint64_t room = LEAST_ROOM;
    while (room < n)
        room *= 2;
    ft_proposal *list = ft_calloc(room, sizeof *list, err);
    ft_proposal_slot *slots = ft_calloc(room, sizeof *slots, err);
    uint64_t *keys = ft_calloc(room, 2 * sizeof *keys, err);
    if (!list || !slots || !keys) {
        free(list);
        free(slots);
        free(keys);
        return FT_ENOMEM;
    }
    ft_proposals_free(p);
    p->list = list;
    p->slots = slots;
    p->keys = keys;
    p->cap = (uint32_t)room;
    return FT_OK;
}

/* Best first, by way of the slots, which are not in use yet. */
static void sort(ft_proposals *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        p->keys[i] = (uint64_t)~ft_float_key(p->list[i].logp) << 32 | i;
        p->slots[i].p = p->list[i];
    }
    ft_keysort(p->keys, p->keys + p->cap, n);
    for (uint32_t i = 0; i < n; i++)
        p->list[i] = p->slots[(uint32_t)p->keys[i]].p;
}

static inline void fetch(const ft_code_memo *memo, atomic_uint *known, uint32_t token)
{
    if (token <= memo->trie->max_token)
        __builtin_prefetch(&known[token]);
}

/* Gather the admitted slots best first. Models hand them out in that order. */
static uint32_t gather(ft_proposals *p, const ft_code_memo *memo, uint32_t level,
                       const uint32_t *tokens, const float *logp, uint32_t n,
                       float token_threshold)
{
    const ft_trie *trie = memo->trie;
    ft_proposal *const list = p->list;
    atomic_uint *known =
        trie->ops->code ? memo->known[trie->ops->code_set(trie, level)] : NULL;
    uint32_t m = 0;
    bool ordered = true;
    for (uint32_t i = 0; known && i < n && i < AHEAD; i++)
        fetch(memo, known, tokens[i]);
    for (uint32_t i = 0; i < n; i++) {
        if (known && i + AHEAD < n)
            fetch(memo, known, tokens[i + AHEAD]);
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
        sort(p, m);
    return m;
}

/* A bit for each code; the slots that these make, which are returned, are empty. */
static uint32_t fill_filter(ft_proposals *p, uint32_t n)
{
    memset(p->filter, 0, sizeof p->filter);
    for (uint32_t i = 0; i < n; i++)
        p->filter[p->list[i].code / 64 % FT_FILTER_WORDS] |= UINT64_C(1)
                                                             << p->list[i].code % 64;
    uint32_t ones = 0;
    for (uint32_t word = 0; word < FT_FILTER_WORDS; word++) {
        p->before[word] = (uint16_t)ones;
        ones += ft_popcount(p->filter[word]);
    }
    memset(p->slots, 0xff, ones * sizeof *p->slots); /* FT_NO_TOKEN everywhere */
    return ones;
}

ft_status ft_proposals_build(ft_proposals *p, const ft_code_memo *memo, uint32_t level,
                             const uint32_t *tokens, const float *logp, uint32_t n,
                             float token_threshold, ft_error *err)
{
    const ft_status st = reserve(p, n, err);
    if (st != FT_OK)
        return st;
    const uint32_t m = gather(p, memo, level, tokens, logp, n, token_threshold);
    uint32_t n_slots = fill_filter(p, m);
    p->n = 0;
    for (uint32_t i = 0; i < m; i++) {
        const uint32_t code = p->list[i].code;
        ft_proposal_slot *s = &p->slots[ft_proposals_rank(p, code)];
        while (s->next != FT_NO_TOKEN && s->p.code != code)
            s = &p->slots[s->next];
        if (s->p.code == code)
            continue; /* again, with a log-prob that is no higher */
        if (s->p.code != FT_NO_TOKEN) {
            s->next = n_slots;
            s = &p->slots[n_slots++];
        }
        *s = (ft_proposal_slot){p->list[i], FT_NO_TOKEN};
        p->list[p->n++] = p->list[i];
    }
    return FT_OK;
}

void ft_proposals_free(ft_proposals *p)
{
    free(p->list);
    free(p->slots);
    free(p->keys);
    *p = (ft_proposals){0};
}
