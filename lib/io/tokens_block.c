/* SPDX-License-Identifier: Apache-2.0
 *
 * Token inputs cut into blocks at key borders, without parsing them: a newline, or the
 * end of a record, which its count gives away.
 */
#include <stdlib.h>
#include <string.h>

#include "io/tokens_reader.h"

enum { PATIENCE_MS = 100 };

/* Of a block's bytes. */
typedef struct border {
    size_t end;             /* behind the last whole key */
    uint64_t n_places;      /* lines or records before it */
    size_t key, behind_key; /* the last key; both 0: there is none */
    bool broken;            /* what follows is no record */
    size_t want;            /* bytes that hold one record more */
} border;

static bool has_digit(const uint8_t *p, const uint8_t *end)
{
    for (; p < end; p++)
        if ((uint8_t)(*p - '0') <= 9)
            return true;
    return false;
}

static border text_border(const uint8_t *data, size_t n)
{
    border b = {.want = 2 * n};
    const uint8_t *newline = n ? memrchr(data, '\n', n) : NULL;
    if (!newline)
        return b;
    b.end = (size_t)(newline + 1 - data);
    for (size_t i = 0; i < b.end; i++)
        b.n_places += data[i] == '\n';
    for (const uint8_t *end = newline + 1; end > data;) {
        const uint8_t *before = memrchr(data, '\n', (size_t)(end - 1 - data));
        const uint8_t *line = before ? before + 1 : data;
        if (has_digit(line, end)) {
            b.key = (size_t)(line - data);
            b.behind_key = (size_t)(end - data);
            break;
        }
        end = line;
    }
    return b;
}

static border record_border(const uint8_t *data, size_t n)
{
    border b = {0};
    uint32_t count;
    while (n - b.end >= sizeof count) {
        memcpy(&count, data + b.end, sizeof count);
        b.broken = count == 0 || count > FT_MAX_KEY_TOKENS;
        const size_t bytes = sizeof count + (size_t)count * sizeof(uint32_t);
        if (b.broken || bytes > n - b.end) {
            b.want = b.end + bytes;
            break;
        }
        b.key = b.end;
        b.end += bytes;
        b.n_places++;
    }
    b.behind_key = b.end;
    return b;
}

/* Start cutting where ft_tokens_open has stopped. */
static void start(ft_tokens *r)
{
    ft_stream_skip(r->in, (size_t)(r->p - r->base));
    r->base = r->p = r->end = r->whole = NULL;
    r->cut = true;
}

static bool has_key(const ft_tokens *r, const ft_buf *data)
{
    uint32_t count;
    if (!r->binary)
        return data->len && memchr(data->data, '\n', data->len);
    if (data->len < sizeof count)
        return false;
    memcpy(&count, data->data, sizeof count);
    return data->len >= sizeof count + (uint64_t)count * sizeof count;
}

typedef enum reading { READ_ENOUGH, READ_TO_END, READ_LATER } reading;

/* Fill the block up to its room, or with what there is where an input that is slow has
 * given a key: it may be wrong, or the last for long. A failure counts as enough. */
static reading read_more(ft_tokens *r, ft_buf *data)
{
    bool key = has_key(r, data);
    while (data->len < data->cap) {
        size_t got;
        if (!ft_stream_wait(r->in, PATIENCE_MS))
            return key ? READ_ENOUGH : READ_LATER;
        if (ft_stream_read_some(r->in, data->data + data->len, data->cap - data->len,
                                &got, &r->failure) != FT_OK)
            return READ_ENOUGH;
        if (got == 0)
            return READ_TO_END;
        data->len += got;
        key = key || has_key(r, data);
    }
    return READ_ENOUGH;
}

static ft_status take_over(ft_buf *to, const uint8_t *from, size_t n, ft_error *err)
{
    to->len = 0;
    return ft_buf_append(to, from, n, err);
}

/* A line that a block need not hold: from here on keys are read one by one. */
static void leave_rest(ft_tokens *r, ft_buf *data)
{
    r->rest = true;
    take_over(&r->tail, data->data, data->len, &r->failure);
    data->len = 0;
    r->base = r->p = r->whole = r->tail.data;
    r->end = r->tail.data + r->tail.len;
    r->detached = true;
}

