/* SPDX-License-Identifier: Apache-2.0
 *
 * lib/base: errors, checked memory, bits, score and order.
 */
#include "io_util.h"

#include <errno.h>
#include <float.h>
#include <math.h>

#include "base/bits.h"
#include "base/keysort.h"
#include "base/mem.h"
#include "base/score.h"
#include "base/status.h"

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void messages(void **state)
{
    (void)state;
    ft_error err = {0};
    assert_int_equal(ft_fail(&err, FT_EFORMAT, "line %d", 3), FT_EFORMAT);
    assert_int_equal(err.status, FT_EFORMAT);
    assert_string_equal(err.message, "line 3");
    assert_int_equal(ft_fail_prefix(&err, "%s", "file"), FT_EFORMAT);
    assert_string_equal(err.message, "file: line 3");
    assert_int_equal(ft_fail_errno(&err, FT_EIO, ENOENT, "%s", "x"), FT_EIO);
    assert_int_equal(err.status, FT_EIO);
    assert_string_equal(err.message, "x: No such file or directory");
    assert_int_equal(ft_fail(NULL, FT_ENOMEM, "nobody listens"), FT_ENOMEM);
    assert_int_equal(ft_fail_errno(NULL, FT_EIO, EIO, "nobody listens"), FT_EIO);
    assert_true(ft_fail_prefix(NULL, "nobody listens") != FT_OK);
}

static void long_messages_are_cut(void **state)
{
    (void)state;
    struct {
        ft_error err;
        char guard[8];
    } e = {.guard = "guarded"};
    char longer[3000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ft_fail(&e.err, FT_EIO, "%s", longer);
    assert_int_equal(strlen(e.err.message), FT_ERROR_BYTES - 1);
    ft_fail_prefix(&e.err, "%s", longer);
    ft_fail_errno(&e.err, FT_EIO, EIO, "%s", longer);
    ft_fail_prefix(&e.err, "head");
    assert_int_equal(strlen(e.err.message), FT_ERROR_BYTES - 1);
    assert_memory_equal(e.err.message, "head: xxx", 9);
    assert_string_equal(e.guard, "guarded");
}

static void checked_sizes(void **state)
{
    (void)state;
    uint64_t v = 0;
    assert_true(ft_mul_ok(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &v));
    assert_true(v == UINT64_MAX - UINT32_MAX);
    assert_false(ft_mul_ok(UINT64_C(1) << 32, UINT64_C(1) << 32, &v));
    assert_true(ft_add_ok(UINT64_MAX - 1, 1, &v));
    assert_true(v == UINT64_MAX);
    assert_false(ft_add_ok(UINT64_MAX, 1, &v));
}

static void checked_memory(void **state)
{
    (void)state;
    ft_error err = {0};
    assert_null(ft_calloc(UINT64_C(1) << 33, UINT64_C(1) << 33, &err));
    assert_int_equal(err.status, FT_ENOMEM);
    assert_message(err, "out of memory");
    assert_null(ft_calloc(UINT64_MAX, 1, NULL));
    assert_null(ft_alloc_aligned(UINT64_MAX, 1, NULL));
    char *p = ft_calloc(0, 8, &err);
    assert_non_null(p);
    assert_null(ft_realloc(p, UINT64_MAX / 2, 4, &err)); /* p is still ours */
    p = ft_realloc(p, 3, 4, &err);
    assert_non_null(p);
    free(p);
    p = ft_calloc(100, 1, &err);
    for (int i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    free(p);
    for (uint64_t n = 0; n < 300; n += 13) {
        p = ft_alloc_aligned(n, 1, &err);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        memset(p, 1, n);
        free(p);
    }
    p = ft_strdup("copy", &err);
    assert_string_equal(p, "copy");
    free(p);
}

static void growing(void **state)
{
    (void)state;
    ft_error err = {0};
    void *items = NULL;
    uint64_t cap = 0, before, n_grown = 0;
    for (uint64_t need = 0; need < 10000; need++) {
        before = cap;
        assert_ok(ft_reserve(&items, &cap, need, 8, &err), err);
        assert_true(cap >= need && (cap == before || cap >= 2 * before));
        n_grown += cap != before;
    }
    assert_true(n_grown <= 12);
    before = cap;
    assert_int_equal(ft_reserve(&items, &cap, UINT64_MAX / 4, 8, &err), FT_ENOMEM);
    assert_int_equal(cap, before);
    free(items);

    ft_buf b = {0};
    for (int i = 0; i < 1000; i++)
        assert_ok(ft_buf_append(&b, "abc", 3, &err), err);
    assert_ok(ft_buf_append(&b, NULL, 0, &err), err);
    assert_int_equal(b.len, 3000);
    assert_memory_equal(b.data + 2994, "abcabc", 6);
    assert_int_equal(ft_buf_reserve(&b, UINT64_MAX, &err), FT_ENOMEM);
    assert_int_equal(b.len, 3000);
    ft_buf_free(&b);
    assert_null(b.data);
}

static void sizes_in_words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"64K", 65536},
                {"3m", 3145728},
                {"2G", UINT64_C(2147483648)},
                {"5t", UINT64_C(5497558138880)},
                {"18446744073709551615", UINT64_MAX},
                {"16777215T", UINT64_C(16777215) << 40}};
    static const char *const bad[] = {"",    "K",    "-1",
                                      "+1",  " 1",   "1 ",
                                      "1KB", "1.5G", "18446744073709551616",
                                      "1X",  "0x10", "16777216T"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t v = 1;
        assert_true(ft_parse_size(good[i].text, &v));
        assert_true(v == good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t v = 77;
        assert_false(ft_parse_size(bad[i], &v));
        assert_int_equal(v, 77);
    }
}

