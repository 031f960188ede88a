/* SPDX-License-Identifier: Apache-2.0 */
#include "vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

typedef struct entry {
    uint32_t token;
    uint64_t line, text; /* text: offset of a C string in texts */
} entry;

struct ft_vocab {
    const char *path; /* while reading, for messages */
    ft_buf texts;
    entry *entries; /* by token */
    uint64_t n, cap;
};

static unsigned utf8_bytes(const uint8_t *s, size_t bytes)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned n = s[0] < 0x80             ? 1
                       : (s[0] & 0xE0) == 0xC0 ? 2
                       : (s[0] & 0xF0) == 0xE0 ? 3
                       : (s[0] & 0xF8) == 0xF0 ? 4
                                               : 0;
    uint32_t code = n > 1 ? s[0] & (0x7Fu >> n) : s[0];
    if (n == 0 || n > bytes)
        return 0;
    for (unsigned i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3F);
    }
    return code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0
                                                                                   : n;
}

unsigned ft_printable_bytes(const uint8_t *text, size_t bytes)
{
    const unsigned n = bytes ? utf8_bytes(text, bytes) : 0;
    if (n == 1)
        return text[0] >= 0x20 && text[0] != 0x7F;
    if (n == 2 && text[0] == 0xC2 && text[1] < 0xA0)
        return 0; /* C1 controls steer terminals too */
    return n;
}

static ft_status append_escaped(ft_buf *b, const uint8_t *text, size_t bytes,
                                ft_error *err)
{
    ft_status st = FT_OK;
    while (bytes && st == FT_OK) {
        const unsigned n = ft_printable_bytes(text, bytes);
        char hex[8];
        const char *escape = *text == '\n'   ? "\\n"
                             : *text == '\t' ? "\\t"
                             : *text == '\r' ? "\\r"
                                             : hex;
        snprintf(hex, sizeof hex, "\\x%02x", *text);
        st = n ? ft_buf_append(b, text, n, err)
               : ft_buf_append(b, escape, strlen(escape), err);
        text += n ? n : 1;
        bytes -= n ? n : 1;
    }
    return st == FT_OK ? ft_buf_append(b, "", 1, err) : st;
}

/* The id in front of the line's tab; false: there is none. */
static bool split_id(const char **text, const char *end, uint32_t *token)
{
    const char *p = *text;
    if (!ft_token_parse(&p, end, token) || p == end || *p != '\t')
        return false;
    *text = p + 1;
    return true;
}

static ft_status add_line(ft_vocab *v, const char *text, const char *end, uint64_t line,
                          bool ids, ft_error *err)
{
    entry e = {.token = (uint32_t)(line - 1), .line = line, .text = v->texts.len};
    ft_status st;
    if (ids && !split_id(&text, end, &e.token))
        return ft_fail(err, FT_EFORMAT,
                       "%s: line %llu: not a token id, a tab and a text", v->path,
                       (unsigned long long)line);
    if (line > FT_NO_TOKEN)
        return ft_fail(err, FT_EFORMAT,
                       "%s: line %llu: more lines than there are tokens", v->path,
                       (unsigned long long)line);
    st = ft_reserve((void **)&v->entries, &v->cap, v->n + 1, sizeof *v->entries, err);
    if (st != FT_OK)
        return st;
    v->entries[v->n++] = e;
    return append_escaped(&v->texts, (const uint8_t *)text, (size_t)(end - text), err);
}

static ft_status read_lines(ft_vocab *v, ft_stream *in, ft_error *err)
{
    ft_buf line = {0};
    ft_status st = FT_OK;
    bool ids = false, more;
    for (uint64_t n = 1;; n++) {
        const char *text;
        uint32_t token;
        st = ft_line_read(in, &line, &more, err);
        if (st != FT_OK || !more)
            break;
        text = line.data ? (const char *)line.data : "";
        if (n == 1) {
            const char *p = text;
            ids = split_id(&p, text + line.len, &token);
        }
        st = add_line(v, text, text + line.len, n, ids, err);
        if (st != FT_OK)
            break;
    }
    ft_buf_free(&line);
    return st;
}

static int by_token(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    if (a->token != b->token)
        return a->token < b->token ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

static ft_status sort_entries(ft_vocab *v, ft_error *err)
{
    if (v->n)
        qsort(v->entries, v->n, sizeof *v->entries, by_token);
    for (uint64_t i = 1; i < v->n; i++)
        if (v->entries[i].token == v->entries[i - 1].token)
            return ft_fail(err, FT_EFORMAT,
                           "%s: line %llu: token %u has a text already, on line %llu",
                           v->path, (unsigned long long)v->entries[i].line,
                           v->entries[i].token,
                           (unsigned long long)v->entries[i - 1].line);
    return FT_OK;
}

ft_status ft_vocab_open(ft_vocab **out, const char *path, ft_error *err)
{
    ft_stream *in = NULL;
    ft_vocab *v = ft_new(ft_vocab, err);
    ft_status st = v ? ft_stream_open(&in, path, err) : FT_ENOMEM;
    if (st == FT_OK) {
        v->path = ft_stream_name(in);
        st = read_lines(v, in, err);
    }
    if (st == FT_OK)
        st = sort_entries(v, err);
    ft_stream_close(in);
    if (st == FT_OK)
        *out = v;
    else
        ft_vocab_close(v);
    return st;
}

const char *ft_vocab_text(const ft_vocab *v, uint32_t token)
{
    uint64_t low = 0, high = v->n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (v->entries[middle].token < token)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == v->n || v->entries[low].token != token)
        return NULL;
    return (const char *)v->texts.data + v->entries[low].text;
}

void ft_vocab_close(ft_vocab *v)
{
    if (!v)
        return;
    ft_buf_free(&v->texts);
    free(v->entries);
    free(v);
}
