/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU systems that the paper compares with: the results of the CPU engine, to the
 * byte, on every layout; and the work that they are there to show.
 */
#include "keyset.h"

#include <math.h>

#include "baseline/baseline.h"
#include "engine/engine.h"

enum { STEPS = 5, SLOTS = 24, QUERIES = 3, VALUES = QUERIES * STEPS * SLOTS };

static const uint32_t alphabet[] = {0, 1, 2, 5, 9, 70000, 70001, 4000000000};
enum { N_ALPHABET = sizeof alphabet / sizeof alphabet[0] };

static void search(const ft_buf *file, const char *engine, uint32_t n_threads,
                   const ft_batch *batch, const ft_search_params *params,
                   ft_results *out, ft_step_stats *steps)
{
    ft_error err = {0};
    ft_index *ix;
    ft_engine *e;
    const ft_engine_options options = {.n_threads = n_threads};
    ft_stats stats = {.steps = steps};
    assert_ok(
        ft_index_open_memory(&ix, file->data, file->len, "test", FT_VERIFY_FULL, &err),
        err);
    assert_ok(ft_engine_open(&e, engine, ix, &options, &err), err);
    assert_ok(ft_engine_search(e, batch, params, out, steps ? &stats : NULL, &err),
              err);
    ft_engine_close(e);
    ft_index_close(ix);
}

/* Tokens of the alphabet, twice and more at different log-probs, empty slots, ones that
 * no key has, ties, and -infinity. */
static void fill_grid(uint64_t seed, uint32_t *tokens, float *logp)
{
    for (uint32_t i = 0; i < VALUES; i++) {
        const uint64_t r = next_random(&seed);
        tokens[i] = r % 10 == 0   ? FT_NO_TOKEN
                    : r % 10 == 1 ? 3
                                  : alphabet[(r >> 8) % N_ALPHABET];
        logp[i] = (r >> 16) % 20 == 0 ? -INFINITY : -(float)((r >> 32) % 8) / 2;
    }
}

static void test_parity(void **state)
{
    static const char *const engines[] = {"marisa-int", "marisa-opt"};
    ft_error err = {0};
    (void)state;
    assert_ok(ft_baseline_register(&err), err);
    for (uint64_t seed = 0; seed < 30; seed++) {
        keyset s = keyset_random(seed, 20 + 30 * seed, alphabet, N_ALPHABET, STEPS + 1);
        uint32_t tokens[VALUES];
        float logp[VALUES];
        ft_buf file = {0};
        ft_results want = {0}, got = {0};
        const ft_batch batch = {.n_queries = QUERIES,
                                .n_steps = STEPS,
                                .n_proposals = SLOTS,
                                .tokens = tokens,
                                .logp = logp};
        ft_search_params params = FT_SEARCH_DEFAULTS;
        fill_grid(seed, tokens, logp);
        params.beam = 1 + (uint32_t)seed % 17;
        params.n_results = 1 + (uint32_t)seed % 29;
        params.alpha = seed % 3 ? 0.7 : 0;
        params.token_threshold = seed % 4 ? -INFINITY : -2.5f;
        params.sentence_threshold = seed % 5 ? -INFINITY : -6.0f;
        keyset_build(&s, "narrow", false, 0, &file);
        search(&file, "cpu", 1, &batch, &params, &want, NULL);
        assert_true(want.bytes.len > 8 * QUERIES);
        for (uint32_t k = 0; ft_layout_name(k); k++) {
            keyset_build(&s, ft_layout_name(k), false, 0, &file);
            for (int e = 0; e < 2; e++)
                for (uint32_t n_threads = 1; n_threads <= 4; n_threads += 3) {
                    search(&file, engines[e], n_threads, &batch, &params, &got, NULL);
                    assert_int_equal(got.bytes.len, want.bytes.len);
                    assert_memory_equal(got.bytes.data, want.bytes.data,
                                        want.bytes.len);
                }
        }
        ft_results_free(&want);
        ft_results_free(&got);
        ft_buf_free(&file);
        keyset_free(&s);
    }
}

/* A walk a pair of beam and proposal, and another where there is such a path; of equal
 * proposals one counts. */
static void test_walks_from_the_root(void **state)
{
    uint32_t tokens[] = {1, 9, 1, 2, 9, 8};
    float logp[] = {-1, -1, -2, -1, -1, -1};
    const ft_batch batch = {
        .n_queries = 1, .n_steps = 2, .n_proposals = 3, .tokens = tokens, .logp = logp};
    const ft_search_params params = FT_SEARCH_DEFAULTS;
    ft_step_stats steps[2];
    ft_buf file = {0};
    ft_results results = {0};
    ft_error err = {0};
    keyset s = {0};
    (void)state;
    KEY(&s, 1);
    KEY(&s, 1, 2);
    keyset_build(&s, "wide", false, 0, &file);
    assert_ok(ft_baseline_register(&err), err);
    search(&file, "marisa-int", 1, &batch, &params, &results, steps);
    assert_int_equal(steps[0].probes, 2 + 1);
    assert_int_equal(steps[0].candidates, 1);
    assert_int_equal(steps[1].beams, 1);
    assert_int_equal(steps[1].probes, 3 + 1);
    assert_int_equal(steps[1].candidates, 1);
    ft_results_free(&results);
    ft_buf_free(&file);
    keyset_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity),
        cmocka_unit_test(test_walks_from_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
