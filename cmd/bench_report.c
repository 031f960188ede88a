/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_machine.h"
#include "bench_resume.h"
#include "common.h"

enum { MAX_FACTS = 24, NAME_WIDTH = 8 };

/* Behind the last row of a JSON object. Written after each row and then written over,
 * so that a file is an object whenever the run ends. */
static const char json_end[] = "\n]}\n";

typedef struct fact {
    const char *name;
    char text[FT_BENCH_FACT_BYTES];
} fact;

struct ft_bench_report {
    const char *path, *name; /* of the output; the name is for messages */
    bool resume, regular, seekable;
    off_t whole; /* bytes of a file of ours that the last write has left */
    uint32_t format;
    const ft_bench_column *columns;
    uint32_t n_columns, n_key;
    int fd;
    fact facts[MAX_FACTS];
    uint32_t n_facts;
    uint64_t n_rows, n_failed, n_unavailable; /* rows: those of the file as well */
    ft_buf line;                              /* what `text` has put together */
    ft_sink *text; /* goes on failing once it has: `put` looks */
    ft_bench_earlier earlier;
};

const char *const ft_bench_formats[] = {"table", "tsv", "json", NULL};

static bool is_standard(const char *path)
{
    return !path || strcmp(path, "-") == 0;
}

static bool is_output(const struct stat *out, const char *path)
{
    struct stat in;
    return stat(path, &in) == 0 && in.st_dev == out->st_dev && in.st_ino == out->st_ino;
}

/* FILE, or SYSTEM=FILE. */
static const char *find_output(const ft_bench_output *o, const ft_operands *inputs)
{
    struct stat out;
    if ((is_standard(o->path) ? fstat(STDOUT_FILENO, &out) : stat(o->path, &out)) ||
        !S_ISREG(out.st_mode))
        return NULL;
    for (uint32_t i = 0; i < inputs->n; i++) {
        const char *name = inputs->v[i], *value = strchr(name, '=');
        if (is_output(&out, name) || (value && is_output(&out, value + 1)))
            return name;
    }
    return NULL;
}

int ft_bench_output_check(const ft_command *c, const ft_bench_output *o,
                          const ft_operands *inputs)
{
    const char *both = find_output(o, inputs);
    if (both)
        return ft_command_usage(c, "'%s' is also the output", both);
    if (o->resume && is_standard(o->path))
        return ft_command_usage(c, "--resume goes with -o FILE");
    if (o->resume &&
        (o->json || (o->format != FT_BENCH_BY_OUTPUT && o->format != FT_BENCH_TSV)))
        return ft_command_usage(c, "--resume goes with TSV only");
    return FT_GO_ON;
}

int ft_bench_output_check_file(const ft_command *c, const ft_bench_output *o,
                               const char *input)
{
    return ft_same_file(input, o->path)
               ? ft_command_usage(c, "'%s' is also the output", input)
               : FT_GO_ON;
}

static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ')
            *text = ' ';
}

void ft_bench_report_fact(ft_bench_report *r, const char *name, const char *format, ...)
{
    va_list args;
    if (r->n_facts == MAX_FACTS)
        abort(); /* a header of ours is too long */
    fact *f = &r->facts[r->n_facts++];
    f->name = name;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    one_line(f->text);
}

static void add_notes(ft_bench_report *r, const ft_list *notes)
{
    char text[FT_BENCH_FACT_BYTES] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < notes->n && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "; " : "",
                                 notes->items[i]);
    if (notes->n)
        ft_bench_report_fact(r, "note", "%s", text);
}

ft_status ft_bench_report_open(ft_bench_report **out, const ft_bench_output *o,
                               const char *command, const ft_bench_column *columns,
                               uint32_t n_key, ft_error *err)
{
    char text[FT_BENCH_FACT_BYTES];
    ft_bench_report *r = ft_new(ft_bench_report, err);
    if (!r)
        return FT_ENOMEM;
    r->path = is_standard(o->path) ? NULL : o->path;
    r->name = r->path ? r->path : "(standard output)";
    r->resume = o->resume;
    r->format = o->json ? (uint32_t)FT_BENCH_JSON : o->format;
    if (r->format == FT_BENCH_BY_OUTPUT)
        r->format = !r->path && isatty(1) ? FT_BENCH_TABLE : FT_BENCH_TSV;
    r->columns = columns;
    r->n_key = n_key;
    r->fd = -1;
    while (columns[r->n_columns].name)
        r->n_columns++;
    const ft_status st = ft_sink_open_memory(&r->text, &r->line, err);
    if (st != FT_OK) {
        free(r);
        return st;
    }
    ft_bench_report_fact(r, "command", "ft-bench %s", command);
    ft_bench_report_fact(r, "version", "%s", FT_VERSION);
    for (const ft_machine_fact *f = ft_machine_facts; f->name; f++) {
        f->describe(o->device, text, sizeof text);
        ft_bench_report_fact(r, f->name, "%s", text);
    }
    add_notes(r, &o->notes);
    *out = r;
    return FT_OK;
}

