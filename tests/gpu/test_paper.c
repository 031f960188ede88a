/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's engine and its ablations against the CPU engine, byte for byte, on both
 * of their layouts; PPT against a search of its own that keeps every sequence in full,
 * and, where nothing is cut off, as a superset. Prints TAP.
 *
 *     test_paper [quick]
 *
 * quick: a small case with the clock and one without it for each kernel and layout: for
 * compute-sanitizer, racecheck included.
 */
#include "baseline/baseline.h"
#include "cases.h"

static const char *const layouts[] = {"narrow", "narrow-tails", NULL};
static const char *const engines[] = {"paper", "paper-linear", "paper-two-pointer",
                                      "paper-per-child", NULL};
static const float none = -INFINITY;
static char path[64];

/* Beams that come and go are the same for all; phases are there, and do not change the
 * answer. */
static bool stats_agree(ft_engine *cpu, ft_engine *gpu, const ft_batch *batch,
                        const ft_search_params *params, const ft_results *want)
{
    const uint64_t n = (uint64_t)batch->n_queries * batch->n_steps;
    ft_stats a = {calloc(n, sizeof *a.steps), NULL};
    ft_stats b = {calloc(n, sizeof *b.steps),
                  calloc(batch->n_queries * FT_N_PHASES, sizeof *b.phases)};
    ft_results got = {0};
    ft_error err = {0};
    if (ft_engine_search(cpu, batch, params, &got, &a, &err) != FT_OK ||
        ft_engine_search(gpu, batch, params, &got, &b, &err) != FT_OK)
        die(&err);
    bool ok = same(want, &got);
    for (uint64_t i = 0; i < n && ok; i++) {
        ok = a.steps[i].beams == b.steps[i].beams && a.steps[i].kept == b.steps[i].kept;
        if (!ok)
            printf("# step %llu: %llu beams, %llu kept; %llu and %llu expected\n",
                   (unsigned long long)i, (unsigned long long)b.steps[i].beams,
                   (unsigned long long)b.steps[i].kept,
                   (unsigned long long)a.steps[i].beams,
                   (unsigned long long)a.steps[i].kept);
    }
    for (uint32_t q = 0; q < batch->n_queries && ok; q++) {
        const double *p = b.phases + q * FT_N_PHASES;
        ok = p[FT_PHASE_EXPANSION] > 0 && p[FT_PHASE_PRUNING] > 0 &&
             p[FT_PHASE_SYNC] > 0 && p[FT_PHASE_VALIDATION] >= 0;
        if (!ok)
            printf("# query %u: phases %g %g %g %g\n", q, p[0], p[1], p[2], p[3]);
    }
    ft_results_free(&got);
    free(a.steps);
    free(b.steps);
    free(b.phases);
    return ok;
}

static void run(const shape *s, uint64_t seed, bool stats)
{
    state = seed;
    uint32_t n_keys;
    key *keys = make_keys(s, &n_keys);
    ft_batch batch;
    make_grid(s, keys, n_keys, &batch);
    const ft_search_params params = params_of(s);
    for (uint32_t l = 0; layouts[l]; l++) {
        ft_index *index = make_index(keys, n_keys, layouts[l], path);
        ft_engine *cpu = open_engine("cpu", index);
        ft_results want = search(cpu, &batch, &params);
        for (uint32_t i = 0; engines[i]; i++) {
            char what[96];
            ft_engine *gpu = open_engine(engines[i], index);
            ft_results got = search(gpu, &batch, &params);
            bool ok = same(&want, &got);
            if (!ok)
                explain(&want, &got);
            if (ok && stats)
                ok = stats_agree(cpu, gpu, &batch, &params, &want);
            snprintf(what, sizeof what, "%s, %s", engines[i], s->name);
            tell(ok, what, layouts[l], s);
            ft_results_free(&got);
            ft_engine_close(gpu);
        }
        ft_results_free(&want);
        ft_engine_close(cpu);
        ft_index_close(index);
    }
    free_grid(&batch);
    free(keys);
}

/* Several partitions and one, with the clock and without it, one tile of states and
 * tiles whose best are merged. */
