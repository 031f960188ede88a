/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static void fill(ft_error *err, ft_status status, const char *format, va_list args)
{
    err->status = status;
    vsnprintf(err->message, sizeof err->message, format, args);
}

ft_status ft_fail(ft_error *err, ft_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, format, args);
        va_end(args);
    }
    return status;
}

ft_status ft_fail_errno(ft_error *err, ft_status status, int errnum, const char *format,
                        ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, format, args);
        va_end(args);
        const size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, ": %s",
                 strerror(errnum));
    }
    return status;
}

ft_status ft_fail_prefix(ft_error *err, const char *format, ...)
{
    if (!err)
        return FT_EFORMAT;
    char rest[FT_ERROR_BYTES];
    memcpy(rest, err->message, sizeof rest);
    va_list args;
    va_start(args, format);
    fill(err, err->status, format, args);
    va_end(args);
    const size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %s", rest);
    return err->status;
}
