/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-build: token sequences in, index out. See ft-build(1).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"
#include "options.h"

enum { MAX_LAYOUTS = 16, MAX_THREADS = 256, COPY_BYTES = 1 << 16 };
enum { DEFAULT_MEMORY = 1 << 30 };

typedef struct build {
    const char *output;
    uint32_t layout, tails;
    bool ids;
    uint32_t compress_level;
    uint32_t n_threads; /* 0: one a processor */
    bool sort;
    uint64_t memory_bytes;
    const char *tmpdir;
    ft_list subtract;
    ft_operands inputs;
    double started;
} build;

static int parse(build *b, int argc, char **argv)
{
    static const char *const tails[] = {"never", "auto", "always", NULL};
    const char *layouts[MAX_LAYOUTS] = {NULL};
    for (uint32_t i = 0; i + 1 < MAX_LAYOUTS; i++)
        layouts[i] = ft_layout_name(i);
    const ft_option rows[] = {
        {FT_OPT_STRING, 'o', "output", &b->output, "FILE",
         "write the index to FILE, all or nothing"},
        {FT_OPT_ENUM, 0, "layout", &b->layout, "NAME", "how the trie is laid out",
         .choices = layouts},
        {FT_OPT_ENUM, 0, "tails", &b->tails, "WHEN", "share the tails of keys",
         .choices = tails, .absent = "always"},
        {FT_OPT_FLAG, 0, "ids", &b->ids, NULL, "store key numbers"},
        {FT_OPT_FLAG, 0, "sort", &b->sort, NULL, "take keys in any order"},
        {FT_OPT_SIZE, 0, "memory", &b->memory_bytes, "SIZE",
         "memory that --sort may take [1G]", .min = 1 << 20, .max = 0x1p53},
        {FT_OPT_STRING, 0, "tmpdir", &b->tmpdir, "DIR",
         "folder of temporary files [TMPDIR, or /tmp]"},
        {FT_OPT_LIST, 0, "subtract", &b->subtract, "FILE",
         "leave out the keys of FILE (may be repeated)"},
        {FT_OPT_U32, 0, "compress", &b->compress_level, "LEVEL",
         "compress the sections with zstd, for shipping [3]", .min = 1, .max = 19,
         .absent = "3"},
        {FT_OPT_U32, 'j', "threads", &b->n_threads, "N", "threads [0: one a processor]",
         .max = MAX_THREADS},
        FT_OPTIONS_END};
    const ft_command c = {.program = "ft-build",
                          .summary = "build an index from token sequences",
                          .operands = "[FILE...]",
                          .options = rows,
                          .max_operands = FT_ANY_OPERANDS};
    const int rc = ft_command_parse(&c, argc, argv, &b->inputs);
    if (rc == FT_GO_ON && b->tails != FT_TAILS_NEVER &&
        !ft_layout_takes_tails(b->layout))
        return ft_command_usage(&c, "--tails does not go with --layout %s",
                                ft_layout_name(b->layout));
    return rc;
}

/* `ft-build a.ftx >> a.ftx` would read what it writes. Files written with -o are new
 * ones until they are whole, and may be inputs as well. */
static ft_status refuse_own_output(const build *b, ft_error *err)
{
    struct stat out, in;
    if (fstat(1, &out) != 0 || !S_ISREG(out.st_mode))
        return FT_OK;
    for (uint32_t i = 0; i < b->inputs.n; i++)
        if (stat(b->inputs.v[i], &in) == 0 && in.st_dev == out.st_dev &&
            in.st_ino == out.st_ino)
            return ft_fail(err, FT_EINVAL, "%s: input is also standard output: use -o",
                           b->inputs.v[i]);
    return FT_OK;
}

static ft_status open_keys(ft_keys **out, const build *b, ft_error *err)
{
    static const char *const standard_input[] = {"-"};
    const bool none = b->inputs.n == 0;
    const ft_keys_options o = {.paths = none ? standard_input
                                             : (const char *const *)b->inputs.v,
                               .n_paths = none ? 1 : b->inputs.n,
                               .subtract = b->subtract.items,
                               .n_subtract = b->subtract.n,
                               .sort = b->sort,
                               .memory_bytes = b->memory_bytes,
                               .tmpdir = b->tmpdir};
    return ft_keys_open(out, &o, err);
}

static void show_progress(void *arg, const ft_keys *keys)
{
    const build *b = arg;
    if (!ft_progress_due())
        return;
    const ft_keys_counts n = ft_keys_counts_of(keys);
    const double seconds = ft_seconds() - b->started;
    char read[FT_COUNT_BYTES], rate[FT_COUNT_BYTES], bytes[FT_COUNT_BYTES];
    ft_progress("%s keys, %sB read, %s keys/s", ft_short_count(n.n_read, read),
                ft_short_count(n.input_bytes, bytes),
                ft_short_count((uint64_t)((double)n.n_read / seconds), rate));
}

/* A file without a name, for an index on its way to a pipe. *out is a sink into it, *fd
 * reads it. */
