/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench build: time, memory and size of each layout, and of stock MARISA beside
 * them. The file is long because both are built and asked in the same way.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_child.h"
#include "bench_commands.h"
#include "bench_machine.h"
#include "bench_marisa.h"
#include "bench_report.h"
#include "common.h"
#include "workload/key_digest.h"

enum { MAX_PASSES = 1000 };

/* What the child of a measurement is told and tells. */
typedef struct build_job {
    const struct bench_build *bench;
    const char *layout; /* NULL: MARISA, of n_tries */
    bool ids;
    const char *n_tries;
    ft_bench_scratch index;
    ft_bench_scratch sample, answers; /* of MARISA's lookups */
    _Atomic uint64_t n_read; /* keys, of a layout: where a child got that is ended */
    ft_build_summary summary;
    ft_status st;
    ft_error err;
} build_job;

typedef struct bench_build {
    const char *keys_path, *tmpdir;
    uint32_t n_threads, n_passes;
    double time_limit;
    bool lookup;
    ft_bench_output output;
    ft_bench_report *report;
    ft_bench_scratch encoded;   /* the keys as MARISA takes them, where it is wanted */
    bool has_marisa, too_large; /* too_large: a token for its keys */
    uint64_t n_keys, digest;    /* of the keys */
    uint64_t n_nodes;           /* of the token trie, once a layout has said */
    build_job *job;             /* shared with children */
} bench_build;

static ft_status open_keys(ft_keys **out, const bench_build *b, ft_error *err)
{
    const ft_keys_options o = {
        .paths = &b->keys_path, .n_paths = 1, .tmpdir = b->tmpdir};
    return ft_keys_open(out, &o, err);
}

/* Read the keys once: they are counted, and in the page cache for all alike. */
static ft_status survey(bench_build *b, ft_error *err)
{
    ft_keys *keys = NULL;
    ft_sink *out = NULL;
    ft_key key = {.n = 1};
    bool fits;
    ft_status st = open_keys(&keys, b, err);
    if (st == FT_OK && b->encoded.fd >= 0)
        st = ft_sink_open(&out, b->encoded.path, err);
    while (st == FT_OK && key.n) {
        st = ft_keys_next(keys, &key, err);
        if (st == FT_OK && key.n) {
            b->n_keys++;
            b->digest += ft_key_digest(key.tokens, key.n);
        }
        if (st == FT_OK && key.n && out) {
            st = ft_bench_marisa_encode(out, &key, &fits, err);
            b->too_large |= !fits;
        }
        if (b->n_keys % 65536 == 0 && ft_progress_due())
            ft_progress("reading the keys: %" PRIu64, b->n_keys);
    }
    ft_keys_close(keys);
    return ft_output_close(out, st, err);
}

/* A plain store: what notes is timed. */
static void note_read(build_job *j, uint64_t n)
{
    atomic_store_explicit(&j->n_read, n, memory_order_relaxed);
}

static void note_tick(void *arg, const ft_keys *keys)
{
    const ft_keys_counts n = ft_keys_counts_of(keys);
    note_read(arg, n.n_read - n.n_duplicates);
}

static bool build_layout(void *arg)
{
    build_job *j = arg;
    const ft_build_options options = {
        .layout = j->layout, .ids = j->ids, .n_threads = j->bench->n_threads};
    const ft_build_tick tick = {note_tick, j};
    ft_sink *out = NULL;
    ft_keys *keys = NULL;
    ft_builder *builder = NULL;
    ft_error *err = &j->err;
    ft_status st = ft_sink_open(&out, j->index.path, err);
    if (st == FT_OK)
        st = open_keys(&keys, j->bench, err);
    if (st == FT_OK)
        st = ft_builder_open(&builder, &options, err);
    if (st == FT_OK)
        st = ft_builder_add_keys(builder, keys, &tick, err);
    if (st == FT_OK)
        note_read(j, j->bench->n_keys);
    ft_keys_close(keys);
    if (st == FT_OK)
        st = ft_builder_finish(builder, out, &j->summary, err);
    ft_builder_close(builder);
    j->st = ft_output_close(out, st, err);
    return true;
}

static bool build_marisa(void *arg)
{
    const build_job *j = arg;
    ft_bench_marisa_build(&j->bench->encoded, j->n_tries, j->index.path);
    return false;
}

