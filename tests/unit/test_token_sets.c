/* SPDX-License-Identifier: Apache-2.0
 *
 * The token sets of PPT against the keys themselves, on every layout: the same bytes,
 * whatever the threads.
 */
#include "keyset.h"

#include "baseline/token_sets.h"

enum { STEPS = 6, MANY = 40000, N_WORDS = 3000 };

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

static void check(const keyset *s, const char *layout, uint32_t n_threads)
{
    ft_error err = {0};
    ft_buf file = {0};
    ft_token_sets got;
    ft_index *ix = keyset_index(s, layout, false, 0, &file);
    uint32_t *want = malloc((s->n + 1) * sizeof *want);
    uint64_t at = 0;
    assert_ok(ft_token_sets_make(&got, ft_index_trie(ix), n_threads, &err), err);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
