/* SPDX-License-Identifier: Apache-2.0
 *
 * Result records out: wire bytes, TSV, JSON lines.
 */
#include "io/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/decimal.h"

static ft_status write_wire(ft_sink *out, const ft_record *r, ft_error *err)
{
    const uint64_t n_tokens = ft_record_end(r, r->n - 1);
    ft_status st = ft_sink_write(out, &r->n, sizeof r->n, err);
    if (st == FT_OK)
        st = ft_sink_write(out, r->scores, r->n * sizeof(double), err);
    if (st == FT_OK)
        st = ft_sink_write(out, r->ends, r->n * sizeof(uint64_t), err);
    if (st == FT_OK)
        st = ft_sink_write(out, r->tokens, n_tokens * sizeof(uint32_t), err);
    return st;
}

static ft_status write_text(ft_sink *out, const char *text, ft_error *err)
{
    return ft_sink_write(out, text, strlen(text), err);
}

static ft_status write_number(ft_sink *out, const char *before, uint64_t v,
                              ft_error *err)
{
    char text[FT_DECIMAL_BYTES];
    const ft_status st = write_text(out, before, err);
    const size_t n = (size_t)(ft_decimal_put(text, v) - text);
    return st == FT_OK ? ft_sink_write(out, text, n, err) : st;
}

/* What stands before each field, after the last, and between tokens. */
typedef struct form {
    const char *query, *rank, *score, *tokens, *between, *behind_tokens, *key, *end;
    const char *quote; /* around infinities */
} form;

static const form forms[] = {
    [FT_TSV] = {"", "\t", "\t", "\t", " ", "", "\t", "\n", ""},
    [FT_JSONL] = {"{\"query\":", ",\"rank\":", ",\"score\":", ",\"tokens\":[", ",", "]",
                  ",\"key\":", "}\n", "\""},
};

static ft_status write_result(ft_sink *out, const form *f, uint64_t query_id,
                              const ft_record *r, uint64_t rank, uint64_t key,
                              ft_error *err)
{
    const uint64_t i = r->n - 1 - rank;
    const uint64_t end = ft_record_end(r, i);
    const double score = ft_record_score(r, i);
    const char *quote = isfinite(score) ? "" : f->quote;
    ft_status st = write_number(out, f->query, query_id, err);
    if (st == FT_OK)
        st = write_number(out, f->rank, rank, err);
    if (st == FT_OK)
        st = ft_sink_printf(out, err, "%s%s%.17g%s", f->score, quote, score, quote);
    const char *before = f->tokens;
    for (uint64_t j = ft_record_end(r, i - 1); st == FT_OK && j < end; j++) {
        st = write_number(out, before, ft_record_token(r, j), err);
        before = f->between;
    }
    if (st == FT_OK)
        st = write_text(out, f->behind_tokens, err);
    if (st == FT_OK && key != UINT64_MAX)
        st = write_number(out, f->key, key, err);
    return st == FT_OK ? write_text(out, f->end, err) : st;
}

/* Key number of result i; its tokens go through `aligned`, since a record may lie
 * anywhere. */
static uint64_t key_of(const ft_record *r, uint64_t i, ft_key_number_fn *key_number,
                       void *arg, uint32_t *aligned)
{
    const uint64_t start = ft_record_end(r, i - 1);
    const uint32_t n = (uint32_t)(ft_record_end(r, i) - start);
    memcpy(aligned, r->tokens + start * sizeof *aligned, n * sizeof *aligned);
    return key_number(arg, aligned, n);
}

ft_status ft_record_write(ft_sink *out, ft_results_format format, uint64_t query_id,
                          const ft_record *r, ft_key_number_fn *key_number, void *arg,
                          ft_error *err)
{
    ft_status st = FT_OK;
    uint32_t *aligned = NULL;
    if (format == FT_WIRE)
        return write_wire(out, r, err);
    if (key_number && r->n) {
        uint64_t longest = 0;
        for (uint64_t i = 0; i < r->n; i++) {
            const uint64_t n = ft_record_end(r, i) - ft_record_end(r, i - 1);
            longest = n > longest ? n : longest;
        }
        aligned = ft_calloc(longest, sizeof *aligned, err);
        if (!aligned)
            return FT_ENOMEM;
    }
    for (uint64_t rank = 0; st == FT_OK && rank < r->n; rank++) {
        const uint64_t key =
            aligned ? key_of(r, r->n - 1 - rank, key_number, arg, aligned) : UINT64_MAX;
        st = write_result(out, &forms[format], query_id, r, rank, key, err);
    }
    free(aligned);
    return st;
}