static void bit_counts(void **state)
{
    (void)state;
    uint64_t x = 1;
    assert_int_equal(ft_bit_width(0), 0);
    assert_int_equal(ft_bit_width(UINT64_MAX), 64);
    assert_int_equal(ft_popcount(UINT64_MAX), 64);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(ft_bit_width(UINT64_C(1) << i), i + 1);
        assert_true(ft_low_mask(i) == (UINT64_C(1) << i) - 1);
    }
    assert_true(ft_low_mask(64) == UINT64_MAX);
    assert_int_equal(ft_words(0), 0);
    assert_int_equal(ft_words(1), 1);
    assert_int_equal(ft_words(64), 1);
    assert_int_equal(ft_words(65), 2);
    assert_true(ft_words(UINT64_MAX) == UINT64_C(1) << 58);
    for (int i = 0; i < 1000; i++) {
        const uint64_t w = next_random(&x) & (i % 3 ? UINT64_MAX : next_random(&x));
        unsigned k = 0;
        for (unsigned bit = 0; bit < 64; bit++) {
            assert_int_equal(ft_bit_get(&w, bit), w >> bit & 1);
            if (!(w >> bit & 1))
                continue;
            assert_int_equal(ft_select_in_word(w, k), bit);
            assert_int_equal(ft_select_by_halves(w, k++), bit);
        }
        assert_int_equal(ft_popcount(w), k);
    }
}

/* By upper halves, the order of equal ones kept: as if the lower were places. */
static void key_sort(void **state)
{
    enum { MOST = 3000 };
    static const uint32_t sizes[] = {0, 1, 2, 255, 256, 257, MOST};
    static uint64_t keys[MOST], spare[MOST];
    uint64_t x = 77;
    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned bits = 0; bits <= 32; bits += 4) {
            /* Keys of few bits are often equal; those of 20 share their last byte. */
            for (uint32_t k = 0; k < sizes[i]; k++)
                keys[k] =
                    ft_low_bits(next_random(&x), bits) << (bits == 20 ? 40 : 32) | k;
            ft_keysort(keys, spare, sizes[i]);
            uint64_t places = 0;
            for (uint32_t k = 0; k < sizes[i]; k++) {
                assert_true(k == 0 || keys[k - 1] < keys[k]);
                places += (uint32_t)keys[k];
            }
            assert_true(places == (uint64_t)sizes[i] * (sizes[i] - (sizes[i] > 0)) / 2);
        }
}

static void bit_arrays(void **state)
{
    (void)state;
    uint64_t words[3] = {0};
    ft_bit_set(words, 0);
    ft_bit_set(words, 63);
    ft_bit_set(words, 64);
    ft_bit_set(words, 130);
    assert_true(words[0] == (UINT64_C(1) << 63 | 1));
    assert_true(words[1] == 1 && words[2] == 4);
    assert_true(ft_bit_get(words, 130));
    assert_false(ft_bit_get(words, 131));
}

