/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle: constrained search as flashtrie(7) defines it, told twice and slowly,
 * with no trie and nothing of the library's. The tests compare every engine with it,
 * byte for byte.
 *
 *   beam    step by step; a prefix is the interval of the sorted keys that begin so
 *   filter  every key is filtered and scored straight from the grid; there is no beam,
 *           so the answer is that of a beam wide enough to hold every prefix
 *
 * The file is long because it stands alone: it shares no reader, no writer and no order
 * with what it judges.
 *
 * usage: ft-oracle [-b B] [-n N] [-a ALPHA] [--token-threshold=X]
 *                  [--sentence-threshold=X] [--method beam|filter]
 *                  [--format wire|tsv|jsonl] [--ids] KEYS GRID...
 *
 * Keys are text or binary, in any order; grids are FTGRID1; neither is compressed.
 * One file over 500 lines, since sharing a line with the product would share its bugs.
 */
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "sums are binary32: build for SSE or the like");

static const uint32_t no_token = UINT32_C(0xFFFFFFFF);

static _Noreturn void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("ft-oracle: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

/* Grow an array of `size`-byte elements so that element n fits. */
static void *grow(void *old, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return old;
    *cap = *cap ? 2 * *cap : 1024;
    void *p = realloc(old, *cap * size);
    if (!p)
        die("out of memory");
    return p;
}

static uint64_t get_le(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    while (bytes--)
        v = v << 8 | p[bytes];
    return v;
}

static void put_le(uint64_t v, int bytes)
{
    for (; bytes--; v >>= 8)
        putchar((int)(v & 255));
}

typedef struct file {
    const char *name;
    unsigned char *data;
    size_t bytes;
} file;

static file read_file(const char *name)
{
    file f = {.name = name};
    size_t cap = 0;
    FILE *in = fopen(name, "rb");
    if (!in)
        die("%s: cannot open", name);
    for (int c; (c = getc_unlocked(in)) != EOF; f.bytes++) {
        f.data = grow(f.data, f.bytes, &cap, 1);
        f.data[f.bytes] = (unsigned char)c;
    }
    fclose(in);
    return f;
}

/* --- the library: an array of keys, sorted and unique --------------------------------
 */

typedef struct key {
    const uint32_t *tokens;
    uint32_t n;
} key;

typedef struct library {
    key *keys;
    size_t n;
    uint32_t *pool; /* what the keys point into */
} library;

static int compare_tokens(const uint32_t *a, const uint32_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int compare_keys(const void *left, const void *right)
{
    const key *a = left, *b = right;
    const int c = compare_tokens(a->tokens, b->tokens, a->n < b->n ? a->n : b->n);
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

/* All tokens one after the other; a key ends before each no_token. */
static uint32_t *parse_text(const file *f, size_t *n_tokens)
{
    uint32_t *pool = NULL;
    size_t n = 0, cap = 0, i = 0;
    while (i < f->bytes) {
        const unsigned char c = f->data[i];
        uint64_t v = 0;
        if (c >= '0' && c <= '9') {
            while (i < f->bytes && f->data[i] >= '0' && f->data[i] <= '9')
                v = v * 10 + (f->data[i++] - '0');
        } else {
            i++;
            if (c != '\n')
                continue;
            v = no_token;
        }
        pool = grow(pool, n, &cap, sizeof *pool);
        pool[n++] = (uint32_t)v;
    }
    pool = grow(pool, n, &cap, sizeof *pool);
    pool[n++] = no_token;
    *n_tokens = n;
    return pool;
}

static uint32_t *parse_binary(const file *f, size_t *n_tokens)
{
    uint32_t *pool = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 16; i + 4 <= f->bytes;) {
        const uint64_t count = get_le(f->data + i, 4);
        i += 4;
        if (count > (f->bytes - i) / 4)
            die("%s: a key is cut short", f->name);
        for (uint64_t j = 0; j <= count; j++) {
            pool = grow(pool, n, &cap, sizeof *pool);
            pool[n++] = j < count ? (uint32_t)get_le(f->data + i + 4 * j, 4) : no_token;
        }
        i += 4 * count;
    }
    *n_tokens = n;
    return pool;
}

static library read_library(const char *name)
{
    library lib = {0};
    size_t n_tokens = 0, cap = 0, begin = 0, n = 0;
    const file f = read_file(name);
    const bool binary = f.bytes >= 16 && memcmp(f.data, "FTKEYS1\n", 8) == 0;
    lib.pool = binary ? parse_binary(&f, &n_tokens) : parse_text(&f, &n_tokens);
    free(f.data);
    for (size_t i = 0; i < n_tokens; i++) {
        if (lib.pool[i] != no_token)
            continue;
        if (i > begin) {
            lib.keys = grow(lib.keys, lib.n, &cap, sizeof *lib.keys);
            lib.keys[lib.n++] = (key){lib.pool + begin, (uint32_t)(i - begin)};
        }
        begin = i + 1;
    }
    if (lib.n > 1)
        qsort(lib.keys, lib.n, sizeof *lib.keys, compare_keys);
    for (size_t i = 0; i < lib.n; i++)
        if (n == 0 || compare_keys(&lib.keys[n - 1], &lib.keys[i]) != 0)
            lib.keys[n++] = lib.keys[i];
    lib.n = n;
    return lib;
}

/* --- grids
 * ----------------------------------------------------------------------------- */

typedef struct grid {
    uint32_t n_steps, n_proposals, vocab;
    bool has_ids, half;
    size_t n_queries, record_bytes;
    file f;
} grid;

static grid read_grid(const char *name)
{
    grid g = {.f = read_file(name)};
    const unsigned char *h = g.f.data;
    if (g.f.bytes < 64 || memcmp(h, "FTGRID1\n", 8) != 0)
        die("%s: not a grid", name);
    g.n_steps = (uint32_t)get_le(h + 8, 4);
    g.n_proposals = (uint32_t)get_le(h + 12, 4);
    g.has_ids = get_le(h + 16, 4) & 1;
    g.half = get_le(h + 16, 4) & 2;
    g.vocab = (uint32_t)get_le(h + 20, 4);
    const size_t n_slots = (size_t)g.n_steps * g.n_proposals;
    g.record_bytes = (g.has_ids ? 8 : 0) + n_slots * (g.half ? 6 : 8);
    g.n_queries = (g.f.bytes - 64) / g.record_bytes;
    const uint64_t promised = get_le(h + 24, 8);
    if ((g.f.bytes - 64) % g.record_bytes ||
        (promised != UINT64_MAX && promised != g.n_queries))
        die("%s: wrong length", name);
    return g;
}

static const unsigned char *query_record(const grid *g, size_t q)
{
    return g->f.data + 64 + q * g->record_bytes;
}

/* Token of slot `at`, no_token where it is empty or beyond the vocabulary. */
static uint32_t slot_token(const grid *g, size_t q, size_t at)
{
    const unsigned char *p = query_record(g, q) + (g->has_ids ? 8 : 0);
    const uint32_t token = (uint32_t)get_le(p + 4 * at, 4);
    return g->vocab && token >= g->vocab ? no_token : token;
}

static float slot_logp(const grid *g, size_t q, size_t at)
{
    const size_t n_slots = (size_t)g->n_steps * g->n_proposals;
    const unsigned char *p = query_record(g, q) + (g->has_ids ? 8 : 0) + 4 * n_slots;
    if (!g->half) {
        const uint32_t bits = (uint32_t)get_le(p + 4 * at, 4);
        float f;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
    const unsigned bits = (unsigned)get_le(p + 2 * at, 2);
    const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    float f = ldexpf((float)fraction, -24);
    if (exponent == 31)
        f = fraction ? NAN : INFINITY;
    else if (exponent > 0)
        f = ldexpf((float)(1024 + fraction), exponent - 25);
    return bits >> 15 ? -f : f;
}

/* --- search
 * ---------------------------------------------------------------------------- */

typedef enum format { WIRE, TSV, JSONL } format;

typedef struct options {
    uint64_t beam, n_results; /* 0: not given */
    double alpha;
    float token_threshold, sentence_threshold;
    bool filter, ids;
    format format;
} options;

typedef struct proposal {
    uint32_t token;
    float logp;
} proposal;

/* A prefix, `depth` tokens that the keys [first, end) begin with; or a result, the key
 * `first`, which is `depth` tokens long. */
typedef struct hypothesis {
    size_t first, end;
    uint32_t depth;
    float sigma;
    double score; /* what it is ranked by: sigma of a beam, norm * sigma of a result */
    const key *keys;
} hypothesis;

typedef struct hypotheses {
    hypothesis *at;
    size_t n, cap;
} hypotheses;

static void append(hypotheses *h, hypothesis x)
{
    h->at = grow(h->at, h->n, &h->cap, sizeof *h->at);
    h->at[h->n++] = x;
}

/* THE order: higher score, then fewer tokens, then smaller tokens. */
static int compare_hypotheses(const void *left, const void *right)
{
    const hypothesis *a = left, *b = right;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return compare_tokens(a->keys[a->first].tokens, b->keys[b->first].tokens, a->depth);
}

static void keep_best(hypotheses *h, uint64_t n)
{
    if (h->n > 1)
        qsort(h->at, h->n, sizeof *h->at, compare_hypotheses);
    if (h->n > n)
        h->n = n;
}

static bool admit(const options *o, float sigma, float rho, float *sum)
{
    *sum = sigma + rho;
    return rho > o->token_threshold && *sum > o->sentence_threshold;
}

static void add_result(hypotheses *results, const library *lib, const options *o,
                       size_t number, float sigma)
{
    const uint32_t n = lib->keys[number].n;
    append(results, (hypothesis){.first = number,
                                 .end = number + 1,
                                 .depth = n,
                                 .sigma = sigma,
                                 .score = (double)sigma * pow(6.0 / (5 + n), o->alpha),
                                 .keys = lib->keys});
}

static int compare_proposals(const void *left, const void *right)
{
    const proposal *a = left, *b = right;
    if (a->token != b->token)
        return a->token < b->token ? -1 : 1;
    return (a->logp < b->logp) - (a->logp > b->logp);
}

static int compare_to_token(const void *token, const void *element)
{
    const uint32_t a = *(const uint32_t *)token, b = ((const proposal *)element)->token;
    return (a > b) - (a < b);
}

/* The proposals of a position as a set: a token once, with its highest log-prob. */
static size_t proposal_set(const grid *g, size_t q, uint32_t t, proposal *set)
{
    size_t n = 0, n_unique = 0;
    for (uint32_t k = 0; k < g->n_proposals; k++) {
        const size_t at = (size_t)t * g->n_proposals + k;
        const uint32_t token = slot_token(g, q, at);
        if (token != no_token)
            set[n++] = (proposal){token, slot_logp(g, q, at)};
    }
    qsort(set, n, sizeof *set, compare_proposals);
    for (size_t i = 0; i < n; i++)
        if (n_unique == 0 || set[n_unique - 1].token != set[i].token)
            set[n_unique++] = set[i];
    return n_unique;
}

/* Extend one beam by every token that its keys go on with and that is proposed. */
static void extend(const library *lib, const options *o, const hypothesis *beam,
                   const proposal *set, size_t n_set, hypotheses *next,
                   hypotheses *results)
{
    const key *keys = lib->keys;
    const uint32_t t = beam->depth;
    size_t i = beam->first;
    if (keys[i].n == t)
        i++; /* the prefix itself, which is first among its keys */
    for (size_t j; i < beam->end; i = j) {
        const uint32_t token = keys[i].tokens[t];
        for (j = i; j < beam->end && keys[j].tokens[t] == token; j++)
            ;
        const proposal *p = bsearch(&token, set, n_set, sizeof *set, compare_to_token);
        float sum;
        if (!p || !admit(o, beam->sigma, p->logp, &sum))
            continue;
        const bool ends_key = keys[i].n == t + 1;
        if (ends_key)
            add_result(results, lib, o, i, sum);
        if (j - i > ends_key)
            append(next, (hypothesis){i, j, t + 1, sum, (double)sum, keys});
    }
}

static void search_beam(const library *lib, const grid *g, size_t q, const options *o,
                        uint64_t width, hypotheses *results)
{
    hypotheses beams = {0};
    proposal *set = malloc(g->n_proposals * sizeof *set);
    if (!set)
        die("out of memory");
    if (lib->n > 0)
        append(&beams, (hypothesis){.end = lib->n, .keys = lib->keys});
    for (uint32_t t = 0; t < g->n_steps && beams.n > 0; t++) {
        const size_t n_set = proposal_set(g, q, t, set);
        hypotheses next = {0};
        for (size_t b = 0; b < beams.n; b++)
            extend(lib, o, &beams.at[b], set, n_set, &next, results);
        keep_best(&next, width);
        free(beams.at);
        beams = next;
    }
    free(beams.at);
    free(set);
}

/* The highest log-prob of `token` at position t; false: it is not proposed. */
static bool highest(const grid *g, size_t q, uint32_t t, uint32_t token, float *logp)
{
    bool found = false;
    for (uint32_t k = 0; k < g->n_proposals; k++) {
        const size_t at = (size_t)t * g->n_proposals + k;
        if (slot_token(g, q, at) != token)
            continue;
        const float x = slot_logp(g, q, at);
        if (!found || x > *logp)
            *logp = x;
        found = true;
    }
    return found;
}

static void search_filter(const library *lib, const grid *g, size_t q, const options *o,
                          hypotheses *results)
{
    for (size_t i = 0; i < lib->n; i++) {
        const key *k = &lib->keys[i];
        bool valid = k->n <= g->n_steps;
        float sigma = 0;
        for (uint32_t t = 0; valid && t < k->n; t++) {
            float rho = 0;
            valid =
                highest(g, q, t, k->tokens[t], &rho) && admit(o, sigma, rho, &sigma);
        }
        if (valid)
            add_result(results, lib, o, i, sigma);
    }
}

/* --- output
 * ---------------------------------------------------------------------------- */

/* The paper's wire format (Appendix D.3): the best result is the last. */
static void write_wire(const hypotheses *r)
{
    uint64_t end = 0;
    put_le(r->n, 8);
    for (size_t i = r->n; i-- > 0;) {
        uint64_t bits;
        memcpy(&bits, &r->at[i].score, sizeof bits);
        put_le(bits, 8);
    }
    for (size_t i = r->n; i-- > 0;)
        put_le(end += r->at[i].depth, 8);
    for (size_t i = r->n; i-- > 0;)
        for (uint32_t t = 0; t < r->at[i].depth; t++)
            put_le(r->at[i].keys[r->at[i].first].tokens[t], 4);
}

static void write_text(const hypotheses *r, uint64_t query, const options *o)
{
    const bool json = o->format == JSONL;
    for (size_t i = 0; i < r->n; i++) {
        const hypothesis *h = &r->at[i];
        const char *quote = json && isinf(h->score) ? "\"" : "";
        printf(json ? "{\"query\":%llu,\"rank\":%zu,\"score\":%s%.17g%s,\"tokens\":["
                    : "%llu\t%zu\t%s%.17g%s\t",
               (unsigned long long)query, i, quote, h->score, quote);
        for (uint32_t t = 0; t < h->depth; t++)
            printf("%s%lu",
                   t == 0 ? ""
                   : json ? ","
                          : " ",
                   (unsigned long)h->keys[h->first].tokens[t]);
        fputs(json ? "]" : "", stdout);
        if (o->ids)
            printf(json ? ",\"key\":%zu" : "\t%zu", h->first);
        fputs(json ? "}\n" : "\n", stdout);
    }
}

static void search_grid(const library *lib, const grid *g, const options *o,
                        uint64_t first_query)
{
    const uint64_t width = o->beam ? o->beam : g->n_proposals;
    for (size_t q = 0; q < g->n_queries; q++) {
        hypotheses results = {0};
        if (o->filter)
            search_filter(lib, g, q, o, &results);
        else
            search_beam(lib, g, q, o, width, &results);
        keep_best(&results, o->n_results ? o->n_results : width);
        if (o->format == WIRE)
            write_wire(&results);
        else
            write_text(&results,
                       g->has_ids ? get_le(query_record(g, q), 8) : first_query + q, o);
        free(results.at);
    }
}

static double parse_number(const char *text)
{
    char *end;
    const double x = strtod(text, &end);
    if (end == text || *end)
        die("'%s' is not a number", text);
    return x;
}

static void parse_options(options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"token-threshold", required_argument, NULL, 't'},
        {"sentence-threshold", required_argument, NULL, 's'},
        {"method", required_argument, NULL, 'm'},
        {"format", required_argument, NULL, 'f'},
        {"ids", no_argument, NULL, 'i'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "b:n:a:f:", longs, NULL)) != -1;) {
        if (c == 'b')
            o->beam = (uint64_t)parse_number(optarg);
        else if (c == 'n')
            o->n_results = (uint64_t)parse_number(optarg);
        else if (c == 'a')
            o->alpha = parse_number(optarg);
        else if (c == 't')
            o->token_threshold = (float)parse_number(optarg);
        else if (c == 's')
            o->sentence_threshold = (float)parse_number(optarg);
        else if (c == 'm' && (!strcmp(optarg, "beam") || !strcmp(optarg, "filter")))
            o->filter = *optarg == 'f';
        else if (c == 'f' && (!strcmp(optarg, "wire") || !strcmp(optarg, "tsv") ||
                              !strcmp(optarg, "jsonl")))
            o->format = *optarg == 'w' ? WIRE : *optarg == 't' ? TSV : JSONL;
        else if (c == 'i')
            o->ids = true;
        else
            die("bad option");
    }
    if (argc - optind < 2)
        die("usage: ft-oracle [options] KEYS GRID...");
}

int main(int argc, char **argv)
{
    options o = {
        .alpha = 5, .token_threshold = -INFINITY, .sentence_threshold = -INFINITY};
    uint64_t n_queries = 0;
    parse_options(&o, argc, argv);
    const library lib = read_library(argv[optind]);
    for (int i = optind + 1; i < argc; i++) {
        const grid g = read_grid(argv[i]);
        search_grid(&lib, &g, &o, n_queries);
        n_queries += g.n_queries;
        free(g.f.data);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        die("cannot write");
    free(lib.keys);
    free(lib.pool);
    return 0;
}
