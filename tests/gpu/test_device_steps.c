/* SPDX-License-Identifier: Apache-2.0
 *
 * The search by steps on the GPU against the CPU's: the same frontiers, to the bit and
 * in order, and the same results, over random libraries with proposals per beam. Prints
 * TAP.
 */
#include "cases.h"

/* Each beam's own: mostly tokens of keys, few different log-probs where there are ties,
 * holes and doubles. */
static void propose(const shape *s, const key *keys, uint32_t n_keys, uint32_t step,
                    uint64_t n, uint32_t *tokens, float *logp)
{
    for (uint64_t i = 0; i < n; i++) {
        const key *k = &keys[below(n_keys)];
        tokens[i] = step < k->n ? k->tokens[step] : spread(s, below(s->vocab + 9));
        logp[i] = score(s);
        if (!s->holes)
            continue;
        const uint32_t dice = below(16);
        if (dice == 0)
            tokens[i] = FT_NO_TOKEN;
        else if (dice == 1)
            logp[i] = -INFINITY;
        else if (dice == 2 && i % s->n_proposals)
            tokens[i] = tokens[i - 1];
        else if (dice == 3)
            tokens[i] = (uint32_t)next();
    }
}

static bool same_frontier(const ft_frontier *a, const ft_frontier *b)
{
    const uint64_t bytes = 4 * a->n_beams;
    return a->n_beams == b->n_beams &&
           (bytes == 0 || (memcmp(a->parents, b->parents, bytes) == 0 &&
                           memcmp(a->tokens, b->tokens, bytes) == 0 &&
                           memcmp(a->sums, b->sums, bytes) == 0));
}

static bool same_walk(const shape *s, const key *keys, uint32_t n_keys, ft_engine *cpu,
                      ft_engine *gpu)
{
    const ft_search_params params = params_of(s);
    const uint64_t most = (uint64_t)s->beam * s->n_proposals;
    uint32_t *tokens = malloc(most * sizeof *tokens);
    float *logp = malloc(most * sizeof *logp);
    ft_error err = {0};
    ft_steps *a = NULL, *b = NULL;
    ft_results want = {0}, got = {0};
    ft_frontier x = {.n_beams = 1}, y;
    bool ok = true;
    ft_status st = ft_steps_open(&a, cpu, &params, &err);
    if (st == FT_OK)
        st = ft_steps_open(&b, gpu, &params, &err);
    for (uint32_t t = 0; t < s->n_steps && st == FT_OK && ok; t++) {
        propose(s, keys, n_keys, t, x.n_beams * s->n_proposals, tokens, logp);
        st = ft_steps_next(a, tokens, logp, s->n_proposals, &x, &err);
        if (st == FT_OK)
            st = ft_steps_next(b, tokens, logp, s->n_proposals, &y, &err);
        ok = st == FT_OK && same_frontier(&x, &y);
        if (!ok)
            printf("# step %u: %llu beams, %llu expected\n", t,
                   (unsigned long long)y.n_beams, (unsigned long long)x.n_beams);
    }
    if (st == FT_OK)
        st = ft_steps_results(a, &want, &err);
    if (st == FT_OK)
        st = ft_steps_results(b, &got, &err);
    if (st != FT_OK)
        die(&err);
    if (ok && !same(&want, &got)) {
        ok = false;
        explain(&want, &got);
    }
    ft_steps_close(a);
    ft_steps_close(b);
    ft_results_free(&want);
    ft_results_free(&got);
    free(tokens);
    free(logp);
    return ok;
}

static void run(const shape *s, uint64_t seed)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/ft-steps-%d.ftx", (int)getpid());
    state = seed;
    uint32_t n_keys;
    key *keys = make_keys(s, &n_keys);
    for (uint32_t i = 0; ft_layout_name(i); i++) {
        ft_index *index = make_index(keys, n_keys, ft_layout_name(i), path);
        ft_engine *cpu = open_engine("cpu", index), *gpu = open_engine("cuda", index);
        state = seed;
        tell(same_walk(s, keys, n_keys, cpu, gpu), s->name, ft_layout_name(i), s);
        ft_engine_close(cpu);
        ft_engine_close(gpu);
        ft_index_close(index);
    }
    unlink(path);
    free(keys);
}

int main(int argc, char **argv)
{
    const float none = -INFINITY;
    const bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    if (!has_device())
        return 0;
    for (uint32_t i = 0; i < (quick ? 6 : 60); i++) {
        state = 177 * i + 1;
        const shape s = {.name = "random",
                         .n_keys = 1 + below(3000),
                         .vocab = 1 + below(400),
                         .max_length = 1 + below(8),
                         .n_steps = 1 + below(12),
                         .n_proposals = 1 + below(100),
                         .beam = 1 + below(130),
                         .n_results = 1 + below(130),
                         .n_scores = below(2) ? 1 + below(8) : 0,
                         .token_threshold = below(2) ? none : -7,
                         .sentence_threshold = below(2) ? none : -20,
                         .alpha = below(2) ? 5 : -0.5 + below(3),
                         .sparse = below(2),
                         .holes = below(2),
                         .terminal = below(8) == 0};
        run(&s, i + 1000);
    }
    const shape large[] = {
        {"wide", 60000, 3000, 7, 7, 1000, 1, 1000, 1000, 0, none, none, 5, 0, false,
         true, false},
        {"wide, ties", 60000, 3000, 7, 7, 600, 1, 1025, 600, 3, none, none, 5, 0, false,
         true, false},
        {"hub of 2^21 children", 2000, 2000, 5, 4, 900, 1, 600, 600, 5, none, none, 5,
         2097152, false, false, false},
        {"more slots than a round", 200000, 9000, 5, 4, 300, 1, 20000, 5000, 0, none,
         none, 5, 0, false, true, false},
    };
    for (uint32_t i = 0; i < 4 && !quick; i++)
        run(&large[i], 31 + i);
    return done();
}