/* A disk that is full may have taken half a row: back to what was there before, so that
 * JSON is an object and TSV has whole lines. Needs no room. */
static void take_back(const ft_bench_report *r)
{
    const off_t end = (off_t)strlen(json_end);
    if (!r->path || !r->regular || ftruncate(r->fd, r->whole) != 0)
        return;
    if (r->format == FT_BENCH_JSON && r->whole > end &&
        pwrite(r->fd, json_end, (size_t)end, r->whole - end) != end)
        return; /* the failure that led here is told */
}

/* Write out what `text` has, and empty it. */
static ft_status put(ft_bench_report *r, ft_error *err)
{
    const ft_status st = ft_sink_flush(r->text, err);
    const uint8_t *p = r->line.data;
    uint64_t left = r->line.len;
    r->line.len = 0;
    while (st == FT_OK && left) {
        const ssize_t n = write(r->fd, p, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            const int errnum = errno;
            take_back(r);
            return ft_fail_errno(err, errnum == EPIPE ? FT_EPIPE : FT_EIO, errnum,
                                 "%s: cannot write", r->name);
        }
        p += n;
        left -= (uint64_t)n;
    }
    r->whole = lseek(r->fd, 0, SEEK_CUR);
    return st;
}

static void add(ft_bench_report *r, const char *text)
{
    ft_sink_write(r->text, text, strlen(text), NULL);
}

/* Bytes of the character at p in UTF-8 (RFC 3629); 0: there is none. */
static int utf8_bytes(const char *p)
{
    const unsigned char a = (unsigned char)p[0], b = (unsigned char)p[1];
    const int n = a < 0x80 ? 1 : a < 0xC2 ? 0 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : 4;
    for (int i = 1; i < n; i++)
        if (((unsigned char)p[i] & 0xC0) != 0x80)
            return 0;
    const bool wrong = (a == 0xE0 && b < 0xA0) || (a == 0xED && b >= 0xA0) ||
                       (a == 0xF0 && b < 0x90) || (a == 0xF4 && b >= 0x90) || a > 0xF4;
    return wrong ? 0 : n;
}

/* Names of files may be any bytes, JSON may not. */
static void add_json_string(ft_bench_report *r, const char *text)
{
    add(r, "\"");
    for (int n; *text; text += n ? n : 1) {
        n = utf8_bytes(text);
        if (*text == '"' || *text == '\\')
            add(r, "\\");
        if (n)
            ft_sink_write(r->text, text, (size_t)n, NULL);
        else
            add(r, "?");
    }
    add(r, "\"");
}

static void add_head(ft_bench_report *r)
{
    for (const fact *f = r->facts; f < r->facts + r->n_facts; f++) {
        if (r->format == FT_BENCH_TABLE) {
            ft_sink_printf(r->text, NULL, "%-*s %s\n", NAME_WIDTH, f->name, f->text);
        } else if (r->format == FT_BENCH_TSV) {
            ft_sink_printf(r->text, NULL, "# %s %s\n", f->name, f->text);
        } else {
            add(r, f == r->facts ? "{" : ",\n");
            add_json_string(r, f->name);
            add(r, ": ");
            add_json_string(r, f->text);
        }
    }
    add(r, r->format == FT_BENCH_TABLE  ? "\n"
           : r->format == FT_BENCH_JSON ? ",\n\"rows\": ["
                                        : "");
}

static const char *cell_of(const ft_bench_row *row, uint32_t i)
{
    return i < row->n ? row->cells[i] : "-";
}

