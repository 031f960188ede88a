/* SPDX-License-Identifier: Apache-2.0
 *
 * Random small cases of constrained search for the oracle tests, drawn to hit corners:
 * prefix keys, repeated tokens, ids around every width, hubs, ragged and duplicate
 * proposals, ties, signed zeros, infinities, thresholds that equal values.
 *
 * usage: ft-randcase [--kind random|hub|wide|ties|long|key] SEED FOLDER
 *
 * The file is long because it stands alone, as the oracle does, and its kinds are many.
 *
 * Writes FOLDER/keys (text; binary for `hub`), FOLDER/grid.ftg and FOLDER/args, one
 * line of options that ft-search and ft-oracle both take. The same seed gives the same
 * bytes.
 *
 *   random  a small case
 *   hub     a root with 2^21 children
 *   wide    B = K = 65,536 with more candidates than that
 *   ties    thousands of equal sums a step, the better ones of them last
 *   long    T = 1,024
 *   key     a key of 65,535 tokens and a grid as long
 */
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t no_token = UINT32_C(0xFFFFFFFF);

static _Noreturn void die(const char *what, const char *name)
{
    fprintf(stderr, "ft-randcase: %s: %s\n", name, what);
    exit(2);
}

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        die("out of memory", "case");
    return p;
}

/* --- randomness (splitmix64)
 * ----------------------------------------------------------- */

static uint64_t state;

static uint64_t draw(void)
{
    uint64_t x = state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(draw() % n);
}

static uint32_t between(uint32_t low, uint32_t high)
{
    return low + below(high - low + 1);
}

static bool chance(uint32_t percent)
{
    return below(100) < percent;
}

static double uniform(double low, double high)
{
    return low + (high - low) * ((double)(draw() >> 11) * 0x1.0p-53);
}

#define PICK(array) ((array)[below((uint32_t)(sizeof(array) / sizeof *(array)))])

/* --- the library
 * ------------------------------------------------------------------------ */

typedef struct key {
    uint32_t *tokens;
    uint32_t n;
} key;

typedef struct library {
    key *keys;
    uint32_t n;
    bool binary;
} library;

static int compare_keys(const void *left, const void *right)
{
    const key *a = left, *b = right;
    for (uint32_t i = 0; i < a->n && i < b->n; i++)
        if (a->tokens[i] != b->tokens[i])
            return a->tokens[i] < b->tokens[i] ? -1 : 1;
    return (a->n > b->n) - (a->n < b->n);
}

static uint32_t *add_key(library *lib, const uint32_t *tokens, uint32_t n)
{
    key *k = &lib->keys[lib->n++];
    k->n = n;
    k->tokens = allocate(n, sizeof *k->tokens);
    if (tokens)
        memcpy(k->tokens, tokens, n * sizeof *tokens);
    return k->tokens;
}

static void sort_unique(library *lib)
{
    uint32_t n = 0;
    qsort(lib->keys, lib->n, sizeof *lib->keys, compare_keys);
    for (uint32_t i = 0; i < lib->n; i++) {
        if (n == 0 || compare_keys(&lib->keys[n - 1], &lib->keys[i]) != 0)
            lib->keys[n++] = lib->keys[i];
        else
            free(lib->keys[i].tokens);
    }
    lib->n = n;
}

static void free_library(library *lib)
{
    for (uint32_t i = 0; i < lib->n; i++)
        free(lib->keys[i].tokens);
    free(lib->keys);
}

/* BUSHY: so many children of as many nodes make more candidates than buffers hold. */
enum { MAX_ALPHABET = 24, BUSHY = 60 };

/* Tokens that differ in few bits, lie at the borders of widths, or nowhere special. */
static uint32_t draw_alphabet(uint32_t *alphabet)
{
    static const uint32_t borders[] = {
        0,     1,     2,     9,       10,      99,      54999,      55000,     55001,
        65534, 65535, 65536, 1 << 21, 1 << 22, 4194303, 4294967293, 4294967294};
    const uint32_t n = chance(8) ? 1 : between(2, chance(50) ? 6 : MAX_ALPHABET);
    const uint32_t kind = below(4);
    for (uint32_t i = 0; i < n; i++) {
        if (kind == 0)
            alphabet[i] = i;
        else if (kind == 1)
            alphabet[i] = PICK(borders);
        else if (kind == 2)
            alphabet[i] = 7 + below(3) + 65536 * below(chance(50) ? 4 : 65535);
        else
            alphabet[i] = below(no_token);
    }
    return n;
}

