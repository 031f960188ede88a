/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-inspect children and predict: what can follow a prefix.
 */
#include "inspect.h"

#include <stdlib.h>

#include "inspect_tree.h"

typedef struct walk_options {
    const char *vocab;
    uint64_t limit; /* keys */
    bool tree, ascii;
} walk_options;

/* The prefix's node. The prefix is part of the question, so that one that leads nowhere
 * is an error and not an empty answer. */
static ft_status find_prefix(const ft_inspect *in, const uint32_t *prefix, uint32_t n,
                             uint64_t *node, ft_error *err)
{
    const ft_trie *t = ft_index_trie(in->index);
    uint32_t k = 0;
    *node = ft_trie_walk(t, prefix, n);
    if (*node != UINT64_MAX)
        return FT_OK;
    while (ft_trie_walk(t, prefix, k + 1) != UINT64_MAX)
        k++;
    return ft_fail(err, FT_EFORMAT,
                   "%s: token %u of the prefix: no key goes on with %u",
                   ft_index_name(in->index), k + 1, prefix[k]);
}

/* ", number" of a key, as a column; nothing where numbers are not stored. */
static ft_status print_number(const ft_inspect *in, uint64_t node, bool key,
                              ft_error *err)
{
    const ft_trie *t = ft_index_trie(in->index);
    if (!t->has_ids)
        return FT_OK;
    return key ? ft_sink_printf(in->out, err, "\t%llu",
                                (unsigned long long)ft_trie_key_number(t, node))
               : ft_sink_write(in->out, "\t-", 2, err);
}

static ft_status print_children(const ft_inspect *in, uint64_t node, ft_error *err)
{
    const ft_trie *t = ft_index_trie(in->index);
    const ft_range r = t->ops->children(t, node);
    ft_status st = FT_OK;
    for (uint64_t i = 0; st == FT_OK && i < r.count; i++) {
        const uint64_t child = r.first + i;
        const bool key = t->ops->flags(t, child) & FT_NODE_TERMINAL;
        uint32_t token;
        t->ops->labels(t, child, 1, &token);
        st = ft_sink_printf(in->out, err, "%u\t%s\t%llu", token, key ? "key" : "-",
                            (unsigned long long)t->ops->children(t, child).count);
        if (st == FT_OK)
            st = print_number(in, child, key, err);
        if (st == FT_OK)
            st = ft_inspect_texts(in->out, in->vocab, &token, 1, err);
        if (st == FT_OK)
            st = ft_sink_write(in->out, "\n", 1, err);
    }
    return st;
}

static ft_status print_keys(const ft_inspect *in, const uint32_t *prefix,
                            uint32_t n_prefix, uint64_t limit, ft_error *err)
{
    ft_cursor *cursor = NULL;
    ft_status st =
        ft_cursor_open(&cursor, ft_index_trie(in->index), prefix, n_prefix, err);
    while (st == FT_OK && limit--) {
        const uint32_t *tokens;
        uint64_t node;
        uint32_t n;
        st = ft_cursor_next(cursor, &tokens, &n, &node, err);
        if (st != FT_OK || n == 0)
            break;
        st = ft_inspect_tokens(in->out, tokens, n, err);
        if (st == FT_OK)
            st = print_number(in, node, true, err);
        if (st == FT_OK)
            st = ft_inspect_texts(in->out, in->vocab, tokens, n, err);
        if (st == FT_OK)
            st = ft_sink_write(in->out, "\n", 1, err);
    }
    ft_cursor_close(cursor);
    return st;
}

static ft_status answer(const ft_inspect *in, const walk_options *o, bool children,
                        const uint32_t *prefix, uint32_t n, ft_error *err)
{
    uint64_t node;
    ft_status st = find_prefix(in, prefix, n, &node, err);
    if (st != FT_OK)
        return st;
    if (o->tree) {
        const ft_tree tree = {.out = in->out,
                              .trie = ft_index_trie(in->index),
                              .vocab = in->vocab,
                              .ascii = o->ascii,
                              .one_level = children,
                              .limit = o->limit};
        return ft_tree_draw(&tree, prefix, n, node, err);
    }
    return children ? print_children(in, node, err)
                    : print_keys(in, prefix, n, o->limit, err);
}

static int run(const ft_command *c, const walk_options *o, bool children, int argc,
               char **argv)
{
    ft_operands operands;
    ft_inspect in = {0};
    ft_error err;
    ft_status st;
    uint32_t *prefix;
    int rc = ft_command_parse(c, argc, argv, &operands);
    if (rc != FT_GO_ON)
        return rc;
    if (o->ascii && !o->tree)
        return ft_command_usage(c, "--ascii is for --tree");
    prefix = ft_inspect_prefix(c, &operands, 1, &rc);
    if (!prefix)
        return rc;
    st = ft_inspect_open(&in, FT_OUTPUT_TEXT, operands.v[0], o->vocab, &err);
    if (st == FT_OK)
        st = answer(&in, o, children, prefix, operands.n - 1, &err);
    free(prefix);
    return ft_inspect_close(&in, st, &err);
}

static const char vocab_help[] = "show the texts of tokens",
                  tree_help[] = "draw a tree",
                  ascii_help[] = "draw it without box characters";

int ft_inspect_children(const ft_subcommand *self, int argc, char **argv)
{
    walk_options o = {.limit = UINT64_MAX};
    const ft_option rows[] = {{FT_OPT_FLAG, 0, "tree", &o.tree, NULL, tree_help},
                              {FT_OPT_FLAG, 0, "ascii", &o.ascii, NULL, ascii_help},
                              {FT_OPT_STRING, 0, "vocab", &o.vocab, "FILE", vocab_help},
                              FT_OPTIONS_END};
    const ft_command c = {"ft-inspect", self->name, self->summary,  "INDEX [TOKEN...]",
                          rows,         1,          FT_ANY_OPERANDS};
    return run(&c, &o, true, argc, argv);
}

int ft_inspect_predict(const ft_subcommand *self, int argc, char **argv)
{
    walk_options o = {.limit = UINT64_MAX};
    const ft_option rows[] = {{FT_OPT_U64, 0, "limit", &o.limit, "N",
                               "stop after N keys", .min = 1, .max = 1e18},
                              {FT_OPT_FLAG, 0, "tree", &o.tree, NULL, tree_help},
                              {FT_OPT_FLAG, 0, "ascii", &o.ascii, NULL, ascii_help},
                              {FT_OPT_STRING, 0, "vocab", &o.vocab, "FILE", vocab_help},
                              FT_OPTIONS_END};
    const ft_command c = {"ft-inspect", self->name, self->summary,  "INDEX [TOKEN...]",
                          rows,         1,          FT_ANY_OPERANDS};
    return run(&c, &o, false, argc, argv);
}
