/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA engine against the CPU engine, byte for byte, over random tries and grids
 * that look for trouble: every layout that the GPU reads, narrow and wide beams, ties,
 * hubs, empty slots, saturated buffers. Prints TAP.
 *
 *     test_parity [quick|NAME]     quick: small cases alone, for compute-sanitizer;
 *                                  NAME: the cases of that name
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ft.h"

static uint64_t state;

static uint64_t next(void)
{
    uint64_t x = state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint32_t below(uint32_t n)
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

static uint32_t spread(const shape *s, uint32_t id)
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

static int by_order(const void *x, const void *y)
{
    const key *a = x, *b = y;
    uint32_t lcp;
    return ft_keys_compare(a->tokens, a->n, b->tokens, b->n, &lcp);
}

static key *make_keys(const shape *s, uint32_t *n_keys)
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

static void die(const ft_error *err)
{
    printf("Bail out! %s\n", err->message);
    exit(1);
}

static ft_index *make_index(const key *keys, uint32_t n, const char *layout,
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

static float score(const shape *s)
{
    if (s->n_scores)
        return -0.5f * (float)below(s->n_scores);
    return -16.0f * (float)(next() >> 40) / 16777216.0f;
}

static void make_grid(const shape *s, const key *keys, uint32_t n_keys, ft_batch *b)
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

static void free_grid(ft_batch *b)
{
    free(b->ids);
    free(b->tokens);
    free(b->logp);
}

static ft_engine *open_engine(const char *name, const ft_index *index)
{
    ft_error err = {0};
    ft_engine *e = NULL;
    const ft_engine_options options = {.n_threads = 0};
    if (ft_engine_open(&e, name, index, &options, &err) != FT_OK)
        die(&err);
    return e;
}

static bool same(const ft_results *a, const ft_results *b)
{
    return a->bytes.len == b->bytes.len && a->n_queries == b->n_queries &&
           memcmp(a->bytes.data, b->bytes.data, a->bytes.len) == 0;
}

/* Say where two answers part. */
static void explain(const ft_results *want, const ft_results *got)
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

static uint32_t n_tests, n_failed;

static void tell(bool ok, const char *what, const char *layout, const shape *s)
{
    n_tests++;
    n_failed += !ok;
    printf("%sok %u - %s, %s: B=%u N=%u K=%u T=%u\n", ok ? "" : "not ", n_tests, what,
           layout, s->beam, s->n_results, s->n_proposals, s->n_steps);
    fflush(stdout);
}

static const char *only; /* run the cases of this name alone */

static void run(const shape *s, uint64_t seed, uint32_t repeats, bool stats)
{
    if (only && strcmp(only, s->name) != 0)
        return;
    char path[64];
    snprintf(path, sizeof path, "/tmp/ft-parity-%d.ftx", (int)getpid());
    state = seed;
    uint32_t n_keys;
    key *keys = make_keys(s, &n_keys);
    ft_batch batch;
    make_grid(s, keys, n_keys, &batch);
    const ft_search_params params = {s->beam, s->n_results, s->alpha,
                                     s->token_threshold, s->sentence_threshold};
    for (uint32_t i = 0; ft_layout_name(i); i++) {
        ft_error err = {0};
        ft_index *index = make_index(keys, n_keys, ft_layout_name(i), path);
        if (!ft_index_trie(index)->level_order) { /* not a layout that the GPU reads */
            ft_index_close(index);
            continue;
        }
        ft_engine *cpu = open_engine("cpu", index), *gpu = open_engine("cuda", index);
        ft_results want = {0}, got = {0};
        ft_stats counted = {
            calloc((uint64_t)s->n_queries * s->n_steps, sizeof(ft_step_stats))};
        bool ok = true;
        if (ft_engine_search(cpu, &batch, &params, &want, NULL, &err) != FT_OK)
            die(&err);
        for (uint32_t r = 0; r < repeats && ok; r++) {
            if (ft_engine_search(gpu, &batch, &params, &got, stats ? &counted : NULL,
                                 &err) != FT_OK)
                die(&err);
            ok = same(&want, &got);
        }
        if (!ok)
            explain(&want, &got);
        tell(ok, s->name, ft_layout_name(i), s);
        free(counted.steps);
        ft_results_free(&want);
        ft_results_free(&got);
        ft_engine_close(cpu);
        ft_engine_close(gpu);
        ft_index_close(index);
    }
    unlink(path);
    free_grid(&batch);
    free(keys);
}

static const float none = -INFINITY;

static void small_cases(uint32_t n)
{
    static const uint32_t beams[] = {1, 2, 3, 31, 32, 33, 100, 127, 128, 129};
    for (uint32_t i = 0; i < n; i++) {
        state = 77 * i + 1;
        const shape s = {.name = "random",
                         .n_keys = 1 + below(3000),
                         .vocab = 1 + below(400),
                         .max_length = 1 + below(8),
                         .n_steps = 1 + below(12),
                         .n_proposals = 1 + below(200),
                         .n_queries = 1 + below(20),
                         .beam = beams[below(10)],
                         .n_results = beams[below(10)],
                         .n_scores = below(2) ? 1 + below(8) : 0,
                         .token_threshold = below(2) ? none : -7,
                         .sentence_threshold = below(2) ? none : -20,
                         .alpha = below(2) ? 5 : -0.5 + below(3),
                         .sparse = below(2),
                         .holes = below(2),
                         .terminal = below(8) == 0};
        run(&s, i + 1000, 1, below(2));
    }
}

static void widths(void)
{
    static const uint32_t beams[] = {1,   2,    31,   32,   33,   127,  128,  129,
                                     600, 1000, 1023, 1024, 1025, 4096, 65536};
    for (uint32_t i = 0; i < sizeof beams / sizeof *beams; i++)
        for (int tie = 0; tie < 2; tie++) {
            const shape s = {.name = tie ? "width, ties" : "width",
                             .n_keys = 60000,
                             .vocab = 3000,
                             .max_length = 7,
                             .n_steps = 8,
                             .n_proposals = 1000,
                             .n_queries = beams[i] > 1024 ? 2 : 5,
                             .beam = beams[i],
                             .n_results = i % 2 ? beams[i] : 1 + beams[i] / 3,
                             .n_scores = tie ? 3 : 0,
                             .token_threshold = none,
                             .sentence_threshold = none,
                             .alpha = 5};
            run(&s, 9 + i, 1, i % 3 == 0);
        }
}

static void corners(void)
{
    const shape all[] = {
        {"all scores equal", 50000, 500, 6, 6, 500, 3, 500, 500, 1, none, none, 5, 0,
         false, false, false},
        {"hub of 2^21 children", 2000, 2000, 5, 5, 900, 3, 900, 900, 0, none, none, 5,
         2097152, false, false, false},
        {"all terminal", 5000, 5000, 1, 4, 900, 4, 700, 700, 4, none, none, 5, 0, false,
         false, true},
        {"one key", 1, 5, 4, 4, 3, 2, 10, 10, 0, none, none, 5, 0, false, false, false},
        {"empty frontiers", 3000, 900, 3, 8, 50, 8, 50, 50, 0, -1, -2, 5, 0, false,
         true, false},
        {"1024 steps", 5000, 20, 30, 1024, 30, 2, 40, 40, 5, none, none, 1, 0, false,
         false, false},
        {"K of 65536", 90000, 80000, 4, 4, 65536, 1, 300, 300, 0, none, none, 5, 0,
         false, true, false},
        {"K and B of 65536", 90000, 80000, 4, 4, 65536, 1, 65536, 65536, 6, none, none,
         5, 0, false, false, false},
        {"K above B", 20000, 4000, 6, 6, 1024, 6, 7, 3, 2, none, none, 5, 0, true, true,
         false},
        {"B above K", 20000, 40, 6, 6, 12, 6, 1024, 1024, 2, none, none, 0, 0, true,
         true, false},
        {"overflowing buffers", 200000, 300, 4, 4, 300, 40, 1000, 20, 0, none, none, 5,
         0, false, false, false},
        {"many queries", 20000, 2000, 6, 8, 100, 3000, 100, 100, 40, none, none, 5, 0,
         false, true, false},
        {"many wide queries", 20000, 2000, 6, 8, 1000, 600, 1000, 1000, 0, none, none,
         5, 0, false, true, false},
    };
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        run(&all[i], 31 + i, i == 0 || i == 10 ? 100 : 2, i % 2);
}

/* Where there is no device the test is skipped, which `make check-gpu` counts as
 * failed. */
static bool has_device(void)
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

int main(int argc, char **argv)
{
    if (!has_device())
        return 0;
    const bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    only = argc > 1 && !quick ? argv[1] : NULL;
    small_cases(quick ? 12 : 150);
    if (!quick) {
        widths();
        corners();
    }
    printf("1..%u\n%u passed, %u failed\n", n_tests, n_tests - n_failed, n_failed);
    return n_failed != 0 || n_tests == 0;
}