static ft_status open_unnamed(ft_sink **out, int *fd, const char *folder, ft_error *err)
{
    char path[4096];
    sigset_t all, before;
    ft_status st;
    snprintf(path, sizeof path, "%s/ft-build.XXXXXX", folder);
    sigfillset(&all); /* no signal between the name's coming and going */
    sigprocmask(SIG_SETMASK, &all, &before);
    *fd = mkstemp(path);
    if (*fd < 0) {
        st = ft_fail_errno(err, FT_EIO, errno, "%s", path);
    } else {
        st = ft_sink_open(out, path, err);
        unlink(path);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return st;
}

static ft_status copy(ft_sink *out, int fd, ft_error *err)
{
    uint8_t bytes[COPY_BYTES];
    off_t at = 0;
    for (;;) {
        const ssize_t n = pread(fd, bytes, sizeof bytes, at);
        ft_status st;
        if (n < 0)
            return ft_fail_errno(err, FT_EIO, errno, "temporary file");
        if (n == 0)
            return FT_OK;
        st = ft_sink_write(out, bytes, (size_t)n, err);
        if (st != FT_OK)
            return st;
        at += n;
    }
}

/* The index is written with a look back at its header: what cannot seek is given a copy
 * of a temporary file. */
static ft_status write_index(const build *b, ft_builder *builder, ft_sink *out,
                             ft_build_summary *summary, ft_error *err)
{
    ft_sink *unnamed = NULL;
    int fd = -1;
    ft_status st;
    if (ft_sink_seekable(out))
        return ft_builder_finish(builder, out, summary, err);
    st = open_unnamed(&unnamed, &fd, b->tmpdir, err);
    if (st == FT_OK)
        st = ft_builder_finish(builder, unnamed, summary, err);
    if (st == FT_OK)
        st = ft_sink_flush(unnamed, err);
    if (st == FT_OK)
        st = copy(out, fd, err);
    ft_output_close(unnamed, st, err);
    if (fd >= 0)
        close(fd);
    return st;
}

static void say_summary(const build *b, const ft_keys_counts *n,
                        const ft_build_summary *s)
{
    ft_progress_end();
    if (s->n_keys == 0)
        ft_say("warning: no keys: the library is empty");
    if (!ft_is_quiet())
        ft_say(
            "%s: %llu keys, %llu nodes, %llu bytes, %.2f bits/node, %llu empty lines "
            "skipped, %llu duplicates, %llu subtracted, %.2f s",
            b->output ? b->output : "(standard output)", (unsigned long long)s->n_keys,
            (unsigned long long)s->n_nodes, (unsigned long long)s->file_bytes,
            s->bits_per_node, (unsigned long long)n->n_skipped,
            (unsigned long long)n->n_duplicates, (unsigned long long)n->n_subtracted,
            ft_seconds() - b->started);
    if (ft_is_verbose())
        ft_say("%s layout: %s; %llu keys read from %llu bytes",
               ft_layout_name(b->layout), ft_layout_summary(b->layout),
               (unsigned long long)n->n_read, (unsigned long long)n->input_bytes);
}

/* What was measured, whatever became of it. */
static void say_tails(const build *b, const ft_tail_summary *t)
{
    if (t->measured && ft_is_verbose())
        ft_say("tails: %llu links, %llu tokens for %llu; alpha %.4f, Equation 1 wants "
               "less than %.4f: they %s, and are %s%s",
               (unsigned long long)t->n_links, (unsigned long long)t->n_tail,
               (unsigned long long)t->n_folded, ft_tail_alpha(t), ft_tail_limit(t),
               ft_tails_pay(t) ? "pay" : "do not pay",
               t->kept ? "kept" : "left out: layout ",
               t->kept ? "" : ft_layout_name(b->layout));
}

static ft_status run(const build *b, ft_error *err)
{
    const ft_build_options options = {.layout = ft_layout_name(b->layout),
                                      .tails = (ft_tails_when)b->tails,
                                      .ids = b->ids,
                                      .compress_level = (int)b->compress_level,
                                      .n_threads = b->n_threads};
    const ft_build_tick tick = {show_progress, (void *)b};
    ft_build_summary summary;
    ft_keys_counts counts;
    ft_sink *out = NULL;
    ft_keys *keys = NULL;
    ft_builder *builder = NULL;
    ft_status st = refuse_own_output(b, err);
    if (st == FT_OK)
        st = ft_output_open(&out, b->output, FT_OUTPUT_BINARY, err);
    if (st == FT_OK)
        st = open_keys(&keys, b, err);
    if (st == FT_OK)
        st = ft_builder_open(&builder, &options, err);
    if (st == FT_OK)
        st = ft_builder_add_keys(builder, keys, &tick, err);
    if (st == FT_OK) {
        counts = ft_keys_counts_of(keys);
        ft_keys_close(keys); /* memory that the sort took goes to what follows */
        keys = NULL;
        st = write_index(b, builder, out, &summary, err);
    }
    ft_builder_close(builder);
    ft_keys_close(keys);
    st = ft_output_close(out, st, err);
    if (st == FT_OK) {
        say_summary(b, &counts, &summary);
        say_tails(b, &summary.tails);
    }
    return st;
}

/* Where temporary files go, unless --tmpdir says so. */
static const char *default_tmpdir(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

int main(int argc, char **argv)
{
    build b = {.memory_bytes = DEFAULT_MEMORY,
               .tmpdir = default_tmpdir(),
               .started = ft_seconds()};
    ft_error err;
    int rc;
    if (!ft_start("ft-build"))
        return FT_EXIT_FAILED;
    rc = parse(&b, argc, argv);
    if (rc == FT_GO_ON)
        rc = ft_finish(run(&b, &err), &err);
    free(b.subtract.items);
    return rc;
}
