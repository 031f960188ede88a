/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte sources: files, pipes and memory, zstd frames decompressed on the way.
 */
#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>
#include <zstd_errors.h>

enum {
    BUFFER_BYTES = 1 << 20,
    MAGIC_BYTES = 4,
    /* What the zstd command decompresses without being asked twice. A frame header can
     * claim 2 GiB of window in a few bytes, so more is refused, not allocated. */
    MAX_WINDOW_LOG = 27
};

struct ft_stream {
    char *name;
    int fd; /* -1: memory */
    bool owns_fd, owns_buf;

    /* Bytes ready for the caller: buf[begin .. end). Memory that is not compressed is
     * its own buffer. */
    uint8_t *buf;
    size_t cap, begin, end;
    uint64_t offset; /* consumed */
    bool ended;      /* nothing will follow buf[end] */

    /* Bytes as they come in, before decompression: raw[raw_begin .. raw_end). */
    const uint8_t *raw;
    uint8_t *raw_buf;
    size_t raw_begin, raw_end;
    uint64_t raw_offset; /* of raw[raw_begin] */
    bool raw_ended;

    bool started; /* plain or zstd has been decided */
    ZSTD_DStream *zstd;
    bool in_frame;

    ft_error failure; /* status is not FT_OK: every later call fails the same */
};

static ft_status fail_again(const ft_stream *s, ft_error *err)
{
    if (err)
        *err = s->failure;
    return s->failure.status;
}

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, ms);
    while (n < 0 && errno == EINTR);
    return n != 0;
}

/* Up to n bytes of the file; *got = 0 only at its end. */
static ft_status read_file(ft_stream *s, void *to, size_t n, size_t *got)
{
    for (;;) {
        const ssize_t r = read(s->fd, to, n);
        if (r >= 0) {
            *got = (size_t)r;
            return FT_OK;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd p = {.fd = s->fd, .events = POLLIN};
            poll(&p, 1, -1);
        } else if (errno != EINTR) {
            return ft_fail_errno(&s->failure, FT_EIO, errno, "%s: cannot read",
                                 s->name);
        }
    }
}

/* Append to the raw bytes, which are fewer than BUFFER_BYTES. Without `wait`, only if
 * the file has something to say now. */
static ft_status refill_raw(ft_stream *s, bool wait)
{
    if (s->raw_ended || (!wait && !readable(s->fd, 0)))
        return FT_OK;
    if (!s->raw_buf) {
        s->raw_buf = ft_alloc_aligned(BUFFER_BYTES, 1, &s->failure);
        if (!s->raw_buf)
            return FT_ENOMEM;
        s->raw = s->raw_buf;
    }
    memmove(s->raw_buf, s->raw_buf + s->raw_begin, s->raw_end - s->raw_begin);
    s->raw_end -= s->raw_begin;
    s->raw_begin = 0;
    size_t got;
    const ft_status st =
        read_file(s, s->raw_buf + s->raw_end, BUFFER_BYTES - s->raw_end, &got);
    if (st != FT_OK)
        return st;
    s->raw_end += got;
    s->raw_ended = got == 0;
    return FT_OK;
}

static void take_raw(ft_stream *s, size_t n)
{
    s->raw_begin += n;
    s->raw_offset += n;
}

typedef enum magic { MAGIC_NO, MAGIC_YES, MAGIC_MAYBE } magic;

/* Do these bytes start a zstd frame, skippable ones included? */
static magic zstd_magic(const uint8_t *p, size_t n)
{
    static const uint8_t frame[MAGIC_BYTES] = {0x28, 0xB5, 0x2F, 0xFD};
    static const uint8_t skip[MAGIC_BYTES] = {0x50, 0x2A, 0x4D, 0x18};
    if (n > MAGIC_BYTES)
        n = MAGIC_BYTES;
    const bool match = memcmp(p, frame, n) == 0 || (n && (p[0] & 0xF0) == skip[0] &&
                                                    !memcmp(p + 1, skip + 1, n - 1));
    return !match ? MAGIC_NO : n == MAGIC_BYTES ? MAGIC_YES : MAGIC_MAYBE;
}

static magic raw_magic(const ft_stream *s)
{
    const size_t n = s->raw_end - s->raw_begin;
    return n ? zstd_magic(s->raw + s->raw_begin, n) : MAGIC_MAYBE;
}

/* Read until the magic is decided or the input ends, and no further: an interactive
 * stream of a few bytes must not wait for more. */
static ft_status await_magic(ft_stream *s, bool wait, magic *m)
{
    while ((*m = raw_magic(s)) == MAGIC_MAYBE && !s->raw_ended) {
        const size_t before = s->raw_end - s->raw_begin;
        const ft_status st = refill_raw(s, wait);
        if (st != FT_OK)
            return st;
        if (!wait && !s->raw_ended && s->raw_end - s->raw_begin == before)
            break;
    }
    return FT_OK;
}

static ft_status start_zstd(ft_stream *s)
{
    s->zstd = ZSTD_createDStream();
    if (!s->zstd)
        return ft_fail(&s->failure, FT_ENOMEM, "%s: out of memory (zstd)", s->name);
    ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
    return FT_OK;
}

