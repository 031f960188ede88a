/* SPDX-License-Identifier: Apache-2.0
 *
 * The search by steps: with the proposals of a grid it is the search of the grid, and
 * with proposals per beam it is what a search over plain keys finds.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "keyset.h"

#include "engine/engine.h"
#include "engine/steps.h"

enum { LONGEST = 6, N_ALPHABET = 12, K = 9, T = LONGEST, MAX_BEAMS = 64 };

static const uint32_t alphabet[N_ALPHABET] = {0,     3,     5,      9,      17,    255,
                                              65535, 65536, 200000, 200001, 99999, 7};

static ft_engine *open_cpu(const ft_index *index, uint32_t n_threads)
{
    const ft_engine_options options = {.n_threads = n_threads};
    ft_error err = {0};
    ft_engine *e = NULL;
    assert_ok(ft_engine_open(&e, "cpu", index, &options, &err), err);
    return e;
}

/* Few different log-probs, so that there are ties; holes and doubles. */
static void propose(uint64_t *seed, uint32_t *tokens, float *logp, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t r = next_random(seed);
        tokens[i] = alphabet[r % N_ALPHABET];
        logp[i] = -0.5f * (float)(r >> 8 & 7);
        if ((r >> 16 & 15) == 0)
            tokens[i] = FT_NO_TOKEN;
        else if ((r >> 16 & 15) == 1)
            logp[i] = -INFINITY;
        else if ((r >> 16 & 15) == 2)
            tokens[i] = 123456; /* in no key */
    }
}

/* Every beam gets the proposals of the position. */
static void run_grid(ft_engine *e, const ft_batch *grid, const ft_search_params *params,
                     ft_results *out)
{
    static uint32_t tokens[MAX_BEAMS * K];
    static float logp[MAX_BEAMS * K];
    ft_error err = {0};
    ft_steps *s = NULL;
    ft_frontier f = {.n_beams = 1};
    assert_ok(ft_steps_open(&s, e, params, &err), err);
    for (uint32_t t = 0; t < T; t++) {
        for (uint64_t b = 0; b < f.n_beams; b++) {
            memcpy(tokens + b * K, grid->tokens + t * K, sizeof *tokens * K);
            memcpy(logp + b * K, grid->logp + t * K, sizeof *logp * K);
        }
        assert_ok(ft_steps_next(s, tokens, logp, K, &f, &err), err);
        assert_true(f.n_beams <= params->beam);
        assert_ok(ft_steps_results(s, out, &err), err); /* on the way, too */
    }
    ft_steps_close(s);
}

static void check_grid(const ft_index *index, uint32_t n_threads, uint64_t seed)
{
    uint32_t tokens[T * K];
    float logp[T * K];
    propose(&seed, tokens, logp, T * K);
    const ft_batch grid = {
        .n_queries = 1, .n_steps = T, .n_proposals = K, .tokens = tokens, .logp = logp};
    const ft_search_params params = {1 + (uint32_t)(seed % MAX_BEAMS),
                                     1 + (uint32_t)(seed >> 20) % MAX_BEAMS, 2,
                                     -INFINITY, -9};
    ft_engine *e = open_cpu(index, n_threads);
    ft_results want = {0}, got = {0};
    ft_error err = {0};
    assert_ok(ft_engine_search(e, &grid, &params, &want, NULL, &err), err);
    run_grid(e, &grid, &params, &got);
    assert_int_equal(want.bytes.len, got.bytes.len);
    assert_memory_equal(want.bytes.data, got.bytes.data, want.bytes.len);
    ft_results_free(&want);
    ft_results_free(&got);
    ft_engine_close(e);
}

static void test_steps_of_a_grid(void **state)
{
    (void)state;
    for (uint32_t i = 0; ft_layout_name(i); i++)
        for (uint64_t seed = 1; seed <= 12; seed++) {
            keyset keys = keyset_random(seed, 400, alphabet, N_ALPHABET, LONGEST);
            ft_buf file = {0};
            ft_index *index = keyset_index(&keys, ft_layout_name(i), false, 0, &file);
            check_grid(index, 1 + seed % 3, seed * 77);
            ft_index_close(index);
            ft_buf_free(&file);
            keyset_free(&keys);
        }
}

/* The model: sequences over plain keys. */
typedef struct sequence {
    uint32_t n, parent, tokens[LONGEST];
    float sum;
    double score;
} sequence;

typedef struct model {
    const keyset *keys;
    const ft_search_params *params;
    sequence beams[MAX_BEAMS * K], results[LONGEST * MAX_BEAMS * K];
    uint32_t n_beams, n_results;
} model;

static int best_first(const void *x, const void *y)
{
    const sequence *a = x, *b = y;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->tokens[i] != b->tokens[i])
            return a->tokens[i] < b->tokens[i] ? -1 : 1;
    return 0;
}

/* Does a key have the prefix, and is it one, and does a longer one have it? */
static void look_up(const keyset *keys, const sequence *s, bool *is, bool *goes_on)
{
    *is = *goes_on = false;
    for (uint64_t i = 0; i < keys->n; i++) {
        const test_key *k = &keys->keys[i];
        if (k->n < s->n || memcmp(k->tokens, s->tokens, s->n * sizeof *s->tokens) != 0)
            continue;
        *is |= k->n == s->n;
        *goes_on |= k->n > s->n;
    }
}

static bool counts(const uint32_t *tokens, const float *logp, uint32_t k)
{
    for (uint32_t i = 0; i < K; i++)
        if (tokens[i] == tokens[k] &&
            (logp[i] > logp[k] || (logp[i] == logp[k] && i < k)))
            return false;
    return tokens[k] != FT_NO_TOKEN;
}

