/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void *no_memory(uint64_t n, uint64_t bytes, ft_error *err)
{
    ft_fail(err, FT_ENOMEM, "out of memory (%llu items of %llu bytes)",
            (unsigned long long)n, (unsigned long long)bytes);
    return NULL;
}

void *ft_calloc(uint64_t n, uint64_t bytes, ft_error *err)
{
    uint64_t total;
    void *p = NULL;
    if (ft_mul_ok(n, bytes, &total) && total <= PTRDIFF_MAX)
        p = calloc(total ? total : 1, 1);
    return p ? p : no_memory(n, bytes, err);
}

void *ft_realloc(void *old, uint64_t n, uint64_t bytes, ft_error *err)
{
    uint64_t total;
    void *p = NULL;
    if (ft_mul_ok(n, bytes, &total) && total <= PTRDIFF_MAX)
        p = realloc(old, total ? total : 1);
    return p ? p : no_memory(n, bytes, err);
}

void *ft_alloc_aligned(uint64_t n, uint64_t bytes, ft_error *err)
{
    uint64_t total;
    void *p = NULL;
    if (ft_mul_ok(n, bytes, &total) && total <= PTRDIFF_MAX - 64)
        p = aligned_alloc(64, (total / 64 + 1) * 64);
    return p ? p : no_memory(n, bytes, err);
}

char *ft_strdup(const char *text, ft_error *err)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = ft_calloc(bytes, 1, err);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

ft_status ft_reserve(void **items, uint64_t *cap, uint64_t need, uint64_t bytes,
                     ft_error *err)
{
    if (need <= *cap)
        return FT_OK;
    uint64_t n = *cap < 8 ? 16 : *cap * 2;
    if (n < need)
        n = need;
    void *p = ft_realloc(*items, n, bytes, err);
    if (!p)
        return FT_ENOMEM;
    *items = p;
    *cap = n;
    return FT_OK;
}

ft_status ft_buf_reserve(ft_buf *b, uint64_t more, ft_error *err)
{
    uint64_t need;
    if (!ft_add_ok(b->len, more, &need))
        return ft_fail(err, FT_ENOMEM, "out of memory (buffer of 2^64 bytes)");
    void *data = b->data;
    const ft_status st = ft_reserve(&data, &b->cap, need, 1, err);
    b->data = data;
    return st;
}

ft_status ft_buf_append(ft_buf *b, const void *data, uint64_t bytes, ft_error *err)
{
    const ft_status st = ft_buf_reserve(b, bytes, err);
    if (st == FT_OK && bytes) {
        memcpy(b->data + b->len, data, bytes);
        b->len += bytes;
    }
    return st;
}

void ft_buf_free(ft_buf *b)
{
    free(b->data);
    *b = (ft_buf){0};
}

bool ft_parse_size(const char *text, uint64_t *bytes)
{
    uint64_t v = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++)
        if (!ft_mul_ok(v, 10, &v) || !ft_add_ok(v, (uint64_t)(*p - '0'), &v))
            return false;
    if (p == text)
        return false;
    unsigned shift = 0;
    switch (*p) {
    case 'K':
    case 'k':
        shift = 10;
        break;
    case 'M':
    case 'm':
        shift = 20;
        break;
    case 'G':
    case 'g':
        shift = 30;
        break;
    case 'T':
    case 't':
        shift = 40;
        break;
    default:
        break;
    }
    p += shift != 0;
    if (*p || !ft_mul_ok(v, (uint64_t)1 << shift, &v))
        return false;
    *bytes = v;
    return true;
}
