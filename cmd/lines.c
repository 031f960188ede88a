/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <string.h>

ft_status ft_line_read(ft_stream *in, ft_buf *b, bool *more, ft_error *err)
{
    enum { CHUNK = 1 << 16 };
    b->len = 0;
    for (;;) {
        const uint8_t *data;
        size_t avail;
        ft_status st = ft_stream_peek(in, CHUNK, &data, &avail, err);
        const uint8_t *end = st == FT_OK && avail ? memchr(data, '\n', avail) : NULL;
        if (st == FT_OK)
            st = ft_buf_append(b, data, end ? (size_t)(end - data) : avail, err);
        if (st != FT_OK)
            return st;
        ft_stream_skip(in, end ? (size_t)(end - data) + 1 : avail);
        *more = end || b->len;
        if (end || !avail)
            break;
    }
    if (b->len && b->data[b->len - 1] == '\r')
        b->len--;
    return FT_OK;
}
