/* SPDX-License-Identifier: Apache-2.0
 *
 * Token sequences, text or binary. Both are read in place from a window of the stream's
 * buffer. Text has two parsers: a fast one for whole lines of well-formed keys, which
 * gives up on anything else, and a byte-wise one that takes any line, of any length, in
 * bounded memory, and says what is wrong with it.
 */
#include "io/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/decimal.h"
#include "io/formats.h"
#include "io/tokens_reader.h"

/* Slide the window on to p and widen it to `want` bytes, if the input has them. The
 * bytes left in it hold no newline. */
static ft_status refill(ft_tokens *r, size_t want)
{
    const size_t left = (size_t)(r->end - r->p);
    const uint8_t *data;
    size_t avail;
    ft_stream_skip(r->in, r->detached ? 0 : (size_t)(r->p - r->base));
    r->detached = false;
    r->base = r->p;
    const ft_status st = ft_stream_peek(r->in, want, &data, &avail, &r->failure);
    if (st != FT_OK)
        return st;
    r->base = r->p = data;
    r->end = avail ? data + avail : data;
    r->at_end = avail < want;
    const uint8_t *newline = NULL;
    if (!r->binary && avail > left)
        newline = memrchr(data + left, '\n', avail - left);
    r->whole = newline ? newline + 1 : r->p;
    return FT_OK;
}

/* One line of a window that holds its newline; NULL: leave it to the other parser. */
static const uint8_t *fast_line(const ft_tokens *r, uint32_t *n_tokens)
{
    const uint8_t *p = r->p;
    uint32_t n = 0;
    while (r->end - p >= 8) {
        uint64_t v;
        const unsigned digits = ft_decimal_get8(p, &v);
        p += digits;
        if (digits == 0) {
            const unsigned cr = *p == '\r';
            if (p[cr] == '\n') {
                *n_tokens = n;
                return p + cr + 1;
            }
            if (*p != ' ' && *p != '\t')
                return NULL;
            p++;
            continue;
        }
        if (digits == 8)
            for (; (uint8_t)(*p - '0') <= 9; p++) {
                v = v * 10 + (uint8_t)(*p - '0');
                if (v >= FT_NO_TOKEN)
                    return NULL;
            }
        if (n == FT_MAX_KEY_TOKENS)
            return NULL;
        r->key[n++] = (uint32_t)v;
        if (*p == '\n') {
            *n_tokens = n;
            return p + 1;
        }
        p += *p == ' ';
    }
    return NULL;
}

/* Where the byte-wise parser is in its line. */
typedef struct line {
    uint64_t column; /* of the last byte, from 1 */
    uint64_t token_column;
    uint64_t value;
    uint32_t n;
    bool in_token;
} line;

static ft_status fail_at(ft_tokens *r, uint64_t column, const char *what)
{
    return ft_fail(&r->failure, FT_EFORMAT, "%s: line %llu, column %llu: %s", r->name,
                   (unsigned long long)r->n_places, (unsigned long long)column, what);
}

static ft_status fail_byte(ft_tokens *r, uint64_t column, int c)
{
    char what[80];
    if (c > ' ' && c < 0x7F)
        snprintf(what, sizeof what, "unexpected '%c': a key is decimal tokens", c);
    else
        snprintf(what, sizeof what, "unexpected byte 0x%02X: a key is decimal tokens",
                 c);
    return fail_at(r, column, what);
}

static ft_status add_digit(ft_tokens *r, line *l, unsigned digit)
{
    if (!l->in_token) {
        if (l->n == FT_MAX_KEY_TOKENS)
            return fail_at(r, l->column, "key of more than 65535 tokens");
        l->in_token = true;
        l->token_column = l->column;
        l->value = 0;
    }
    l->value = l->value * 10 + digit;
    if (l->value > FT_NO_TOKEN)
        return fail_at(r, l->token_column, "token out of range (0 to 4294967294)");
    return FT_OK;
}

static ft_status end_token(ft_tokens *r, line *l)
{
    if (l->in_token && l->value == FT_NO_TOKEN)
        return fail_at(r, l->token_column,
                       "4294967295 means \"no token\" and cannot be in a key");
    if (l->in_token)
        r->key[l->n++] = (uint32_t)l->value;
    l->in_token = false;
    return FT_OK;
}

