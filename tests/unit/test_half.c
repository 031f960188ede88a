/* SPDX-License-Identifier: Apache-2.0
 *
 * binary16, as grids hold it: exact one way, rounded to nearest even the other; and
 * grids of it.
 */
#include "io_util.h"

#include <math.h>

#include "io/grid.h"

/* What float.h and <math.h> say a binary16 is: an independent reading of the format. */
static float half_by_definition(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const float sign = h & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return exponent ? sign * ldexpf((float)(1024 + fraction), exponent - 25)
                    : sign * ldexpf((float)fraction, -24);
}

static void halves_widen_exactly(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        const float f = ft_half_to_float((uint16_t)h);
        const float want = half_by_definition((uint16_t)h);
        assert_true(isnan(want) ? isnan(f) : f == want);
        assert_int_equal(!!signbit(f), h >> 15);
        const uint16_t back = ft_float_to_half(f);
        assert_int_equal(back, isnan(want) ? (h | 0x200) : h);
    }
}

/* Between two neighbours the nearer one, at the middle the even one. */
static void halves_round_to_even(void **state)
{
    (void)state;
    for (uint16_t h = 0; h < 0x7BFF; h++) {
        const float a = ft_half_to_float(h), b = ft_half_to_float((uint16_t)(h + 1));
        const float middle = (a + b) / 2; /* exact: a bit more than a binary16 has */
        const uint16_t even = h & 1 ? (uint16_t)(h + 1) : h;
        assert_int_equal(ft_float_to_half(middle), even);
        assert_int_equal(ft_float_to_half(-middle), even | 0x8000);
        assert_int_equal(ft_float_to_half(nextafterf(middle, -1)), h);
        assert_int_equal(ft_float_to_half(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(ft_float_to_half(65519.996f), 0x7BFF);
    assert_int_equal(ft_float_to_half(65520.0f), 0x7C00);
    assert_int_equal(ft_float_to_half(-1e30f), 0xFC00);
    assert_int_equal(ft_float_to_half(1e-30f), 0);
}

static ft_grid *open_grid(const void *data, size_t bytes)
{
    ft_error err = {0};
    ft_grid *g = NULL;
    assert_ok(ft_grid_open(&g, stream_of(data, bytes, "g.ftg"), &err), err);
    return g;
}

static void half_grid(void **state)
{
    (void)state;
    static const uint8_t record[12] = {9, 0, 0, 0,    10,   0,
                                       0, 0, 0, 0xC0, 0x01, 0x80}; /* -2, -2^-24 */
    uint8_t bytes[64 + 12] = "FTGRID1\n";
    ft_error err = {0};
    ft_batch b = {0};
    put_u32(bytes + 8, 2);
    put_u32(bytes + 12, 1);
    put_u32(bytes + 16, 2);
    put_u64(bytes + 24, 1);
    memcpy(bytes + 64, record, 12);
    ft_grid *g = open_grid(bytes, sizeof bytes);
    assert_true(ft_grid_shape_of(g)->half);
    assert_ok(ft_grid_read(g, &b, 1, false, 7, &err), err);
    assert_int_equal(b.ids[0], 7);
    assert_int_equal(b.tokens[1], 10);
    assert_true(b.logp[0] == -2.0f);
    assert_true(b.logp[1] == -0x1p-24f);
    ft_grid_close(g);
    ft_buf out = {0};
    ft_sink *s = sink_into(&out);
    const ft_grid_shape shape = {2, 1, 0, false, true, 1};
    assert_ok(ft_grid_write_header(s, &shape, &err), err);
    assert_ok(ft_grid_write(s, &shape, 0, b.tokens, b.logp, &err), err);
    close_sink(s);
    assert_int_equal(out.len, sizeof bytes);
    assert_memory_equal(out.data, bytes, sizeof bytes);
    put_u32(bytes + 72, 0x7E000000); /* NaN */
    g = open_grid(bytes, sizeof bytes);
    assert_int_equal(ft_grid_read(g, &b, 1, false, 7, &err), FT_EFORMAT);
    assert_string_equal(err.message,
                        "g.ftg: query 0, position 1, rank 0: log-probability is NaN");
    ft_grid_close(g);
    ft_batch_free(&b);
    ft_buf_free(&out);
}

/* Who asks for them gets the halves as they are, checked all the same. */
static void kept_half(void **state)
{
    (void)state;
    enum { T = 2, K = 3, Q = 3 };
    static const uint16_t half[T * K] = {0x8001, 0xFC00, 0x7BFF,
                                         0xBC00, 0x7E00, 0x0000};
    static const uint32_t tokens[T * K] = {1, 2, 3, 4, FT_NO_TOKEN, 5};
    ft_error err = {0};
    ft_buf out = {0};
    float logp[T * K];
    for (int i = 0; i < T * K; i++)
        logp[i] = ft_half_to_float(half[i]);
    ft_sink *s = sink_into(&out);
    const ft_grid_shape shape = {T, K, 0, false, true, Q};
    assert_ok(ft_grid_write_header(s, &shape, &err), err);
    for (int q = 0; q < Q; q++)
        assert_ok(ft_grid_write(s, &shape, 0, tokens, logp, &err), err);
    close_sink(s);
    uint16_t *nan = (uint16_t *)(void *)(out.data + out.len - sizeof half);
    *nan = 0x7E00; /* in the last query, where no slot is empty */

    ft_grid *g = NULL;
    ft_batch b = {.keep_half = true};
    assert_ok(ft_grid_open(&g, stream_of(out.data, out.len, "g.ftg"), &err), err);
    assert_int_equal(ft_grid_read(g, &b, 10, false, 0, &err), FT_EFORMAT);
    assert_string_equal(err.message,
                        "g.ftg: query 2, position 0, rank 0: log-probability is NaN");
    assert_true(b.half);
    assert_int_equal(b.n_queries, 2);
    for (int q = 0; q < 2; q++) {
        assert_memory_equal(b.tokens + q * T * K, tokens, sizeof tokens);
        assert_memory_equal(ft_batch_logp16(&b) + q * T * K, half, sizeof half);
    }
    ft_grid_close(g);

    /* The same memory takes a grid of binary32. */
    const ft_grid_shape wide = {T, K, 0, false, false, 1};
    out.len = 0;
    s = sink_into(&out);
    logp[4] = -1;
    assert_ok(ft_grid_write_header(s, &wide, &err), err);
    assert_ok(ft_grid_write(s, &wide, 0, tokens, logp, &err), err);
    close_sink(s);
    assert_ok(ft_grid_open(&g, stream_of(out.data, out.len, "g.ftg"), &err), err);
    assert_ok(ft_grid_read(g, &b, 10, false, 0, &err), err);
    assert_false(b.half);
    assert_memory_equal(b.logp, logp, sizeof logp);
    ft_grid_close(g);
    ft_batch_free(&b);
    ft_buf_free(&out);
}

/* One query of many megabytes, in a file: read in pieces, straight to its place. */
static void large_query(void **state)
{
    (void)state;
    enum { T = 5, K = 300007 };
    static char path[] = "/tmp/flashtrie-test-grid-XXXXXX";
    ft_error err = {0};
    ft_sink *out;
    const ft_grid_shape shape = {T, K, 0, true, true, 2};
    uint32_t *tokens = malloc(T * K * sizeof *tokens);
    float *logp = malloc(T * K * sizeof *logp);
    for (uint32_t i = 0; i < T * K; i++) {
        tokens[i] = i * 2654435761u % FT_NO_TOKEN;
        logp[i] = -(float)(i % 2048);
    }
    close(mkstemp(path));
    assert_ok(ft_sink_open(&out, path, &err), err);
    assert_ok(ft_grid_write_header(out, &shape, &err), err);
    for (uint64_t q = 0; q < 2; q++)
        assert_ok(ft_grid_write(out, &shape, q + 5, tokens, logp, &err), err);
    close_sink(out);
    ft_stream *s;
    ft_grid *g;
    ft_batch b = {0};
    assert_ok(ft_stream_open(&s, path, &err), err);
    assert_ok(ft_grid_open(&g, s, &err), err);
    assert_ok(ft_grid_read(g, &b, 3, false, 0, &err), err);
    assert_int_equal(b.n_queries, 2);
    for (uint64_t q = 0; q < 2; q++) {
        assert_int_equal(b.ids[q], q + 5);
        assert_memory_equal(b.tokens + q * T * K, tokens, T * K * sizeof *tokens);
        assert_memory_equal(b.logp + q * T * K, logp, T * K * sizeof *logp);
    }
    ft_grid_close(g);
    ft_batch_free(&b);
    free(tokens);
    free(logp);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_widen_exactly),
        cmocka_unit_test(halves_round_to_even),
        cmocka_unit_test(half_grid),
        cmocka_unit_test(kept_half),
        cmocka_unit_test(large_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