/* Put what is behind the border aside, and remember the last key before it. */
static void cut_at(ft_tokens *r, ft_buf *data, const border *b)
{
    take_over(&r->tail, data->data + b->end, data->len - b->end, &r->failure);
    if (b->behind_key)
        take_over(&r->last, data->data + b->key, b->behind_key - b->key, &r->failure);
    data->len = b->end;
    r->n_places += b->n_places;
}

static void cut(ft_tokens *r, ft_tokens_block *block, uint64_t bytes)
{
    ft_buf *data = &block->data;
    for (uint64_t want = bytes;;) {
        const uint64_t more = want > data->len ? want - data->len : 1;
        if (ft_buf_reserve(data, more, &r->failure) != FT_OK) {
            data->len = 0;
            return;
        }
        const reading how = read_more(r, data);
        const bool failed = r->failure.status != FT_OK;
        border b = r->binary ? record_border(data->data, data->len)
                             : text_border(data->data, data->len);
        block->later = how == READ_LATER;
        /* The reader of the block says what is wrong with its end. */
        if (b.broken || how == READ_TO_END) {
            b.end = data->len;
            r->at_end = true;
        }
        if (b.end || failed || how != READ_ENOUGH) {
            cut_at(r, data, &b);
            return;
        }
        if (!r->binary && data->len >= FT_MAX_WINDOW_LINE) {
            leave_rest(r, data);
            return;
        }
        want = b.want > bytes ? b.want : bytes;
    }
}

/* A failure is that of the block behind the last key that could be read. */
ft_status ft_tokens_cut(ft_tokens *r, ft_tokens_block *b, uint64_t bytes, ft_error *err)
{
    b->data.len = 0;
    b->n_places = r->n_places;
    b->later = false;
    if (!r->cut)
        start(r);
    if (r->failure.status == FT_OK)
        take_over(&b->previous, r->last.data, r->last.len, &r->failure);
    if (r->failure.status == FT_OK && !r->at_end && !r->rest) {
        if (take_over(&b->data, r->tail.data, r->tail.len, &r->failure) == FT_OK)
            cut(r, b, bytes);
    }
    b->end = ft_stream_offset(r->in) - r->tail.len;
    if (r->failure.status == FT_OK || b->data.len)
        return FT_OK;
    if (err)
        *err = r->failure;
    return r->failure.status;
}

bool ft_tokens_has_rest(const ft_tokens *r)
{
    return r->rest;
}

void ft_tokens_block_free(ft_tokens_block *b)
{
    ft_buf_free(&b->data);
    ft_buf_free(&b->previous);
}

ft_status ft_tokens_open_blocks(ft_tokens **out, const ft_tokens *whole, ft_error *err)
{
    ft_tokens *r = ft_new(ft_tokens, err);
    if (!r)
        return FT_ENOMEM;
    r->key = ft_calloc(FT_MAX_KEY_TOKENS, sizeof *r->key, err);
    if (!r->key) {
        free(r);
        return FT_ENOMEM;
    }
    r->name = whole->name;
    r->binary = whole->binary;
    r->at_end = true;
    *out = r;
    return FT_OK;
}

static void set_window(ft_tokens *r, const ft_buf *data, uint64_t n_places)
{
    const uint8_t *newline = NULL;
    r->base = r->p = data->data;
    r->end = data->len ? data->data + data->len : data->data;
    if (!r->binary && data->len)
        newline = memrchr(data->data, '\n', data->len);
    r->whole = newline ? newline + 1 : r->p;
    r->n_places = n_places;
    r->n_skipped = 0;
    r->failure.status = FT_OK;
}

void ft_tokens_set_previous(ft_tokens *r, const ft_tokens_block *b)
{
    set_window(r, &b->previous, 0);
}

void ft_tokens_set_block(ft_tokens *r, const ft_tokens_block *b)
{
    set_window(r, &b->data, b->n_places);
}

void ft_tokens_add_skipped(ft_tokens *r, uint64_t n)
{
    r->n_skipped += n;
}