/* Every key is read from its file and must be there; one thread. */
static bool look_up_layout(void *arg)
{
    build_job *j = arg;
    ft_error *err = &j->err;
    ft_index *index = NULL;
    ft_keys *keys = NULL;
    ft_key key = {.n = 1};
    ft_status st = ft_index_open(&index, j->index.path, FT_VERIFY_NONE, 1, err);
    if (st == FT_OK)
        st = open_keys(&keys, j->bench, err);
    for (uint64_t n = 0; st == FT_OK && key.n; n++) {
        const ft_trie *t = ft_index_trie(index);
        st = ft_keys_next(keys, &key, err);
        if (st != FT_OK || !key.n)
            break;
        note_read(j, n + 1);
        const uint64_t node = ft_trie_walk(t, key.tokens, key.n);
        if (node == UINT64_MAX || !(t->ops->flags(t, node) & FT_NODE_TERMINAL))
            st = ft_fail(err, FT_EFORMAT, "key %" PRIu64 " is not found", n);
    }
    ft_keys_close(keys);
    ft_index_close(index);
    j->st = st;
    return true;
}

static bool look_up_marisa(void *arg)
{
    const build_job *j = arg;
    ft_bench_marisa_look_up(&j->bench->encoded, j->index.path, "/dev/null");
    return false;
}

/* The first keys again, to see what it says. */
static bool look_up_sample(void *arg)
{
    const build_job *j = arg;
    ft_bench_marisa_look_up(&j->sample, j->index.path, j->answers.path);
    return false;
}

/* One child; what it says of itself becomes the status. */
static ft_status run_job(const bench_build *b, bool (*work)(void *), ft_bench_usage *u,
                         ft_error *err)
{
    b->job->st = FT_OK;
    note_read(b->job, 0);
    if (b->encoded.fd >= 0)
        lseek(b->encoded.fd, 0, SEEK_SET);
    ft_status st = ft_bench_child(work, b->job, b->time_limit, u, err);
    if (st == FT_OK && b->job->st != FT_OK) {
        *err = b->job->err;
        st = b->job->st;
    }
    if (st == FT_OK && u->late)
        st = ft_fail(err, FT_EUNAVAILABLE,
                     "%" PRIu64 " of %" PRIu64 " keys read in %g s",
                     b->job->layout ? atomic_load(&b->job->n_read)
                                    : ft_bench_marisa_n_read(&b->encoded),
                     b->n_keys, b->time_limit);
    return st;
}

enum { SAMPLE_BYTES = 1 << 16, ANSWER_BYTES = 8 * SAMPLE_BYTES };

/* Does stock MARISA find keys? Not timed, and of the first ones only: what it writes
 * is larger than the keys. */
static ft_status check_marisa(const bench_build *b, ft_error *err)
{
    build_job *j = b->job;
    ft_bench_usage u;
    char *keys = ft_calloc(SAMPLE_BYTES + ANSWER_BYTES, 1, err);
    ft_status st = keys ? ft_bench_scratch_open(&j->sample, b->tmpdir, err) : FT_ENOMEM;
    if (st != FT_OK) {
        free(keys);
        return st;
    }
    st = ft_bench_scratch_open(&j->answers, b->tmpdir, err);
    if (st == FT_OK) {
        char *answers = keys + SAMPLE_BYTES;
        ssize_t n = pread(b->encoded.fd, keys, SAMPLE_BYTES, 0);
        while (n > 0 && keys[n - 1] != '\n')
            n--;
        if (n < 0 || pwrite(j->sample.fd, keys, (size_t)n, 0) != n)
            st = ft_fail_errno(err, FT_EIO, errno, "a sample of the keys");
        if (st == FT_OK)
            st = run_job(b, look_up_sample, &u, err);
        const ssize_t got =
            st == FT_OK ? pread(j->answers.fd, answers, ANSWER_BYTES, 0) : 0;
        if (st == FT_OK && (got < 0 || ft_bench_marisa_found(answers, (size_t)got) !=
                                           ft_bench_marisa_lines(keys, (size_t)n)))
            st = ft_fail(err, FT_EFORMAT, "marisa-lookup does not find all keys");
        ft_bench_scratch_close(&j->answers);
    }
    ft_bench_scratch_close(&j->sample);
    free(keys);
    return st;
}

/* Of whole passes. */
typedef struct build_figures {
    uint32_t n_passes;
    double seconds, sd, lookup_seconds; /* NAN: none */
    uint64_t peak_bytes, bytes;
    char status[FT_BENCH_CELL_BYTES];
} build_figures;

