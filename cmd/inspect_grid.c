/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-inspect grid: what a proposal grid holds, as a search sees it.
 */
#include "inspect.h"

#include <math.h>
#include <stdlib.h>

#include "grid_input.h"

enum { BATCH = 16 };

static const uint64_t no_query = UINT64_MAX;

typedef struct proposal {
    uint32_t token;
    float logp;
} proposal;

typedef struct grid_options {
    const char *vocab;
    uint64_t query;
    uint32_t top;
} grid_options;

/* One query under the eyes: sorted is room for the proposals of a position. */
typedef struct viewer {
    const grid_options *options;
    ft_inspect in;
    ft_grid *grid;
    ft_batch batch;
    proposal *sorted;
    bool found;
} viewer;

static int by_token(const void *x, const void *y)
{
    const proposal *a = x, *b = y;
    if (a->token != b->token)
        return a->token < b->token ? -1 : 1;
    return a->logp > b->logp ? -1 : a->logp < b->logp;
}

static int best_first(const void *x, const void *y)
{
    const proposal *a = x, *b = y;
    if (a->logp != b->logp)
        return a->logp > b->logp ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token;
}

/* The set that position t of query q proposes: by token, each once with its best
 * log-prob. Returns its size; *n_filled counts duplicates too. */
static uint32_t position_set(viewer *v, uint32_t q, uint32_t t, uint32_t *n_filled)
{
    const ft_batch *b = &v->batch;
    const uint64_t at = ((uint64_t)q * b->n_steps + t) * b->n_proposals;
    uint32_t n = 0, n_unique = 0;
    for (uint32_t k = 0; k < b->n_proposals; k++)
        if (b->tokens[at + k] != FT_NO_TOKEN)
            v->sorted[n++] = (proposal){b->tokens[at + k], b->logp[at + k]};
    qsort(v->sorted, n, sizeof *v->sorted, by_token);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || v->sorted[i].token != v->sorted[n_unique - 1].token)
            v->sorted[n_unique++] = v->sorted[i];
    *n_filled = n;
    return n_unique;
}

static ft_status print_header(const viewer *v, ft_error *err)
{
    const ft_grid_shape *s = ft_grid_shape_of(v->grid);
    ft_status st = ft_sink_printf(v->in.out, err, "positions    %u\nproposals    %u\n",
                                  s->n_steps, s->n_proposals);
    if (st == FT_OK)
        st = s->vocab ? ft_sink_printf(v->in.out, err, "vocabulary   %u\n", s->vocab)
                      : ft_sink_printf(v->in.out, err, "vocabulary   unknown\n");
    if (st == FT_OK)
        st = ft_sink_printf(v->in.out, err, "log-probs    %s\nquery ids    %s\n",
                            s->half ? "binary16" : "binary32",
                            s->has_ids ? "yes" : "no");
    if (st != FT_OK)
        return st;
    if (s->n_queries == FT_GRID_UNTIL_END)
        st = ft_sink_printf(v->in.out, err, "queries      until the end\n");
    else
        st = ft_sink_printf(v->in.out, err, "queries      %llu\n",
                            (unsigned long long)s->n_queries);
    return st == FT_OK
               ? ft_sink_printf(v->in.out, err, "\n%20s %12s %12s %14s\n", "query",
                                "filled", "duplicates", "best log-prob")
               : st;
}

static ft_status print_summary(viewer *v, uint32_t q, ft_error *err)
{
    uint64_t n_filled = 0, n_duplicates = 0;
    float best = -INFINITY;
    for (uint32_t t = 0; t < v->batch.n_steps; t++) {
        uint32_t filled;
        const uint32_t n = position_set(v, q, t, &filled);
        n_filled += filled;
        n_duplicates += filled - n;
        for (uint32_t i = 0; i < n; i++)
            best = v->sorted[i].logp > best ? v->sorted[i].logp : best;
    }
    return ft_sink_printf(v->in.out, err, "%20llu %12llu %12llu %14.6g\n",
                          (unsigned long long)v->batch.ids[q],
                          (unsigned long long)n_filled,
                          (unsigned long long)n_duplicates, (double)best);
}