static void packed_fields(void **state)
{
    (void)state;
    enum { FIELDS = 200 };
    for (unsigned width = 0; width <= 64; width++) {
        const uint64_t n_words = ft_words((uint64_t)FIELDS * width) + 1;
        uint64_t *words = calloc(n_words, sizeof *words),
                 x = 88172645463325252u + width;
        uint64_t want[FIELDS];
        for (uint64_t i = 0; i < FIELDS; i++) {
            want[i] = next_random(&x) & ft_low_mask(width);
            ft_packed_set(words, i, width, want[i]);
        }
        for (uint64_t i = 0; i < FIELDS; i++)
            assert_true(ft_packed_get(words, i, width) == want[i]);
        assert_true(words[n_words - 1] == 0); /* the spare word stays spare */
        free(words);
    }
}

/* Both thresholds are strict; -inf is never admitted (R1, R10). */
static void r1_admission(void **state)
{
    (void)state;
    float sum;
    assert_true(ft_admit(-1, -2, -INFINITY, -INFINITY, &sum));
    assert_true(sum == -3);
    assert_false(ft_admit(-1, -INFINITY, -INFINITY, -INFINITY, &sum));
    assert_false(ft_admit(-1, -2, -2, -INFINITY, &sum));
    assert_true(ft_admit(-1, nextafterf(-2, 0), -2, -INFINITY, &sum));
    assert_false(ft_admit(-1, -2, -INFINITY, -3, &sum));
    assert_true(ft_admit(-1, -2, -INFINITY, nextafterf(-3, -4), &sum));
    /* The sum is rounded to binary32, once. */
    assert_true(ft_admit(16777216.0f, 1.0f, -INFINITY, -INFINITY, &sum));
    assert_true(sum == 16777216.0f);
    /* A sum that overflows to -inf is no beam either. */
    assert_false(ft_admit(-3e38f, -3e38f, -INFINITY, -INFINITY, &sum));
}

static void order_is_total(void **state)
{
    (void)state;
    static const float sigma[] = {-1, -1, -0.0f, 0.0f, -2, -INFINITY};
    static const uint64_t node[] = {4, 5, 9, 3, 1, UINT64_MAX};
    enum { N = 6 };
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++) {
            const bool better = ft_beam_better(sigma[a], node[a], sigma[b], node[b]);
            assert_int_equal(
                better + ft_beam_better(sigma[b], node[b], sigma[a], node[a]), a != b);
            assert_int_equal(better,
                             ft_result_better(sigma[a], node[a], sigma[b], node[b]));
        }
    assert_true(ft_beam_better(-1, 9, -2, 1));
    assert_true(ft_beam_better(-1, 4, -1, 5));
    assert_true(ft_beam_better(0.0f, 3, -0.0f, 9)); /* -0 is +0 */
    assert_true(ft_beam_better(-0.0f, 3, 0.0f, 9));
}

static void float_keys_keep_order(void **state)
{
    (void)state;
    static const float f[] = {-INFINITY, -FLT_MAX, -2, -1e-45f, 0,
                              1e-45f,    1,        2,  INFINITY};
    enum { N = sizeof f / sizeof *f };
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++)
            assert_int_equal(ft_float_key(f[a]) < ft_float_key(f[b]), f[a] < f[b]);
    assert_int_equal(ft_float_key(-0.0f), ft_float_key(0.0f));
}

/* Paper, Eq. 2: (6 / (5 + d))^alpha. */
static void r9_length_norm(void **state)
{
    (void)state;
    double norm[20];
    ft_norm_table(5, 19, norm);
    assert_true(norm[1] == 1);
    assert_true(norm[7] == 0.03125); /* (6 / 12)^5 */
    for (int d = 1; d < 20; d++) {
        assert_true(norm[d] == pow(6.0 / (5 + d), 5));
        assert_true(norm[d] < norm[d - 1]);
    }
    ft_norm_table(0, 19, norm);
    for (int d = 0; d < 20; d++)
        assert_true(norm[d] == 1);
    ft_norm_table(FT_MAX_ALPHA, 19, norm);
    assert_true(norm[19] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),       cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(checked_sizes),  cmocka_unit_test(checked_memory),
        cmocka_unit_test(growing),        cmocka_unit_test(sizes_in_words),
        cmocka_unit_test(bit_counts),     cmocka_unit_test(bit_arrays),
        cmocka_unit_test(packed_fields),  cmocka_unit_test(r1_admission),
        cmocka_unit_test(order_is_total), cmocka_unit_test(float_keys_keep_order),
        cmocka_unit_test(r9_length_norm), cmocka_unit_test(key_sort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