static ft_status build_pass(const bench_build *b, build_figures *f, double *seconds,
                            ft_error *err)
{
    const build_job *j = b->job;
    ft_bench_usage u;
    struct stat info;
    const ft_status st = run_job(b, j->layout ? build_layout : build_marisa, &u, err);
    if (st != FT_OK)
        return st;
    if (fstat(j->index.fd, &info) != 0)
        return ft_fail_errno(err, FT_EIO, errno, "the index's size");
    *seconds = u.seconds;
    f->bytes = (uint64_t)info.st_size;
    f->peak_bytes = u.peak_bytes > f->peak_bytes ? u.peak_bytes : f->peak_bytes;
    return FT_OK;
}

static void summarise(build_figures *f, const double *seconds)
{
    double squares = 0;
    for (uint32_t p = 0; p < f->n_passes; p++)
        f->seconds += seconds[p] / f->n_passes;
    for (uint32_t p = 0; p < f->n_passes; p++)
        squares += pow(seconds[p] - f->seconds, 2);
    f->sd = f->n_passes > 1 ? sqrt(squares / (f->n_passes - 1)) : NAN;
}

static ft_status look_up(const bench_build *b, build_figures *f, ft_error *err)
{
    const build_job *j = b->job;
    ft_bench_usage u;
    const ft_status st =
        run_job(b, j->layout ? look_up_layout : look_up_marisa, &u, err);
    if (st == FT_OK)
        f->lookup_seconds = u.seconds;
    if (st == FT_OK && !j->layout)
        return check_marisa(b, err);
    if (st == FT_EUNAVAILABLE)
        snprintf(f->status, sizeof f->status, "lookups: %.200s", err->message);
    return st == FT_EUNAVAILABLE ? FT_OK : st;
}

static ft_status measure(const bench_build *b, build_figures *f, ft_error *err)
{
    const build_job *j = b->job;
    double seconds[MAX_PASSES];
    ft_status st = FT_OK;
    while (f->n_passes < b->n_passes && st == FT_OK) {
        if (ft_progress_due())
            ft_progress("%s, pass %u of %u", j->layout ? j->layout : "marisa",
                        f->n_passes + 1, b->n_passes);
        st = build_pass(b, f, &seconds[f->n_passes], err);
        f->n_passes += st == FT_OK;
    }
    const bool late = st == FT_EUNAVAILABLE && f->n_passes;
    if (st != FT_OK && !late)
        return st;
    summarise(f, seconds);
    f->lookup_seconds = NAN;
    snprintf(f->status, sizeof f->status, "ok");
    if (late)
        snprintf(f->status, sizeof f->status, "%u of %u passes, then %.200s",
                 f->n_passes, b->n_passes, err->message);
    return b->lookup && !late ? look_up(b, f, err) : FT_OK;
}

static void figure_cells(ft_bench_row *row, bench_build *b, const build_figures *f)
{
    const double keys = b->n_keys ? (double)b->n_keys : 1, bytes = (double)f->bytes;
    if (b->job->layout)
        b->n_nodes = b->job->summary.n_nodes;
    ft_bench_cell(row, "%" PRIu64, b->n_keys);
    if (b->n_nodes) {
        ft_bench_cell(row, "%" PRIu64, b->n_nodes);
        ft_bench_cell(row, "%" PRIu64, f->bytes);
        ft_bench_cell(row, "%.2f", 8 * bytes / (double)b->n_nodes);
        ft_bench_cell(row, "%.3f", bytes / keys);
        ft_bench_cell(row, "%.3f", (double)b->n_nodes / keys);
    } else {
        ft_bench_cell(row, "-");
        ft_bench_cell(row, "%" PRIu64, f->bytes);
        ft_bench_cell(row, "-");
        ft_bench_cell(row, "%.3f", bytes / keys);
        ft_bench_cell(row, "-");
    }
    ft_bench_cell(row, "%u", f->n_passes);
    ft_bench_cell(row, "%.3f", f->seconds);
    ft_bench_cell(row, isnan(f->sd) ? "-" : "%.3f", f->sd);
    ft_bench_cell(row, "%.0f", keys / f->seconds);
    ft_bench_cell(row, "%" PRIu64, f->peak_bytes);
    ft_bench_cell(row, isnan(f->lookup_seconds) ? "-" : "%.0f",
                  keys / f->lookup_seconds);
    ft_bench_cell(row, "%s", f->status);
}

