/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/keys_input.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trie/format.h"

enum { SHOWN_TOKENS = 8, SHOWN_BYTES = 128 };

int ft_keys_compare(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b,
                    uint32_t *lcp)
{
    const uint32_t n = n_a < n_b ? n_a : n_b;
    uint32_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    *lcp = i;
    if (i < n)
        return a[i] < b[i] ? -1 : 1;
    return (n_a > n_b) - (n_a < n_b);
}

/* Is the file itself an index, not the zstd form of one or a pipe that holds one? */
static bool can_map(const char *path)
{
    char magic[sizeof FT_INDEX_MAGIC - 1];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    const bool yes = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                     pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
                     memcmp(magic, FT_INDEX_MAGIC, sizeof magic) == 0;
    close(fd);
    return yes;
}

static ft_status read_image(ft_buf *image, ft_stream *in, ft_error *err)
{
    for (;;) {
        size_t avail;
        const uint8_t *data;
        ft_status st = ft_stream_peek(in, 1, &data, &avail, err);
        if (st != FT_OK || avail == 0)
            return st;
        if ((st = ft_buf_append(image, data, avail, err)) != FT_OK)
            return st;
        ft_stream_skip(in, avail);
    }
}

static ft_status open_image(ft_keys_input *in, const char *path, ft_stream *stream,
                            ft_error *err)
{
    ft_status st;
    if (strcmp(path, "-") != 0 && can_map(path)) {
        st = ft_index_open(&in->index, path, FT_VERIFY_FULL, 1, err);
    } else {
        st = read_image(&in->image, stream, err);
        if (st == FT_OK)
            st = ft_index_open_memory(&in->index, in->image.data, in->image.len,
                                      ft_stream_name(stream), FT_VERIFY_FULL, err);
    }
    if (st == FT_OK)
        st = ft_cursor_open(&in->cursor, ft_index_trie(in->index), NULL, 0, err);
    return st;
}

ft_status ft_keys_input_open(ft_keys_input *in, const char *path, ft_error *err)
{
    ft_stream *stream;
    bool index = false;
    ft_status st = ft_stream_open(&stream, path, err);
    if (st != FT_OK)
        return st;
    st = ft_index_is_index(stream, &index, err);
    if (st == FT_OK && !index) {
        in->stream = stream;
        return ft_tokens_open(&in->reader, stream, err);
    }
    if (st == FT_OK)
        st = open_image(in, path, stream, err);
    ft_stream_close(stream);
    return st;
}

ft_status ft_keys_input_read(ft_keys_input *in, const uint32_t **tokens, uint32_t *n,
                             ft_error *err)
{
    uint64_t node;
    const ft_status st = in->reader ? ft_tokens_next(in->reader, tokens, n, err)
                                    : ft_cursor_next(in->cursor, tokens, n, &node, err);
    in->n_read += st == FT_OK && *n;
    return st;
}

/* A key as text, cut where it is long. */
static void show(const uint32_t *tokens, uint32_t n, char text[SHOWN_BYTES])
{
    const uint32_t shown = n < SHOWN_TOKENS ? n : SHOWN_TOKENS;
    int used = 0;
    for (uint32_t i = 0; i < shown; i++)
        used += snprintf(text + used, SHOWN_BYTES - (size_t)used, "%s%u", i ? " " : "",
                         tokens[i]);
    if (shown < n)
        snprintf(text + used, SHOWN_BYTES - (size_t)used, " ...");
}

/* The ways out are --sort and, for text, the sort that gives this order: `sort` alone
 * compares bytes, which puts 10 before 9. */
static ft_status out_of_order(const ft_keys_input *in, const uint32_t *tokens,
                              uint32_t n, ft_error *err)
{
    const bool text = in->reader && !ft_tokens_is_binary(in->reader);
    const char *name =
        in->reader ? ft_tokens_name(in->reader) : ft_index_name(in->index);
    const char *unit = in->reader ? "record" : "key";
    const uint64_t place = in->reader ? ft_tokens_place(in->reader) : in->n_read - 1;
    char this[SHOWN_BYTES], before[SHOWN_BYTES];
    show(tokens, n, this);
    show(in->tokens, in->n, before);
    return ft_fail(err, FT_EORDER,
                   "%s: %s %llu: key out of order: '%s' after '%s' (--sort takes any "
                   "order%s)",
                   name, text ? "line" : unit, (unsigned long long)place, this, before,
                   text ? "; sort -u -V gives that of tokens as numbers" : "");
}

ft_status ft_keys_input_next(ft_keys_input *in, ft_error *err)
{
    for (;;) {
        const uint32_t *tokens;
        uint32_t n, lcp;
        ft_status st = ft_keys_input_read(in, &tokens, &n, err);
        if (st != FT_OK)
            return st;
        if (n == 0) {
            in->n = 0;
            return FT_OK;
        }
        const int order = ft_keys_compare(in->tokens, in->n, tokens, n, &lcp);
        if (order > 0)
            return out_of_order(in, tokens, n, err);
        if (order == 0) {
            in->n_duplicates++;
            continue;
        }
        void *room = in->tokens;
        st = ft_reserve(&room, &in->cap, n, sizeof *in->tokens, err);
        in->tokens = room;
        if (st != FT_OK)
            return st;
        for (uint32_t i = lcp; i < n; i++)
            in->tokens[i] = tokens[i];
        in->n = n;
        in->lcp = lcp;
        return FT_OK;
    }
}

uint64_t ft_keys_input_bytes(const ft_keys_input *in)
{
    if (in->by_blocks)
        return in->block_bytes;
    if (in->reader)
        return ft_tokens_offset(in->reader);
    if (!in->index)
        return 0;
    const uint64_t n_keys = ft_index_trie(in->index)->n_keys;
    const double part = n_keys ? (double)in->n_read / (double)n_keys : 1;
    return (uint64_t)(part * (double)ft_index_file_bytes(in->index));
}

void ft_keys_input_close(ft_keys_input *in)
{
    ft_tokens_close(in->reader);
    ft_cursor_close(in->cursor);
    ft_index_close(in->index);
    ft_buf_free(&in->image);
    free(in->tokens);
    *in = (ft_keys_input){0};
}
