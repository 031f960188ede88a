/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of lib/io share: streams over bytes, sinks into bytes, a scratch
 * folder, and checks of messages.
 */
#ifndef FT_TESTS_IO_UTIL_H
#define FT_TESTS_IO_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/stream.h"

/* A test that waits for what never comes fails, rather than hang. */
enum { TEST_SECONDS = 120 };

#define assert_ok(call, err)                                                           \
    do {                                                                               \
        if ((call) != FT_OK)                                                           \
            fail_msg("%s", (err).message);                                             \
    } while (0)

#define assert_message(err, text)                                                      \
    do {                                                                               \
        if (!strstr((err).message, (text)))                                            \
            fail_msg("message '%s' lacks '%s'", (err).message, (text));                \
    } while (0)

static inline ft_stream *stream_of(const void *data, size_t bytes, const char *name)
{
    ft_error err = {0};
    ft_stream *s = NULL;
    assert_ok(ft_stream_open_memory(&s, data, bytes, name, &err), err);
    return s;
}

static inline ft_sink *sink_into(ft_buf *b)
{
    ft_error err = {0};
    ft_sink *s = NULL;
    assert_ok(ft_sink_open_memory(&s, b, &err), err);
    return s;
}

static inline void close_sink(ft_sink *s)
{
    ft_error err = {0};
    assert_ok(ft_sink_close(s, &err), err);
}

/* A reader of pipe `ends`, named by its descriptor; the test keeps the writing end. */
static inline ft_stream *stream_of_pipe(int ends[2])
{
    char path[32];
    ft_error err = {0};
    ft_stream *s = NULL;
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_ok(ft_stream_open(&s, path, &err), err);
    close(ends[0]);
    return s;
}

static inline void send_bytes(int fd, const void *data, size_t bytes)
{
    assert_int_equal(write(fd, data, bytes), (ssize_t)bytes);
}

static inline void put_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

static inline void put_u64(uint8_t *at, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

static inline void put_f32(uint8_t *at, float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    put_u32(at, bits);
}

#endif