static const ft_bench_column columns[] = {
    {"layout", FT_BENCH_TEXT, 13},      {"threads", FT_BENCH_NUMBER},
    {"keys", FT_BENCH_NUMBER, 10},      {"nodes", FT_BENCH_NUMBER, 10},
    {"bytes", FT_BENCH_NUMBER, 11},     {"bits_per_node", FT_BENCH_NUMBER},
    {"bytes_per_key", FT_BENCH_NUMBER}, {"nodes_per_key", FT_BENCH_NUMBER},
    {"passes", FT_BENCH_NUMBER},        {"seconds", FT_BENCH_NUMBER, 8},
    {"sd_s", FT_BENCH_NUMBER, 7},       {"keys_per_s", FT_BENCH_NUMBER},
    {"peak_bytes", FT_BENCH_NUMBER},    {"lookups_per_s", FT_BENCH_NUMBER},
    {"status", FT_BENCH_TEXT},          {NULL}};

enum { N_KEY = 2, N_FIGURES = sizeof columns / sizeof *columns - N_KEY - 2 };

/* "compact", "compact+ids", "marisa" or "marisa-n1". */
static ft_status measure_name(bench_build *b, const char *name, ft_error *err)
{
    build_job *j = b->job;
    build_figures f = {.seconds = 0};
    ft_bench_row row = {.n = 0};
    char layout[64];
    const size_t n = strcspn(name, "+");
    snprintf(layout, sizeof layout, "%.*s", (int)n, name);
    *j = (build_job){
        .bench = b, .ids = name[n] != '\0', .n_tries = ft_bench_marisa_tries(name)};
    j->layout = j->n_tries ? NULL : layout;
    ft_bench_cell(&row, "%s", name);
    ft_bench_cell(&row, "%u", j->layout ? b->n_threads : 1);
    if (ft_bench_report_has(b->report, &row))
        return FT_OK;
    if (!j->layout && !b->has_marisa) {
        ft_bench_no_cells(&row, N_FIGURES);
        ft_bench_cell(&row, FT_BENCH_NO_MARISA);
        return ft_bench_report_row(b->report, &row, err);
    }
    if (!j->layout && b->too_large) {
        ft_bench_no_cells(&row, N_FIGURES);
        ft_bench_cell(&row, "unavailable: a token is above %u", FT_BENCH_MARISA_MAX);
        return ft_bench_report_row(b->report, &row, err);
    }
    ft_error why;
    ft_status st = ft_bench_scratch_open(&j->index, b->tmpdir, err);
    if (st != FT_OK)
        return st;
    st = measure(b, &f, &why);
    ft_bench_scratch_close(&j->index);
    if (st == FT_OK) {
        figure_cells(&row, b, &f);
    } else {
        ft_bench_no_cells(&row, N_FIGURES);
        ft_bench_cell(&row, st == FT_EUNAVAILABLE ? "%s" : "failed: %s", why.message);
    }
    return ft_bench_report_row(b->report, &row, err);
}

static ft_status measure_all(bench_build *b, const ft_operands *names, ft_error *err)
{
    static const char *const marisa[] = {"marisa", "marisa-n1", NULL};
    ft_status st = FT_OK;
    if (names->n) {
        for (uint32_t i = 0; i < names->n && st == FT_OK; i++)
            st = measure_name(b, names->v[i], err);
        return st;
    }
    for (uint32_t i = 0; ft_layout_name(i) && st == FT_OK; i++)
        st = measure_name(b, ft_layout_name(i), err);
    for (uint32_t i = 0; marisa[i] && st == FT_OK; i++)
        st = measure_name(b, marisa[i], err);
    return st;
}

static void add_facts(bench_build *b)
{
    struct stat info;
    const bool there = stat(b->keys_path, &info) == 0;
    ft_bench_report_fact(b->report, "keys",
                         "%s: %" PRIu64 " keys, %llu bytes, digest %016" PRIx64,
                         b->keys_path, b->n_keys,
                         there ? (unsigned long long)info.st_size : 0, b->digest);
    ft_bench_report_fact(b->report, "build", "%u passes%s", b->n_passes,
                         b->lookup ? ", and lookups" : "");
    if (b->time_limit > 0)
        ft_bench_report_fact(b->report, "limit", "%g s a build", b->time_limit);
}

