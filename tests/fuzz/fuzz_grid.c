/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a proposal grid; bytes that start with NumPy's magic are a pair, the
 * second file from the next magic on. Values keep what grid.h promises to engines,
 * batches of any size are the same queries, and what is read, written and read again is
 * the same.
 */
#include "fuzz_util.h"

#include <math.h>

#include "io/grid.h"

enum { MAX_QUERIES = 1000, BATCH = 3 };

static ft_status open_grid(ft_grid **g, const uint8_t *data, size_t bytes,
                           ft_error *err)
{
    static const char magic[] = "\x93NUMPY";
    const size_t n = sizeof magic - 1;
    const uint8_t *second = NULL;
    if (bytes >= n && memcmp(data, magic, n) == 0)
        second = memmem(data + n, bytes - n, magic, n);
    if (!second)
        return ft_grid_open(g, fuzz_stream(data, bytes), err);
    const size_t first = (size_t)(second - data);
    return ft_grid_open_npy(g, fuzz_stream(data, first),
                            fuzz_stream(second, bytes - first), err);
}

static void check_values(const ft_batch *b, const ft_grid_shape *shape)
{
    const uint64_t n = (uint64_t)b->n_queries * b->n_steps * b->n_proposals;
    check(b->n_steps == shape->n_steps && b->n_proposals == shape->n_proposals);
    check(n <= b->cap_values && b->n_queries <= b->cap_queries);
    for (uint64_t i = 0; i < n; i++) {
        if (b->tokens[i] == FT_NO_TOKEN)
            continue;
        check(shape->vocab == 0 || b->tokens[i] < shape->vocab);
        check(b->logp[i] < INFINITY);
    }
}

static void check_same(const ft_batch *a, const ft_batch *b, uint64_t offset)
{
    const uint64_t query = (uint64_t)a->n_steps * a->n_proposals;
    for (uint64_t i = 0; i < b->n_queries * query; i++) {
        const uint64_t j = offset * query + i;
        check(a->tokens[j] == b->tokens[i]);
        check(a->tokens[j] == FT_NO_TOKEN || a->logp[j] == b->logp[i]);
    }
    for (uint64_t q = 0; q < b->n_queries; q++)
        check(a->ids[offset + q] == b->ids[q]);
}

/* Read in small batches: the same queries, then the same verdict. */
static void check_batches(const ft_batch *all, ft_status want, const ft_error *want_err,
                          const uint8_t *data, size_t bytes)
{
    ft_error err = {0};
    ft_grid *g = NULL;
    ft_batch b = {0};
    uint64_t n = 0;
    ft_status st = open_grid(&g, data, bytes, &err);
    do {
        const uint64_t left = all->n_queries - n;
        if (st == FT_OK && n == MAX_QUERIES)
            break;
        if (st == FT_OK)
            st = ft_grid_read(g, &b, left && left < BATCH ? (uint32_t)left : BATCH,
                              true, 0, &err);
        check(n + b.n_queries <= all->n_queries);
        check_same(all, &b, n);
        n += b.n_queries;
    } while (st == FT_OK && b.n_queries);
    check(n == all->n_queries);
    check(n == MAX_QUERIES || st == want);
    check(st == FT_OK || strcmp(err.message, want_err->message) == 0);
    ft_grid_close(g);
    ft_batch_free(&b);
}

/* Written with ids and read again. */
static void check_rewritten(const ft_batch *all, const ft_grid_shape *shape)
{
    ft_grid_shape mine = *shape;
    const uint64_t query = (uint64_t)all->n_steps * all->n_proposals;
    ft_buf bytes = {0};
    ft_grid *g = NULL;
    ft_batch b = {0};
    ft_sink *s = fuzz_sink(&bytes);
    mine.has_ids = true;
    mine.n_queries = all->n_queries;
    check(ft_grid_write_header(s, &mine, NULL) == FT_OK);
    for (uint64_t q = 0; q < all->n_queries; q++)
        check(ft_grid_write(s, &mine, all->ids[q], all->tokens + q * query,
                            all->logp + q * query, NULL) == FT_OK);
    check(ft_sink_close(s, NULL) == FT_OK);
    check(ft_grid_open(&g, fuzz_stream(bytes.data, bytes.len), NULL) == FT_OK);
    check(ft_grid_read(g, &b, MAX_QUERIES, false, 0, NULL) == FT_OK);
    check(b.n_queries == all->n_queries);
    check_same(all, &b, 0);
    check(ft_grid_read(g, &b, 1, false, 0, NULL) == FT_OK && b.n_queries == 0);
    ft_grid_close(g);
    ft_batch_free(&b);
    ft_buf_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ft_error err = {0};
    ft_grid *g = NULL;
    ft_batch all = {0}, rest = {0};
    ft_status st = open_grid(&g, data, bytes, &err);
    if (st != FT_OK) {
        check(!g);
        check_failure(st, &err);
        return 0;
    }
    st = ft_grid_read(g, &all, MAX_QUERIES, false, 0, &err);
    if (st == FT_OK && all.n_queries < MAX_QUERIES) {
        st = ft_grid_read(g, &rest, 1, false, 0, &err);
        check(rest.n_queries == 0);
    }
    if (st != FT_OK)
        check_failure(st, &err);
    check_values(&all, ft_grid_shape_of(g));
    check_batches(&all, st, &err, data, bytes);
    check_rewritten(&all, ft_grid_shape_of(g));
    ft_grid_close(g);
    ft_batch_free(&all);
    ft_batch_free(&rest);
    return 0;
}
