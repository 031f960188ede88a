/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU at its limits: no room for the index, none for a batch, and two processes at
 * once. Prints TAP.
 *
 *     test_limits [other]     other: the part of a second process
 */
#include <cuda_runtime_api.h>
#include <spawn.h>
#include <sys/wait.h>

#include "cases.h"

enum { MAX_BLOCKS = 4096, SPARE = 8 << 20 };

extern char **environ;

/* All of the device's memory but about SPARE bytes. */
typedef struct hog {
    void *blocks[MAX_BLOCKS];
    int n;
} hog;

static void hog_memory(hog *h)
{
    void *spare = NULL;
    if (cudaMalloc(&spare, SPARE) != cudaSuccess)
        printf("# no spare memory\n");
    for (size_t bytes = (size_t)4 << 30; bytes >= (size_t)1 << 20;)
        if (h->n < MAX_BLOCKS && cudaMalloc(&h->blocks[h->n], bytes) == cudaSuccess)
            h->n++;
        else
            bytes /= 2;
    cudaGetLastError();
    cudaFree(spare);
}

static void release_memory(hog *h)
{
    while (h->n)
        cudaFree(h->blocks[--h->n]);
}

static void check(bool ok, const char *what)
{
    n_tests++;
    n_failed += !ok;
    printf("%sok %u - %s\n", ok ? "" : "not ", n_tests, what);
    fflush(stdout);
}

/* Failed with this status, and said so with all of these words. */
static bool refused(ft_status st, const ft_error *err, const char *const *words)
{
    bool ok = st == FT_ENOMEM;
    for (; *words; words++)
        ok = ok && strstr(err->message, *words);
    if (!ok)
        printf("# status %d: %s\n", (int)st, err->message);
    return ok;
}

/* Library, grid and engines of a shape. */
typedef struct bench {
    char path[64];
    key *keys;
    ft_index *index;
    ft_batch batch;
    ft_search_params params;
    ft_results want;
} bench;

static bench set_up(const shape *s, const char *layout)
{
    bench b = {.params = params_of(s)};
    uint32_t n_keys;
    snprintf(b.path, sizeof b.path, "/tmp/ft-limits-%d.ftx", (int)getpid());
    state = 5;
    b.keys = make_keys(s, &n_keys);
    b.index = make_index(b.keys, n_keys, layout, b.path);
    make_grid(s, b.keys, n_keys, &b.batch);
    ft_engine *cpu = open_engine("cpu", b.index);
    b.want = search(cpu, &b.batch, &b.params);
    ft_engine_close(cpu);
    return b;
}

static void tear_down(bench *b)
{
    ft_results_free(&b->want);
    ft_index_close(b->index);
    unlink(b->path);
    free_grid(&b->batch);
    free(b->keys);
}

static bool answers(ft_engine *gpu, const bench *b)
{
    ft_results got = search(gpu, &b->batch, &b->params);
    const bool ok = same(&b->want, &got);
    if (!ok)
        explain(&b->want, &got);
    ft_results_free(&got);
    return ok;
}

/* 4 million nodes with labels of 4 bytes. */
static void large_index(void)
{
    const shape s = {.n_keys = 2000,
                     .vocab = 2000,
                     .max_length = 3,
                     .n_steps = 3,
                     .n_proposals = 100,
                     .n_queries = 3,
                     .beam = 50,
                     .n_results = 50,
                     .token_threshold = -INFINITY,
                     .sentence_threshold = -INFINITY,
                     .alpha = 5,
                     .hub = 2097152};
    static const char *const words[] = {"the index needs ", " bytes of device memory, ",
                                        " are free", NULL};
    static hog h;
    bench b = set_up(&s, "wide");
    ft_engine *gpu = open_engine("cuda", b.index); /* the kernels are loaded now */
    check(answers(gpu, &b), "the index fits");
    ft_engine_close(gpu);
    gpu = NULL;
    hog_memory(&h);
    ft_error err = {0};
    const ft_engine_options options = {0};
    const ft_status st = ft_engine_open(&gpu, "cuda", b.index, &options, &err);
    check(refused(st, &err, words) && !gpu, "an index too big for the device");
    release_memory(&h);
    gpu = open_engine("cuda", b.index);
    check(answers(gpu, &b), "it fits again");
    ft_engine_close(gpu);
    tear_down(&b);
}

static void large_batch(void)
{
    const shape s = {.n_keys = 5000,
                     .vocab = 1500,
                     .max_length = 6,
                     .n_steps = 8,
                     .n_proposals = 1000,
                     .n_queries = 400,
                     .beam = 1000,
                     .n_results = 1000,
                     .token_threshold = -INFINITY,
                     .sentence_threshold = -INFINITY,
                     .alpha = 5};
    static const char *const words[] = {"the batch needs ", " bytes of device memory, ",
                                        " are free: fewer queries a batch", NULL};
    static hog h;
    bench b = set_up(&s, "compact");
    ft_engine *gpu = open_engine("cuda", b.index);
    const ft_batch one = {.n_queries = 1,
                          .n_steps = s.n_steps,
                          .n_proposals = s.n_proposals,
                          .tokens = b.batch.tokens,
                          .logp = b.batch.logp};
    ft_results few = search(gpu, &one, &b.params);
    ft_error err = {0};
    ft_results got = {0};
    ft_loaded *loaded = NULL;
    hog_memory(&h);
    check(refused(ft_engine_search(gpu, &b.batch, &b.params, &got, NULL, &err), &err,
                  words),
          "a batch too big for what is left");
    check(refused(ft_engine_load(gpu, &b.batch, &loaded, &err), &err, words) && !loaded,
          "a batch too big to be loaded");
    ft_results again = search(gpu, &one, &b.params);
    check(same(&few, &again), "one query goes on as before");
    release_memory(&h);
    check(answers(gpu, &b), "and the batch does when there is room");
    ft_results_free(&few);
    ft_results_free(&again);
    ft_results_free(&got);
    ft_engine_close(gpu);
    tear_down(&b);
}

/* What each of two processes does. */
static bool work(void)
{
    const shape s = {.n_keys = 20000,
                     .vocab = 2000,
                     .max_length = 6,
                     .n_steps = 8,
                     .n_proposals = 300,
                     .n_queries = 200,
                     .beam = 300,
                     .n_results = 300,
                     .n_scores = 40,
                     .token_threshold = -INFINITY,
                     .sentence_threshold = -INFINITY,
                     .alpha = 5};
    bench b = set_up(&s, "compact");
    ft_engine *gpu = open_engine("cuda", b.index);
    bool ok = true;
    for (int i = 0; i < 30 && ok; i++)
        ok = answers(gpu, &b);
    ft_engine_close(gpu);
    tear_down(&b);
    return ok;
}

static void two_processes(const char *program)
{
    char name[] = "test_limits", part[] = "other";
    char *const args[] = {name, part, NULL};
    pid_t other = 0;
    int status = 1;
    const int e = posix_spawn(&other, program, NULL, NULL, args, environ);
    const bool mine = work();
    if (e == 0)
        waitpid(other, &status, 0);
    check(e == 0 && mine && status == 0, "two processes on one GPU");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return !work();
    if (!has_device())
        return 0;
    large_index();
    large_batch();
    two_processes(argv[0]);
    return done();
}
