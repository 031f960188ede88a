/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes and the caller's error. The library never prints and never exits: what
 * can fail returns a status, takes an ft_error last, and leaves its outputs untouched
 * on failure. A message reads "file: place: what is wrong"; commands put their own name
 * in front and print it once.
 */
#ifndef FT_BASE_STATUS_H
#define FT_BASE_STATUS_H

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ft_status {
    FT_OK = 0,
    FT_ENOMEM,       /* memory could not be had */
    FT_EIO,          /* open, read, write, sync or rename failed */
    FT_EFORMAT,      /* data breaks its format */
    FT_EORDER,       /* keys out of order */
    FT_EINVAL,       /* an argument cannot be honoured */
    FT_EUNAVAILABLE, /* the engine asked for cannot run here (exit 3) */
    FT_EPIPE         /* the reader of our output has gone */
} ft_status;

enum { FT_ERROR_BYTES = 1024 };

typedef struct ft_error {
    ft_status status;
    char message[FT_ERROR_BYTES];
} ft_error;

/* Fill *err (which may be NULL) with the formatted message and return `status`. A
 * message too long is cut, never overrun. */
ft_status ft_fail(ft_error *err, ft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with ": " and the text of `errnum` (strerror) behind the message. */
ft_status ft_fail_errno(ft_error *err, ft_status status, int errnum, const char *format,
                        ...) __attribute__((format(printf, 4, 5)));

/* Put "prefix: " in front of the message that *err (may be NULL) holds. Returns its
 * status. */
ft_status ft_fail_prefix(ft_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
