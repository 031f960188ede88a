/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

static ft_status open_index(ft_inspect *in, const char *path, ft_error *err)
{
    const double start = ft_seconds();
    const ft_status st = ft_index_open(&in->index, path, FT_VERIFY_FULL, 0, err);
    if (st == FT_OK && ft_is_verbose()) {
        const ft_trie *t = ft_index_trie(in->index);
        ft_say("%s: %s layout, %llu keys, %llu nodes; open after %.2f ms", path,
               ft_index_layout(in->index), (unsigned long long)t->n_keys,
               (unsigned long long)t->n_nodes, 1e3 * (ft_seconds() - start));
    }
    return st;
}

ft_status ft_inspect_open(ft_inspect *in, ft_output_kind kind, const char *index_path,
                          const char *vocab_path, ft_error *err)
{
    ft_status st = ft_output_open(&in->out, NULL, kind, err);
    if (st == FT_OK && index_path)
        st = open_index(in, index_path, err);
    if (st == FT_OK && vocab_path)
        st = ft_vocab_open(&in->vocab, vocab_path, err);
    return st;
}

int ft_inspect_close(ft_inspect *in, ft_status st, ft_error *err)
{
    st = ft_output_close(in->out, st, err);
    ft_index_close(in->index);
    ft_vocab_close(in->vocab);
    return ft_finish(st, err);
}

uint32_t *ft_inspect_prefix(const ft_command *c, const ft_operands *operands,
                            uint32_t first, int *rc)
{
    ft_error err;
    uint32_t *tokens = ft_calloc(operands->n, sizeof *tokens, &err);
    if (!tokens)
        *rc = ft_finish(FT_ENOMEM, &err);
    for (uint32_t i = first; tokens && i < operands->n; i++) {
        const char *p = operands->v[i], *end = p + strlen(p);
        if (!ft_token_parse(&p, end, &tokens[i - first]) || p != end) {
            *rc =
                ft_command_usage(c, "'%s' is not a token: a whole number from 0 to %u",
                                 operands->v[i], FT_NO_TOKEN - 1);
            free(tokens);
            return NULL;
        }
    }
    return tokens;
}

ft_status ft_inspect_tokens(ft_sink *out, const uint32_t *tokens, uint32_t n,
                            ft_error *err)
{
    ft_status st = FT_OK;
    for (uint32_t i = 0; st == FT_OK && i < n; i++)
        st = ft_sink_printf(out, err, i ? " %u" : "%u", tokens[i]);
    return st;
}

ft_status ft_inspect_texts(ft_sink *out, const ft_vocab *vocab, const uint32_t *tokens,
                           uint32_t n, ft_error *err)
{
    ft_status st = vocab ? ft_sink_write(out, "\t", 1, err) : FT_OK;
    for (uint32_t i = 0; vocab && st == FT_OK && i < n; i++) {
        const char *text = ft_vocab_text(vocab, tokens[i]);
        st = text ? ft_sink_write(out, text, strlen(text), err)
                  : ft_sink_printf(out, err, "<%u>", tokens[i]);
    }
    return st;
}
