/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_resume.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The line of the head that may differ between a file and the run that goes on with it:
 * date and load. */
static const char passing[] = "# now ";

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_same(const char *line, const char *ours)
{
    return strcmp(line, ours) == 0 ||
           (starts_with(line, passing) && starts_with(ours, passing));
}

/* As they are: a file that somebody has compressed is another one. */
static ft_status read_bytes(ft_buf *bytes, int fd, const char *name, ft_error *err)
{
    enum { CHUNK = 1 << 16 };
    ssize_t n = 1;
    while (n > 0) {
        const ft_status st = ft_buf_reserve(bytes, CHUNK, err);
        if (st != FT_OK)
            return st;
        n = pread(fd, bytes->data + bytes->len, CHUNK, (off_t)bytes->len);
        if (n < 0)
            return ft_fail_errno(err, FT_EIO, errno, "%s: cannot read", name);
        bytes->len += (uint64_t)n;
    }
    return FT_OK;
}

/* The line at *at, its end made a zero; *at moves behind it. NULL: there is none. */
static char *next_line(ft_buf *lines, uint64_t *at)
{
    char *line = (char *)lines->data + *at;
    char *end = *at < lines->len ? memchr(line, '\n', lines->len - *at) : NULL;
    if (!end)
        return NULL;
    *end = '\0';
    *at += (uint64_t)(end - line) + 1;
    return line;
}

static ft_status compare_heads(ft_bench_earlier *e, const char *name, char *head,
                               ft_error *err)
{
    while (*head) {
        const char *ours = strsep(&head, "\n"), *line = next_line(&e->lines, &e->rows);
        if (!line)
            line = "nothing";
        if (!is_same(line, ours))
            return ft_fail(err, FT_EFORMAT,
                           "%s: is of another run, take another file: it has '%s', "
                           "this run has '%s'",
                           name, line, ours);
    }
    return FT_OK;
}

/* It may be mended. */
static bool is_to_repeat(const char *row)
{
    const char *tab = strrchr(row, '\t'), *status = tab ? tab + 1 : row;
    return starts_with(status, FT_BENCH_FAILED) ||
           starts_with(status, FT_BENCH_UNAVAILABLE) ||
           starts_with(status, FT_BENCH_INTERRUPTED);
}

static void keep_rows(ft_bench_earlier *e)
{
    uint64_t at = e->rows, end = at; /* of the rows that stay */
    for (const char *row; (row = next_line(&e->lines, &at));) {
        const size_t n = strlen(row) + 1;
        if (is_to_repeat(row)) {
            e->has_repeating = true;
            continue;
        }
        memmove(e->lines.data + end, row, n);
        end += n;
        e->n_rows++;
    }
    e->lines.len = end;
}

ft_status ft_bench_earlier_read(ft_bench_earlier *e, int fd, const char *name,
                                char *head, ft_error *err)
{
    ft_status st = read_bytes(&e->lines, fd, name, err);
    if (st == FT_OK && e->lines.len)
        st = compare_heads(e, name, head, err);
    if (st == FT_OK)
        keep_rows(e);
    return st;
}

ft_status ft_bench_earlier_write(const ft_bench_earlier *e, ft_sink *out, ft_error *err)
{
    const char *line = (const char *)e->lines.data, *end = line + e->lines.len;
    ft_status st = FT_OK;
    for (; line < end && st == FT_OK; line += strlen(line) + 1)
        st = ft_sink_printf(out, err, "%s\n", line);
    return st;
}

const char *ft_bench_earlier_find(const ft_bench_earlier *e, const ft_bench_row *row,
                                  uint32_t n_key)
{
    const char *p = (const char *)e->lines.data + e->rows;
    for (uint64_t i = 0; i < e->n_rows; i++, p += strlen(p) + 1) {
        const char *cell = p;
        uint32_t same = 0;
        while (same < n_key) {
            const size_t n = strcspn(cell, "\t");
            if (n != strlen(row->cells[same]) || strncmp(cell, row->cells[same], n))
                break;
            cell += n + (cell[n] == '\t');
            same++;
        }
        if (same == n_key)
            return p;
    }
    return NULL;
}

void ft_bench_earlier_free(ft_bench_earlier *e)
{
    ft_buf_free(&e->lines);
}
