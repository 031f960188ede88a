/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/gridgen.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/score.h"
#include "workload/fixmath.h"

enum {
    N_PATHS = 1 << 16,
    PATIENCE = 32 /* draws a slot before a position is given up */
};

struct ft_gridgen {
    ft_gridgen_params p;
    ft_paths keys;  /* what tokens keys have at each position */
    ft_paths paths; /* of p.paths; none if these are keys */
    uint32_t *seen; /* hash set of the position at hand: token + 1, or 0 */
    uint32_t seen_mask;
    float *falls; /* slope * ln(rank + 1) */
};

static const struct preset {
    const char *name, *summary;
    uint32_t head;
    ft_paths_kind paths;
} presets[] = {
    {"full", "beams stay wide: deep paths, first tokens as likely as each other",
     UINT32_MAX, FT_PATHS_EVEN},
    {"popular", "wider still: deep paths, first tokens that lead to many", UINT32_MAX,
     FT_PATHS_DEEP},
    {"model", "a coherent head of 100 tokens a position, the rest noise", 100,
     FT_PATHS_KEYS},
    {"noise", "no head: tokens as frequent as keys have them at that position", 0,
     FT_PATHS_KEYS},
};

enum { N_PRESETS = sizeof presets / sizeof presets[0] };

const char *ft_gridgen_preset_name(uint32_t i)
{
    return i < N_PRESETS ? presets[i].name : NULL;
}

const char *ft_gridgen_preset_summary(uint32_t i)
{
    return i < N_PRESETS ? presets[i].summary : NULL;
}

ft_status ft_gridgen_preset(ft_gridgen_params *p, const char *name, ft_error *err)
{
    for (uint32_t i = 0; i < N_PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) {
            *p = (ft_gridgen_params){.seed = 1,
                                     .n_steps = 8,
                                     .n_proposals = 1000,
                                     .head = presets[i].head,
                                     .paths = presets[i].paths,
                                     .slope = 1.1,
                                     .jitter = 0.25};
            return FT_OK;
        }
    return ft_fail(err, FT_EINVAL, "no preset is called '%s'", name);
}

static ft_status check(const ft_gridgen_params *p, ft_error *err)
{
    if (p->n_steps < 1 || p->n_steps > FT_MAX_KEY_TOKENS)
        return ft_fail(err, FT_EINVAL, "steps must be 1 to %d", FT_MAX_KEY_TOKENS);
    if (p->n_proposals < 1 || p->n_proposals > 1u << 20)
        return ft_fail(err, FT_EINVAL, "proposals must be 1 to %u", 1u << 20);
    if (!(p->slope >= 0 && p->slope <= 16))
        return ft_fail(err, FT_EINVAL, "slope must be 0 to 16");
    if (!(p->jitter >= 0 && p->jitter <= 16))
        return ft_fail(err, FT_EINVAL, "jitter must be 0 to 16");
    return FT_OK;
}

ft_status ft_gridgen_open(ft_gridgen **out, const ft_trie *t,
                          const ft_gridgen_params *p, ft_error *err)
{
    ft_status st = check(p, err);
    if (st != FT_OK)
        return st;
    if (!t->level_order) /* paths are drawn by the numbers of nodes */
        return ft_fail(err, FT_EINVAL,
                       "grids cannot be drawn from an index with shared tails (another "
                       "layout of the same keys serves)");
    ft_gridgen *g = ft_new(ft_gridgen, err);
    if (!g)
        return FT_ENOMEM;
    g->p = *p;
    if (g->p.head > p->n_proposals)
        g->p.head = p->n_proposals;
    g->seen_mask = 4;
    while (g->seen_mask < 2 * p->n_proposals)
        g->seen_mask *= 2;
    g->seen = ft_calloc(g->seen_mask--, sizeof *g->seen, err);
    g->falls = ft_calloc(p->n_proposals, sizeof *g->falls, err);
    st = g->seen && g->falls ? FT_OK : FT_ENOMEM;
    if (st == FT_OK)
        st = ft_paths_sample(&g->keys, t, FT_PATHS_KEYS, N_PATHS, p->n_steps,
                             ft_mix(p->seed, 1), err);
    if (st == FT_OK && p->paths != FT_PATHS_KEYS)
        st = ft_paths_sample(&g->paths, t, p->paths, N_PATHS, p->n_steps,
                             ft_mix(p->seed, 2), err);
    if (st != FT_OK) {
        ft_gridgen_close(g);
        return st;
    }
    for (uint32_t i = 0; i < p->n_proposals; i++)
        g->falls[i] = (float)(p->slope * 0.6931471805599453 * ft_fix_log2(i + 1.0));
    *out = g;
    return FT_OK;
}