static void forms(void)
{
    const shape all[] = {
        {"three queries", 2000, 60, 5, 4, 40, 3, 60, 40, 3, none, none, 5, 0, false,
         true, false},
        {"one query", 20000, 200, 5, 4, 100, 1, 300, 300, 0, none, none, 5, 0, false,
         true, false},
    };
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        run(&all[i], 51 + i, i == 0);
}

static void small_cases(void)
{
    static const uint32_t beams[] = {1, 2, 3, 31, 32, 33, 100, 127, 128, 129};
    static const uint32_t batches[] = {1, 3, 40};
    for (uint32_t i = 0; i < 60; i++) {
        state = 91 * i + 5;
        const shape s = {.name = "random",
                         .n_keys = 1 + below(3000),
                         .vocab = 1 + below(400),
                         .max_length = 1 + below(8),
                         .n_steps = 1 + below(16),
                         .n_proposals = 1 + below(200),
                         .n_queries = batches[below(3)],
                         .beam = beams[below(10)],
                         .n_results = beams[below(10)],
                         .n_scores = below(2) ? 1 + below(8) : 0,
                         .token_threshold = below(2) ? none : -7,
                         .sentence_threshold = below(2) ? none : -20,
                         .alpha = below(2) ? 5 : -0.5 + below(3),
                         .sparse = below(2),
                         .holes = below(2),
                         .terminal = below(8) == 0};
        run(&s, i + 4000, i % 2);
    }
}

static void widths(void)
{
    static const uint32_t beams[] = {1,   31,  32,  33,   127,  128,  129,  256, 257,
                                     512, 513, 600, 1000, 1023, 1024, 1025, 3000};
    for (uint32_t i = 0; i < sizeof beams / sizeof *beams; i++)
        for (int tie = 0; tie < 2; tie++) {
            const shape s = {.name = tie ? "width, ties" : "width",
                             .n_keys = 60000,
                             .vocab = 3000,
                             .max_length = 7,
                             .n_steps = 8,
                             .n_proposals = i % 2 ? 1000 : 1500,
                             .n_queries = 1 + i % 3,
                             .beam = beams[i],
                             .n_results = i % 2 ? beams[i] : 1 + beams[i] / 3,
                             .n_scores = tie ? 3 : 0,
                             .token_threshold = none,
                             .sentence_threshold = none,
                             .alpha = 5};
            run(&s, 9 + i, i % 4 == 0);
        }
}

static void corners(void)
{
    const shape all[] = {
        {"all scores equal", 50000, 500, 6, 6, 500, 3, 500, 500, 1, none, none, 5, 0,
         false, false, false},
        {"hub of 20000 children", 2000, 2000, 5, 5, 900, 3, 900, 900, 0, none, none, 5,
         20000, false, false, false},
        {"all terminal", 5000, 5000, 1, 4, 900, 4, 700, 700, 4, none, none, 5, 0, false,
         false, true},
        {"one key", 1, 5, 4, 4, 3, 2, 10, 10, 0, none, none, 5, 0, false, false, false},
        {"long tails", 3000, 60, 30, 16, 60, 3, 200, 200, 3, none, none, 5, 0, false,
         true, false},
        {"empty frontiers", 3000, 900, 3, 8, 50, 8, 50, 50, 0, -1, -2, 5, 0, false,
         true, false},
        {"300 steps", 5000, 20, 30, 300, 30, 2, 40, 40, 5, none, none, 1, 0, false,
         false, false},
        {"K of 20000", 90000, 30000, 4, 4, 20000, 1, 300, 300, 0, none, none, 5, 0,
         false, true, false},
        {"N above B", 60000, 3000, 7, 6, 700, 2, 600, 5000, 2, none, none, 5, 0, false,
         false, false},
        {"more queries than partitions", 20000, 2000, 6, 8, 100, 500, 100, 100, 40,
         none, none, 5, 0, false, true, false},
    };
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        run(&all[i], 31 + i, i % 2);
}

/* What PPT takes a library for: tokens by position, and where keys end. */
enum { PPT_STEPS = 6 };

typedef struct sequence {
    double score;
    float sum;
    uint32_t n, tokens[PPT_STEPS];
} sequence;

static int best_first(const void *x, const void *y)
{
    const sequence *a = x, *b = y;
    uint32_t lcp;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    return ft_keys_compare(a->tokens, a->n, b->tokens, b->n, &lcp);
}

