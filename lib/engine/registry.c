/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 32 };

static const ft_engine_ops *rows[MAX_ROWS] = {&ft_engine_cpu, &ft_engine_cuda};
static uint32_t n_rows = 2;

const ft_engine_ops *ft_engine_row(uint32_t i)
{
    return i < n_rows ? rows[i] : NULL;
}

ft_status ft_engine_register(const ft_engine_ops *ops, ft_error *err)
{
    for (uint32_t i = 0; i < n_rows; i++)
        if (rows[i] == ops)
            return FT_OK;
    if (n_rows == MAX_ROWS)
        return ft_fail(err, FT_EINVAL, "too many engines");
    rows[n_rows++] = ops;
    return FT_OK;
}

static ft_status open_auto(ft_engine **out, const ft_index *index,
                           const ft_engine_options *options, ft_error *err)
{
    const ft_status st = ft_engine_cuda.open(out, index, options, err);
    return st == FT_EUNAVAILABLE ? ft_engine_cpu.open(out, index, options, err) : st;
}

ft_status ft_engine_open(ft_engine **out, const char *name, const ft_index *index,
                         const ft_engine_options *options, ft_error *err)
{
    if (strcmp(name, "auto") == 0)
        return open_auto(out, index, options, err);
    for (uint32_t i = 0; i < n_rows; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i]->open(out, index, options, err);
    return ft_fail(err, FT_EINVAL, "no engine is called '%s'", name);
}

ft_status ft_search_params_check(const ft_search_params *p, ft_error *err)
{
    if (!(fabs(p->alpha) <= FT_MAX_ALPHA))
        return ft_fail(err, FT_EINVAL, "alpha %g is not within -%g to %g", p->alpha,
                       FT_MAX_ALPHA, FT_MAX_ALPHA);
    if (isnan(p->token_threshold) || isnan(p->sentence_threshold))
        return ft_fail(err, FT_EINVAL, "a threshold is not a number");
    return FT_OK;
}

static ft_status check_half(const ft_engine *e, const ft_batch *batch, ft_error *err)
{
    if (batch->half && !e->ops->takes_half)
        return ft_fail(err, FT_EINVAL, "engine %s takes no binary16 log-probs",
                       e->ops->name);
    return FT_OK;
}

ft_status ft_engine_search(ft_engine *e, const ft_batch *batch,
                           const ft_search_params *params, ft_results *out,
                           ft_stats *stats, ft_error *err)
{
    const ft_search_params p = ft_search_params_for(params, batch->n_proposals);
    ft_status st = ft_search_params_check(params, err);
    if (st == FT_OK)
        st = check_half(e, batch, err);
    return st == FT_OK ? e->ops->search(e, batch, &p, out, stats, err) : st;
}

ft_status ft_engine_load(ft_engine *e, const ft_batch *batch, ft_loaded **out,
                         ft_error *err)
{
    if (!e->ops->load)
        return ft_fail(err, FT_EUNAVAILABLE,
                       "engine %s has no memory of its own for grids", e->ops->name);
    const ft_status st = check_half(e, batch, err);
    return st == FT_OK ? e->ops->load(e, batch, out, err) : st;
}

ft_status ft_engine_search_loaded(ft_engine *e, ft_loaded *batch,
                                  const ft_search_params *params, ft_results *out,
                                  ft_error *err)
{
    const ft_status st = ft_search_params_check(params, err);
    return st == FT_OK ? e->ops->search_loaded(e, batch, params, out, err) : st;
}

void ft_engine_unload(ft_engine *e, ft_loaded *batch)
{
    if (batch)
        e->ops->unload(e, batch);
}

void ft_engine_notes(const ft_engine *e, char *text, size_t bytes)
{
    if (bytes)
        text[0] = 0;
    if (e->ops->notes)
        e->ops->notes(e, text, bytes);
}

bool ft_engine_takes_half(const ft_engine *e)
{
    return e->ops->takes_half;
}

ft_status ft_engine_describe(const char *name, uint32_t device, char *text,
                             size_t bytes, ft_error *err)
{
    for (uint32_t i = 0; i < n_rows; i++) {
        if (strcmp(rows[i]->name, name) != 0)
            continue;
        if (rows[i]->describe)
            return rows[i]->describe(device, text, bytes, err);
        snprintf(text, bytes, "the processors of the host");
        return FT_OK;
    }
    return ft_fail(err, FT_EINVAL, "no engine is called '%s'", name);
}

const char *ft_engine_name(const ft_engine *e)
{
    return e->ops->name;
}

void ft_engine_close(ft_engine *e)
{
    if (e)
        e->ops->close(e);
}