/* Add `token` to the row unless it is there. */
static bool add(ft_gridgen *g, uint32_t *row, uint32_t n, uint32_t token)
{
    if (token == FT_NO_TOKEN)
        return false;
    uint32_t i = (token * UINT32_C(0x9E3779B1)) >> 7 & g->seen_mask;
    for (; g->seen[i]; i = (i + 1) & g->seen_mask)
        if (g->seen[i] == token + 1)
            return false;
    g->seen[i] = token + 1;
    row[n] = token;
    return true;
}

/* A path near `centre`: the distance is as likely small as large, on a scale of
 * logarithms. */
static const uint32_t *near_path(const ft_paths *p, uint32_t centre, uint64_t random)
{
    const unsigned octave = (unsigned)ft_scale(17, random);
    const uint32_t distance = (uint32_t)(random & (((uint64_t)1 << octave) - 1));
    const uint32_t i =
        (random >> 32 & 1 ? centre + distance : centre - distance) % p->n;
    return p->tokens + (uint64_t)i * p->n_steps;
}

/* What the head is drawn from. */
static const ft_paths *head_of(const ft_gridgen *g)
{
    return g->p.paths == FT_PATHS_KEYS ? &g->keys : &g->paths;
}

static void fill_row(ft_gridgen *g, uint32_t t, uint32_t centre, uint64_t paths,
                     uint64_t noise, uint32_t *row)
{
    const uint32_t k = g->p.n_proposals;
    const ft_paths *head = head_of(g);
    const uint32_t most = t < head->n_steps ? k : 0; /* no path is longer */
    uint32_t n = 0;
    memset(g->seen, 0, (g->seen_mask + 1u) * sizeof *g->seen);
    /* All positions draw the same paths, in the same order: that makes them coherent.
     */
    for (uint64_t i = 0; n < most && n < g->p.head && i < (uint64_t)PATIENCE * k; i++) {
        const uint64_t random = i ? ft_random(&paths) : 0;
        n += add(g, row, n, near_path(head, centre, random)[t]);
    }
    for (uint64_t i = 0; n < most && i < (uint64_t)PATIENCE * k; i++) {
        const uint64_t path = ft_scale(g->keys.n, ft_random(&noise));
        n += add(g, row, n, g->keys.tokens[path * g->keys.n_steps + t]);
    }
    for (; n < k; n++)
        row[n] = FT_NO_TOKEN;
}

/* 0 to 1 */
static inline float unit(uint64_t random)
{
    return (float)(random >> 40) / 16777216.0f;
}

/* By rank: the first token stands apart from the rest, some positions are surer than
 * others; logits in steps of 1/16, as bfloat16 has them between 8 and 16. */
static void fill_logp(const ft_gridgen *g, uint64_t random, float *row)
{
    const float top = -0.25f - 2.0f * unit(ft_random(&random));
    const float gap = 4.0f * unit(ft_random(&random));
    row[0] = top;
    for (uint32_t i = 1; i < g->p.n_proposals; i++) {
        const float stray =
            (2.0f * unit(ft_random(&random)) - 1.0f) * (float)g->p.jitter;
        const float fall = gap + g->falls[i] + stray;
        row[i] =
            fall < 0.0f ? top : top - (float)(int32_t)(fall * 16.0f + 0.5f) / 16.0f;
    }
}

void ft_gridgen_query(ft_gridgen *g, uint64_t query, uint32_t *tokens, float *logp)
{
    uint64_t random = ft_mix(g->p.seed + UINT64_C(0x67726964), query);
    const ft_paths *head = head_of(g);
    const uint32_t centre = (uint32_t)ft_scale(head->n, ft_random(&random));
    const uint64_t paths = ft_random(&random);
    for (uint32_t t = 0; t < g->p.n_steps; t++) {
        const uint64_t at = (uint64_t)t * g->p.n_proposals;
        fill_row(g, t, centre, paths, ft_random(&random), tokens + at);
        fill_logp(g, ft_random(&random), logp + at);
    }
}

void ft_gridgen_close(ft_gridgen *g)
{
    if (!g)
        return;
    ft_paths_free(&g->keys);
    ft_paths_free(&g->paths);
    free(g->seen);
    free(g->falls);
    free(g);
}
