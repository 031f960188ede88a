/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_answers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

typedef struct reader {
    const char *path;
    bool values;
    ft_answer *v;
    uint32_t *tokens;
    uint64_t n, cap, n_tokens, cap_tokens;
} reader;

/* A field ends at a tab or at the end of its line, which is a C string. */
static bool read_query(const char **p, uint64_t *query)
{
    char *end;
    if (**p < '0' || **p > '9')
        return false;
    errno = 0;
    *query = strtoull(*p, &end, 10);
    *p = end + 1;
    return *end == '\t' && errno == 0;
}

static bool read_value(const char **p, bool values, double *value)
{
    const char *tab = strchr(*p, '\t');
    char *end = NULL;
    if (!tab)
        return false;
    *value = values ? strtod(*p, &end) : 0.0;
    if (values && (end != tab || end == *p || !isfinite(*value)))
        return false;
    *p = tab + 1;
    return true;
}

/* *n of them; 0: the field is no key. */
static ft_status read_tokens(reader *r, const char *p, uint32_t *n, ft_error *err)
{
    const char *end = p + strcspn(p, "\t");
    const uint64_t first = r->n_tokens;
    *n = 0;
    while (p < end) {
        void *tokens = r->tokens;
        const ft_status st = ft_reserve(&tokens, &r->cap_tokens, r->n_tokens + 1,
                                        sizeof *r->tokens, err);
        r->tokens = tokens;
        if (st != FT_OK)
            return st;
        if (!ft_token_parse(&p, end, &r->tokens[r->n_tokens++]) ||
            r->n_tokens - first > FT_MAX_KEY_TOKENS || (p < end && *p != ' '))
            return FT_OK;
        p += strspn(p, " ");
    }
    *n = (uint32_t)(r->n_tokens - first);
    return FT_OK;
}

static ft_status add_line(reader *r, const ft_buf *bytes, uint64_t line, ft_error *err)
{
    const char *text = (const char *)bytes->data;
    const bool whole = strlen(text) + 1 == bytes->len; /* no zero in it */
    ft_answer a = {.line = line};
    void *v = r->v;
    ft_status st = ft_reserve(&v, &r->cap, r->n + 1, sizeof *r->v, err);
    r->v = v;
    if (st == FT_OK && whole && read_query(&text, &a.query) &&
        read_value(&text, r->values, &a.value))
        st = read_tokens(r, text, &a.n, err);
    if (st == FT_OK && !a.n)
        return ft_fail(err, FT_EFORMAT, "%s: line %llu: not a query, %s and a key",
                       r->path, (unsigned long long)line,
                       r->values ? "a number" : "a word");
    if (st == FT_OK)
        r->v[r->n++] = a;
    return st;
}

static int by_query_and_key(const void *x, const void *y)
{
    const ft_answer *a = x, *b = y;
    uint32_t lcp;
    if (a->query != b->query)
        return a->query < b->query ? -1 : 1;
    return ft_keys_compare(a->tokens, a->n, b->tokens, b->n, &lcp);
}

/* All tokens are where they stay: lines find theirs, and are put in order. */
static ft_status settle(reader *r, ft_error *err)
{
    const uint32_t *tokens = r->tokens;
    for (uint64_t i = 0; i < r->n; i++) {
        r->v[i].tokens = tokens;
        tokens += r->v[i].n;
    }
    if (r->n)
        qsort(r->v, r->n, sizeof *r->v, by_query_and_key);
    for (uint64_t i = 1; i < r->n; i++) {
        const ft_answer *a = &r->v[i - 1], *b = &r->v[i];
        if (by_query_and_key(a, b) == 0)
            return ft_fail(
                err, FT_EFORMAT, "%s: lines %llu and %llu: one key twice for a query",
                r->path, (unsigned long long)(a->line < b->line ? a->line : b->line),
                (unsigned long long)(a->line < b->line ? b->line : a->line));
    }
    return FT_OK;
}

static ft_status read_lines(reader *r, ft_stream *in, ft_error *err)
{
    ft_buf line = {.len = 0};
    bool more = true;
    ft_status st = FT_OK;
    for (uint64_t i = 1; st == FT_OK; i++) {
        st = ft_line_read(in, &line, &more, err);
        if (st != FT_OK || !more)
            break;
        st = ft_buf_append(&line, "", 1, err);
        if (st == FT_OK)
            st = add_line(r, &line, i, err);
    }
    ft_buf_free(&line);
    return st == FT_OK ? settle(r, err) : st;
}

ft_status ft_answers_read(ft_answers *out, const char *path, bool values, ft_error *err)
{
    reader r = {.path = path, .values = values};
    ft_stream *in = NULL;
    ft_status st = ft_stream_open(&in, path, err);
    if (st == FT_OK)
        st = read_lines(&r, in, err);
    ft_stream_close(in);
    if (st == FT_OK) {
        *out = (ft_answers){r.v, r.n, r.tokens};
        return FT_OK;
    }
    free(r.v);
    free(r.tokens);
    return st;
}

const ft_answer *ft_answers_of(const ft_answers *a, uint64_t query, uint64_t *n)
{
    uint64_t lo = 0, hi = a->n;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (a->v[mid].query < query)
            lo = mid + 1;
        else
            hi = mid;
    }
    hi = lo;
    while (hi < a->n && a->v[hi].query == query)
        hi++;
    *n = hi - lo;
    return *n ? &a->v[lo] : NULL;
}

void ft_answers_free(ft_answers *a)
{
    free(a->v);
    free(a->tokens);
}
