/* SPDX-License-Identifier: Apache-2.0
 *
 * Generated libraries: exact counts, order, the same bytes everywhere, the profile.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/score.h"
#include "trie/keys.h"
#include "workload/fixmath.h"
#include "workload/keygen.h"
#include "workload/token_dist.h"

/* What a run of keys amounts to. */
typedef struct profile {
    uint64_t n_keys, n_tokens, n_nodes, n_large, digest;
    uint32_t longest;
} profile;

static uint64_t fnv1a(uint64_t h, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        h = (h ^ (word >> 8 * i & 0xFF)) * UINT64_C(0x100000001B3);
    return h;
}

/* Read at most `limit` keys; each must be after the one before, share what it says, and
 * keep to the parameters. */
static profile read_keys(const ft_keygen_params *p, uint64_t limit)
{
    profile r = {.digest = UINT64_C(0xCBF29CE484222325)};
    uint32_t *before = calloc(p->max_length, sizeof *before), n_before = 0;
    ft_keygen *g = NULL;
    ft_error err;
    assert_non_null(before);
    assert_int_equal(ft_keygen_open(&g, p, &err), FT_OK);
    for (; r.n_keys < limit; r.n_keys++) {
        const uint32_t *tokens;
        uint32_t n, lcp, shared;
        if (!ft_keygen_next(g, &tokens, &n, &lcp))
            break;
        assert_in_range(n, 1, p->max_length);
        const int order = ft_keys_compare(before, n_before, tokens, n, &shared);
        assert_true(order < 0);
        assert_int_equal(lcp, shared);
        r.digest = fnv1a(r.digest, n);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(tokens[i] < p->vocab);
            r.digest = fnv1a(r.digest, tokens[i]);
            r.n_large += i >= lcp && tokens[i] > 65535;
        }
        r.n_tokens += n;
        r.n_nodes += n - lcp;
        r.longest = n > r.longest ? n : r.longest;
        memcpy(before, tokens, n * sizeof *tokens);
        n_before = n;
    }
    ft_keygen_close(g);
    free(before);
    return r;
}

static ft_keygen_params preset(const char *name, uint64_t n_keys)
{
    ft_keygen_params p;
    assert_int_equal(ft_keygen_preset(&p, name, NULL), FT_OK);
    p.n_keys = n_keys;
    return p;
}