static ft_status print_proposals(viewer *v, uint32_t q, ft_error *err)
{
    ft_status st = FT_OK;
    for (uint32_t t = 0; t < v->batch.n_steps; t++) {
        uint32_t filled;
        const uint32_t n = position_set(v, q, t, &filled);
        qsort(v->sorted, n, sizeof *v->sorted, best_first);
        for (uint32_t i = 0; st == FT_OK && i < n && i < v->options->top; i++) {
            st = ft_sink_printf(v->in.out, err, "%u\t%u\t%u\t%.9g", t, i,
                                v->sorted[i].token, (double)v->sorted[i].logp);
            if (st == FT_OK)
                st = ft_inspect_texts(v->in.out, v->in.vocab, &v->sorted[i].token, 1,
                                      err);
            if (st == FT_OK)
                st = ft_sink_write(v->in.out, "\n", 1, err);
        }
    }
    return st;
}

static ft_status view_batch(viewer *v, ft_error *err)
{
    ft_status st = FT_OK;
    for (uint32_t q = 0; st == FT_OK && q < v->batch.n_queries && !v->found; q++) {
        if (v->options->query == no_query) {
            st = print_summary(v, q, err);
        } else if (v->batch.ids[q] == v->options->query) {
            st = print_proposals(v, q, err);
            v->found = true;
        }
    }
    return st == FT_OK ? ft_sink_flush(v->in.out, err) : st;
}

/* What a damaged grid holds before the damage is shown, as a search would answer it. */
static ft_status view(viewer *v, const ft_operands *operands, ft_error *err)
{
    uint32_t i = 0;
    ft_status got, st = ft_grid_input_open(&v->grid, operands, &i, err);
    if (st != FT_OK)
        return st;
    if (i + 1 < operands->n)
        return ft_fail(err, FT_EINVAL, "%s: no NumPy file, so what is '%s' for?",
                       operands->v[i], operands->v[i + 1]);
    v->sorted =
        ft_calloc(ft_grid_shape_of(v->grid)->n_proposals, sizeof *v->sorted, err);
    if (!v->sorted)
        return FT_ENOMEM;
    if (v->options->query == no_query)
        st = print_header(v, err);
    while (st == FT_OK && !v->found) {
        ft_error second;
        got = ft_grid_read(v->grid, &v->batch, BATCH, true, 0, err);
        if (v->batch.n_queries)
            st = view_batch(v, got == FT_OK ? err : &second);
        if (got != FT_OK && !v->found)
            return got;
        if (v->batch.n_queries == 0)
            break;
    }
    if (st == FT_OK && v->options->query != no_query && !v->found)
        st = ft_fail(err, FT_EFORMAT, "%s: has no query %llu",
                     operands->n ? operands->v[0] : "(standard input)",
                     (unsigned long long)v->options->query);
    return st;
}

int ft_inspect_grid(const ft_subcommand *self, int argc, char **argv)
{
    grid_options o = {.query = no_query};
    const ft_option rows[] = {
        {FT_OPT_U64, 0, "query", &o.query, "N", "print the proposals of query N"},
        {FT_OPT_U32, 0, "top", &o.top, "M", "no more than the M best of each position",
         .min = 1, .max = UINT32_MAX},
        {FT_OPT_STRING, 0, "vocab", &o.vocab, "FILE", "show the texts of tokens"},
        FT_OPTIONS_END};
    const ft_command c = {
        "ft-inspect", self->name, self->summary, "[FILE [LOGPROBS]]", rows, 0, 2};
    viewer v = {.options = &o};
    ft_operands operands;
    ft_error err;
    ft_status st;
    const int rc = ft_command_parse(&c, argc, argv, &operands);
    if (rc != FT_GO_ON)
        return rc;
    if (o.query == no_query && (o.top || o.vocab))
        return ft_command_usage(&c, "--%s is for --query", o.top ? "top" : "vocab");
    o.top = o.top ? o.top : UINT32_MAX;
    st = ft_inspect_open(&v.in, FT_OUTPUT_TEXT, NULL, o.vocab, &err);
    if (st == FT_OK)
        st = view(&v, &operands, &err);
    ft_grid_close(v.grid);
    ft_batch_free(&v.batch);
    free(v.sorted);
    return ft_inspect_close(&v.in, st, &err);
}
