/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-inspect dump and lookup: keys out of an index, keys against an index.
 */
#include "inspect.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { KEYS_BETWEEN_CLOCKS = 4096 };

typedef struct dump_options {
    bool binary;
    const char *vocab;
} dump_options;

static ft_status dump_key(const ft_inspect *in, bool binary, const uint32_t *tokens,
                          uint32_t n, ft_error *err)
{
    ft_status st;
    if (binary)
        return ft_tokens_write_binary(in->out, tokens, n, err);
    if (!in->vocab)
        return ft_tokens_write_text(in->out, tokens, n, err);
    st = ft_inspect_tokens(in->out, tokens, n, err);
    if (st == FT_OK)
        st = ft_inspect_texts(in->out, in->vocab, tokens, n, err);
    return st == FT_OK ? ft_sink_write(in->out, "\n", 1, err) : st;
}

static ft_status dump(const ft_inspect *in, bool binary, ft_error *err)
{
    const ft_trie *t = ft_index_trie(in->index);
    ft_cursor *cursor = NULL;
    ft_status st = ft_cursor_open(&cursor, t, NULL, 0, err);
    if (st == FT_OK && binary)
        st = ft_tokens_write_binary_header(in->out, err);
    for (uint64_t i = 1; st == FT_OK; i++) {
        const uint32_t *tokens;
        uint64_t node;
        uint32_t n;
        st = ft_cursor_next(cursor, &tokens, &n, &node, err);
        if (st != FT_OK || n == 0)
            break;
        st = dump_key(in, binary, tokens, n, err);
        if (i % KEYS_BETWEEN_CLOCKS == 0 && ft_progress_due())
            ft_progress("%.0f %% of the keys", 100.0 * (double)i / (double)t->n_keys);
    }
    ft_cursor_close(cursor);
    return st;
}

int ft_inspect_dump(const ft_subcommand *self, int argc, char **argv)
{
    dump_options o = {0};
    const ft_option rows[] = {
        {FT_OPT_FLAG, 0, "binary", &o.binary, NULL, "print keys in the binary form"},
        {FT_OPT_STRING, 0, "vocab", &o.vocab, "FILE",
         "show the texts of the tokens behind each key"},
        FT_OPTIONS_END};
    const ft_command c = {"ft-inspect", self->name, self->summary, "INDEX", rows, 1, 1};
    ft_operands operands;
    ft_inspect in = {0};
    ft_error err;
    ft_status st;
    const int rc = ft_command_parse(&c, argc, argv, &operands);
    if (rc != FT_GO_ON)
        return rc;
    if (o.binary && o.vocab)
        return ft_command_usage(&c, "--binary and --vocab exclude each other");
    st = ft_inspect_open(&in, o.binary ? FT_OUTPUT_BINARY : FT_OUTPUT_TEXT,
                         operands.v[0], o.vocab, &err);
    if (st == FT_OK)
        st = dump(&in, o.binary, &err);
    return ft_inspect_close(&in, st, &err);
}

static ft_status print_found(const ft_inspect *in, const uint32_t *tokens, uint32_t n,
                             ft_error *err)
{
    const ft_trie *t = ft_index_trie(in->index);
    const uint64_t node = ft_trie_walk(t, tokens, n);
    if (node == UINT64_MAX || !(t->ops->flags(t, node) & FT_NODE_TERMINAL))
        return ft_sink_write(in->out, "-\n", 2, err);
    if (!t->has_ids)
        return ft_sink_write(in->out, "found\n", 6, err);
    return ft_sink_printf(in->out, err, "%llu\n",
                          (unsigned long long)ft_trie_key_number(t, node));
}

/* Has all of standard input been read that is there to read? The reader of keys may
 * hold some of it: then answers go out a little early, which does no harm. */
static bool must_wait(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

/* Answers go out before the next key is waited for, so that a program can ask and read
 * in turn. */
static ft_status lookup(const ft_inspect *in, const char *path, ft_error *err)
{
    const bool asked = !path || strcmp(path, "-") == 0;
    ft_stream *keys = NULL;
    ft_tokens *reader = NULL;
    ft_status st = ft_stream_open(&keys, path, err);
    if (st == FT_OK)
        st = ft_tokens_open(&reader, keys, err);
    while (st == FT_OK) {
        const uint32_t *tokens;
        uint32_t n;
        if (asked && must_wait())
            st = ft_sink_flush(in->out, err);
        if (st == FT_OK)
            st = ft_tokens_next(reader, &tokens, &n, err);
        if (st != FT_OK || n == 0)
            break;
        st = print_found(in, tokens, n, err);
    }
    ft_tokens_close(reader);
    return st;
}

int ft_inspect_lookup(const ft_subcommand *self, int argc, char **argv)
{
    const ft_command c = {
        "ft-inspect", self->name, self->summary, "INDEX [FILE]", NULL, 1, 2};
    ft_operands operands;
    ft_inspect in = {0};
    ft_error err;
    ft_status st;
    const int rc = ft_command_parse(&c, argc, argv, &operands);
    if (rc != FT_GO_ON)
        return rc;
    st = ft_inspect_open(&in, FT_OUTPUT_TEXT, operands.v[0], NULL, &err);
    if (st == FT_OK)
        st = lookup(&in, operands.n > 1 ? operands.v[1] : NULL, &err);
    return ft_inspect_close(&in, st, &err);
}
