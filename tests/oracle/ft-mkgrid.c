/* SPDX-License-Identifier: Apache-2.0
 *
 * Proposal grids from text, for tests: a line is a position, an empty line ends a
 * query.
 *
 * usage: ft-mkgrid [--half] [--vocab=V] [--until-end] [--npy=PREFIX] < TEXT > GRID
 *
 *     query 17            (in all queries or in none) the query's id
 *     5:-0.5 9:-1.25      tokens with log-probs, as strtof reads them
 *     - 5:-inf 7:nan      "-" is an empty slot
 *
 * Short positions and short queries are filled with empty slots. With --npy the grid
 * goes to PREFIX.tokens.npy (uint32) and PREFIX.logp.npy (float32, float16 with
 * --half).
 */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t no_token = UINT32_C(0xFFFFFFFF);

typedef struct slot {
    uint32_t token;
    float logp;
    size_t query, step, rank;
} slot;

typedef struct grid {
    slot *slots; /* those of the text, in its order */
    slot *dense; /* [n_queries][n_steps][n_proposals] */
    uint64_t *ids;
    size_t n_slots, n_ids, n_queries, n_steps, n_proposals;
} grid;

static _Noreturn void die(const char *what, const char *text)
{
    fprintf(stderr, "ft-mkgrid: %s: %s\n", what, text);
    exit(2);
}

static void *resize(void *old, size_t n, size_t size)
{
    void *p = realloc(old, n * size);
    if (!p)
        die("out of memory", "grid");
    return p;
}

static void put_le(FILE *out, uint64_t v, int bytes)
{
    for (; bytes--; v >>= 8)
        putc((int)(v & 255), out);
}

static void parse_position(grid *g, size_t query, size_t step, char *line)
{
    size_t rank = 0;
    for (char *p = strtok(line, " \t\n"); p; p = strtok(NULL, " \t\n"), rank++) {
        slot s = {no_token, 0, query, step, rank};
        if (strcmp(p, "-") != 0) {
            char *colon, *end = NULL;
            s.token = (uint32_t)strtoull(p, &colon, 10);
            if (*colon == ':')
                s.logp = strtof(colon + 1, &end);
            if (!end || *end)
                die("not TOKEN:LOGP", p);
        }
        g->slots = resize(g->slots, g->n_slots + 1, sizeof *g->slots);
        g->slots[g->n_slots++] = s;
    }
    if (rank > g->n_proposals)
        g->n_proposals = rank;
    if (step + 1 > g->n_steps)
        g->n_steps = step + 1;
    g->n_queries = query + 1;
}

static void parse(grid *g)
{
    char *line = NULL;
    size_t cap = 0, query = 0, step = 0;
    while (getline(&line, &cap, stdin) >= 0) {
        if (line[strspn(line, " \t\n")] == '\0') {
            query += step > 0;
            step = 0;
        } else if (strncmp(line, "query ", 6) == 0) {
            g->ids = resize(g->ids, g->n_ids + 1, sizeof *g->ids);
            g->ids[g->n_ids++] = strtoull(line + 6, NULL, 10);
        } else {
            parse_position(g, query, step++, line);
        }
    }
    free(line);
    if (g->n_ids && g->n_ids != g->n_queries)
        die("some queries have no id", "standard input");
}

static void fill(grid *g)
{
    const size_t n = g->n_queries * g->n_steps * g->n_proposals;
    g->dense = resize(NULL, n + 1, sizeof *g->dense);
    for (size_t i = 0; i < n; i++)
        g->dense[i] = (slot){.token = no_token};
    for (size_t i = 0; i < g->n_slots; i++) {
        const slot *s = &g->slots[i];
        g->dense[(s->query * g->n_steps + s->step) * g->n_proposals + s->rank] = *s;
    }
}

/* Binary16, rounded to nearest even; only what is in its normal range, 0, inf and NaN.
 */
