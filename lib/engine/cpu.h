/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU engine with a policy: what production and the CPU baselines share.
 */
#ifndef FT_ENGINE_CPU_H
#define FT_ENGINE_CPU_H

#include "engine/cpu_query.h"

/* Open an engine of the row `ops`, whose search and close are the two below. */
ft_status ft_cpu_open(ft_engine **out, const ft_engine_ops *ops,
                      const ft_cpu_policy *policy, const ft_index *index,
                      const ft_engine_options *options, ft_error *err);
ft_status ft_cpu_search(ft_engine *engine, const ft_batch *batch,
                        const ft_search_params *params, ft_results *out,
                        ft_stats *stats, ft_error *err);
void ft_cpu_close(ft_engine *engine);

/* A search by steps (engine/steps.h) with a policy. */
typedef struct ft_steps_means {
    const ft_cpu_policy *policy; /* q->tokens and q->logp are [beam][proposal] */
    void *state;                 /* its own; policy->close frees it, also on failure */
    const ft_trie *trie;
    const ft_code_memo *memo; /* these two NULL if the policy needs none */
    const ft_root_parts *root;
    ft_pool *pool; /* NULL for a team of one */
    uint32_t n_workers;
} ft_steps_means;

ft_status ft_steps_new(ft_steps **out, const ft_steps_means *means,
                       const ft_search_params *params, ft_error *err);

#endif
