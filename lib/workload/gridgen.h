/* SPDX-License-Identifier: Apache-2.0
 *
 * Proposal grids as a non-autoregressive model makes them, drawn from a library
 * (paper Appendix K): at each position a coherent head, the tokens of real paths that
 * lie near each other, and a tail of noise, drawn from the tokens that keys have at
 * that position. Log-probs fall with the rank, in the steps of a model that computes in
 * bfloat16: ties are common.
 *
 * The same index contents, parameters and query number give the same grid on any
 * machine, whatever the layout, and in any order.
 */
#ifndef FT_WORKLOAD_GRIDGEN_H
#define FT_WORKLOAD_GRIDGEN_H

#include "workload/paths.h"

typedef struct ft_gridgen_params {
    uint64_t seed;
    uint32_t n_steps;     /* T: 1 to 65535 */
    uint32_t n_proposals; /* K: 1 to 2^20 */
    uint32_t head;        /* tokens of a position from real paths; beyond K is K */
    ft_paths_kind paths;  /* which those are */
    double slope;  /* nats that a log-prob falls as the rank grows e-fold: 0 to 16 */
    double jitter; /* nats that it strays, either way: 0 to 16 */
} ft_gridgen_params;

/* Presets by number; NULL past the last. */
const char *ft_gridgen_preset_name(uint32_t i);
const char *ft_gridgen_preset_summary(uint32_t i);

/* FT_EINVAL for an unknown name. */
ft_status ft_gridgen_preset(ft_gridgen_params *p, const char *name, ft_error *err);

typedef struct ft_gridgen ft_gridgen;

/* The trie is read here and not kept. FT_EINVAL: parameters out of range, or a library
 * without keys. */
ft_status ft_gridgen_open(ft_gridgen **out, const ft_trie *t,
                          const ft_gridgen_params *p, ft_error *err);

/* One thread at a time: tokens[T][K] and logp[T][K] of query number `query`; slots are
 * empty (FT_NO_TOKEN) only where the library has no more tokens to offer. */
void ft_gridgen_query(ft_gridgen *g, uint64_t query, uint32_t *tokens, float *logp);
void ft_gridgen_close(ft_gridgen *g);

#endif
