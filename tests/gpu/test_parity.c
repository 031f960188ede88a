/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA engine against the CPU engine, byte for byte, over random tries and grids
 * that look for trouble: every layout that the GPU reads, narrow and wide beams, ties,
 * hubs, empty slots, saturated buffers. Prints TAP.
 *
 *     test_parity [quick | NAME [LAYOUT]]
 *
 * quick: a small case for each form of the kernels and, as always, each layout: for
 * compute-sanitizer. NAME: the cases of that name alone; with LAYOUT, over that layout
 * and in the engine's own way: for racecheck, which is slow.
 */
#include "cases.h"

static const char *only, *only_layout; /* NULL: all */

/* The ways of grids to the device and of results back. */
static const struct {
    const char *name;
    ft_engine_options options;
    bool half, loaded;
} ways[] = {
    {"kernels read the host's memory", {.in = FT_TRANSFER_DIRECT}, false, false},
    {"results are copied", {.out = FT_TRANSFER_COPY}, false, false},
    {"binary16", {0}, true, false},
    {"binary16 in the host's memory", {.in = FT_TRANSFER_DIRECT}, true, false},
    {"grids on the device", {0}, false, true},
    {"binary16 grids on the device", {0}, true, true},
    {"one slot", {.n_slots = 1}, false, false},
    {"16 slots", {.n_slots = FT_MAX_SLOTS}, false, false},
};

/* A batch with its log-probs rounded, as binary16 and widened. */
static void round_grid(const ft_batch *from, ft_batch *half, ft_batch *widened)
{
    const uint64_t n = (uint64_t)from->n_queries * from->n_steps * from->n_proposals;
    uint16_t *logp16 = malloc(n * sizeof *logp16);
    *half = *widened = *from;
    half->half = true;
    half->logp = (float *)(void *)logp16;
    widened->logp = malloc(n * sizeof *widened->logp);
    for (uint64_t i = 0; i < n; i++) {
        logp16[i] = ft_float_to_half(from->logp[i]);
        widened->logp[i] = ft_half_to_float(logp16[i]);
    }
}

static ft_results search_on_device(ft_engine *e, const ft_batch *batch,
                                   const ft_search_params *params)
{
    ft_error err = {0};
    ft_loaded *l = NULL;
    ft_results r = {0};
    ft_status st = ft_engine_load(e, batch, &l, &err);
    if (st == FT_OK) /* once for the device alone */
        st = ft_engine_search_loaded(e, l, params, NULL, &err);
    if (st == FT_OK)
        st = ft_engine_search_loaded(e, l, params, &r, &err);
    if (st != FT_OK)
        die(&err);
    ft_engine_unload(e, l);
    return r;
}

static void run_way(const shape *s, uint32_t way, const ft_index *index, ft_engine *cpu,
                    const ft_batch *batch, const char *layout)
{
    ft_batch half, widened;
    const ft_search_params params = params_of(s);
    ft_engine *gpu = open_engine_with("cuda", index, &ways[way].options);
    round_grid(batch, &half, &widened);
    const ft_batch *asked = ways[way].half ? &half : batch;
    ft_results want = search(cpu, ways[way].half ? &widened : batch, &params);
    ft_results got = ways[way].loaded ? search_on_device(gpu, asked, &params)
                                      : search(gpu, asked, &params);
    const bool ok = same(&want, &got);
    if (!ok)
        explain(&want, &got);
    tell(ok, ways[way].name, layout, s);
    ft_results_free(&want);
    ft_results_free(&got);
    ft_engine_close(gpu);
    free(half.logp);
    free(widened.logp);
}

static void run(const shape *s, uint64_t seed, uint32_t repeats, bool stats)
{
    static uint32_t way;
    if (only && strcmp(only, s->name) != 0)
        return;
    char path[64];
    snprintf(path, sizeof path, "/tmp/ft-parity-%d.ftx", (int)getpid());
    state = seed;
    uint32_t n_keys;
    key *keys = make_keys(s, &n_keys);
    ft_batch batch;
    make_grid(s, keys, n_keys, &batch);
    const ft_search_params params = params_of(s);
    for (uint32_t i = 0; ft_layout_name(i); i++) {
        if (only_layout && strcmp(only_layout, ft_layout_name(i)) != 0)
            continue;
        ft_error err = {0};
        ft_index *index = make_index(keys, n_keys, ft_layout_name(i), path);
        ft_engine *cpu = open_engine("cpu", index), *gpu = open_engine("cuda", index);
        ft_results want = search(cpu, &batch, &params), got = {0};
        ft_stats counted = {.steps = calloc((uint64_t)s->n_queries * s->n_steps,
                                            sizeof(ft_step_stats))};
        bool ok = true;
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
        ft_engine_close(gpu);
        if (!only_layout)
            run_way(s, way++ % (sizeof ways / sizeof *ways), index, cpu, &batch,
                    ft_layout_name(i));
        ft_engine_close(cpu);
        ft_index_close(index);
    }
    unlink(path);
    free_grid(&batch);
    free(keys);
}