static void draw_library(library *lib, const uint32_t *alphabet, uint32_t n_alphabet)
{
    static const uint32_t sizes[] = {1, 2, 3, 10, 40, 120, 400, 400};
    const uint32_t n = chance(2) ? 0 : PICK(sizes),
                   max_length = between(n > 3 ? 2 : 1, 8);
    const bool prefixes = chance(70), hub = chance(20);
    lib->keys =
        allocate(n * (1 + max_length) + 3000 + BUSHY * BUSHY, sizeof *lib->keys);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t tokens[8];
        const uint32_t length = between(1, max_length);
        for (uint32_t t = 0; t < length; t++)
            tokens[t] = t && chance(15) ? tokens[t - 1] : alphabet[below(n_alphabet)];
        add_key(lib, tokens, length);
        for (uint32_t p = 1; prefixes && p < length; p++)
            if (chance(30))
                add_key(lib, tokens, p);
    }
    for (uint32_t i = hub ? between(100, 3000) : 0; i > 0; i--) {
        const uint32_t tokens[2] = {below(chance(50) ? 4000 : 100000),
                                    alphabet[below(n_alphabet)]};
        add_key(lib, tokens, between(1, 2));
    }
    for (uint32_t i = chance(10) ? 0 : BUSHY; i < BUSHY; i++)
        for (uint32_t j = 0; j < BUSHY; j++) {
            const uint32_t tokens[3] = {i, j, alphabet[below(n_alphabet)]};
            if (chance(80))
                add_key(lib, tokens, between(2, 3));
        }
    if (lib->n > 0)
        sort_unique(lib);
}

/* --- the grid
 * ---------------------------------------------------------------------------- */

typedef struct grid {
    uint32_t n_queries, n_steps, n_proposals, vocab;
    bool has_ids, half, until_end;
    uint32_t *tokens; /* [n_queries][n_steps][n_proposals] */
    float *logp;
} grid;

static void allocate_grid(grid *g)
{
    const size_t n = (size_t)g->n_queries * g->n_steps * g->n_proposals;
    g->tokens = allocate(n, sizeof *g->tokens);
    g->logp = allocate(n, sizeof *g->logp);
}

typedef enum style { EQUAL, FEW, PLAIN, SIGNED, ROUNDING, HUGE_SUMS, N_STYLES } style;

static float draw_logp(style s)
{
    static const float few[] = {-0.5f, -1.0f, -1.5f, 0.0f, -0.0f};
    static const float rounding[] = {-0.1f,  -0.2f, -0.3f,   -1e7f,
                                     -1e-3f, -1e8f, -1e-45f, -16777216.0f};
    static const float huge[] = {-3e38f, -1e38f, 3e38f, -1.0f};
    switch (s) {
    case EQUAL:
        return -1.0f;
    case FEW:
        return PICK(few);
    case SIGNED:
        return (float)uniform(-3, 3);
    case ROUNDING:
        return PICK(rounding);
    case HUGE_SUMS:
        return PICK(huge);
    default:
        return (float)uniform(-8, 0);
    }
}

/* A proposal that often continues a key, often is any token, sometimes is no token. */
static uint32_t draw_token(const library *lib, uint32_t t, const uint32_t *alphabet,
                           uint32_t n_alphabet)
{
    const key *k = lib->n > 0 ? &lib->keys[below(lib->n)] : NULL;
    if (chance(60) && k && t < k->n)
        return k->tokens[t];
    return chance(90) ? alphabet[below(n_alphabet)] : below(no_token);
}

static void draw_position(grid *g, size_t at, uint32_t t, const library *lib, style s,
                          const uint32_t *alphabet, uint32_t n_alphabet)
{
    const uint32_t n = g->n_proposals, raggedness = chance(30) ? below(4) : 4;
    const uint32_t n_filled = raggedness < 3 ? below(n + 1) : n;
    const bool minus_infinity = chance(3);
    for (uint32_t k = 0; k < n; k++) {
        const bool empty = raggedness == 0   ? k >= n_filled
                           : raggedness == 1 ? k < n - n_filled
                           : raggedness == 2 ? k >= n_filled / 2 && k < n - n_filled / 2
                           : raggedness == 3 ? chance(40)
                                             : false;
        g->tokens[at + k] = empty ? no_token : draw_token(lib, t, alphabet, n_alphabet);
        g->logp[at + k] = minus_infinity || chance(2) ? -INFINITY : draw_logp(s);
        if (empty && chance(20))
            g->logp[at + k] = chance(50) ? NAN : INFINITY; /* means nothing there */
    }
}

