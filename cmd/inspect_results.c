/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-inspect results: a result stream as text, best first.
 */
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

typedef struct results_options {
    const char *vocab;
    bool json;
} results_options;

/* Texts have no control characters (vocab.h): quotes and backslashes are left. */
static ft_status put_json_text(ft_sink *out, const char *text, ft_error *err)
{
    ft_status st = FT_OK;
    for (; st == FT_OK && *text; text++) {
        if (*text == '"' || *text == '\\')
            st = ft_sink_write(out, "\\", 1, err);
        if (st == FT_OK)
            st = ft_sink_write(out, text, 1, err);
    }
    return st;
}

/* The texts of result i as the last field of its line. */
static ft_status put_texts(const ft_inspect *in, bool json, const ft_record *r,
                           uint64_t i, ft_error *err)
{
    ft_status st = ft_sink_printf(in->out, err, json ? ",\"text\":\"" : "\t");
    for (uint64_t j = ft_record_end(r, i - 1); st == FT_OK && j < ft_record_end(r, i);
         j++) {
        const uint32_t token = ft_record_token(r, j);
        const char *text = ft_vocab_text(in->vocab, token);
        if (!text)
            st = ft_sink_printf(in->out, err, "<%u>", token);
        else if (json)
            st = put_json_text(in->out, text, err);
        else
            st = ft_sink_write(in->out, text, strlen(text), err);
    }
    return st == FT_OK && json ? ft_sink_write(in->out, "\"}", 2, err) : st;
}

/* The library's own lines, each with the texts added at its end. */
static ft_status print_with_texts(const ft_inspect *in, bool json, uint64_t query,
                                  const ft_record *r, ft_buf *lines, ft_error *err)
{
    const uint8_t *line, *newline;
    ft_sink *memory = NULL;
    ft_status st, closed;
    lines->len = 0;
    st = ft_sink_open_memory(&memory, lines, err);
    if (st == FT_OK)
        st = ft_record_write(memory, json ? FT_JSONL : FT_TSV, query, r, NULL, NULL,
                             err);
    closed = ft_sink_close(memory, st == FT_OK ? err : NULL);
    st = st == FT_OK ? closed : st;
    line = lines->data;
    for (uint64_t i = r->n; st == FT_OK && i-- > 0; line = newline + 1) {
        newline = memchr(line, '\n', lines->len - (size_t)(line - lines->data));
        st = ft_sink_write(in->out, line, (size_t)(newline - line) - json, err);
        if (st == FT_OK)
            st = put_texts(in, json, r, i, err);
        if (st == FT_OK)
            st = ft_sink_write(in->out, "\n", 1, err);
    }
    return st;
}

static ft_status print_results(const ft_inspect *in, bool json, const char *path,
                               ft_error *err)
{
    ft_stream *stream = NULL;
    ft_buf bytes = {0}, lines = {0};
    ft_status st = ft_stream_open(&stream, path, err);
    for (uint64_t query = 0; st == FT_OK; query++) {
        ft_record r;
        bool more;
        if (!ft_stream_ready(stream))
            st = ft_sink_flush(in->out, err);
        if (st == FT_OK)
            st = ft_record_read(stream, query, &bytes, &r, &more, err);
        if (st != FT_OK || !more)
            break;
        st = in->vocab ? print_with_texts(in, json, query, &r, &lines, err)
                       : ft_record_write(in->out, json ? FT_JSONL : FT_TSV, query, &r,
                                         NULL, NULL, err);
    }
    ft_buf_free(&bytes);
    ft_buf_free(&lines);
    ft_stream_close(stream);
    return st;
}

int ft_inspect_results(const ft_subcommand *self, int argc, char **argv)
{
    results_options o = {0};
    const ft_option rows[] = {
        {FT_OPT_FLAG, 0, "json", &o.json, NULL, "print JSON lines instead of TSV"},
        {FT_OPT_STRING, 0, "vocab", &o.vocab, "FILE",
         "show the texts of the tokens behind each result"},
        FT_OPTIONS_END};
    const ft_command c = {
        "ft-inspect", self->name, self->summary, "[FILE]", rows, 0, 1};
    ft_operands operands;
    ft_inspect in = {0};
    ft_error err;
    ft_status st;
    const int rc = ft_command_parse(&c, argc, argv, &operands);
    if (rc != FT_GO_ON)
        return rc;
    st = ft_inspect_open(&in, FT_OUTPUT_TEXT, NULL, o.vocab, &err);
    if (st == FT_OK)
        st = print_results(&in, o.json, operands.n ? operands.v[0] : NULL, &err);
    return ft_inspect_close(&in, st, &err);
}
