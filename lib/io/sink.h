/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of a sink: shared by sink.c and sink_atomic.c, nobody else's business.
 */
#ifndef FT_IO_SINK_H
#define FT_IO_SINK_H

#include "io/stream.h"

typedef struct ft_sink_atomic ft_sink_atomic;

struct ft_sink {
    char *name;
    int fd; /* -1: memory, or closed */
    ft_buf *memory;
    uint8_t *buf; /* not written yet: buf[0 .. len) */
    size_t len;
    uint64_t offset; /* bytes taken, buffered ones included */
    uint64_t base;   /* the file's (or memory's) own offset of our byte 0 */
    bool seekable;
    ft_sink_atomic *atomic; /* NULL: written directly */
    ft_error failure;       /* status is not FT_OK: every later call fails the same */
};

/* A sink of its own over fd (< 0: memory); the caller still owns fd on failure. */
ft_sink *ft_sink_new(const char *name, int fd, ft_error *err);

/* A sink that writes directly to fd; fd is closed on failure. */
ft_status ft_sink_open_fd(ft_sink **out, const char *name, int fd, ft_error *err);

/* Sync and rename; the failure is left in s->failure. */
ft_status ft_sink_atomic_commit(ft_sink *s);

/* Forget the temporary file: remove it, unless it has been renamed. */
void ft_sink_atomic_discard(ft_sink *s);

#endif
