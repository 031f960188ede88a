/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing keys, and the parser of single tokens.
 */
#include "io/tokens.h"

#include "io/decimal.h"
#include "io/formats.h"

ft_status ft_tokens_write_text(ft_sink *out, const uint32_t *tokens, uint32_t n,
                               ft_error *err)
{
    char text[1024], *p = text;
    for (uint32_t i = 0; i < n; i++) {
        p = ft_decimal_put(p, tokens[i]);
        *p++ = i + 1 < n ? ' ' : '\n';
        if (i + 1 < n && p - text < (int)sizeof text - FT_DECIMAL_BYTES - 1)
            continue;
        const ft_status st = ft_sink_write(out, text, (size_t)(p - text), err);
        if (st != FT_OK)
            return st;
        p = text;
    }
    return FT_OK;
}

ft_status ft_tokens_write_binary_header(ft_sink *out, ft_error *err)
{
    ft_keys_header h = {.flags = 0};
    memcpy(h.magic, FT_KEYS_MAGIC, sizeof h.magic);
    return ft_sink_write(out, &h, sizeof h, err);
}

ft_status ft_tokens_write_binary(ft_sink *out, const uint32_t *tokens, uint32_t n,
                                 ft_error *err)
{
    const ft_status st = ft_sink_write(out, &n, sizeof n, err);
    return st == FT_OK ? ft_sink_write(out, tokens, (size_t)n * sizeof *tokens, err)
                       : st;
}

bool ft_token_parse(const char **p, const char *end, uint32_t *token)
{
    const char *q = *p;
    uint64_t v = 0;
    for (; q < end && *q >= '0' && *q <= '9'; q++) {
        v = v * 10 + (uint64_t)(*q - '0');
        if (v >= FT_NO_TOKEN)
            return false;
    }
    if (q == *p)
        return false;
    *token = (uint32_t)v;
    *p = q;
    return true;
}
