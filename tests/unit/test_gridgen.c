/* SPDX-License-Identifier: Apache-2.0
 *
 * Generated grids: whole, of real tokens, the same for every layout and order.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/engine.h"
#include "trie/build.h"
#include "trie/index.h"
#include "workload/gridgen.h"
#include "workload/keygen.h"
#include "workload/paths.h"

enum { N_KEYS = 30000, T = 6, K = 100, N_QUERIES = 20 };

typedef struct library {
    ft_buf file;
    ft_index *index;
} library;

static void close_library(library *l)
{
    ft_index_close(l->index);
    ft_buf_free(&l->file);
}

static ft_builder *open_builder(const char *layout)
{
    const ft_build_options options = {.layout = layout};
    ft_builder *b = NULL;
    assert_int_equal(ft_builder_open(&b, &options, NULL), FT_OK);
    return b;
}

static library finish(ft_builder *b)
{
    library l = {{NULL, 0, 0}, NULL};
    ft_build_summary summary;
    ft_sink *out = NULL;
    ft_error err;
    assert_int_equal(ft_sink_open_memory(&out, &l.file, &err), FT_OK);
    assert_int_equal(ft_builder_finish(b, out, &summary, &err), FT_OK);
    ft_builder_close(b);
    assert_int_equal(ft_sink_close(out, &err), FT_OK);
    assert_int_equal(ft_index_open_memory(&l.index, l.file.data, l.file.len, "memory",
                                          FT_VERIFY_FULL, &err),
                     FT_OK);
    return l;
}

static library generated(const char *layout)
{
    ft_builder *b = open_builder(layout);
    ft_keygen_params p;
    ft_keygen *g = NULL;
    const uint32_t *tokens;
    uint32_t n, lcp;
    assert_int_equal(ft_keygen_preset(&p, "paper", NULL), FT_OK);
    p.n_keys = N_KEYS;
    p.vocab = 5000;
    assert_int_equal(ft_keygen_open(&g, &p, NULL), FT_OK);
    while (ft_keygen_next(g, &tokens, &n, &lcp))
        assert_int_equal(ft_builder_add(b, tokens, n, lcp, NULL), FT_OK);
    ft_keygen_close(g);
    return finish(b);
}

static ft_gridgen_params preset(const char *name)
{
    ft_gridgen_params p;
    assert_int_equal(ft_gridgen_preset(&p, name, NULL), FT_OK);
    p.n_steps = T;
    p.n_proposals = K;
    return p;
}

static ft_batch make_batch(const library *l, const ft_gridgen_params *p)
{
    const size_t values = (size_t)p->n_steps * p->n_proposals;
    ft_batch b = {.n_queries = N_QUERIES,
                  .n_steps = p->n_steps,
                  .n_proposals = p->n_proposals,
                  .ids = calloc(N_QUERIES, sizeof *b.ids),
                  .tokens = calloc(N_QUERIES * values, sizeof *b.tokens),
                  .logp = calloc(N_QUERIES * values, sizeof *b.logp)};
    ft_gridgen *g = NULL;
    ft_error err;
    assert_int_equal(ft_gridgen_open(&g, ft_index_trie(l->index), p, &err), FT_OK);
    for (uint32_t q = N_QUERIES; q-- > 0;) /* any order will do */
        ft_gridgen_query(g, q, b.tokens + q * values, b.logp + q * values);
    ft_gridgen_close(g);
    return b;
}

static uint64_t digest(const ft_batch *b)
{
    const size_t values = (size_t)b->n_queries * b->n_steps * b->n_proposals;
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < values; i++) {
        uint32_t logp;
        memcpy(&logp, &b->logp[i], sizeof logp);
        h = (h ^ b->tokens[i]) * UINT64_C(0x100000001B3);
        h = (h ^ logp) * UINT64_C(0x100000001B3);
    }
    return h;
}

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Rows are sets of the tokens that nodes of that depth have; log-probs are such. */
static void check_batch(const ft_batch *b, const library *l)
{
    bool *at = calloc((size_t)T * 5000, sizeof *at);
    ft_cursor *c = NULL;
    const uint32_t *tokens;
    uint32_t n;
    uint64_t node;
    ft_error err;
    assert_int_equal(ft_cursor_open(&c, ft_index_trie(l->index), NULL, 0, &err), FT_OK);
    while (ft_cursor_next(c, &tokens, &n, &node, &err) == FT_OK && n)
        for (uint32_t i = 0; i < n && i < T; i++)
            at[i * 5000 + tokens[i]] = true;
    ft_cursor_close(c);
    for (uint32_t row = 0; row < N_QUERIES * T; row++) {
        uint32_t *t = b->tokens + (size_t)row * K;
        for (uint32_t k = 0; k < K; k++) {
            const float logp = b->logp[(size_t)row * K + k];
            assert_true(t[k] < 5000 && at[row % T * 5000 + t[k]]);
            assert_true(logp <= -0.25f && logp > -40.0f);
        }
        qsort(t, K, sizeof *t, by_value);
        for (uint32_t k = 1; k < K; k++)
            assert_true(t[k - 1] < t[k]);
    }
    free(at);
}