/* The log-prob of a token at a position, -inf where it is not to be had. */
static float logp_of(const ft_batch *b, const key *keys, uint32_t n_keys, uint32_t step,
                     uint32_t k)
{
    const uint32_t *tokens = b->tokens + (uint64_t)step * b->n_proposals;
    const float *logp = b->logp + (uint64_t)step * b->n_proposals;
    bool known = false;
    float best = none;
    for (uint32_t i = 0; i < n_keys && !known; i++)
        known = step < keys[i].n && keys[i].tokens[step] == tokens[k];
    if (!known || tokens[k] == FT_NO_TOKEN)
        return none;
    for (uint32_t i = 0; i < b->n_proposals; i++)
        if (tokens[i] == tokens[k]) {
            if (i < k)
                return none; /* counts once */
            best = logp[i] > best ? logp[i] : best;
        }
    return best;
}

/* The first query of a batch by PPT's rules; returns how many results, best first. */
static uint64_t ppt_by_hand(const shape *s, const ft_batch *b, const key *keys,
                            uint32_t n_keys, sequence *found)
{
    double norm[PPT_STEPS + 1];
    sequence *beams = calloc(s->beam, sizeof *beams);
    sequence *next_beams = calloc((uint64_t)s->beam * s->n_proposals, sizeof *beams);
    uint32_t depth = 0;
    bool ends[41] = {false};
    uint64_t n_beams = 1, n_found = 0;
    ft_norm_table(s->alpha, s->n_steps, norm);
    for (uint32_t i = 0; i < n_keys; i++) {
        ends[keys[i].n] = true;
        depth = keys[i].n > depth ? keys[i].n : depth;
    }
    for (uint32_t t = 0; t < s->n_steps && t < depth; t++) {
        uint64_t n = 0;
        for (uint32_t k = 0; k < s->n_proposals; k++) {
            const float rho = logp_of(b, keys, n_keys, t, k);
            for (uint64_t i = 0; i < n_beams && rho > s->token_threshold; i++) {
                sequence x = beams[i];
                x.sum += rho;
                if (!(x.sum > s->sentence_threshold))
                    continue;
                x.tokens[x.n++] = b->tokens[(uint64_t)t * s->n_proposals + k];
                x.score = x.sum;
                next_beams[n++] = x;
                x.score = (double)x.sum * norm[x.n];
                if (ends[x.n])
                    found[n_found++] = x;
            }
        }
        qsort(next_beams, n, sizeof *beams, best_first);
        n_beams = n < s->beam ? n : s->beam;
        memcpy(beams, next_beams, n_beams * sizeof *beams);
    }
    qsort(found, n_found, sizeof *found, best_first);
    free(beams);
    free(next_beams);
    return n_found < s->n_results ? n_found : s->n_results;
}

static sequence result_of(const ft_record *r, uint64_t i)
{
    sequence x = {.score = ft_record_score(r, i)};
    for (uint64_t j = ft_record_end(r, i - 1); j < ft_record_end(r, i); j++)
        x.tokens[x.n++] = ft_record_token(r, j);
    return x;
}

static void view(const ft_results *r, ft_record *record)
{
    ft_error err = {0};
    uint64_t used;
    if (ft_record_view(record, r->bytes.data, r->offset[1], &used, &err) != FT_OK)
        die(&err);
}

/* Does every result of the trie come out of PPT? Both are in order. */
static bool contains(const ft_record *all, const ft_record *some)
{
    uint64_t i = 0;
    for (uint64_t j = 0; j < some->n; j++, i++) {
        const sequence want = result_of(some, j);
        sequence got;
        do {
            if (i == all->n)
                return false;
            got = result_of(all, i);
            i += best_first(&got, &want) != 0;
        } while (best_first(&got, &want) != 0);
    }
    return true;
}

