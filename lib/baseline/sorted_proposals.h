/* SPDX-License-Identifier: Apache-2.0
 *
 * The proposals of one position as the CPU baselines take them.
 */
#ifndef FT_BASELINE_SORTED_PROPOSALS_H
#define FT_BASELINE_SORTED_PROPOSALS_H

#include "engine/cpu_query.h"

typedef struct ft_sorted_proposals {
    ft_proposal *v; /* n, ascending by token, each once with its highest log-prob */
    uint32_t n;
    uint64_t cap;
} ft_sorted_proposals;

/* Those of position `step` that are above the token threshold. */
ft_status ft_sorted_proposals_set(ft_sorted_proposals *s, const ft_cpu_query *q,
                                  uint32_t step, ft_error *err);
void ft_sorted_proposals_free(ft_sorted_proposals *s);

#endif