/* Every number of keys that a small vocabulary has room for, up to all of them. */
static void test_exact_to_the_last_key(void **state)
{
    static const struct {
        uint32_t vocab, max_length, room;
    } small[] = {{1, 1, 1},   {1, 7, 7},   {2, 5, 62},
                 {3, 4, 120}, {40, 1, 40}, {11, 2, 132}};
    static const double extremes[][5] = {
        /* sharing, fans, prefix keys, tail, long tails */
        {0.5, 0.2, 0.3, 0.5, 0.1}, {0, 0, 0, 0, 0},    {1, 0, 0, 9, 0},
        {1, 0, 1, 0, 0},           {0, 1, 0, 1000, 1}, {1, 1, 1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        for (size_t k = 0; k < sizeof extremes / sizeof extremes[0]; k++)
            for (uint64_t n = 1; n <= small[i].room; n++) {
                ft_keygen_params p = {.n_keys = n,
                                      .seed = n * 7 + k,
                                      .vocab = small[i].vocab,
                                      .max_length = small[i].max_length,
                                      .skew = (double)k,
                                      .id_noise = 1,
                                      .sharing = extremes[k][0],
                                      .fans = extremes[k][1],
                                      .prefix_keys = extremes[k][2],
                                      .tail = extremes[k][3],
                                      .long_tails = extremes[k][4]};
                p.skew = p.skew > 4 ? 4 : p.skew;
                assert_int_equal(read_keys(&p, UINT64_MAX).n_keys, n);
            }
}

static void test_too_few_exist(void **state)
{
    ft_keygen_params p = preset("paper", 121);
    ft_keygen *g = NULL;
    ft_error err = {FT_OK, ""};
    (void)state;
    p.vocab = 3;
    p.max_length = 4;
    assert_int_equal(ft_keygen_open(&g, &p, &err), FT_EINVAL);
    assert_null(g);
    assert_string_equal(err.message, "3 tokens make only 120 keys of up to 4 tokens");
}

static void test_ranges(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++) {
        ft_keygen_params p = preset("titles", 10);
        double *const reals[] = {&p.skew, &p.id_noise,   &p.sharing,    &p.fans,
                                 &p.tail, &p.long_tails, &p.prefix_keys};
        ft_keygen *g = NULL;
        ft_error err;
        if (i < 7)
            *reals[i] = i % 2 ? -0.001 : NAN;
        else if (i == 7)
            p.n_keys = FT_KEYGEN_MAX_KEYS + 1;
        else
            p.max_length = FT_MAX_KEY_TOKENS + 1;
        assert_int_equal(ft_keygen_open(&g, &p, &err), FT_EINVAL);
        assert_null(g);
    }
    ft_keygen_params p = preset("paper", 1);
    assert_int_equal(ft_keygen_preset(&p, "papre", NULL), FT_EINVAL);
    assert_int_equal(p.vocab, 2200000);
}

/* The largest library there is starts at once, and in the memory of one path. */
static void test_largest(void **state)
{
    ft_keygen_params p = preset("paper", FT_KEYGEN_MAX_KEYS);
    (void)state;
    assert_int_equal(read_keys(&p, 5000).n_keys, 5000);
    p.vocab = UINT32_MAX;
    assert_int_equal(read_keys(&p, 5000).n_keys, 5000);
}

/* The first 100,000 of a million keys: these digests hold for every machine, compiler
 * and version of this program. */
static void test_same_bytes_everywhere(void **state)
{
    ft_keygen_params paper = preset("paper", 1000000);
    ft_keygen_params titles = preset("titles", 1000000);
    (void)state;
    assert_int_equal(read_keys(&paper, 100000).digest, UINT64_C(0xBE1623B22C686704));
    assert_int_equal(read_keys(&titles, 100000).digest, UINT64_C(0x8BEA5F2FAA950B1F));
}

static void test_seeds_differ(void **state)
{
    ft_keygen_params p = preset("paper", 2000);
    (void)state;
    const uint64_t one = read_keys(&p, 2000).digest;
    assert_true(read_keys(&p, 2000).digest == one);
    p.seed = 2;
    assert_true(read_keys(&p, 2000).digest != one);
}

static void in_bounds(double v, double lo, double hi)
{
    if (!(v >= lo && v <= hi))
        fail_msg("%g is not in %g to %g", v, lo, hi);
}

static void test_profile(void **state)
{
    (void)state;
    for (uint64_t n = 200000; n <= 2000000; n *= 10) {
        const ft_keygen_params paper = preset("paper", n), titles = preset("titles", n);
        const profile a = read_keys(&paper, UINT64_MAX);
        const profile b = read_keys(&titles, UINT64_MAX);
        assert_int_equal(a.n_keys, n);
        in_bounds((double)a.n_nodes / (double)n, 1.12, 1.25);
        in_bounds((double)a.n_tokens / (double)n, 2.5, 3.8);
        in_bounds((double)a.n_large / (double)a.n_nodes, 0.25, 0.35);
        in_bounds(a.longest, 9, 16);
        assert_int_equal(b.n_keys, n);
        in_bounds((double)b.n_nodes / (double)n, 2.8, 3.1);
        in_bounds((double)b.n_tokens / (double)n, 5.5, 7.5);
        in_bounds(b.longest, 60, 64);
    }
}

/* The arithmetic that takes libm's place is as good as it says. */
static void test_fixmath(void **state)
{
    ft_fix_tables t;
    (void)state;
    ft_fix_tables_init(&t);
    for (double x = 1e-9; x < 1e12; x *= 1.37) {
        in_bounds(ft_fix_log2(x) - log2(x), -1e-10, 1e-10);
        in_bounds(ft_fix_exp2(log2(x)) / x - 1, -1e-10, 1e-10);
    }
    for (uint64_t v = 1; v < (uint64_t)1 << 45; v += v / 3 + 1) {
        const uint32_t lg = ft_fix_log2_q16(&t, v);
        in_bounds(lg / 65536.0 - log2((double)v), -1e-4, 1e-4);
        in_bounds((double)ft_fix_exp2_q16(&t, lg) / 65536.0 / (double)v, 0.9998,
                  1.0002);
    }
}

/* Strata cover the vocabulary in order, and a draw lies among the ids it was asked of.
 */
static void test_token_dist(void **state)
{
    static const uint32_t vocabs[] = {1, 2, 1000, 65536, 65537, 2200000, UINT32_MAX};
    ft_token_dist *d = malloc(sizeof *d);
    uint64_t random = 1;
    (void)state;
    assert_non_null(d);
    for (size_t i = 0; i < sizeof vocabs / sizeof vocabs[0]; i++)
        for (double skew = 0; skew <= 4; skew += 2) {
            const ft_token_law law = {vocabs[i], skew, 1.5, 42};
            ft_token_dist_init(d, &law);
            assert_int_equal(d->edge[0], 0);
            assert_int_equal(d->edge[FT_STRATA], vocabs[i]);
            for (uint32_t s = 0; s < FT_STRATA; s++)
                assert_true(d->edge[s] <= d->edge[s + 1]);
            for (uint32_t k = 0; k < 10000; k++) {
                const uint32_t lo = (uint32_t)(ft_random(&random) % FT_STRATA);
                const uint32_t hi =
                    lo + 1 + (uint32_t)(ft_random(&random) % (FT_STRATA - lo));
                if (d->edge[lo] == d->edge[hi])
                    continue;
                const uint32_t token = ft_token_draw(d, lo, hi, ft_random(&random));
                assert_true(token >= d->edge[lo] && token < d->edge[hi]);
            }
        }
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_to_the_last_key),
        cmocka_unit_test(test_too_few_exist),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_same_bytes_everywhere),
        cmocka_unit_test(test_seeds_differ),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_fixmath),
        cmocka_unit_test(test_token_dist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
