/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GPU's tests share: random libraries and grids of a given shape, engines,
 * comparison of answers, TAP.
 */
#ifndef TESTS_GPU_CASES_H
#define TESTS_GPU_CASES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ft.h"

static uint64_t state;

static inline uint64_t next(void)
{
    uint64_t x = state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static inline uint32_t below(uint32_t n)
{
    return (uint32_t)(next() % n);
}

/* What a case looks like. */
typedef struct shape {
    const char *name;
    uint32_t n_keys, vocab, max_length;
    uint32_t n_steps, n_proposals, n_queries;
    uint32_t beam, n_results;
    uint32_t n_scores; /* different log-probs; 0: all differ */
    float token_threshold, sentence_threshold;
    double alpha;
    uint32_t hub;  /* children of the root, and of its first child */
    bool sparse;   /* token ids over the whole range */
    bool holes;    /* empty slots, duplicates, -inf, unknown tokens */
    bool terminal; /* all keys have one token */
} shape;

static inline uint32_t spread(const shape *s, uint32_t id)
{
    static const uint32_t odd[] = {54999,   55000,   65535,     65536,
                                   2097152, 4194304, 4294967294};
    if (!s->sparse)
        return id;
    return id < 7 ? odd[id] : id * 2654435u % 4294967295u;
}

typedef struct key {
    uint32_t n, tokens[40];
} key;

static inline int by_order(const void *x, const void *y)
{
    const key *a = x, *b = y;
    uint32_t lcp;
    return ft_keys_compare(a->tokens, a->n, b->tokens, b->n, &lcp);
}

static inline key *make_keys(const shape *s, uint32_t *n_keys)
{
    const uint32_t n = s->n_keys + 2 * s->hub;
    key *keys = calloc(n, sizeof *keys);
    for (uint32_t i = 0; i < s->n_keys; i++) {
        keys[i].n = s->terminal ? 1 : 1 + below(s->max_length);
        for (uint32_t t = 0; t < keys[i].n; t++) {
            const uint32_t range = t == 0 ? s->vocab : 1 + s->vocab / (1 + t);
            keys[i].tokens[t] = spread(s, below(1 + below(range)));
        }
    }
    for (uint32_t i = 0; i < s->hub; i++) {
        keys[s->n_keys + i] = (key){1, {i}};
        keys[s->n_keys + s->hub + i] = (key){2, {1, i}};
    }
    qsort(keys, n, sizeof *keys, by_order);
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++)
        if (m == 0 || by_order(&keys[m - 1], &keys[i]) != 0)
            keys[m++] = keys[i];
    *n_keys = m;
    return keys;
}

static inline void die(const ft_error *err)
{
    printf("Bail out! %s\n", err->message);
    exit(1);
}

static inline ft_index *make_index(const key *keys, uint32_t n, const char *layout,
                                   const char *path)
{
    ft_error err = {0};
    ft_builder *b = NULL;
    ft_sink *out = NULL;
    ft_index *index = NULL;
    ft_build_summary summary;
    const ft_build_options options = {.layout = layout};
    ft_status st = ft_builder_open(&b, &options, &err);
    for (uint32_t i = 0; i < n && st == FT_OK; i++) {
        uint32_t lcp = 0;
        if (i)
            ft_keys_compare(keys[i - 1].tokens, keys[i - 1].n, keys[i].tokens,
                            keys[i].n, &lcp);
        st = ft_builder_add(b, keys[i].tokens, keys[i].n, lcp, &err);
    }
    if (st == FT_OK)
        st = ft_sink_open(&out, path, &err);
    if (st == FT_OK)
        st = ft_builder_finish(b, out, &summary, &err);
    if (st == FT_OK)
        st = ft_sink_close(out, &err);
    ft_builder_close(b);
    if (st == FT_OK)
        st = ft_index_open(&index, path, FT_VERIFY_FULL, 4, &err);
    if (st != FT_OK)
        die(&err);
    return index;
}

static inline float score(const shape *s)
{
    if (s->n_scores)
        return -0.5f * (float)below(s->n_scores);
    return -16.0f * (float)(next() >> 40) / 16777216.0f;
}