static void add_plain_row(ft_bench_report *r, const ft_bench_row *row)
{
    for (uint32_t i = 0; i < r->n_columns; i++) {
        const ft_bench_column *c = &r->columns[i];
        const int head = (int)strlen(c->name);
        const int width = c->width > head ? c->width : head;
        const bool last = i + 1 == r->n_columns;
        if (r->format == FT_BENCH_TSV || (last && c->kind == FT_BENCH_TEXT))
            add(r, cell_of(row, i));
        else
            ft_sink_printf(r->text, NULL, "%*s",
                           c->kind == FT_BENCH_TEXT ? -width : width, cell_of(row, i));
        add(r, last ? "\n" : r->format == FT_BENCH_TSV ? "\t" : "  ");
    }
}

static void add_json_row(ft_bench_report *r, const ft_bench_row *row)
{
    add(r, r->n_rows ? ",\n " : "\n ");
    for (uint32_t i = 0; i < r->n_columns; i++) {
        const char *cell = cell_of(row, i);
        add(r, i ? ", " : "{");
        add_json_string(r, r->columns[i].name);
        add(r, ": ");
        if (strcmp(cell, "-") == 0)
            add(r, "null");
        else if (r->columns[i].kind == FT_BENCH_NUMBER)
            add(r, cell);
        else
            add_json_string(r, cell);
    }
    add(r, "}");
    if (r->seekable)
        add(r, json_end);
}

static void add_column_names(ft_bench_report *r)
{
    ft_bench_row names = {.n = 0};
    if (r->format == FT_BENCH_JSON)
        return;
    for (uint32_t i = 0; i < r->n_columns; i++)
        ft_bench_cell(&names, "%s", r->columns[i].name);
    add_plain_row(r, &names);
}

void ft_bench_cell(ft_bench_row *row, const char *format, ...)
{
    va_list args;
    if (row->n == FT_BENCH_MAX_COLUMNS)
        abort(); /* a table of ours is too wide */
    char *cell = row->cells[row->n++];
    va_start(args, format);
    vsnprintf(cell, FT_BENCH_CELL_BYTES, format, args);
    va_end(args);
    one_line(cell);
}

