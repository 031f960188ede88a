/* SPDX-License-Identifier: Apache-2.0
 *
 * The token sets of PPT against the keys themselves, on every layout: the same bytes,
 * whatever the threads, and no more memory where tokens are far apart.
 */
#include "keyset.h"

#include <sys/resource.h>

#include "baseline/token_sets.h"

enum { STEPS = 6, MANY = 40000, N_WORDS = 3000, FAR_KEYS = 10000, MOST_KIB = 64 << 10 };

static const uint32_t alphabet[] = {0, 1, 2, 63, 64, 65535, 65536, 70001, 4000000000};
enum { N_ALPHABET = sizeof alphabet / sizeof alphabet[0] };

static int by_value(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

/* Tokens of all keys at a position, sorted, each once; how many. */
static uint64_t tokens_at(const keyset *s, uint32_t position, uint32_t *out, bool *ends)
{
    uint64_t n = 0, kept = 0;
    *ends = false;
    for (uint64_t i = 0; i < s->n; i++)
        if (position < s->keys[i].n) {
            out[n++] = s->keys[i].tokens[position];
            *ends = *ends || position + 1 == s->keys[i].n;
        }
    if (n)
        qsort(out, n, sizeof *out, by_value);
    for (uint64_t i = 0; i < n; i++)
        if (i == 0 || out[i] != out[kept - 1])
            out[kept++] = out[i];
    return kept;
}

static long peak_kib(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

static void check(const keyset *s, const char *layout, uint32_t n_threads)
{
    ft_error err = {0};
    ft_buf file = {0};
    ft_token_sets got;
    ft_index *ix = keyset_index(s, layout, false, 0, &file);
    uint32_t *want = malloc((s->n + 1) * sizeof *want);
    uint64_t at = 0;
    const long before = peak_kib();
    assert_ok(ft_token_sets_make(&got, ft_index_trie(ix), n_threads, &err), err);
    assert_true(peak_kib() - before < MOST_KIB);
    assert_int_equal(got.depth, ft_index_trie(ix)->depth);
    assert_int_equal(got.offsets[0], 0);
    for (uint32_t d = 0; d < got.depth; d++) {
        bool ends;
        const uint64_t n = tokens_at(s, d, want, &ends);
        assert_int_equal(got.offsets[d + 1] - at, n);
        assert_memory_equal(got.tokens + at, want, n * sizeof *want);
        assert_int_equal(got.ends[d], ends);
        at += n;
    }
    ft_token_sets_free(&got);
    ft_index_close(ix);
    ft_buf_free(&file);
    free(want);
}

static void check_all(const keyset *s)
{
    for (uint32_t k = 0; ft_layout_name(k); k++)
        for (uint32_t n_threads = 1; n_threads <= 4; n_threads += 3)
            check(s, ft_layout_name(k), n_threads);
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        keyset s = keyset_random(seed, 10 * seed, alphabet, N_ALPHABET, STEPS);
        check_all(&s);
        keyset_free(&s);
    }
}

/* More nodes than a piece has, and more children than are read at a time. */
static void test_many(void **state)
{
    uint32_t words[N_WORDS];
    (void)state;
    for (uint32_t i = 0; i < N_WORDS; i++)
        words[i] = 77 * i;
    keyset s = keyset_random(7, MANY, words, N_WORDS, 4);
    check_all(&s);
    keyset_free(&s);
}

/* Chains that only tails have: levels of the tree end before the keys do. */
static void test_chains(void **state)
{
    (void)state;
    keyset s = {0};
    KEY(&s, 1);
    KEY(&s, 1, 2, 7);
    KEY(&s, 1, 3, 4, 5, 6, 8);
    KEY(&s, 2, 3, 4, 5, 6, 8);
    KEY(&s, 9, 3, 4, 5, 6, 8);
    keyset_settle(&s);
    check_all(&s);
    keyset_free(&s);
}

/* Hardly two tokens are neighbours: a page of 8 KB for each would be 300 MB. */
static void test_far(void **state)
{
    uint32_t tokens[4];
    uint64_t seed = 1;
    keyset s = {0};
    (void)state;
    for (uint32_t i = 0; i < FAR_KEYS; i++) {
        for (uint32_t j = 0; j < 4; j++)
            tokens[j] = (uint32_t)next_random(&seed) >> 1;
        keyset_add(&s, tokens, 4);
    }
    keyset_settle(&s);
    check_all(&s);
    keyset_free(&s);
}

/* As many positions as there may be, each with a token of its own. */
static void test_long(void **state)
{
    uint32_t *tokens = malloc(UINT16_MAX * sizeof *tokens);
    uint64_t seed = 2;
    keyset s = {0};
    (void)state;
    for (uint32_t i = 0; i < UINT16_MAX; i++)
        tokens[i] = (uint32_t)next_random(&seed) >> 1;
    keyset_add(&s, tokens, UINT16_MAX);
    check_all(&s);
    keyset_free(&s);
    free(tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_many),
        cmocka_unit_test(test_chains), cmocka_unit_test(test_far),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