static void draw_grid(grid *g, const library *lib, style s, const uint32_t *alphabet,
                      uint32_t n_alphabet)
{
    static const uint32_t queries[] = {1, 1, 2, 3, 5, 9, 70};
    static const uint32_t vocabs[] = {5, 60000, 65536, 4294967294};
    g->n_queries = chance(2) ? 0 : PICK(queries);
    g->n_steps = between(1, 12);
    g->n_proposals = lib->n > BUSHY * BUSHY / 2 ? between(BUSHY, 2 * BUSHY)
                     : chance(15)               ? between(30, 300)
                                                : between(1, 20);
    g->vocab = chance(15) ? PICK(vocabs) : 0;
    g->has_ids = chance(40);
    g->half = chance(30);
    g->until_end = chance(30);
    allocate_grid(g);
    const uint32_t ends = chance(8) ? below(g->n_steps + 1) : g->n_steps;
    for (uint32_t q = 0; q < g->n_queries; q++)
        for (uint32_t t = 0; t < g->n_steps; t++) {
            const size_t at = ((size_t)q * g->n_steps + t) * g->n_proposals;
            if (t < ends)
                draw_position(g, at, t, lib, s, alphabet, n_alphabet);
            else
                memset(g->tokens + at, 0xFF, g->n_proposals * sizeof *g->tokens);
        }
}

/* --- files
 * ------------------------------------------------------------------------------- */

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        die("name too long", folder);
    FILE *out = fopen(path, "wb");
    if (!out)
        die("cannot create", path);
    return out;
}

static void finish(FILE *out, const char *name)
{
    if (ferror(out) | fclose(out))
        die("cannot write", name);
}

static void put_le(FILE *out, uint64_t v, int bytes)
{
    for (; bytes--; v >>= 8)
        putc_unlocked((int)(v & 255), out);
}

/* Binary16, rounded towards zero. */
static uint16_t to_half(float x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const float a = fabsf(x);
    int exponent;
    const float fraction = frexpf(a, &exponent); /* in [0.5, 1) */
    if (isnan(x))
        return 0x7E00;
    if (isinf(x))
        return sign | 0x7C00;
    if (a >= 65504)
        return sign | 0x7BFF;
    if (exponent < -13)
        return (uint16_t)(sign | (unsigned)ldexpf(a, 24));
    const unsigned bits = (unsigned)ldexpf(fraction, 11) - 1024;
    return (uint16_t)(sign | (unsigned)(exponent + 14) << 10 | bits);
}

static void write_library(const library *lib, const char *folder)
{
    FILE *out = create(folder, "keys");
    if (lib->binary)
        fwrite("FTKEYS1\n\0\0\0\0\0\0\0\0", 1, 16, out);
    for (uint32_t i = 0; i < lib->n; i++) {
        const key *k = &lib->keys[i];
        if (lib->binary)
            put_le(out, k->n, 4);
        for (uint32_t t = 0; t < k->n; t++) {
            if (lib->binary)
                put_le(out, k->tokens[t], 4);
            else
                fprintf(out, "%s%lu", t ? " " : "", (unsigned long)k->tokens[t]);
        }
        if (!lib->binary)
            putc('\n', out);
    }
    finish(out, "keys");
}

static void write_grid(const grid *g, const char *folder)
{
    FILE *out = create(folder, "grid.ftg");
    const size_t n = (size_t)g->n_steps * g->n_proposals;
    fwrite("FTGRID1\n", 1, 8, out);
    put_le(out, g->n_steps, 4);
    put_le(out, g->n_proposals, 4);
    put_le(out, (g->has_ids ? 1 : 0) | (g->half ? 2 : 0), 4);
    put_le(out, g->vocab, 4);
    put_le(out, g->until_end ? UINT64_MAX : g->n_queries, 8);
    for (int i = 0; i < 4; i++)
        put_le(out, 0, 8);
    for (size_t q = 0; q < g->n_queries; q++) {
        if (g->has_ids)
            put_le(out, draw(), 8);
        for (size_t i = 0; i < n; i++)
            put_le(out, g->tokens[q * n + i], 4);
        for (size_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &g->logp[q * n + i], 4);
            put_le(out, g->half ? to_half(g->logp[q * n + i]) : bits, g->half ? 2 : 4);
        }
    }
    finish(out, "grid.ftg");
}

