/* SPDX-License-Identifier: Apache-2.0
 *
 * Checked memory and checked sizes. Every product or sum of sizes that come from a file
 * goes through ft_mul_ok and ft_add_ok.
 */
#ifndef FT_BASE_MEM_H
#define FT_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

static inline bool ft_mul_ok(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

static inline bool ft_add_ok(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

/* n items of `bytes` each, zeroed; NULL with FT_ENOMEM in *err. n = 0 gives a pointer
 * that free() takes. */
void *ft_calloc(uint64_t n, uint64_t bytes, ft_error *err);

/* Resize to n items of `bytes` each; NULL with FT_ENOMEM in *err, and `old` still
 * valid. */
void *ft_realloc(void *old, uint64_t n, uint64_t bytes, ft_error *err);

/* Like ft_calloc, not zeroed, aligned to 64 bytes; free with free(). */
void *ft_alloc_aligned(uint64_t n, uint64_t bytes, ft_error *err);

char *ft_strdup(const char *text, ft_error *err);

#define ft_new(type, err) ((type *)ft_calloc(1, sizeof(type), (err)))

/* Grow *items (an array of `bytes`-sized items with room for *cap) so that it holds at
 * least `need`, at least doubling. */
ft_status ft_reserve(void **items, uint64_t *cap, uint64_t need, uint64_t bytes,
                     ft_error *err);

/* A growing byte buffer; a zeroed one is empty. */
typedef struct ft_buf {
    uint8_t *data;
    uint64_t len, cap;
} ft_buf;

ft_status ft_buf_reserve(ft_buf *b, uint64_t more, ft_error *err);
ft_status ft_buf_append(ft_buf *b, const void *data, uint64_t bytes, ft_error *err);
void ft_buf_free(ft_buf *b);

/* "4096", "64K", "512M", "2G" (powers of 1024) to bytes. */
bool ft_parse_size(const char *text, uint64_t *bytes);

#endif
