/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine table: everything that searches (production, baselines, ablations) is one
 * row and is called the same way. Same library, grid and parameters: same bytes.
 */
#ifndef FT_ENGINE_ENGINE_H
#define FT_ENGINE_ENGINE_H

#include "base/score.h"
#include "io/grid.h"
#include "io/results.h"
#include "trie/index.h"

typedef struct ft_search_params {
    uint32_t beam;      /* B >= 1; 0: K */
    uint32_t n_results; /* N >= 1; 0: B */
    double alpha;       /* length normalisation, |alpha| <= FT_MAX_ALPHA */
    float token_threshold, sentence_threshold; /* strict; -INFINITY: none */
} ft_search_params;

/* alpha 5, no thresholds, N = B = K. */
#define FT_SEARCH_DEFAULTS                                                             \
    ((ft_search_params){0, 0, 5.0, -__builtin_inff(), -__builtin_inff()})

typedef struct ft_engine_options {
    uint32_t n_threads; /* 0: as many as there are processors */
    int device;         /* GPU number */
} ft_engine_options;

/* What one step of one query did. */
typedef struct ft_step_stats {
    uint64_t beams;  /* beams that entered the step */
    uint64_t probes; /* child labels decoded, or proposals searched among children */
    uint64_t
        candidates; /* matches looked at: above both thresholds, not hopeless yet */
    uint64_t kept;  /* beams that the step left */
    double seconds;
} ft_step_stats;

/* Caller's array of n_queries * n_steps; steps that did not run stay zero. */
typedef struct ft_stats {
    ft_step_stats *steps;
} ft_stats;

typedef struct ft_engine ft_engine;

typedef struct ft_engine_ops {
    const char *name;    /* "cpu", "cuda", "marisa-opt", ... */
    const char *summary; /* one line for people */
    ft_status (*open)(ft_engine **out, const ft_index *index,
                      const ft_engine_options *options, ft_error *err);
    ft_status (*search)(ft_engine *e, const ft_batch *batch,
                        const ft_search_params *params, ft_results *out,
                        ft_stats *stats, ft_error *err);
    void (*close)(ft_engine *e);
} ft_engine_ops;

/* Every engine's struct starts with this. */
struct ft_engine {
    const ft_engine_ops *ops;
};

/* Open the engine called `name`: "auto" is the GPU where there is one, else the CPU.
 * FT_EINVAL: no such engine; FT_EUNAVAILABLE: it cannot run here. The index outlives
 * the engine. */
ft_status ft_engine_open(ft_engine **out, const char *name, const ft_index *index,
                         const ft_engine_options *options, ft_error *err);

/* Search a batch. out is reset and holds one wire record a query. stats may be NULL. */
ft_status ft_engine_search(ft_engine *e, const ft_batch *batch,
                           const ft_search_params *params, ft_results *out,
                           ft_stats *stats, ft_error *err);
const char *ft_engine_name(const ft_engine *e);
void ft_engine_close(ft_engine *e);

/* Rows by number, NULL past the last; more rows can be added (baselines). */
const ft_engine_ops *ft_engine_row(uint32_t i);
ft_status ft_engine_register(const ft_engine_ops *ops, ft_error *err);

/* The CUDA engine: gpu/ has it, or gpu/absent.c in its place. */
extern const ft_engine_ops ft_engine_cuda;
extern const ft_engine_ops ft_engine_cpu;

#endif