__attribute__((format(printf, 2, 3))) static void write_args(const char *folder,
                                                             const char *format, ...)
{
    va_list args;
    FILE *out = create(folder, "args");
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    putc('\n', out);
    finish(out, "args");
}

/* --- kinds of cases
 * ---------------------------------------------------------------------- */

static void random_args(const char *folder, uint32_t n_proposals)
{
    static const char *const alphas[] = {"0", "0.6", "1", "5", "-1", "-2.5", "64"};
    static const char *const thresholds[] = {"-1", "-1.5", "-1.5", "-0.1", "-0.3",
                                             "-2", "-6.5", "-5",   "-1e7"};
    static const char *const sums[] = {"-1",   "-2",  "-3", "-4",  "-0.3",
                                       "-1e8", "-12", "-6", "-20", "9"};
    const uint32_t widths[] = {
        1, 1, 2, 2, 3, 4, 5, 8, 16, 50, 50, n_proposals, n_proposals + 7, 1000, 65536};
    char b[32] = "", n[32] = "", a[32] = "", token[64] = "", sentence[64] = "";
    if (chance(85))
        snprintf(b, sizeof b, "-b %u ", PICK(widths));
    if (chance(60))
        snprintf(n, sizeof n, "-n %u ", PICK(widths));
    if (chance(70))
        snprintf(a, sizeof a, "-a %s ", PICK(alphas));
    if (chance(20))
        snprintf(token, sizeof token, "--token-threshold=%s ", PICK(thresholds));
    if (chance(20))
        snprintf(sentence, sizeof sentence, "--sentence-threshold=%s", PICK(sums));
    write_args(folder, "%s%s%s%s%s", b, n, a, token, sentence);
}

static void make_random(library *lib, grid *g, const char *folder)
{
    static const style styles[] = {EQUAL, FEW, FEW, PLAIN, PLAIN, SIGNED, ROUNDING};
    uint32_t alphabet[MAX_ALPHABET];
    const uint32_t n_alphabet = draw_alphabet(alphabet);
    draw_library(lib, alphabet, n_alphabet);
    draw_grid(g, lib, chance(4) ? HUGE_SUMS : PICK(styles), alphabet, n_alphabet);
    random_args(folder, g->n_proposals);
}

static void make_hub(library *lib, grid *g, const char *folder)
{
    const uint32_t n = 1 << 21;
    lib->binary = true;
    lib->keys = allocate(n, sizeof *lib->keys);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t tokens[2] = {2 * i + (i >> 20), i % 5};
        add_key(lib, tokens, 1 + i % 2);
    }
    *g = (grid){.n_queries = 3, .n_steps = 3, .n_proposals = 2000};
    allocate_grid(g);
    for (uint32_t i = 0; i < g->n_queries * g->n_steps * g->n_proposals; i++) {
        const bool root = i / g->n_proposals % g->n_steps == 0;
        g->tokens[i] = root ? below(2 * n) : below(7);
        g->logp[i] = -(float)below(16) / 8;
    }
    write_args(folder, "-b 600 -n 1000 -a 0.6");
}

static void make_wide(library *lib, grid *g, const char *folder)
{
    const uint32_t width = 65536;
    lib->keys = allocate(3 * width, sizeof *lib->keys);
    for (uint32_t i = 0; i < width; i++) {
        const uint32_t tokens[2][3] = {{3 * i, 5, 70000}, {3 * i, 131072, i}};
        if (i % 3 == 0)
            add_key(lib, tokens[0], 1);
        add_key(lib, tokens[0], 3);
        add_key(lib, tokens[1], 3);
    }
    *g = (grid){.n_queries = 1, .n_steps = 3, .n_proposals = width};
    allocate_grid(g);
    for (uint32_t i = 0; i < 3 * width; i++) {
        g->tokens[i] = i < width ? 3 * i : i % width;
        g->logp[i] = -(float)below(1000) / 64;
    }
    g->tokens[width + 5] = 5;
    g->tokens[width + 6] = 131072;
    g->tokens[2 * width + 7] = 70000;
    write_args(folder, "-b 65536 -n 65536 -a 1");
}