void ft_bench_no_cells(ft_bench_row *row, uint32_t n)
{
    while (n--)
        ft_bench_cell(row, "-");
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The last cell of a row is its status, by which the command's is settled. */
static void count_row(ft_bench_report *r, const char *status)
{
    r->n_rows++;
    r->n_failed += starts_with(status, FT_BENCH_FAILED);
    r->n_unavailable += starts_with(status, FT_BENCH_UNAVAILABLE);
}

/* Two runs that write one file would write over each other's rows; and one that goes on
 * with it may have put another file in its place since it was opened. */
static ft_status lock(const ft_bench_report *r, const struct stat *opened,
                      ft_error *err)
{
    struct stat there;
    const bool taken = flock(r->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (taken || (stat(r->path, &there) == 0 &&
                  (there.st_dev != opened->st_dev || there.st_ino != opened->st_ino)))
        return ft_fail(err, FT_EIO, "%s: another ft-bench is writing it", r->name);
    return FT_OK;
}

static ft_status open_output(ft_bench_report *r, ft_error *err)
{
    struct stat info;
    const int mode = r->resume ? O_RDWR : O_WRONLY;
    r->fd = r->path ? open(r->path, mode | O_CREAT | O_CLOEXEC, 0666)
                    : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (r->fd < 0)
        return ft_fail_errno(err, FT_EIO, errno, "%s: cannot open for writing",
                             r->name);
    r->regular = fstat(r->fd, &info) == 0 && S_ISREG(info.st_mode);
    const int flags = fcntl(r->fd, F_GETFL);
    r->seekable = r->regular && flags >= 0 && !(flags & O_APPEND);
    if (r->resume && !r->regular)
        return ft_fail(err, FT_EINVAL, "%s: --resume wants a plain file", r->name);
    return r->regular && r->path ? lock(r, &info, err) : FT_OK;
}

/* The file as it stays is written beside it and takes its place: the rows to measure
 * again are all there or all gone, whenever the run ends. Both files are locked when
 * the old one is closed. */
static ft_status rewrite(ft_bench_report *r, ft_error *err)
{
    const int old = r->fd;
    struct stat was;
    ft_sink *out = NULL;
    ft_status st = ft_sink_open_atomic(&out, r->path, err);
    if (st == FT_OK)
        st = ft_bench_earlier_write(&r->earlier, out, err);
    st = ft_output_close(out, st, err);
    if (st != FT_OK)
        return st;
    st = open_output(r, err);
    if (st == FT_OK && fstat(old, &was) == 0 &&
        fchown(r->fd, was.st_uid, was.st_gid) != 0)
        ft_say("warning: %s: has another owner now", r->name);
    close(old);
    return st;
}

/* What the file has, against the head that this run would write. */
static ft_status read_earlier(ft_bench_report *r, ft_error *err)
{
    ft_status st = ft_buf_append(&r->line, "", 1, err);
    if (st != FT_OK)
        return st;
    r->line.len--;
    st = ft_bench_earlier_read(&r->earlier, r->fd, r->name, (char *)r->line.data, err);
    if (st == FT_OK && r->earlier.lines.len)
        r->line.len = 0; /* it has a head */
    r->n_rows = r->earlier.n_rows;
    return st;
}

/* Behind the lines that stay. */
static ft_status seek_end(ft_bench_report *r, ft_error *err)
{
    const uint64_t stays = r->earlier.lines.len;
    if (r->regular && r->path && ftruncate(r->fd, (off_t)stays) != 0)
        return ft_fail_errno(err, FT_EIO, errno, "%s: cannot write", r->name);
    if (stays && (r->whole = lseek(r->fd, 0, SEEK_END)) < 0)
        return ft_fail_errno(err, FT_EIO, errno, "%s: cannot seek", r->name);
    return FT_OK;
}

ft_status ft_bench_report_begin(ft_bench_report *r, ft_error *err)
{
    ft_status st = open_output(r, err);
    if (st == FT_OK) {
        add_head(r);
        add_column_names(r);
        if (r->format == FT_BENCH_JSON && r->seekable)
            add(r, json_end);
    }
    if (st == FT_OK && r->resume)
        st = read_earlier(r, err);
    if (st == FT_OK && r->earlier.has_repeating)
        st = rewrite(r, err);
    if (st == FT_OK)
        st = seek_end(r, err);
    return st == FT_OK ? put(r, err) : st;
}

const char *ft_bench_report_status(const ft_bench_report *r, const ft_bench_row *row)
{
    const char *had = ft_bench_earlier_find(&r->earlier, row, r->n_key);
    const char *tab = had ? strrchr(had, '\t') : NULL;
    return tab ? tab + 1 : had;
}

ft_status ft_bench_report_row(ft_bench_report *r, const ft_bench_row *row,
                              ft_error *err)
{
    if (r->format == FT_BENCH_JSON && r->seekable &&
        lseek(r->fd, -(off_t)strlen(json_end), SEEK_CUR) < 0)
        return ft_fail_errno(err, FT_EIO, errno, "%s: cannot seek", r->name);
    if (r->format == FT_BENCH_JSON)
        add_json_row(r, row);
    else
        add_plain_row(r, row);
    count_row(r, row->cells[row->n - 1]);
    ft_progress_end(); /* both may go to one terminal */
    return put(r, err);
}

ft_status ft_bench_report_close(ft_bench_report *r, ft_status st, ft_error *err)
{
    if (!r)
        return st;
    if (r->format == FT_BENCH_JSON && !r->seekable && r->fd >= 0) {
        ft_error own; /* after a failure it is the one that is told */
        add(r, json_end);
        const ft_status ended = put(r, st == FT_OK ? err : &own);
        st = st == FT_OK ? ended : st;
    }
    if (r->fd >= 0 && close(r->fd) != 0 && errno != EINTR && st == FT_OK)
        st = ft_fail_errno(err, FT_EIO, errno, "%s: cannot write", r->name);
    if (st == FT_OK && r->n_failed)
        st = ft_fail(err, FT_EFORMAT, "%llu of %llu rows failed: their status says why",
                     (unsigned long long)r->n_failed, (unsigned long long)r->n_rows);
    else if (st == FT_OK && r->n_rows && r->n_unavailable == r->n_rows)
        st = ft_fail(err, FT_EUNAVAILABLE, "nothing can run here: the status says why");
    ft_sink_close(r->text, NULL);
    ft_buf_free(&r->line);
    ft_bench_earlier_free(&r->earlier);
    free(r);
    return st;
}