static void test_same_for_every_layout(void **state)
{
    (void)state;
    for (uint32_t i = 0; ft_gridgen_preset_name(i); i++) {
        const ft_gridgen_params p = preset(ft_gridgen_preset_name(i));
        uint64_t first = 0;
        for (uint32_t k = 0; ft_layout_name(k); k++) {
            library l = generated(ft_layout_name(k));
            if (!ft_index_trie(l.index)->level_order) {
                ft_error err = {0};
                ft_gridgen *g = NULL;
                assert_int_equal(ft_gridgen_open(&g, ft_index_trie(l.index), &p, &err),
                                 FT_EINVAL);
                close_library(&l);
                continue;
            }
            ft_batch b = make_batch(&l, &p);
            first = k ? first : digest(&b);
            assert_true(digest(&b) == first);
            check_batch(&b, &l);
            ft_batch_free(&b);
            close_library(&l);
        }
    }
}

/* These digests hold for every machine, compiler and version of this program. */
static void test_same_bytes_everywhere(void **state)
{
    library l = generated(NULL);
    static const uint64_t digests[] = {
        UINT64_C(0x3A692ABFD41E419B), UINT64_C(0x3E57800992C634D2),
        UINT64_C(0x46AD51B2C947E107), UINT64_C(0xCEF5069085F6C096)};
    (void)state;
    for (uint32_t i = 0; ft_gridgen_preset_name(i); i++) {
        const ft_gridgen_params p = preset(ft_gridgen_preset_name(i));
        ft_batch b = make_batch(&l, &p);
        assert_int_equal(digest(&b), digests[i]);
        ft_batch_free(&b);
    }
    close_library(&l);
}

static void test_full_keeps_beams_wide(void **state)
{
    library l = generated(NULL);
    const ft_gridgen_params p = preset("full");
    ft_batch b = make_batch(&l, &p);
    const ft_engine_options options = {.n_threads = 1};
    const ft_search_params params = FT_SEARCH_DEFAULTS;
    ft_stats stats = {.steps = calloc((size_t)N_QUERIES * T, sizeof *stats.steps)};
    ft_results results = {.n_queries = 0};
    ft_engine *e = NULL;
    uint64_t beams = 0;
    ft_error err;
    (void)state;
    assert_int_equal(ft_engine_open(&e, "cpu", l.index, &options, &err), FT_OK);
    assert_int_equal(ft_engine_search(e, &b, &params, &results, &stats, &err), FT_OK);
    for (uint32_t i = 0; i < N_QUERIES * T; i++)
        beams += i % T ? stats.steps[i].beams : 0;
    assert_true((double)beams / N_QUERIES / (T - 1) >= 0.7 * K);
    ft_engine_close(e);
    ft_results_free(&results);
    free(stats.steps);
    ft_batch_free(&b);
    close_library(&l);
}

/* Of first tokens 1, 7 and 9, 1 leads three deep, 7 two deep, 9 one deep. */
static void test_even_paths(const ft_trie *t)
{
    enum { N = 400 };
    uint32_t n_ones = 0;
    ft_paths p;
    ft_error err;
    assert_int_equal(ft_paths_sample(&p, t, FT_PATHS_EVEN, N, 4, 1, &err), FT_OK);
    assert_int_equal(p.n_steps, 3); /* none is longer */
    for (uint32_t i = 0; i < N; i++) {
        static const uint32_t deepest[] = {1, 2, 3};
        assert_memory_equal(p.tokens + 3 * i, deepest, sizeof deepest);
    }
    ft_paths_free(&p);
    assert_int_equal(ft_paths_sample(&p, t, FT_PATHS_EVEN, N, 2, 1, &err), FT_OK);
    for (uint32_t i = 0; i < N; i++) {
        n_ones += p.tokens[2 * i] == 1;
        assert_true((p.tokens[2 * i] == 1 && p.tokens[2 * i + 1] == 2) ||
                    (p.tokens[2 * i] == 7 && p.tokens[2 * i + 1] == 7));
    }
    assert_in_range(n_ones, N / 2 - 60, N / 2 + 60);
    ft_paths_free(&p);
    assert_int_equal(ft_paths_sample(&p, t, FT_PATHS_EVEN, N, 1, 1, &err), FT_OK);
    assert_int_equal(p.tokens[0], 1);
    assert_int_equal(p.tokens[N / 2], 7);
    assert_int_equal(p.tokens[N - 1], 9);
    ft_paths_free(&p);
}