static ft_status fail_zstd(ft_stream *s, size_t code)
{
    const unsigned long long at = s->raw_offset;
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
        return ft_fail(&s->failure, FT_ENOMEM, "%s: out of memory (zstd)", s->name);
    case ZSTD_error_frameParameter_windowTooLarge:
        return ft_fail(
            &s->failure, FT_EFORMAT,
            "%s: zstd window over %u MiB: pipe it through 'zstd -d --long=31'", s->name,
            1u << (MAX_WINDOW_LOG - 20));
    default:
        return ft_fail(&s->failure, FT_EFORMAT,
                       "%s: damaged zstd data near compressed byte %llu: %s", s->name,
                       at, ZSTD_getErrorName(code));
    }
}

/* Enter the next frame, or set s->ended. Stalled (neither) only without `wait`. */
static ft_status next_frame(ft_stream *s, bool wait)
{
    magic m;
    const ft_status st = await_magic(s, wait, &m);
    if (st != FT_OK)
        return st;
    if (m == MAGIC_YES)
        s->in_frame = true;
    else if (s->raw_ended && s->raw_begin == s->raw_end)
        s->ended = true;
    else if (m == MAGIC_NO || s->raw_ended)
        return ft_fail(&s->failure, FT_EFORMAT,
                       "%s: garbage after a zstd frame, at compressed byte %llu",
                       s->name, (unsigned long long)s->raw_offset);
    return FT_OK;
}

static ft_status pull_zstd(ft_stream *s, void *to, size_t n, bool wait, size_t *got)
{
    ZSTD_outBuffer out = {to, n, 0};
    while (out.pos == 0) {
        ft_status st = FT_OK;
        if (!s->in_frame) {
            st = next_frame(s, wait);
            if (st != FT_OK || !s->in_frame)
                return st;
        }
        ZSTD_inBuffer in = {s->raw + s->raw_begin, s->raw_end - s->raw_begin, 0};
        const size_t left = ZSTD_decompressStream(s->zstd, &out, &in);
        take_raw(s, in.pos);
        if (ZSTD_isError(left))
            return fail_zstd(s, left);
        s->in_frame = left != 0;
        if (out.pos || !s->in_frame || in.pos < in.size)
            continue;
        if (s->raw_ended)
            return ft_fail(&s->failure, FT_EFORMAT,
                           "%s: zstd frame cut short at compressed byte %llu", s->name,
                           (unsigned long long)s->raw_offset);
        st = refill_raw(s, wait);
        if (st != FT_OK || (!wait && s->raw_begin == s->raw_end && !s->raw_ended))
            return st;
    }
    *got = out.pos;
    return FT_OK;
}

static ft_status pull_plain(ft_stream *s, void *to, size_t n, size_t *got)
{
    const size_t have = s->raw_end - s->raw_begin;
    if (have) {
        *got = have < n ? have : n;
        memcpy(to, s->raw + s->raw_begin, *got);
        take_raw(s, *got);
        return FT_OK;
    }
    if (!s->raw_ended) {
        const ft_status st = read_file(s, to, n, got);
        if (st != FT_OK)
            return st;
    }
    s->ended = *got == 0;
    return FT_OK;
}

/* Decide between plain and zstd by the first bytes. */
static ft_status start(ft_stream *s, bool wait)
{
    magic m;
    ft_status st = await_magic(s, wait, &m);
    if (st != FT_OK || (m == MAGIC_MAYBE && !s->raw_ended))
        return st;
    if (m == MAGIC_YES) {
        st = start_zstd(s);
    } else if (s->fd < 0) {
        s->buf = (uint8_t *)s->raw; /* never written: the stream has ended */
        s->end = s->raw_end;
        s->ended = true;
    }
    s->started = st == FT_OK;
    return st;
}

/* Next (decompressed) bytes, 1 to n of them; *got = 0 at the end of input (s->ended)
 * or, without `wait`, where going on would wait. */
static ft_status pull(ft_stream *s, void *to, size_t n, bool wait, size_t *got)
{
    *got = 0;
    if (s->ended)
        return FT_OK;
    if (s->zstd)
        return pull_zstd(s, to, n, wait, got);
    const bool ready = wait || s->raw_ended || s->raw_begin < s->raw_end;
    return ready || readable(s->fd, 0) ? pull_plain(s, to, n, got) : FT_OK;
}

/* Room behind buf[end): move what is left to the front, or grow as data arrives, so
 * that a want that the input does not have costs no memory. */
static ft_status make_room(ft_stream *s, size_t want)
{
    if (s->begin == s->end)
        s->begin = s->end = 0;
    if (s->begin && want > s->cap - s->begin) {
        memmove(s->buf, s->buf + s->begin, s->end - s->begin);
        s->end -= s->begin;
        s->begin = 0;
    }
    if (s->end < s->cap)
        return FT_OK;
    uint64_t cap = BUFFER_BYTES;
    if (s->cap && !ft_mul_ok(s->cap, 2, &cap))
        return ft_fail(&s->failure, FT_ENOMEM, "%s: out of memory", s->name);
    uint8_t *buf = ft_alloc_aligned(cap, 1, &s->failure);
    if (!buf)
        return ft_fail_prefix(&s->failure, "%s", s->name);
    if (s->end)
        memcpy(buf, s->buf, s->end);
    free(s->buf);
    s->buf = buf;
    s->owns_buf = true;
    s->cap = cap;
    return FT_OK;
}

