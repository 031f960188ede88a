/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench gen-keys: a synthetic library, in order, to standard output or a file.
 */
#include "bench_gen.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "workload/keygen.h"

enum { MAX_PRESETS = 8, BLOCK_BYTES = 1 << 16, KEYS_BETWEEN_CLOCKS = 1 << 16 };

enum { TEXT, BINARY };

typedef struct gen_keys {
    const char *output;
    uint32_t format, preset;
    ft_keygen_params p;
    double started;
} gen_keys;

/* What the command line does not give is the preset's: no_number stands for it until
 * the preset is known. */
static const double no_number = -1.0;

static void fill_in(double *given, double preset)
{
    if (*given < 0)
        *given = preset;
}

static ft_status complete(gen_keys *o, ft_error *err)
{
    ft_keygen_params *p = &o->p, d;
    const ft_status st = ft_keygen_preset(&d, ft_keygen_preset_name(o->preset), err);
    if (st != FT_OK)
        return st;
    p->vocab = p->vocab ? p->vocab : d.vocab;
    p->max_length = p->max_length ? p->max_length : d.max_length;
    fill_in(&p->skew, d.skew);
    fill_in(&p->id_noise, d.id_noise);
    fill_in(&p->sharing, d.sharing);
    fill_in(&p->fans, d.fans);
    fill_in(&p->prefix_keys, d.prefix_keys);
    fill_in(&p->tail, d.tail);
    fill_in(&p->long_tails, d.long_tails);
    return FT_OK;
}

static int parse(gen_keys *o, int argc, char **argv)
{
    static const char *const formats[] = {"text", "binary", NULL};
    const char *presets[MAX_PRESETS] = {NULL};
    for (uint32_t i = 0; i + 1 < MAX_PRESETS; i++)
        presets[i] = ft_keygen_preset_name(i);
    ft_keygen_params *p = &o->p;
    const ft_option rows[] = {
        {FT_OPT_STRING, 'o', "output", &o->output, "FILE",
         "write the keys to FILE, all or nothing"},
        {FT_OPT_ENUM, 'f', "format", &o->format, "NAME", "form of the keys",
         .choices = formats},
        {FT_OPT_ENUM, 'p', "preset", &o->preset, "NAME", "kind of library",
         .choices = presets},
        {FT_OPT_U64, 'n', "keys", &p->n_keys, "N", "make exactly N keys", .min = 1,
         .max = (double)FT_KEYGEN_MAX_KEYS},
        {FT_OPT_U64, 's', "seed", &p->seed, "N", "another seed, another library"},
        {FT_OPT_U32, 0, "vocab", &p->vocab, "N", "tokens are below N", .min = 1,
         .max = UINT32_MAX},
        {FT_OPT_U32, 0, "max-length", &p->max_length, "N", "at most N tokens a key",
         .min = 1, .max = FT_MAX_KEY_TOKENS},
        {FT_OPT_DOUBLE, 0, "skew", &p->skew, "X",
         "exponent of the power law over token ids", .min = 0, .max = 4},
        {FT_OPT_DOUBLE, 0, "id-noise", &p->id_noise, "BITS",
         "how far the frequency of an id strays from it", .min = 0, .max = 8},
        {FT_OPT_DOUBLE, 0, "sharing", &p->sharing, "X",
         "how far keys share prefixes: n keys part into about n^(1-X)", .min = 0,
         .max = 1},
        {FT_OPT_DOUBLE, 0, "fans", &p->fans, "P",
         "chance that all keys below a node part at once", .min = 0, .max = 1},
        {FT_OPT_DOUBLE, 0, "prefix-keys", &p->prefix_keys, "P",
         "chance that a node with children is a key", .min = 0, .max = 1},
        {FT_OPT_DOUBLE, 0, "tail", &p->tail, "X",
         "mean tokens of a key behind the last that it shares", .min = 0, .max = 1000},
        {FT_OPT_DOUBLE, 0, "long-tails", &p->long_tails, "P",
         "part of the keys whose tails are ten times that", .min = 0, .max = 1},
        FT_OPTIONS_END};
    const ft_command c = {.program = "ft-bench",
                          .subcommand = "gen-keys",
                          .summary = "make a synthetic library, in order",
                          .operands = "",
                          .options = rows};
    ft_operands none;
    return ft_command_parse(&c, argc, argv, &none);
}

