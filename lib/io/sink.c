/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte sinks: files, pipes and memory. Atomic ones live in sink_atomic.c.
 */
#include "io/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 << 10 };

static ft_status fail_again(const ft_sink *s, ft_error *err)
{
    if (err)
        *err = s->failure;
    return s->failure.status;
}

static ft_status fail_write(ft_sink *s, int errnum)
{
    const ft_status st = errnum == EPIPE ? FT_EPIPE : FT_EIO;
    return ft_fail_errno(&s->failure, st, errnum, "%s: cannot write", s->name);
}

ft_sink *ft_sink_new(const char *name, int fd, ft_error *err)
{
    ft_sink *s = ft_new(ft_sink, err);
    if (!s)
        return NULL;
    s->fd = fd;
    s->name = ft_strdup(name, err);
    s->buf = fd < 0 ? NULL : ft_alloc_aligned(BUFFER_BYTES, 1, err);
    if (s->name && (fd < 0 || s->buf))
        return s;
    free(s->name);
    free(s->buf);
    free(s);
    return NULL;
}

ft_status ft_sink_open_fd(ft_sink **out, const char *name, int fd, ft_error *err)
{
    ft_sink *s = ft_sink_new(name, fd, err);
    if (!s) {
        close(fd);
        return FT_ENOMEM;
    }
    /* pwrite(2) on a file opened for appending appends. Standard output may be a file
     * that others have written to before us. */
    struct stat info;
    const off_t at = lseek(fd, 0, SEEK_CUR);
    const int flags = fcntl(fd, F_GETFL);
    s->seekable = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && at >= 0 &&
                  flags >= 0 && !(flags & O_APPEND);
    s->base = s->seekable ? (uint64_t)at : 0;
    *out = s;
    return FT_OK;
}

ft_status ft_sink_open(ft_sink **out, const char *path, ft_error *err)
{
    const bool standard = !path || strcmp(path, "-") == 0;
    const char *name = standard ? "(standard output)" : path;
    /* A duplicate can be closed, and close reports what a network file system could not
     * write. */
    const int fd = standard
                       ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                       : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return ft_fail_errno(err, FT_EIO, errno, "%s: cannot open for writing", name);
    return ft_sink_open_fd(out, name, fd, err);
}

ft_status ft_sink_open_memory(ft_sink **out, ft_buf *b, ft_error *err)
{
    ft_sink *s = ft_sink_new("(memory)", -1, err);
    if (!s)
        return FT_ENOMEM;
    s->memory = b;
    s->base = b->len;
    s->seekable = true;
    *out = s;
    return FT_OK;
}

static ft_status wait_or_fail(ft_sink *s)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        struct pollfd p = {.fd = s->fd, .events = POLLOUT};
        poll(&p, 1, -1);
        return FT_OK;
    }
    return errno == EINTR ? FT_OK : fail_write(s, errno);
}

static ft_status write_all(ft_sink *s, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    while (bytes) {
        const ssize_t n = write(s->fd, p, bytes);
        if (n < 0) {
            const ft_status st = wait_or_fail(s);
            if (st != FT_OK)
                return st;
            continue;
        }
        p += n;
        bytes -= (size_t)n;
    }
    return FT_OK;
}

ft_status ft_sink_flush(ft_sink *s, ft_error *err)
{
    if (s->failure.status == FT_OK && s->len) {
        write_all(s, s->buf, s->len);
        s->len = 0;
    }
    return s->failure.status == FT_OK ? FT_OK : fail_again(s, err);
}

ft_status ft_sink_write(ft_sink *s, const void *data, size_t bytes, ft_error *err)
{
    if (s->failure.status != FT_OK)
        return fail_again(s, err);
    if (s->memory) {
        if (ft_buf_append(s->memory, data, bytes, &s->failure) != FT_OK)
            return fail_again(s, err);
    } else if (bytes <= BUFFER_BYTES - s->len) {
        if (bytes)
            memcpy(s->buf + s->len, data, bytes);
        s->len += bytes;
    } else {
        ft_status st = ft_sink_flush(s, err);
        if (st == FT_OK && bytes >= BUFFER_BYTES) {
            st = write_all(s, data, bytes);
        } else if (st == FT_OK) {
            memcpy(s->buf, data, bytes);
            s->len = bytes;
        }
        if (st != FT_OK)
            return fail_again(s, err);
    }
    s->offset += bytes;
    return FT_OK;
}

ft_status ft_sink_rewrite(ft_sink *s, uint64_t offset, const void *data, size_t bytes,
                          ft_error *err)
{
    uint64_t end;
    if (!s->seekable)
        return ft_fail(err, FT_EINVAL, "%s: cannot seek in this kind of file", s->name);
    if (!ft_add_ok(offset, bytes, &end) || end > s->offset)
        return ft_fail(err, FT_EINVAL, "%s: rewriting bytes that are not written yet",
                       s->name);
    ft_status st = ft_sink_flush(s, err);
    if (st != FT_OK)
        return st;
    if (s->memory) {
        if (bytes)
            memcpy(s->memory->data + s->base + offset, data, bytes);
        return FT_OK;
    }
    const uint8_t *p = data;
    off_t at = (off_t)(s->base + offset);
    while (bytes) {
        const ssize_t n = pwrite(s->fd, p, bytes, at);
        if (n < 0) {
            if (wait_or_fail(s) != FT_OK)
                return fail_again(s, err);
            continue;
        }
        p += n;
        at += n;
        bytes -= (size_t)n;
    }
    return FT_OK;
}

ft_status ft_sink_printf(ft_sink *s, ft_error *err, const char *format, ...)
{
    char text[1024], *longer = NULL;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        return ft_fail(err, FT_EINVAL, "%s: text that cannot be formatted", s->name);
    if ((size_t)n >= sizeof text) {
        longer = ft_calloc((uint64_t)n + 1, 1, err);
        if (!longer)
            return FT_ENOMEM;
        va_start(args, format);
        vsnprintf(longer, (size_t)n + 1, format, args);
        va_end(args);
    }
    const ft_status st = ft_sink_write(s, longer ? longer : text, (size_t)n, err);
    free(longer);
    return st;
}

uint64_t ft_sink_offset(const ft_sink *s)
{
    return s->offset;
}

bool ft_sink_seekable(const ft_sink *s)
{
    return s->seekable;
}

ft_status ft_sink_commit(ft_sink *s, ft_error *err)
{
    ft_status st = ft_sink_flush(s, err);
    if (st == FT_OK && s->atomic && ft_sink_atomic_commit(s) != FT_OK)
        st = fail_again(s, err);
    return st;
}

ft_status ft_sink_close(ft_sink *s, ft_error *err)
{
    if (!s)
        return FT_OK;
    ft_status st = FT_OK;
    if (s->atomic)
        ft_sink_atomic_discard(s); /* no more than closes it, once committed */
    else
        st = ft_sink_flush(s, err);
    /* EINTR: Linux has closed it all the same. */
    if (s->fd >= 0 && close(s->fd) != 0 && errno != EINTR && st == FT_OK &&
        !s->atomic) {
        fail_write(s, errno);
        st = fail_again(s, err);
    }
    free(s->buf);
    free(s->name);
    free(s);
    return st;
}
