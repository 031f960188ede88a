/* SPDX-License-Identifier: Apache-2.0
 *
 * For engines that extend a frontier by means of their own (a GPU): the rest of a
 * search by steps is engine/steps.c's. The CPU's are in engine/cpu.h.
 */
#ifndef FT_ENGINE_STEPS_OPEN_H
#define FT_ENGINE_STEPS_OPEN_H

#include "engine/steps.h"
#include "engine/topset.h"

/* A frontier and what is proposed for it. */
typedef struct ft_extension {
    const uint64_t *nodes; /* n_beams */
    const float *sums;
    uint64_t n_beams;
    const uint32_t *tokens; /* [n_beams][n_proposals] */
    const float *logp;
    uint32_t n_proposals;
    uint32_t step; /* depth of the nodes */
    double norm;   /* of results of this step */
    const ft_search_params *params;
} ft_extension;

typedef struct ft_steps_ops {
    /* Push at least the best B beam candidates and the best N result candidates. */
    ft_status (*extend)(void *state, const ft_extension *x, ft_topset *beams,
                        ft_topset *results, ft_error *err);
    void (*close)(void *state);
} ft_steps_ops;

/* Takes over `state`, also when it fails. */
ft_status ft_steps_adapt(ft_steps **out, const ft_steps_ops *ops, void *state,
                         const ft_trie *trie, const ft_search_params *params,
                         ft_error *err);

#endif