/* A sample of keys has keys, in order; each of a small library, if it is large. */
static void test_paths(void **state)
{
    static const uint32_t keys[][3] = {{1}, {1, 2}, {1, 2, 3}, {7, 7}, {9}};
    static const uint32_t n_tokens[] = {1, 2, 3, 2, 1}, lcps[] = {0, 1, 2, 0, 0};
    ft_builder *b = open_builder(NULL);
    bool met[5] = {false};
    ft_paths p;
    ft_error err;
    (void)state;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(ft_builder_add(b, keys[i], n_tokens[i], lcps[i], &err), FT_OK);
    library l = finish(b);
    const ft_trie *t = ft_index_trie(l.index);
    assert_int_equal(ft_paths_sample(&p, t, FT_PATHS_KEYS, 200, 4, 1, &err), FT_OK);
    assert_int_equal(p.n_steps, 3);
    for (uint32_t i = 0, at = 0; i < p.n; i++) {
        uint32_t path[3];
        for (;; at++) {
            assert_true(at < 5);
            memset(path, 0xFF, sizeof path);
            memcpy(path, keys[at], n_tokens[at] * sizeof *path);
            if (memcmp(path, p.tokens + 3 * i, sizeof path) == 0)
                break;
        }
        met[at] = true;
    }
    for (size_t i = 0; i < 5; i++)
        assert_true(met[i]);
    ft_paths_free(&p);
    assert_int_equal(ft_paths_sample(&p, t, FT_PATHS_DEEP, 50, 2, 1, &err), FT_OK);
    for (uint32_t i = 0; i < p.n; i++)
        assert_true((p.tokens[2 * i] == 1 && p.tokens[2 * i + 1] == 2) ||
                    (p.tokens[2 * i] == 7 && p.tokens[2 * i + 1] == 7));
    ft_paths_free(&p);
    test_even_paths(t);
    close_library(&l);
}

/* Where there are fewer tokens than slots, the others are empty. */
static void test_small_library(void **state)
{
    static const uint32_t key[] = {5, 6};
    ft_builder *b = open_builder(NULL);
    ft_gridgen_params p = preset("full");
    (void)state;
    assert_int_equal(ft_builder_add(b, key, 2, 0, NULL), FT_OK);
    library l = finish(b);
    p.n_steps = 3;
    p.n_proposals = 2;
    ft_batch batch = make_batch(&l, &p);
    static const uint32_t wanted[] = {5,           FT_NO_TOKEN, 6,
                                      FT_NO_TOKEN, FT_NO_TOKEN, FT_NO_TOKEN};
    for (uint32_t q = 0; q < N_QUERIES; q++)
        assert_memory_equal(batch.tokens + q * 6, wanted, sizeof wanted);
    ft_batch_free(&batch);
    close_library(&l);
}

static void test_refusals(void **state)
{
    library none = finish(open_builder(NULL));
    const ft_trie *t = ft_index_trie(none.index);
    ft_gridgen *g = NULL;
    ft_error err = {FT_OK, ""};
    (void)state;
    for (int i = 0; i < 6; i++) {
        ft_gridgen_params p = preset("full");
        p.n_steps = i == 1 ? 0 : i == 2 ? FT_MAX_KEY_TOKENS + 1 : p.n_steps;
        p.n_proposals = i == 3 ? 0 : p.n_proposals;
        p.slope = i == 4 ? NAN : p.slope;
        p.jitter = i == 5 ? -1 : p.jitter;
        assert_int_equal(ft_gridgen_open(&g, t, &p, &err), FT_EINVAL);
        assert_null(g);
        if (i == 0)
            assert_string_equal(err.message, "the library has no keys");
    }
    ft_gridgen_params p = preset("noise");
    assert_int_equal(ft_gridgen_preset(&p, "fill", &err), FT_EINVAL);
    assert_int_equal(p.head, 0);
    close_library(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_for_every_layout),
        cmocka_unit_test(test_same_bytes_everywhere),
        cmocka_unit_test(test_full_keeps_beams_wide),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_small_library),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