enum { END_OF_INPUT = -1 };

static ft_status next_byte(ft_tokens *r, line *l, int *c)
{
    if (r->p == r->end && !r->at_end) {
        const ft_status st = refill(r, 1);
        if (st != FT_OK)
            return st;
    }
    *c = r->p == r->end ? END_OF_INPUT : *r->p++;
    l->column++;
    return FT_OK;
}

/* Any line, well-formed or not, newline in the window or not. */
static ft_status slow_line(ft_tokens *r, uint32_t *n_tokens)
{
    line l = {0};
    bool after_cr = false;
    for (;;) {
        int c;
        ft_status st = next_byte(r, &l, &c);
        if (st != FT_OK)
            return st;
        if (after_cr && c != '\n')
            return fail_byte(r, l.column - 1, '\r');
        if (c >= '0' && c <= '9')
            st = add_digit(r, &l, (unsigned)c - '0');
        else
            st = end_token(r, &l);
        if (st != FT_OK)
            return st;
        if (c == '\n' || c == END_OF_INPUT)
            break;
        after_cr = c == '\r';
        if (!after_cr && c != ' ' && c != '\t' && !(c >= '0' && c <= '9'))
            return fail_byte(r, l.column, c);
    }
    *n_tokens = l.n;
    return FT_OK;
}

static ft_status next_text(ft_tokens *r, const uint32_t **tokens, uint32_t *n)
{
    for (;;) {
        if (r->p == r->whole && !r->at_end && r->end - r->p < FT_MAX_WINDOW_LINE) {
            const ft_status st = refill(r, (size_t)(r->end - r->p) + 1);
            if (st != FT_OK)
                return st;
            continue;
        }
        if (r->p == r->end && r->at_end) {
            *n = 0;
            return FT_OK;
        }
        r->n_places++;
        uint32_t found = 0;
        const uint8_t *behind = r->p < r->whole ? fast_line(r, &found) : NULL;
        if (behind) {
            r->p = behind;
        } else {
            const ft_status st = slow_line(r, &found);
            if (st != FT_OK)
                return st;
        }
        if (found) {
            *tokens = r->key;
            *n = found;
            return FT_OK;
        }
        r->n_skipped++;
    }
}

/* Say in front of the message which record it is about. */
static ft_status in_record(ft_tokens *r)
{
    return ft_fail_prefix(&r->failure, "%s: record %llu", r->name,
                          (unsigned long long)r->n_places - 1);
}

static ft_status fail_short(ft_tokens *r, size_t bytes)
{
    ft_fail(&r->failure, FT_EFORMAT, "cut short (%zu of %zu bytes)",
            (size_t)(r->end - r->p), bytes);
    return in_record(r);
}

static ft_status check_tokens(ft_tokens *r, const uint32_t *key, uint32_t n)
{
    uint32_t bad = 0, i = 0;
    for (uint32_t j = 0; j < n; j++)
        bad |= key[j] == FT_NO_TOKEN;
    if (!bad)
        return FT_OK;
    while (key[i] != FT_NO_TOKEN)
        i++;
    ft_fail(&r->failure, FT_EFORMAT,
            "token %u is 4294967295, which means \"no token\" and cannot be in a key",
            i);
    return in_record(r);
}

/* Have `bytes` in the window, or as many as the input has. */
static ft_status want(ft_tokens *r, size_t bytes)
{
    return (size_t)(r->end - r->p) >= bytes || r->at_end ? FT_OK : refill(r, bytes);
}

static ft_status next_binary(ft_tokens *r, const uint32_t **tokens, uint32_t *n)
{
    uint32_t count;
    ft_status st = want(r, sizeof count);
    if (st != FT_OK)
        return st;
    if (r->p == r->end) {
        *n = 0;
        return FT_OK;
    }
    r->n_places++;
    if (r->end - r->p < (ptrdiff_t)sizeof count)
        return fail_short(r, sizeof count);
    memcpy(&count, r->p, sizeof count);
    if (count == 0 || count > FT_MAX_KEY_TOKENS) {
        ft_fail(&r->failure, FT_EFORMAT, "key of %u tokens (1 to 65535)", count);
        return in_record(r);
    }
    const size_t key_bytes = (size_t)count * sizeof **tokens;
    st = want(r, sizeof count + key_bytes);
    if (st != FT_OK)
        return st;
    if (r->end - r->p < (ptrdiff_t)(sizeof count + key_bytes))
        return fail_short(r, sizeof count + key_bytes);
    /* Records keep the stream's buffer aligned; a caller's memory may not be. */
    const void *key = r->p + sizeof count;
    if ((uintptr_t)key % sizeof **tokens)
        key = memcpy(r->key, key, key_bytes);
    st = check_tokens(r, key, count);
    if (st != FT_OK)
        return st;
    r->p += sizeof count + key_bytes;
    *tokens = key;
    *n = count;
    return FT_OK;
}

