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

/* B and N as they are meant for K proposals. */
static inline ft_search_params ft_search_params_for(const ft_search_params *given,
                                                    uint32_t n_proposals)
{
    ft_search_params p = *given;
    p.beam = p.beam ? p.beam : n_proposals;
    p.n_results = p.n_results ? p.n_results : p.beam;
    return p;
}

/* FT_EINVAL: alpha out of range, or a threshold that is no number. */
ft_status ft_search_params_check(const ft_search_params *p, ft_error *err);

/* How grids get to a GPU and results back: it reads and writes the host's memory
 * itself, or copies run before and after. By default the engine chooses by what was
 * measured. */
typedef enum ft_transfer {
    FT_TRANSFER_DEFAULT,
    FT_TRANSFER_DIRECT,
    FT_TRANSFER_COPY
} ft_transfer;

enum { FT_MAX_SLOTS = 16 };

typedef struct ft_engine_options {
    uint32_t n_threads; /* 0: as many as there are processors */
    uint32_t device;    /* GPU number */
    uint32_t n_slots;   /* chunks in flight on a GPU, at most FT_MAX_SLOTS; 0: 15, of
                           2 MiB or more */
    ft_transfer in, out;
} ft_engine_options;

/* What searched a query. */
typedef enum ft_form {
    FT_FORM_THREADS, /* of the host */
    FT_FORM_CLUSTER, /* of a GPU's thread blocks */
    FT_FORM_BLOCK,
    FT_FORM_GRID,
    FT_N_FORMS
} ft_form;

/* What one step of one query did. */
typedef struct ft_step_stats {
    uint64_t beams;  /* beams that entered the step */
    uint64_t probes; /* child labels decoded, or proposals searched among children */
    uint64_t
        candidates; /* matches looked at: above both thresholds, not hopeless yet */
    uint64_t kept;  /* beams that the step left */
    double seconds;
    ft_form form; /* FT_FORM_THREADS for a step that did not run */
} ft_step_stats;

/* Where a query's time goes: the paper's four phases (section 4.3, Appendix D.4). */
typedef enum ft_phase {
    FT_PHASE_EXPANSION,  /* children of beams, and the proposals among them */
    FT_PHASE_VALIDATION, /* thresholds, terminal nodes, candidates put down */
    FT_PHASE_PRUNING,    /* selection of the best B */
    FT_PHASE_SYNC,       /* the rest: barriers, set-up, serialisation */
    FT_N_PHASES
} ft_phase;

/* Caller's arrays; either may be NULL. */
typedef struct ft_stats {
    ft_step_stats *steps; /* n_queries * n_steps; steps that did not run stay zero */

    /* n_queries * FT_N_PHASES: seconds, from an instrumented instantiation whose total
     * time is no figure of the engine's. Engines without `has_phases` leave it. */
    double *phases;
} ft_stats;

typedef struct ft_engine ft_engine;
typedef struct ft_loaded ft_loaded; /* a batch in the engine's own memory */
typedef struct ft_steps ft_steps;   /* a search a step at a time: engine/steps.h */

/* What is optional is NULL where an engine has no such thing. */
typedef struct ft_engine_ops {
    const char *name;    /* "cpu", "cuda", "marisa-opt", ... */
    const char *summary; /* one line for people */
    ft_status (*open)(ft_engine **out, const ft_index *index,
                      const ft_engine_options *options, ft_error *err);
    ft_status (*search)(ft_engine *e, const ft_batch *batch,
                        const ft_search_params *params, ft_results *out,
                        ft_stats *stats, ft_error *err);
    void (*close)(ft_engine *e);
    bool has_phases;
    bool takes_half; /* searches batches whose log-probs are binary16 */

    /* Optional: ft_engine_load and what goes with it. */
    ft_status (*load)(ft_engine *e, const ft_batch *batch, ft_loaded **out,
                      ft_error *err);
    ft_status (*search_loaded)(ft_engine *e, ft_loaded *batch,
                               const ft_search_params *params, ft_results *out,
                               ft_error *err);
    void (*unload)(ft_engine *e, ft_loaded *batch);

    /* Optional: ft_engine_notes. */
    void (*notes)(const ft_engine *e, char *text, size_t bytes);

    /* Optional: ft_steps_open. */
    ft_status (*steps)(ft_steps **out, ft_engine *e, const ft_search_params *params,
                       ft_error *err);

    /* Optional: what it runs on, in words; FT_EUNAVAILABLE: it cannot run here. NULL:
     * on the host's processors, anywhere. */
    ft_status (*describe)(uint32_t device, char *text, size_t bytes, ft_error *err);
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

/* The same over a batch that is in the engine's memory (a GPU's), again and again. With
 * out NULL the records are made and stay there. FT_EUNAVAILABLE: the engine has no
 * memory of its own. Unload what was loaded before the engine is closed. */
ft_status ft_engine_load(ft_engine *e, const ft_batch *batch, ft_loaded **out,
                         ft_error *err);
ft_status ft_engine_search_loaded(ft_engine *e, ft_loaded *batch,
                                  const ft_search_params *params, ft_results *out,
                                  ft_error *err);
void ft_engine_unload(ft_engine *e, ft_loaded *batch);

const char *ft_engine_name(const ft_engine *e);

/* Say in words what the engine called `name` runs on. FT_EINVAL: no such engine;
 * FT_EUNAVAILABLE: it cannot run here, and why. */
ft_status ft_engine_describe(const char *name, uint32_t device, char *text,
                             size_t bytes, ft_error *err);

/* What an open engine has to tell of itself so far, one line for people; may be empty.
 */
void ft_engine_notes(const ft_engine *e, char *text, size_t bytes);

/* Does the engine search batches whose log-probs are binary16 (ft_batch.half)? */
bool ft_engine_takes_half(const ft_engine *e);
void ft_engine_close(ft_engine *e);

/* Rows by number, NULL past the last; more rows can be added (baselines). */
const ft_engine_ops *ft_engine_row(uint32_t i);
ft_status ft_engine_register(const ft_engine_ops *ops, ft_error *err);

/* The CUDA engine: gpu/ has it, or gpu/absent.c in its place. */
extern const ft_engine_ops ft_engine_cuda;
extern const ft_engine_ops ft_engine_cpu;

#endif