static void run_ppt(const shape *s, uint64_t seed, bool whole)
{
    state = seed;
    uint32_t n_keys;
    key *keys = make_keys(s, &n_keys);
    ft_batch batch;
    make_grid(s, keys, n_keys, &batch);
    const ft_search_params params = params_of(s);
    sequence *want =
        calloc((uint64_t)s->n_steps * s->beam * s->n_proposals, sizeof *want);
    const uint64_t n_want = ppt_by_hand(s, &batch, keys, n_keys, want);
    for (uint32_t l = 0; layouts[l]; l++) {
        ft_index *index = make_index(keys, n_keys, layouts[l], path);
        ft_engine *cpu = open_engine("cpu", index), *ppt = open_engine("ppt", index);
        ft_results exact = search(cpu, &batch, &params);
        ft_results got = search(ppt, &batch, &params);
        ft_record all, keys_alone;
        view(&got, &all);
        view(&exact, &keys_alone);
        bool ok = all.n == n_want;
        for (uint64_t i = 0; i < n_want && ok; i++) {
            const sequence x = result_of(&all, n_want - 1 - i);
            ok = best_first(&x, &want[i]) == 0;
        }
        tell(ok, s->name, layouts[l], s);
        printf("# %llu results, %llu of the trie's\n", (unsigned long long)all.n,
               (unsigned long long)keys_alone.n);
        if (whole)
            tell(contains(&all, &keys_alone) && all.n > keys_alone.n,
                 "ppt: more than the trie's results, and these among them", layouts[l],
                 s);
        ft_results_free(&exact);
        ft_results_free(&got);
        ft_engine_close(cpu);
        ft_engine_close(ppt);
        ft_index_close(index);
    }
    free(want);
    free_grid(&batch);
    free(keys);
}

static void ppt_cases(bool quick)
{
    const shape whole = {"ppt, nothing cut off",
                         300,
                         30,
                         4,
                         5,
                         5,
                         1,
                         1024,
                         1024,
                         0,
                         none,
                         none,
                         5,
                         0,
                         false,
                         false,
                         false};
    const shape ties = {"ppt, ties", 900, 60, 5, 6, 30,    1,    40,   70,
                        3,           -3,  -9, 2, 0, false, true, false};
    const shape full = {"ppt, more results than are kept",
                        3000,
                        2500,
                        6,
                        6,
                        1000,
                        1,
                        1000,
                        50,
                        0,
                        none,
                        none,
                        5,
                        0,
                        false,
                        false,
                        false};
    run_ppt(&ties, 5, false);
    if (quick)
        return;
    run_ppt(&whole, 3, true);
    run_ppt(&full, 7, false);
}

/* What is too large is refused with the way out, and the engine goes on. */
static void refusals(void)
{
    const shape s = {"a beam too wide",
                     100,
                     50,
                     4,
                     4,
                     5,
                     1,
                     65537,
                     1,
                     0,
                     none,
                     none,
                     5,
                     0,
                     false,
                     false,
                     false};
    uint32_t n_keys;
    key *keys = make_keys(&s, &n_keys);
    ft_batch batch;
    make_grid(&s, keys, n_keys, &batch);
    const ft_search_params params = params_of(&s);
    ft_index *index = make_index(keys, n_keys, "narrow-tails", path);
    ft_engine *e = open_engine("paper", index), *other = NULL;
    ft_results r = {0};
    ft_error err = {0};
    bool ok = ft_engine_search(e, &batch, &params, &r, NULL, &err) == FT_EUNAVAILABLE &&
              strstr(err.message, "65536");
    ft_results_free(&r);
    r = search(e, &batch, &(ft_search_params){.beam = 5, .n_results = 1});
    tell(ok && r.n_queries == 1, s.name, "narrow-tails", &s);
    ft_results_free(&r);
    ft_engine_close(e);
    ft_index_close(index);
    index = make_index(keys, n_keys, "wide", path);
    const ft_engine_options options = {0};
    ok = ft_engine_open(&other, "paper", index, &options, &err) == FT_EUNAVAILABLE &&
         strstr(err.message, "narrow-tails");
    tell(ok, "not the paper's layout", "wide", &s);
    ft_index_close(index);
    free_grid(&batch);
    free(keys);
}

int main(int argc, char **argv)
{
    const bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    ft_error err = {0};
    if (!has_device())
        return 0;
    if (ft_paper_register(&err) != FT_OK)
        die(&err);
    snprintf(path, sizeof path, "/tmp/ft-paper-%d.ftx", (int)getpid());
    forms();
    ppt_cases(quick);
    refusals();
    if (!quick) {
        small_cases();
        widths();
        corners();
    }
    unlink(path);
    return done();
}
