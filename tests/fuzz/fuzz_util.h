/* SPDX-License-Identifier: Apache-2.0
 *
 * What the harnesses of lib/io share: a check that stops the fuzzer, and streams.
 */
#ifndef FT_TESTS_FUZZ_UTIL_H
#define FT_TESTS_FUZZ_UTIL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define check(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
            abort();                                                                   \
        }                                                                              \
    } while (0)

static inline ft_stream *fuzz_stream(const void *data, size_t bytes)
{
    ft_stream *s = NULL;
    check(ft_stream_open_memory(&s, data, bytes, "fuzz", NULL) == FT_OK);
    return s;
}

static inline ft_sink *fuzz_sink(ft_buf *b)
{
    ft_sink *s = NULL;
    check(ft_sink_open_memory(&s, b, NULL) == FT_OK);
    return s;
}

/* A failure is one of the data, says so, and names the stream. */
static inline void check_failure(ft_status st, const ft_error *err)
{
    check(st == FT_EFORMAT && err->status == st);
    check(strncmp(err->message, "fuzz: ", 6) == 0);
}

/* Does the input go through decompression? */
static inline bool fuzz_is_zstd(const uint8_t *data, size_t bytes)
{
    return bytes >= 4 &&
           (memcmp(data, "\x28\xB5\x2F\xFD", 4) == 0 ||
            ((data[0] & 0xF0) == 0x50 && !memcmp(data + 1, "\x2A\x4D\x18", 3)));
}

#endif