/* Beams with sum 0 go first, and most of their children are worth -1; a few children of
 * the beams behind them, with sum -1, are worth 0, and half of those are smaller. */
static void make_ties(library *lib, grid *g, const char *folder)
{
    const uint32_t n = 300, n_children = 60;
    lib->keys = allocate(2 * n * n_children, sizeof *lib->keys);
    for (uint32_t i = 0; i < n * n_children; i++) {
        const uint32_t tokens[3] = {i / n_children, i % n_children, below(3)};
        add_key(lib, tokens, 2);
        add_key(lib, tokens, 3);
    }
    *g = (grid){.n_queries = 3, .n_steps = 3, .n_proposals = n};
    allocate_grid(g);
    for (uint32_t i = 0; i < g->n_queries * 3 * n; i++) {
        const uint32_t t = i / n % 3;
        g->tokens[i] = i % n;
        g->logp[i] = chance(t == 0 ? 50 : 5) ? 0 : -1;
    }
    write_args(folder, "-b %u -n %u -a 0", between(500, 2000), between(500, 2000));
}

static void make_long(library *lib, grid *g, const char *folder)
{
    const uint32_t n = 40, max_length = 1100;
    uint32_t chain[1100];
    lib->keys = allocate(n, sizeof *lib->keys);
    for (uint32_t t = 0; t < max_length; t++)
        chain[t] = below(5);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t length = i ? between(1, max_length) : 1024;
        add_key(lib, chain, length);
        if (i > 4) /* a branch somewhere */
            chain[between(0, length - 1)] = below(5);
    }
    sort_unique(lib);
    *g = (grid){.n_queries = 2, .n_steps = 1024, .n_proposals = 6};
    allocate_grid(g);
    for (uint32_t i = 0; i < g->n_queries * g->n_steps * g->n_proposals; i++) {
        g->tokens[i] = i % g->n_proposals;
        g->logp[i] = -(float)below(8) / 1024;
    }
    write_args(folder, "-b 50 -n 100 -a 0.6");
}

static void make_key(library *lib, grid *g, const char *folder)
{
    const uint32_t n = 65535;
    lib->keys = allocate(3, sizeof *lib->keys);
    uint32_t *tokens = add_key(lib, NULL, n);
    for (uint32_t t = 0; t < n; t++)
        tokens[t] = t % 3 ? below(4) : below(no_token);
    add_key(lib, tokens, n - 1);
    tokens = add_key(lib, tokens, n);
    tokens[n - 1] ^= 1;
    sort_unique(lib);
    *g = (grid){.n_queries = 1, .n_steps = n, .n_proposals = 2};
    allocate_grid(g);
    for (uint32_t i = 0; i < 2 * n; i++) {
        g->tokens[i] = lib->keys[i % 2 ? lib->n - 1 : 0].tokens[i / 2 % (n - 1)];
        g->logp[i] = -(float)uniform(0, 1e-3);
    }
    g->tokens[2 * n - 2] = lib->keys[1].tokens[n - 1];
    g->tokens[2 * n - 1] = lib->keys[2].tokens[n - 1];
    write_args(folder, "-b 2 -n 3 -a 0.6");
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"kind", required_argument, NULL, 'k'},
                                          {NULL, 0, NULL, 0}};
    static const struct {
        const char *name;
        void (*make)(library *, grid *, const char *);
    } kinds[] = {{"random", make_random}, {"hub", make_hub},   {"wide", make_wide},
                 {"ties", make_ties},     {"long", make_long}, {"key", make_key}};
    const size_t n_kinds = sizeof kinds / sizeof *kinds;
    size_t kind = 0;
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        for (kind = 0; c == 'k' && kind < n_kinds; kind++)
            if (strcmp(kinds[kind].name, optarg) == 0)
                break;
        if (c != 'k' || kind == n_kinds)
            die("bad option", argv[optind - 1]);
    }
    if (argc - optind != 2)
        die("takes a seed and a folder", "usage");
    state = strtoull(argv[optind], NULL, 10);
    library lib = {0};
    grid g = {0};
    kinds[kind].make(&lib, &g, argv[optind + 1]);
    write_library(&lib, argv[optind + 1]);
    write_grid(&g, argv[optind + 1]);
    free_library(&lib);
    free(g.tokens);
    free(g.logp);
    return 0;
}