static inline void make_grid(const shape *s, const key *keys, uint32_t n_keys,
                             ft_batch *b)
{
    const uint64_t n = (uint64_t)s->n_queries * s->n_steps * s->n_proposals;
    *b = (ft_batch){.n_queries = s->n_queries,
                    .n_steps = s->n_steps,
                    .n_proposals = s->n_proposals};
    b->ids = calloc(s->n_queries, sizeof *b->ids);
    b->tokens = malloc(n * sizeof *b->tokens);
    b->logp = malloc(n * sizeof *b->logp);
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t step = (uint32_t)(i / s->n_proposals % s->n_steps);
        const key *k = &keys[below(n_keys)];
        b->tokens[i] = step < k->n ? k->tokens[step] : spread(s, below(s->vocab + 9));
        b->logp[i] = score(s);
        if (!s->holes)
            continue;
        const uint32_t dice = below(16);
        if (dice == 0)
            b->tokens[i] = FT_NO_TOKEN;
        else if (dice == 1)
            b->logp[i] = -INFINITY;
        else if (dice == 2 && i % s->n_proposals)
            b->tokens[i] = b->tokens[i - 1];
        else if (dice == 3)
            b->tokens[i] = (uint32_t)next();
    }
}

static inline void free_grid(ft_batch *b)
{
    free(b->ids);
    free(b->tokens);
    free(b->logp);
}

static inline ft_engine *open_engine_with(const char *name, const ft_index *index,
                                          const ft_engine_options *options)
{
    ft_error err = {0};
    ft_engine *e = NULL;
    if (ft_engine_open(&e, name, index, options, &err) != FT_OK)
        die(&err);
    return e;
}

static inline ft_engine *open_engine(const char *name, const ft_index *index)
{
    return open_engine_with(name, index, &(ft_engine_options){0});
}

static inline bool same(const ft_results *a, const ft_results *b)
{
    return a->bytes.len == b->bytes.len && a->n_queries == b->n_queries &&
           memcmp(a->bytes.data, b->bytes.data, a->bytes.len) == 0;
}

/* The results of a batch; the test ends where there are none. */
static inline ft_results search(ft_engine *e, const ft_batch *batch,
                                const ft_search_params *params)
{
    ft_error err = {0};
    ft_results r = {0};
    if (ft_engine_search(e, batch, params, &r, NULL, &err) != FT_OK)
        die(&err);
    return r;
}

/* Say where two answers part. */
static inline void explain(const ft_results *want, const ft_results *got)
{
    for (uint64_t q = 0; q < want->n_queries; q++) {
        ft_record a, b;
        uint64_t used;
        ft_error err = {0};
        const uint64_t n_a = want->offset[q + 1] - want->offset[q];
        const uint64_t n_b = got->offset[q + 1] - got->offset[q];
        if (n_a == n_b && memcmp(want->bytes.data + want->offset[q],
                                 got->bytes.data + got->offset[q], n_a) == 0)
            continue;
        if (ft_record_view(&a, want->bytes.data + want->offset[q], n_a, &used, &err) !=
                FT_OK ||
            ft_record_view(&b, got->bytes.data + got->offset[q], n_b, &used, &err) !=
                FT_OK) {
            printf("# query %llu: %s\n", (unsigned long long)q, err.message);
            return;
        }
        uint64_t i = 0;
        while (i < a.n && i < b.n && ft_record_score(&a, i) == ft_record_score(&b, i))
            i++;
        printf("# query %llu: %llu results, %llu expected; scores part at %llu\n",
               (unsigned long long)q, (unsigned long long)b.n, (unsigned long long)a.n,
               (unsigned long long)i);
        return;
    }
}

static inline ft_search_params params_of(const shape *s)
{
    return (ft_search_params){s->beam, s->n_results, s->alpha, s->token_threshold,
                              s->sentence_threshold};
}

static uint32_t n_tests, n_failed;

static inline void tell(bool ok, const char *what, const char *layout, const shape *s)
{
    n_tests++;
    n_failed += !ok;
    printf("%sok %u - %s, %s: B=%u N=%u K=%u T=%u\n", ok ? "" : "not ", n_tests, what,
           layout, s->beam, s->n_results, s->n_proposals, s->n_steps);
    fflush(stdout);
}

/* The plan, and what the program exits with. */
static inline int done(void)
{
    printf("1..%u\n%u passed, %u failed\n", n_tests, n_tests - n_failed, n_failed);
    return n_failed != 0 || n_tests == 0;
}

/* Where there is no device the test is skipped, which `make check-gpu` counts as
 * failed. */
static inline bool has_device(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/ft-parity-%d.ftx", (int)getpid());
    const key one = {1, {7}};
    ft_index *index = make_index(&one, 1, NULL, path);
    ft_error err = {0};
    ft_engine *e = NULL;
    const ft_engine_options options = {.n_threads = 1};
    const ft_status st = ft_engine_open(&e, "cuda", index, &options, &err);
    ft_engine_close(e);
    ft_index_close(index);
    unlink(path);
    if (st == FT_EUNAVAILABLE)
        printf("1..1\nok 1 # skip %s\n", err.message);
    else if (st != FT_OK)
        die(&err);
    return st == FT_OK;
}

#endif