static ft_status fill(ft_stream *s, size_t want, bool wait)
{
    ft_status st = FT_OK;
    if (!s->started)
        st = start(s, wait);
    while (st == FT_OK && s->started && !s->ended && s->end - s->begin < want) {
        size_t got = 0;
        st = make_room(s, want);
        if (st == FT_OK)
            st = pull(s, s->buf + s->end, s->cap - s->end, wait, &got);
        s->end += got;
        if (!got)
            break;
    }
    return st;
}

static ft_stream *new_stream(const char *name, ft_error *err)
{
    ft_stream *s = ft_new(ft_stream, err);
    if (!s)
        return NULL;
    s->fd = -1;
    s->name = ft_strdup(name, err);
    if (!s->name) {
        free(s);
        return NULL;
    }
    return s;
}

ft_status ft_stream_open(ft_stream **out, const char *path, ft_error *err)
{
    const bool standard = !path || strcmp(path, "-") == 0;
    ft_stream *s = new_stream(standard ? "(standard input)" : path, err);
    if (!s)
        return FT_ENOMEM;
    s->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0) {
        const ft_status st = ft_fail_errno(err, FT_EIO, errno, "%s: cannot open", path);
        ft_stream_close(s);
        return st;
    }
    s->owns_fd = !standard;
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* a hint: may fail */
    *out = s;
    return FT_OK;
}

ft_status ft_stream_open_memory(ft_stream **out, const void *data, size_t bytes,
                                const char *name, ft_error *err)
{
    ft_stream *s = new_stream(name, err);
    if (!s)
        return FT_ENOMEM;
    s->raw = data;
    s->raw_end = bytes;
    s->raw_ended = true;
    *out = s;
    return FT_OK;
}

const char *ft_stream_name(const ft_stream *s)
{
    return s->name;
}

uint64_t ft_stream_offset(const ft_stream *s)
{
    return s->offset;
}

ft_status ft_stream_peek(ft_stream *s, size_t want, const uint8_t **data, size_t *avail,
                         ft_error *err)
{
    if (s->end - s->begin < want) {
        if (s->failure.status == FT_OK)
            fill(s, want, true);
        if (s->failure.status != FT_OK && s->end - s->begin < want)
            return fail_again(s, err);
    }
    *data = s->buf ? s->buf + s->begin : NULL;
    *avail = s->end - s->begin;
    return FT_OK;
}

void ft_stream_skip(ft_stream *s, size_t n)
{
    s->begin += n;
    s->offset += n;
}

static size_t take_buffered(ft_stream *s, uint8_t *to, size_t n)
{
    const size_t have = s->end - s->begin, k = have < n ? have : n;
    if (k)
        memcpy(to, s->buf + s->begin, k);
    ft_stream_skip(s, k);
    return k;
}

ft_status ft_stream_read(ft_stream *s, void *to, size_t n, size_t *got, ft_error *err)
{
    uint8_t *at = to;
    size_t done = take_buffered(s, at, n);
    while (done < n && !s->ended && s->failure.status == FT_OK) {
        if (s->started && n - done >= BUFFER_BYTES) { /* past the buffer */
            size_t k = 0;
            pull(s, at + done, n - done, true, &k);
            s->offset += k;
            done += k;
        } else {
            fill(s, 1, true);
            done += take_buffered(s, at + done, n - done);
        }
    }
    if (done < n && s->failure.status != FT_OK)
        return fail_again(s, err);
    *got = done;
    return FT_OK;
}

ft_status ft_stream_read_some(ft_stream *s, void *to, size_t n, size_t *got,
                              ft_error *err)
{
    *got = take_buffered(s, to, n);
    if (*got == 0 && n && s->failure.status == FT_OK) {
        if (s->started) {
            pull(s, to, n, true, got);
            s->offset += *got;
        } else {
            fill(s, 1, true);
            *got = take_buffered(s, to, n);
        }
    }
    return *got == 0 && s->failure.status != FT_OK ? fail_again(s, err) : FT_OK;
}

bool ft_stream_wait(const ft_stream *s, int ms)
{
    const bool settled = s->ended || s->raw_ended || s->failure.status != FT_OK;
    return s->begin < s->end || s->raw_begin < s->raw_end || settled ||
           readable(s->fd, ms);
}

bool ft_stream_ready(ft_stream *s)
{
    if (s->begin == s->end && !s->ended && s->failure.status == FT_OK)
        fill(s, 1, false);
    return s->begin < s->end || s->ended || s->failure.status != FT_OK;
}

void ft_stream_close(ft_stream *s)
{
    if (!s)
        return;
    if (s->owns_fd)
        close(s->fd);
    if (s->owns_buf)
        free(s->buf);
    free(s->raw_buf);
    ZSTD_freeDStream(s->zstd);
    free(s->name);
    free(s);
}