static const float none = -INFINITY;

/* The forms that ft_cuda_plan chooses between, with many ties: as few pairs as fill
 * them, since the tools of test_sanitizers.sh are slow. */
static void small_forms(void)
{
    const shape all[] = {
        {"a query alone", 9000, 90, 4, 3, 100, 1, 100, 60, 2, none, none, 5, 0, false,
         true, false},
        {"a block a query of few", 9000, 90, 4, 3, 100, 2, 100, 60, 2, none, none, 5, 0,
         false, true, false},
        {"a small block a query", 9000, 90, 4, 3, 100, 17, 100, 60, 2, none, none, 5, 0,
         false, true, false},
        {"a cluster of 16 a query", 9000, 130, 4, 3, 130, 2, 130, 100, 2, none, none, 5,
         0, false, true, false},
        {"blocks of a cluster apart", 9000, 400, 9, 9, 400, 2, 500, 400, 0, none, none,
         1, 0, false, true, false},
        {"a cluster of 8 a query", 9000, 130, 4, 3, 130, 12, 130, 100, 2, none, none, 5,
         0, false, true, false},
        {"a large block a query", 9000, 130, 4, 3, 130, 17, 130, 100, 2, none, none, 5,
         0, false, true, false},
        {"the grid a query", 9000, 90, 4, 3, 100, 2, 1025, 60, 2, none, none, 5, 0,
         false, true, false},
    };
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        run(&all[i], 51 + i, 1, i % 2);
}

/* More candidates than a block has room for. */
static void full_forms(void)
{
    const shape all[] = {
        {"a full cluster of 16", 40000, 200, 4, 4, 200, 2, 200, 150, 2, none, none, 5,
         0, false, true, false},
        {"a full cluster of 8", 40000, 200, 4, 4, 200, 12, 200, 150, 2, none, none, 5,
         0, false, true, false},
        {"a full large block", 40000, 200, 4, 4, 200, 17, 200, 150, 2, none, none, 5, 0,
         false, true, false},
    };
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        run(&all[i], 61 + i, 1, i % 2);
}

static void small_cases(void)
{
    static const uint32_t beams[] = {1, 2, 3, 31, 32, 33, 100, 127, 128, 129};
    for (uint32_t i = 0; i < 150; i++) {
        state = 77 * i + 1;
        const shape s = {.name = "random",
                         .n_keys = 1 + below(3000),
                         .vocab = 1 + below(400),
                         .max_length = 1 + below(8),
                         .n_steps = 1 + below(12),
                         .n_proposals = 1 + below(200),
                         .n_queries = below(3) ? 1 + below(20) : 1,
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
        {"a query alone, one step", 2000, 2000, 5, 1, 100, 1, 100, 100, 0, none, none,
         5, 0, false, false, false},
        {"a query alone, 40 steps", 5000, 20, 30, 40, 30, 1, 40, 40, 5, none, none, 1,
         0, false, false, false},
        {"a query alone, many ends", 60000, 12, 14, 14, 16, 1, 100, 128, 0, none, none,
         1, 0, false, true, false},
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
        {"the grid in parts", 20000, 300, 5, 4, 200, 40, 1500, 1500, 3, none, none, 5,
         0, false, true, false},
        {"parts that overflow", 600000, 1000, 3, 3, 1000, 20, 1500, 1500, 3, none, none,
         5, 0, false, true, false},
    };
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        run(&all[i], 31 + i, i == 0 || i == 13 ? 100 : 2, i % 2);
}

int main(int argc, char **argv)
{
    if (!has_device())
        return 0;
    const bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    only = argc > 1 && !quick ? argv[1] : NULL;
    only_layout = argc > 2 ? argv[2] : NULL;
    small_forms();
    if (!quick) {
        full_forms();
        small_cases();
        widths();
        corners();
    }
    return done();
}