static uint16_t to_half(float x)
{
    const unsigned sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return 0x7E00;
    if (isinf(x) || x == 0)
        return (uint16_t)(sign | (x == 0 ? 0 : 0x7C00));
    int exponent;
    const float fraction = frexpf(fabsf(x), &exponent);
    const unsigned bits = (unsigned)nearbyintf(ldexpf(fraction, 11)) - 1024;
    if (exponent < -13 || exponent > 16 || (exponent == 16 && bits == 1024))
        die("log-prob out of range for --half", "standard input");
    return (uint16_t)(sign | (((unsigned)(exponent + 14) << 10) + bits));
}

static void put_logp(FILE *out, float x, bool half)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_le(out, half ? to_half(x) : bits, half ? 2 : 4);
}

static void put_tokens(FILE *out, const slot *dense, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_le(out, dense[i].token, 4);
}

static void put_logps(FILE *out, const slot *dense, size_t n, bool half)
{
    for (size_t i = 0; i < n; i++)
        put_logp(out, dense[i].logp, half);
}

static FILE *open_npy(const grid *g, const char *prefix, const char *what,
                      const char *type)
{
    char path[4096], header[119];
    snprintf(path, sizeof path, "%s.%s.npy", prefix, what);
    FILE *out = fopen(path, "wb");
    if (!out)
        die("cannot create", path);
    const int n = snprintf(header, sizeof header,
                           "{'descr': '%s', 'fortran_order': False, "
                           "'shape': (%zu, %zu, %zu), }",
                           type, g->n_queries, g->n_steps, g->n_proposals);
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, out); /* version 1.0; 118 bytes of header */
    fprintf(out, "%s%*s\n", header, 117 - n, "");
    return out;
}

static void write_npy(const grid *g, const char *prefix, bool half)
{
    const size_t n = g->n_queries * g->n_steps * g->n_proposals;
    FILE *tokens = open_npy(g, prefix, "tokens", "<u4");
    FILE *logp = open_npy(g, prefix, "logp", half ? "<f2" : "<f4");
    put_tokens(tokens, g->dense, n);
    put_logps(logp, g->dense, n, half);
    fclose(tokens);
    fclose(logp);
}

static void write_grid(const grid *g, bool half, uint32_t vocab, bool until_end)
{
    const size_t n = g->n_steps * g->n_proposals;
    fwrite("FTGRID1\n", 1, 8, stdout);
    put_le(stdout, g->n_steps, 4);
    put_le(stdout, g->n_proposals, 4);
    put_le(stdout, (g->n_ids ? 1 : 0) | (half ? 2 : 0), 4);
    put_le(stdout, vocab, 4);
    put_le(stdout, until_end ? UINT64_MAX : g->n_queries, 8);
    for (int i = 0; i < 4; i++)
        put_le(stdout, 0, 8);
    for (size_t q = 0; q < g->n_queries; q++) {
        if (g->n_ids)
            put_le(stdout, g->ids[q], 8);
        put_tokens(stdout, g->dense + q * n, n);
        put_logps(stdout, g->dense + q * n, n, half);
    }
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"half", no_argument, NULL, 'h'},
                                          {"vocab", required_argument, NULL, 'v'},
                                          {"until-end", no_argument, NULL, 'u'},
                                          {"npy", required_argument, NULL, 'n'},
                                          {NULL, 0, NULL, 0}};
    bool half = false, until_end = false;
    uint32_t vocab = 0;
    const char *npy = NULL;
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (c == '?')
            die("bad option", argv[optind - 1]);
        half |= c == 'h';
        until_end |= c == 'u';
        if (c == 'v')
            vocab = (uint32_t)strtoull(optarg, NULL, 10);
        if (c == 'n')
            npy = optarg;
    }
    grid g = {0};
    parse(&g);
    fill(&g);
    if (npy)
        write_npy(&g, npy, half);
    else
        write_grid(&g, half, vocab, until_end);
    free(g.dense);
    free(g.slots);
    free(g.ids);
    return fflush(stdout) == 0 ? 0 : 1;
}