static ft_status run(bench_build *b, const ft_subcommand *self,
                     const ft_operands *names, ft_error *err)
{
    bool wants_marisa = names->n == 0;
    for (uint32_t i = 0; i < names->n; i++)
        wants_marisa |= ft_bench_marisa_tries(names->v[i]) != NULL;
    b->has_marisa = wants_marisa && ft_bench_has_marisa();
    b->job = ft_bench_share(sizeof *b->job, err);
    ft_status st = b->job ? FT_OK : FT_ENOMEM;
    if (st == FT_OK)
        st = ft_bench_report_open(&b->report, &b->output, self->name, columns, N_KEY,
                                  err);
    if (st == FT_OK && b->has_marisa)
        st = ft_bench_scratch_open(&b->encoded, b->tmpdir, err);
    if (st == FT_OK)
        st = survey(b, err);
    if (st == FT_OK) {
        add_facts(b);
        st = ft_bench_report_begin(b->report, err);
    }
    return st == FT_OK ? measure_all(b, names, err) : st;
}

/* A pipe would be empty the second time. */
static bool is_plain_file(const char *path)
{
    struct stat info;
    return strcmp(path, "-") != 0 &&
           (stat(path, &info) != 0 /* to open it says why */ || S_ISREG(info.st_mode));
}

static int check_names(const ft_command *c, const bench_build *b,
                       const ft_operands *names)
{
    if (!is_plain_file(b->keys_path))
        return ft_command_usage(c, "KEYS is read more than once: it is a plain file");
    for (uint32_t i = 0; i < names->n; i++) {
        const char *name = names->v[i];
        const size_t n = strcspn(name, "+");
        bool known = ft_bench_marisa_tries(name) != NULL;
        for (uint32_t k = 0; ft_layout_name(k) && !known; k++)
            known = strlen(ft_layout_name(k)) == n &&
                    strncmp(ft_layout_name(k), name, n) == 0 &&
                    (!name[n] || strcmp(name + n, "+ids") == 0);
        if (!known)
            return ft_command_usage(c, "'%s' is no layout, nor marisa or marisa-n1",
                                    name);
    }
    return FT_GO_ON;
}

static int parse(bench_build *b, const ft_subcommand *self, int argc, char **argv,
                 ft_operands *names)
{
    const ft_option rows[] = {
        {FT_OPT_U32, 'j', "threads", &b->n_threads, "N",
         "threads (default: the processors)", .min = 1, .max = 256},
        {FT_OPT_U32, 0, "passes", &b->n_passes, "N", "build each N times", .min = 1,
         .max = MAX_PASSES},
        {FT_OPT_DOUBLE, 0, "time-limit", &b->time_limit, "S",
         "seconds that a build may take (default: any)", .min = 1e-9, .max = 1e9},
        {FT_OPT_FLAG, 0, "lookup", &b->lookup, NULL, "look all keys up as well"},
        {FT_OPT_STRING, 0, "tmpdir", &b->tmpdir, "DIR",
         "folder of temporary files [TMPDIR, or /tmp]"},
        FT_BENCH_OUTPUT_ROWS(&b->output),
        FT_OPTIONS_END};
    const ft_command c = {.program = "ft-bench",
                          .subcommand = self->name,
                          .summary = self->summary,
                          .operands = "KEYS [LAYOUT...]",
                          .options = rows,
                          .min_operands = 1,
                          .max_operands = FT_ANY_OPERANDS};
    int rc = ft_command_parse(&c, argc, argv, names);
    if (rc == FT_GO_ON)
        rc = ft_bench_output_check(&c, &b->output, names);
    if (rc != FT_GO_ON)
        return rc;
    b->keys_path = names->v[0];
    names->v++;
    names->n--;
    return check_names(&c, b, names);
}

int ft_bench_build(const ft_subcommand *self, int argc, char **argv)
{
    const char *folder = getenv("TMPDIR");
    bench_build b = {.tmpdir = folder && *folder ? folder : "/tmp",
                     .n_threads = ft_machine_processors(),
                     .n_passes = 1,
                     .output = {.format = FT_BENCH_BY_OUTPUT},
                     .encoded = {.fd = -1}};
    ft_operands names;
    int rc = parse(&b, self, argc, argv, &names);
    if (rc == FT_GO_ON) {
        ft_error err;
        const ft_status st = run(&b, self, &names, &err);
        rc = ft_finish(ft_bench_report_close(b.report, st, &err), &err);
    }
    if (b.encoded.fd >= 0)
        ft_bench_scratch_close(&b.encoded);
    ft_bench_unshare(b.job, sizeof *b.job);
    free(b.output.notes.items);
    return rc;
}
