/* SPDX-License-Identifier: Apache-2.0
 *
 * The search a step at a time, for models that propose per beam (SPEC: autoregressive
 * use). The caller gives proposals for every beam of the frontier and gets the next
 * frontier, best first, with each beam's parent, so that it can reorder its cache. The
 * first frontier is one beam, the empty sequence.
 */
#ifndef FT_ENGINE_STEPS_H
#define FT_ENGINE_STEPS_H

#include "engine/engine.h"

/* Best first; the arrays are the search's and live until its next call. */
typedef struct ft_frontier {
    uint64_t n_beams;
    const uint32_t *parents; /* place in the frontier before */
    const uint32_t *tokens;
    const float *sums;
} ft_frontier;

/* Start a search; params->beam is at least 1. FT_EUNAVAILABLE: the engine has no such
 * search. Closed before the engine is; between two of its calls the engine may do other
 * things. */
ft_status ft_steps_open(ft_steps **out, ft_engine *e, const ft_search_params *params,
                        ft_error *err);

/* Extend the frontier. tokens[b][k] and logp[b][k] are the proposals of beam b, with
 * the meaning of a grid's (io/grid.h): sets, FT_NO_TOKEN an empty slot, no NaN or +inf.
 * An empty frontier stays empty. After a failure every later call fails the same. */
ft_status ft_steps_next(ft_steps *s, const uint32_t *tokens, const float *logp,
                        uint32_t n_proposals, ft_frontier *out, ft_error *err);

/* The best N results of all steps so far, as one wire record; the search may go on, but
 * not after a failure. */
ft_status ft_steps_results(ft_steps *s, ft_results *out, ft_error *err);
void ft_steps_close(ft_steps *s);

#endif