static ft_status read_binary_header(ft_tokens *r)
{
    ft_keys_header h;
    const ft_status st = want(r, sizeof h);
    if (st != FT_OK)
        return st;
    const size_t have = (size_t)(r->end - r->p);
    if (have < sizeof h)
        return ft_fail(&r->failure, FT_EFORMAT,
                       "%s: header cut short (%zu of %zu bytes)", r->name, have,
                       sizeof h);
    memcpy(&h, r->p, sizeof h);
    if (h.flags || h.reserved)
        return ft_fail(&r->failure, FT_EFORMAT,
                       "%s: header: flags 0x%x, reserved 0x%x: known here is only 0",
                       r->name, h.flags, h.reserved);
    r->p += sizeof h;
    return FT_OK;
}

/* Text or binary? Text is known by its first byte, so that a short interactive input
 * does not wait for eight. */
static ft_status read_start(ft_tokens *r)
{
    ft_status st = refill(r, 1);
    if (st != FT_OK || r->p == r->end || (*r->p != 'F' && *r->p != 0x93))
        return st;
    st = refill(r, FT_MAGIC_BYTES);
    if (st != FT_OK)
        return st;
    const size_t have = (size_t)(r->end - r->p);
    const char *kind = ft_formats_kind(r->p, have);
    r->binary = have >= FT_MAGIC_BYTES && !memcmp(r->p, FT_KEYS_MAGIC, FT_MAGIC_BYTES);
    if (r->binary)
        return read_binary_header(r);
    return kind ? ft_fail(&r->failure, FT_EFORMAT, "%s: is %s, not token sequences",
                          r->name, kind)
                : FT_OK;
}

ft_status ft_tokens_open(ft_tokens **out, ft_stream *in, ft_error *err)
{
    ft_tokens *r = ft_new(ft_tokens, err);
    if (!r) {
        ft_stream_close(in);
        return FT_ENOMEM;
    }
    r->in = in;
    r->name = ft_stream_name(in);
    r->key = ft_calloc(FT_MAX_KEY_TOKENS, sizeof *r->key, &r->failure);
    const ft_status st = r->key ? read_start(r) : FT_ENOMEM;
    if (st != FT_OK) {
        if (err)
            *err = r->failure;
        ft_tokens_close(r);
        return st;
    }
    *out = r;
    return FT_OK;
}

ft_status ft_tokens_next(ft_tokens *r, const uint32_t **tokens, uint32_t *n,
                         ft_error *err)
{
    ft_status st = r->failure.status;
    if (st == FT_OK)
        st = r->binary ? next_binary(r, tokens, n) : next_text(r, tokens, n);
    if (st != FT_OK && err)
        *err = r->failure;
    return st;
}

uint64_t ft_tokens_place(const ft_tokens *r)
{
    return r->binary ? r->n_places - 1 : r->n_places;
}

bool ft_tokens_is_binary(const ft_tokens *r)
{
    return r->binary;
}

uint64_t ft_tokens_offset(const ft_tokens *r)
{
    const uint64_t offset = ft_stream_offset(r->in),
                   in_window = (uint64_t)(r->p - r->base);
    return r->detached ? offset - (uint64_t)(r->end - r->p) : offset + in_window;
}

uint64_t ft_tokens_n_skipped(const ft_tokens *r)
{
    return r->n_skipped;
}

const char *ft_tokens_name(const ft_tokens *r)
{
    return r->name;
}

void ft_tokens_close(ft_tokens *r)
{
    if (!r)
        return;
    ft_stream_close(r->in);
    ft_buf_free(&r->tail);
    ft_buf_free(&r->last);
    free(r->key);
    free(r);
}