static void model_step(model *m, const uint32_t *tokens, const float *logp)
{
    static sequence from[MAX_BEAMS];
    const uint32_t n = m->n_beams;
    memcpy(from, m->beams, n * sizeof *from);
    m->n_beams = 0;
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t k = 0; k < K; k++) {
            sequence s = from[b];
            bool is, goes_on;
            const float rho = logp[b * K + k], sum = s.sum + rho;
            if (!counts(tokens + b * K, logp + b * K, k) || s.n == LONGEST ||
                !(rho > m->params->token_threshold) ||
                !(sum > m->params->sentence_threshold))
                continue;
            s.tokens[s.n++] = tokens[b * K + k];
            s.parent = b;
            s.sum = sum;
            look_up(m->keys, &s, &is, &goes_on);
            s.score = (double)sum * pow(6.0 / (5 + s.n), m->params->alpha);
            if (is)
                m->results[m->n_results++] = s;
            s.score = sum;
            if (goes_on)
                m->beams[m->n_beams++] = s;
        }
    qsort(m->beams, m->n_beams, sizeof *m->beams, best_first);
    m->n_beams = m->n_beams < m->params->beam ? m->n_beams : m->params->beam;
}

static void check_results(model *m, const ft_results *got)
{
    ft_record r;
    uint64_t used;
    ft_error err = {0};
    qsort(m->results, m->n_results, sizeof *m->results, best_first);
    const uint32_t n =
        m->n_results < m->params->n_results ? m->n_results : m->params->n_results;
    assert_ok(ft_record_view(&r, got->bytes.data, got->bytes.len, &used, &err), err);
    assert_int_equal(r.n, n);
    for (uint32_t i = 0; i < n; i++) {
        const sequence *s = &m->results[n - 1 - i];
        const uint64_t start = ft_record_end(&r, i - UINT64_C(1));
        assert_true(ft_record_score(&r, i) == s->score);
        assert_int_equal(ft_record_end(&r, i) - start, s->n);
        for (uint32_t j = 0; j < s->n; j++)
            assert_int_equal(ft_record_token(&r, start + j), s->tokens[j]);
    }
}

static void check_own(const keyset *keys, ft_engine *e, uint64_t seed)
{
    static uint32_t tokens[MAX_BEAMS * K];
    static float logp[MAX_BEAMS * K];
    static model m;
    const ft_search_params params = {1 + (uint32_t)(seed % MAX_BEAMS),
                                     1 + (uint32_t)(seed >> 20) % MAX_BEAMS, -1.5, -3,
                                     -8};
    ft_error err = {0};
    ft_steps *s = NULL;
    ft_frontier f = {.n_beams = 1};
    ft_results got = {0};
    m = (model){.keys = keys, .params = &params, .n_beams = 1};
    assert_ok(ft_steps_open(&s, e, &params, &err), err);
    for (uint32_t t = 0; t <= LONGEST; t++) {
        propose(&seed, tokens, logp, f.n_beams * K);
        assert_ok(ft_steps_next(s, tokens, logp, K, &f, &err), err);
        model_step(&m, tokens, logp);
        assert_int_equal(f.n_beams, m.n_beams);
        for (uint64_t b = 0; b < f.n_beams; b++) {
            assert_int_equal(f.parents[b], m.beams[b].parent);
            assert_int_equal(f.tokens[b], m.beams[b].tokens[t]);
            assert_true(f.sums[b] == m.beams[b].sum);
        }
    }
    assert_ok(ft_steps_results(s, &got, &err), err);
    check_results(&m, &got);
    ft_results_free(&got);
    ft_steps_close(s);
}

static void test_steps_of_own_proposals(void **state)
{
    (void)state;
    for (uint32_t i = 0; ft_layout_name(i); i++)
        for (uint64_t seed = 1; seed <= 12; seed++) {
            keyset keys = keyset_random(seed, 300, alphabet, N_ALPHABET, LONGEST);
            ft_buf file = {0};
            ft_index *index = keyset_index(&keys, ft_layout_name(i), false, 0, &file);
            ft_engine *e = open_cpu(index, 1 + seed % 3);
            check_own(&keys, e, seed * 31);
            ft_engine_close(e);
            ft_index_close(index);
            ft_buf_free(&file);
            keyset_free(&keys);
        }
}

static void test_refused(void **state)
{
    (void)state;
    keyset keys = keyset_random(1, 30, alphabet, N_ALPHABET, LONGEST);
    ft_buf file = {0};
    ft_index *index = keyset_index(&keys, "compact", false, 0, &file);
    ft_engine *e = open_cpu(index, 1);
    ft_search_params params = FT_SEARCH_DEFAULTS;
    ft_steps *s = NULL;
    ft_loaded *l = NULL;
    ft_error err = {0};
    assert_int_equal(ft_steps_open(&s, e, &params, &err), FT_EINVAL);
    assert_string_equal(err.message, "a search by steps needs a beam width");
    params.beam = 1;
    params.alpha = NAN;
    assert_int_equal(ft_steps_open(&s, e, &params, &err), FT_EINVAL);
    assert_null(s);

    const ft_batch half = {.half = true};
    ft_results out = {0};
    assert_int_equal(
        ft_engine_search(e, &half, &(ft_search_params){.beam = 1}, &out, NULL, &err),
        FT_EINVAL);
    assert_string_equal(err.message, "engine cpu takes no binary16 log-probs");
    assert_int_equal(ft_engine_load(e, &half, &l, &err), FT_EUNAVAILABLE);
    assert_null(l);
    ft_engine_close(e);
    ft_index_close(index);
    ft_buf_free(&file);
    keyset_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_of_a_grid),
        cmocka_unit_test(test_steps_of_own_proposals),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
