/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/proposals.h"

#include <stdlib.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "base/mem.h"

enum { LEAST_ROOM = 32 };

static ft_status reserve(ft_proposals *p, uint32_t n, ft_error *err)
{
    if (n <= p->cap)
        return FT_OK;
    uint64_t room = LEAST_ROOM;
    while (room < n)
        room *= 2;
    ft_proposals fresh = {0};
    fresh.list = ft_calloc(room, sizeof *fresh.list, err);
    fresh.filter = ft_calloc(room, sizeof *fresh.filter, err);
    fresh.slots = ft_calloc(2 * room, sizeof *fresh.slots, err);
    if (!fresh.list || !fresh.filter || !fresh.slots) {
        ft_proposals_free(&fresh);
        return FT_ENOMEM;
    }
    ft_proposals_free(p);
    *p = fresh;
    p->cap = (uint32_t)room;
    return FT_OK;
}

static int by_logp(const void *x, const void *y)
{
    const ft_proposal *a = x, *b = y;
    return (a->logp < b->logp) - (a->logp > b->logp);
}

/* Gather the admitted slots best first. Models hand them out in that order. */
static uint32_t gather(ft_proposal *list, const ft_trie *trie, uint32_t level,
                       const uint32_t *tokens, const float *logp, uint32_t n,
                       float token_threshold)
{
    uint32_t m = 0;
    bool ordered = true;
    for (uint32_t i = 0; i < n; i++) {
        if (tokens[i] == FT_NO_TOKEN || !(logp[i] > token_threshold))
            continue;
        const uint32_t code =
            trie->ops->code ? trie->ops->code(trie, tokens[i], level) : tokens[i];
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
    p->filter_shift = 32 - (log_n + 6 > 32 ? 32 : log_n + 6);
    p->slot_shift = 32 - (log_n + 1);
    p->slot_mask = (UINT32_C(1) << (log_n + 1)) - 1;
    memset(p->filter, 0, sizeof *p->filter << log_n);
    memset(p->slots, 0xff, sizeof *p->slots * ((size_t)p->slot_mask + 1));
}

ft_status ft_proposals_build(ft_proposals *p, const ft_trie *trie, uint32_t level,
                             const uint32_t *tokens, const float *logp, uint32_t n,
                             float token_threshold, ft_error *err)
{
    const ft_status st = reserve(p, n, err);
    if (st != FT_OK)
        return st;
    const uint32_t m = gather(p->list, trie, level, tokens, logp, n, token_threshold);
    clear_hash(p, m);
    p->n = 0;
    for (uint32_t i = 0; i < m; i++) {
        const uint32_t code = p->list[i].code, hash = ft_code_hash(code);
        uint32_t s = hash >> p->slot_shift;
        while (p->slots[s].code != FT_NO_TOKEN && p->slots[s].code != code)
            s = (s + 1) & p->slot_mask;
        if (p->slots[s].code == code)
            continue; /* again, with a log-prob that is no higher */
        p->slots[s] = (ft_proposal_slot){code, p->n};
        const uint32_t bit = hash >> p->filter_shift;
        p->filter[bit / 64] |= UINT64_C(1) << (bit % 64);
        p->list[p->n++] = p->list[i];
    }
    return FT_OK;
}

#ifdef __AVX2__
/* Bit i: codes[i] may be proposed, for eight codes. */
static unsigned filter8(const ft_proposals *p, const uint32_t *codes)
{
    const __m256i code = _mm256_loadu_si256((const __m256i *)codes);
    const __m256i hash = _mm256_mullo_epi32(code, _mm256_set1_epi32((int)0x9E3779B1));
    const __m256i bit = _mm256_srl_epi32(hash, _mm_cvtsi32_si128((int)p->filter_shift));
    const __m256i words = _mm256_i32gather_epi32((const int *)(const void *)p->filter,
                                                 _mm256_srli_epi32(bit, 5), 4);
    const __m256i place = _mm256_sub_epi32(
        _mm256_set1_epi32(31), _mm256_and_si256(bit, _mm256_set1_epi32(31)));
    const __m256i top = _mm256_sllv_epi32(words, place); /* the bit, in the sign */
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(top));
}
#endif

uint32_t ft_proposals_filter(const ft_proposals *p, const uint32_t *codes, uint32_t n,
                             uint32_t *hits)
{
    uint32_t n_hits = 0, i = 0;
#ifdef __AVX2__
    for (; i + 8 <= n; i += 8)
        for (unsigned may = filter8(p, codes + i); may; may &= may - 1)
            hits[n_hits++] = i + (unsigned)__builtin_ctz(may);
#endif
    for (; i < n; i++) {
        hits[n_hits] = i;
        n_hits += ft_proposals_may_have(p, codes[i]);
    }
    return n_hits;
}

void ft_proposals_free(ft_proposals *p)
{
    free(p->list);
    free(p->filter);
    free(p->slots);
    *p = (ft_proposals){0};
}
