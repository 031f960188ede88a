/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernels without a GPU: each record as the CPU engine writes it, and no
 * race between threads, over random tries and grids, each form of the kernel, and
 * schedules that hold some threads back. Where a barrier is missing, that must be
 * found. At last the host's copies. Prints TAP.
 *
 *     test_kernel [NUMBER]         NUMBER: of the case, which runs alone
 */
#include <signal.h>

#include "../gpu/cases.h"
#include "emulate.h"

static unsigned only, n_cases;

static const shape small[] = {
    {"plain", 3000, 60, 6, 7, 100, 5, 100, 90, 0, -INFINITY, -INFINITY, 1,
     .holes = true},
    {"ties", 2000, 40, 5, 6, 90, 4, 128, 128, 2, -INFINITY, -INFINITY, 0,
     .holes = false},
    {"hubs", 600, 30, 5, 5, 3, 4, 100, 50, 0, -INFINITY, -INFINITY, 1, .hub = 300},
    {"early ends", 900, 50, 2, 8, 40, 6, 60, 128, 5, -9, -14, .5, .holes = true},
    {"one of each", 200, 9, 4, 1, 1, 3, 1, 1, 0, -INFINITY, -INFINITY, 1,
     .holes = false},
    {"ids far apart", 900, 90, 4, 5, 128, 3, 128, 20, 0, -INFINITY, -INFINITY, 2,
     .sparse = true, .holes = true},
    {"one token", 300, 300, 1, 3, 128, 3, 16, 128, 3, -INFINITY, -INFINITY, 1,
     .terminal = true},
    {"crowds", 400000, 1000, 3, 3, 128, 1, 128, 100, 0, -INFINITY, -INFINITY, 1,
     .holes = true},
    {"many ends", 60000, 12, 14, 14, 16, 2, 100, 128, 0, -INFINITY, -INFINITY, 1,
     .holes = true},
};

/* Short steps: their results fill a block's memory, and their trace does not fit. */
static const shape chains = {"chains", 128 * 3 * 33,  128, 34, 34,        128,
                             2,        128,           100, 0,  -INFINITY, -INFINITY,
                             1,        .holes = false};

/* The frontier narrows below B, and then becomes six times as wide. */
static const shape necks = {
    "necks", 32 * 9, 128, 6,         6,         128, 3,
    40,      60,     0,   -INFINITY, -INFINITY, 1,   .holes = false};

static const shape large[] = {
    {"plain", 9000, 400, 5, 4, 300, 2, 300, 200, 0, -INFINITY, -INFINITY, 1,
     .holes = true},
    {"ties", 9000, 300, 4, 4, 400, 2, 600, 700, 2, -INFINITY, -INFINITY, 0,
     .holes = false},
    {"layers", 9000, 300, 4, 4, 400, 2, 600, 700, 12, -INFINITY, -INFINITY, 0,
     .holes = false},
    {"hubs", 900, 60, 4, 4, 5, 3, 200, 300, 0, -INFINITY, -INFINITY, 1, .hub = 700},
    {"early ends", 3000, 200, 2, 7, 200, 3, 150, 900, 4, -9, -14, .5, .holes = true},
    {"crowds", 200000, 1000, 3, 3, 500, 1, 500, 100, 0, -INFINITY, -INFINITY, 1,
     .holes = true},
    {"one beam", 3000, 1000, 4, 5, 1000, 2, 1, 1, 0, -INFINITY, -INFINITY, 1,
     .holes = false},
    {"narrows", 9000, 400, 9, 9, 400, 3, 500, 400, 0, -INFINITY, -INFINITY, 1,
     .holes = true},
};

enum { N_SMALL = sizeof small / sizeof *small, N_LARGE = sizeof large / sizeof *large };

/* How the kernel is run. `starts`: of the layout "compact". */
typedef struct form {
    const char *name, *layout;
    emu_memory memory;
    unsigned n_blocks;
    bool stats, starts;
} form;

static const form small_forms[] = {
    {"hasty", "wide", EMU_HASTY, 1, false, false},
    {"hasty", "compact", EMU_HASTY, 1, false, true},
    {"hasty, without starts", "compact", EMU_HASTY, 1, true, false},
    {"small", "wide", EMU_SMALL, 1, true, false},
    {"small", "compact", EMU_SMALL, 1, false, true},
};

static const form sparing_forms[] = {
    {"sparing", "wide", EMU_SPARING, 1, true, false},
    {"sparing", "compact", EMU_SPARING, 1, false, true},
};

static const form cluster_forms[] = {
    {"2 blocks", "compact", EMU_CLUSTER, 2, false, true},
    {"4 blocks, without starts", "compact", EMU_CLUSTER, 4, true, false},
    {"8 blocks", "wide", EMU_CLUSTER, 8, false, false},
};

static const form all_blocks = {"16 blocks", "compact", EMU_CLUSTER, 16, false, true};

static const form grid_forms[] = {
    {"a grid of 3", "wide", EMU_GRID, 3, true, false},
    {"a grid of 5", "compact", EMU_GRID, 5, false, true},
};

static const char *const holds[] = {"nobody", "the latest", "a block",
                                    "a warp", "feeders",    "settlers"};
static const char *const faults[] = {"", ", no barrier of feeders",
                                     ", no barriers of warps"};

/* A trie and its grid, and what the CPU engine answers. */
typedef struct world {
    const shape *s;
    key *keys;
    uint32_t n_keys;
    ft_batch batch;
    ft_search_params params;
    char path[4096];
} world;