static void show_progress(const gen_keys *o, uint64_t n)
{
    char made[FT_COUNT_BYTES], rate[FT_COUNT_BYTES];
    const double seconds = ft_seconds() - o->started;
    ft_progress("%s keys, %.0f%%, %s keys/s", ft_short_count(n, made),
                100.0 * (double)n / (double)o->p.n_keys,
                ft_short_count((uint64_t)((double)n / seconds), rate));
}

/* Records are gathered in a block: a sink's call for each field would cost more than
 * the key. */
typedef struct block {
    uint32_t *words; /* BLOCK_BYTES and room for one more record */
    size_t n;
} block;

static ft_status put_binary(ft_sink *out, block *b, const uint32_t *tokens, uint32_t n,
                            ft_error *err)
{
    ft_status st = FT_OK;
    b->words[b->n] = n;
    uint32_t *to = b->words + b->n + 1;
    /* Most keys in a copy of one size: how long they are cannot be predicted. */
    memcpy(to, tokens, FT_KEYGEN_READABLE * sizeof *tokens);
    if (n > FT_KEYGEN_READABLE)
        memcpy(to, tokens, n * sizeof *tokens);
    b->n += 1u + n;
    if (b->n >= BLOCK_BYTES / sizeof *b->words) {
        st = ft_sink_write(out, b->words, b->n * sizeof *b->words, err);
        b->n = 0;
    }
    return st;
}

static ft_status put_keys(const gen_keys *o, ft_keygen *g, ft_sink *out, block *b,
                          ft_error *err)
{
    const uint32_t *tokens;
    uint32_t n, lcp;
    ft_status st = FT_OK;
    for (uint64_t i = 1; st == FT_OK && ft_keygen_next(g, &tokens, &n, &lcp); i++) {
        st = o->format == BINARY ? put_binary(out, b, tokens, n, err)
                                 : ft_tokens_write_text(out, tokens, n, err);
        if (i % KEYS_BETWEEN_CLOCKS == 0 && ft_progress_due())
            show_progress(o, i);
    }
    return st;
}

static ft_status run(gen_keys *o, ft_error *err)
{
    const bool binary = o->format == BINARY;
    block b = {NULL, 0};
    ft_keygen *g = NULL;
    ft_sink *out = NULL;
    ft_status st = complete(o, err);
    if (st == FT_OK)
        st = ft_keygen_open(&g, &o->p, err);
    if (st == FT_OK)
        st = ft_output_open(&out, o->output, binary ? FT_OUTPUT_BINARY : FT_OUTPUT_TEXT,
                            err);
    if (st == FT_OK && binary)
        st = ft_tokens_write_binary_header(out, err);
    if (st == FT_OK) {
        b.words = ft_alloc_aligned(
            BLOCK_BYTES + (FT_MAX_KEY_TOKENS + 1) * sizeof *b.words, 1, err);
        st = b.words ? FT_OK : FT_ENOMEM;
    }
    if (st == FT_OK)
        st = put_keys(o, g, out, &b, err);
    if (st == FT_OK)
        st = ft_sink_write(out, b.words, b.n * sizeof *b.words, err);
    free(b.words);
    ft_keygen_close(g);
    return ft_output_close(out, st, err);
}

static void say_summary(const gen_keys *o)
{
    const double seconds = ft_seconds() - o->started;
    char rate[FT_COUNT_BYTES];
    ft_progress_end();
    if (ft_is_verbose())
        ft_say("%s: %llu keys, %.2f s, %s keys/s",
               o->output ? o->output : "(standard output)",
               (unsigned long long)o->p.n_keys, seconds,
               ft_short_count((uint64_t)((double)o->p.n_keys / seconds), rate));
}

int ft_bench_gen_keys(const ft_subcommand *self, int argc, char **argv)
{
    gen_keys o = {.p = {.n_keys = 1000000,
                        .seed = 1,
                        .skew = no_number,
                        .id_noise = no_number,
                        .sharing = no_number,
                        .fans = no_number,
                        .prefix_keys = no_number,
                        .tail = no_number,
                        .long_tails = no_number},
                  .started = ft_seconds()};
    ft_error err;
    (void)self;
    const int rc = parse(&o, argc, argv);
    if (rc != FT_GO_ON)
        return rc;
    const ft_status st = run(&o, &err);
    if (st == FT_OK)
        say_summary(&o);
    return ft_finish(st, &err);
}
