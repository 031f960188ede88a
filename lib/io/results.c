/* SPDX-License-Identifier: Apache-2.0
 *
 * Result records: batches of them, and reading them back with every count and offset
 * checked (paper Appendix D.3).
 */
#include "io/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/score.h"

enum {
    CHUNK_BYTES = 1 << 20, /* read at once: memory grows as data arrives */
    ENTRY_BYTES = 16,      /* a result's score and end */
    COUNT_BYTES = 8,
    TOKEN_BYTES = 4
};

void ft_results_free(ft_results *r)
{
    ft_buf_free(&r->bytes);
    free(r->offset);
    *r = (ft_results){0};
}

ft_status ft_results_reset(ft_results *r, uint64_t n_queries, ft_error *err)
{
    uint64_t n_offsets;
    void *offset = r->offset;
    if (!ft_add_ok(n_queries, 1, &n_offsets))
        return ft_fail(err, FT_ENOMEM, "out of memory (2^64 queries)");
    const ft_status st =
        ft_reserve(&offset, &r->cap_offsets, n_offsets, sizeof *r->offset, err);
    r->offset = offset;
    if (st != FT_OK)
        return st;
    memset(r->offset, 0, n_offsets * sizeof *r->offset);
    r->n_queries = n_queries;
    r->bytes.len = 0;
    return FT_OK;
}

double ft_record_score(const ft_record *r, uint64_t i)
{
    double score;
    memcpy(&score, r->scores + i * sizeof score, sizeof score);
    return score;
}

uint64_t ft_record_end(const ft_record *r, uint64_t i)
{
    uint64_t end = 0;
    if (i != UINT64_MAX)
        memcpy(&end, r->ends + i * sizeof end, sizeof end);
    return end;
}

uint32_t ft_record_token(const ft_record *r, uint64_t j)
{
    uint32_t token;
    memcpy(&token, r->tokens + j * sizeof token, sizeof token);
    return token;
}

/* r->n results of scores and ends are in memory: do they ascend? */
static ft_status check_entries(const ft_record *r, ft_error *err)
{
    double before = -INFINITY;
    uint64_t start = 0;
    for (uint64_t i = 0; i < r->n; i++) {
        const double score = ft_record_score(r, i);
        const uint64_t end = ft_record_end(r, i);
        if (!(score >= before))
            return ft_fail(err, FT_EFORMAT, "result %llu: score %g after %g",
                           (unsigned long long)i, score, before);
        if (end <= start || end - start > FT_MAX_KEY_TOKENS)
            return ft_fail(err, FT_EFORMAT,
                           "result %llu: tokens %llu to %llu are no key (1 to 65535)",
                           (unsigned long long)i, (unsigned long long)start,
                           (unsigned long long)end);
        before = score;
        start = end;
    }
    return FT_OK;
}

static ft_status check_tokens(const ft_record *r, ft_error *err)
{
    const uint64_t n = ft_record_end(r, r->n - 1);
    for (uint64_t j = 0; j < n; j++)
        if (ft_record_token(r, j) == FT_NO_TOKEN)
            return ft_fail(err, FT_EFORMAT,
                           "token %llu is 4294967295, which is no token",
                           (unsigned long long)j);
    return FT_OK;
}

static ft_status fail_short(uint64_t have, uint64_t need, ft_error *err)
{
    return ft_fail(err, FT_EFORMAT, "cut short (%llu of %llu bytes)",
                   (unsigned long long)have, (unsigned long long)need);
}

/* Bytes of the count and n entries. */
static ft_status entries_bytes(uint64_t n, uint64_t *bytes, ft_error *err)
{
    if (ft_mul_ok(n, ENTRY_BYTES, bytes) && ft_add_ok(*bytes, COUNT_BYTES, bytes))
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%llu results: not a result stream",
                   (unsigned long long)n);
}

/* Where things lie in a record of n results that starts at `data`. */
static ft_record lay_out(const uint8_t *data, uint64_t n)
{
    const uint8_t *scores = data + COUNT_BYTES;
    return (ft_record){.n = n,
                       .scores = scores,
                       .ends = scores + n * sizeof(double),
                       .tokens = scores + n * ENTRY_BYTES};
}

ft_status ft_record_view(ft_record *r, const uint8_t *data, uint64_t bytes,
                         uint64_t *used, ft_error *err)
{
    uint64_t n, need;
    if (bytes < COUNT_BYTES)
        return fail_short(bytes, COUNT_BYTES, err);
    memcpy(&n, data, sizeof n);
    ft_status st = entries_bytes(n, &need, err);
    if (st != FT_OK)
        return st;
    if (bytes < need)
        return fail_short(bytes, need, err);
    const ft_record view = lay_out(data, n);
    st = check_entries(&view, err);
    if (st != FT_OK)
        return st;
    /* Cannot wrap: n ends of at most 65535 tokens each, and 16 n bytes are there. */
    need += ft_record_end(&view, n - 1) * TOKEN_BYTES;
    if (bytes < need)
        return fail_short(bytes, need, err);
    st = n ? check_tokens(&view, err) : FT_OK;
    if (st != FT_OK)
        return st;
    *r = view;
    *used = need;
    return FT_OK;
}

/* Append input to *b until it holds `total` bytes. */
static ft_status read_until(ft_stream *in, ft_buf *b, uint64_t total, ft_error *err)
{
    while (b->len < total) {
        const uint64_t left = total - b->len;
        const size_t n = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        size_t got = 0;
        ft_status st = ft_buf_reserve(b, n, err);
        if (st == FT_OK)
            st = ft_stream_read(in, b->data + b->len, n, &got, err);
        if (st != FT_OK)
            return st;
        b->len += got;
        if (got < n)
            break;
    }
    return FT_OK;
}

/* The entries tell how many bytes the record has; they are checked before they are
 * believed. */
static ft_status record_bytes(const ft_buf *b, uint64_t n, uint64_t *bytes,
                              ft_error *err)
{
    const ft_record r = lay_out(b->data, n);
    const ft_status st = check_entries(&r, err);
    if (st == FT_OK)
        *bytes += ft_record_end(&r, n - 1) * TOKEN_BYTES;
    return st;
}

ft_status ft_record_read(ft_stream *in, uint64_t query, ft_buf *b, ft_record *r,
                         bool *more, ft_error *err)
{
    uint64_t n, need = COUNT_BYTES, used;
    bool ours = false; /* the message is not the stream's, which names itself */
    b->len = 0;
    ft_status st = read_until(in, b, need, err);
    if (st == FT_OK && b->len == 0) {
        *more = false;
        return FT_OK;
    }
    if (st == FT_OK && b->len == need) {
        memcpy(&n, b->data, sizeof n);
        st = entries_bytes(n, &need, err);
        ours = st != FT_OK;
        if (st == FT_OK)
            st = read_until(in, b, need, err);
        if (st == FT_OK && b->len == need) {
            st = record_bytes(b, n, &need, err);
            ours = st != FT_OK;
            if (st == FT_OK)
                st = read_until(in, b, need, err);
        }
    }
    if (st == FT_OK) {
        st = b->len < need ? fail_short(b->len, need, err)
                           : ft_record_view(r, b->data, b->len, &used, err);
        ours = true;
    }
    if (st == FT_OK)
        *more = true;
    else if (ours)
        ft_fail_prefix(err, "%s: query %llu", ft_stream_name(in),
                       (unsigned long long)query);
    return st;
}