/* Each first token begins a chain: of three children, all keys, the first goes on. */
static key *make_chains(const shape *s, uint32_t *n_keys)
{
    key *keys = calloc(s->n_keys, sizeof *keys);
    for (uint32_t i = 0; i < s->n_keys; i++) {
        const uint32_t at = i / s->vocab;
        keys[i].n = 2 + at / 3;
        keys[i].tokens[0] = i % s->vocab;
        keys[i].tokens[keys[i].n - 1] = at % 3;
    }
    qsort(keys, s->n_keys, sizeof *keys, by_order);
    *n_keys = s->n_keys;
    return keys;
}

/* Of four first tokens three lead to a key of two tokens; the other goes on through one
 * node to three with two keys each, which end a token later. */
static key *make_necks(const shape *s, uint32_t *n_keys)
{
    key *keys = calloc(s->n_keys, sizeof *keys);
    uint32_t n = 0;
    for (uint32_t first = 0; first < s->vocab; first += 4) {
        for (uint32_t i = 1; i < 4; i++)
            keys[n++] = (key){2, {first + i, 0}};
        for (uint32_t i = 0; i < 6; i++)
            keys[n++] = (key){6, {first, 0, 0, i / 2, i % 2, 0}};
    }
    qsort(keys, n, sizeof *keys, by_order);
    *n_keys = n;
    return keys;
}

static void make_world(world *w, const shape *s)
{
    const char *dir = getenv("TMPDIR");
    state = s->n_keys;
    w->s = s;
    w->keys = s == &chains  ? make_chains(s, &w->n_keys)
              : s == &necks ? make_necks(s, &w->n_keys)
                            : make_keys(s, &w->n_keys);
    w->params = params_of(s);
    make_grid(s, w->keys, w->n_keys, &w->batch);
    snprintf(w->path, sizeof w->path, "%s/ft-emulated-%d.ftx", dir ? dir : "/tmp",
             (int)getpid());
}

static void free_world(world *w)
{
    free(w->keys);
    free_grid(&w->batch);
}

static void run(const world *w, const form *f, emu_schedule schedule)
{
    n_cases++;
    if (only && n_cases != only)
        return;
    schedule.seed = n_cases;
    ft_index *index = make_index(w->keys, w->n_keys, f->layout, w->path);
    ft_engine *cpu =
        open_engine_with("cpu", index, &(ft_engine_options){.n_threads = 1});
    ft_results want = search(cpu, &w->batch, &w->params);
    const emu_run e = {index,       &w->batch, &w->params, f->memory,
                       f->n_blocks, f->stats,  f->starts,  schedule};
    unsigned n_differ;
    const unsigned n_faults = emulate(&e, &want, &n_differ);
    const bool ok = schedule.planted ? n_faults > 0 : n_faults == 0 && n_differ == 0;
    n_tests++;
    n_failed += !ok;
    printf("%sok %u - %s over %s: %s, held back: %s%s\n", ok ? "" : "not ", n_cases,
           f->name, f->layout, w->s->name, holds[schedule.hold],
           faults[schedule.planted]);
    if (!ok)
        printf("# %u faults, %u records differ; alone: test_kernel %u; the code's "
               "lines: addr2line -Cfie test_kernel ADDRESS...\n",
               n_faults, n_differ, n_cases);
    ft_results_free(&want);
    ft_engine_close(cpu);
    ft_index_close(index);
    unlink(w->path);
}

/* In `rounds` schedules each. */
static void run_forms(const shape *s, const form *forms, unsigned n, unsigned rounds)
{
    world w;
    make_world(&w, s);
    for (unsigned i = 0; i < n * rounds; i++)
        run(&w, &forms[i % n], (emu_schedule){.hold = n_cases % EMU_N_HOLDS});
    free_world(&w);
}

static void find_planted(void)
{
    world w;
    make_world(&w, &small[0]);
    run(&w, &small_forms[1], (emu_schedule){.planted = EMU_NO_SECOND_BARRIER});
    run(&w, &small_forms[4], (emu_schedule){.planted = EMU_NO_WARP_BARRIER});
    free_world(&w);
}

static void copies(bool by_team)
{
    n_cases++;
    if (only && n_cases != only)
        return;
    const unsigned n_wrong = emu_wrong_copies(by_team);
    n_tests++;
    n_failed += n_wrong > 0;
    printf("%sok %u - copies by %s: %u bytes are wrong\n", n_wrong ? "not " : "",
           n_cases, by_team ? "a team" : "a thread", n_wrong);
}

/* A race may well end in a wild address. */
static void crashed(int number)
{
    printf("Bail out! signal %d in case %u; alone: test_kernel %u\n", number, n_cases,
           n_cases);
    _exit(1);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was told before a crash is seen */
    signal(SIGSEGV, crashed);
    signal(SIGBUS, crashed);
    only = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    for (unsigned i = 0; i < N_SMALL; i++)
        run_forms(&small[i], small_forms, 5, 3);
    for (unsigned i = 0; i < N_LARGE; i++) {
        run_forms(&large[i], sparing_forms, 2, 4);
        run_forms(&large[i], cluster_forms, 3, 1);
    }
    for (unsigned i = 0; i < N_SMALL; i++)
        run_forms(&small[i], grid_forms, 2, 1);
    for (unsigned i = 0; i < N_LARGE; i++)
        run_forms(&large[i], grid_forms, 2, 1);
    run_forms(&necks, cluster_forms, 3, 1);
    run_forms(&necks, &all_blocks, 1, 2);
    run_forms(&large[3], &all_blocks, 1, 1);
    run_forms(&large[N_LARGE - 1], &all_blocks, 1, 2);
    run_forms(&chains, small_forms, 3, 2);
    find_planted();
    copies(false);
    copies(true);
    return done();
}
