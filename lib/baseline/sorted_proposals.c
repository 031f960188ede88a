/* SPDX-License-Identifier: Apache-2.0 */
#include "baseline/sorted_proposals.h"

#include <stdlib.h>

#include "base/mem.h"

static int by_token(const void *x, const void *y)
{
    const ft_proposal *a = x, *b = y;
    if (a->token != b->token)
        return (a->token > b->token) - (a->token < b->token);
    return (a->logp < b->logp) - (a->logp > b->logp);
}

ft_status ft_sorted_proposals_set(ft_sorted_proposals *s, const ft_cpu_query *q,
                                  uint32_t step, ft_error *err)
{
    void *room = s->v;
    const ft_status st = ft_reserve(&room, &s->cap, q->n_proposals, sizeof *s->v, err);
    s->v = room;
    if (st != FT_OK)
        return st;
    ft_proposal *list = s->v;
    const uint64_t at = (uint64_t)step * q->n_proposals;
    uint32_t m = 0, n = 0;
    for (uint32_t i = 0; i < q->n_proposals; i++)
        if (q->tokens[at + i] != FT_NO_TOKEN &&
            q->logp[at + i] > q->params->token_threshold)
            list[m++] = (ft_proposal){q->tokens[at + i], 0, q->logp[at + i]};
    qsort(list, m, sizeof *list, by_token);
    for (uint32_t i = 0; i < m; i++)
        if (n == 0 || list[n - 1].token != list[i].token)
            list[n++] = list[i];
    s->n = n;
    return FT_OK;
}

void ft_sorted_proposals_free(ft_sorted_proposals *s)
{
    free(s->v);
}
