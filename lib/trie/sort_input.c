/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/sort_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trie/keys_input.h"
#include "trie/sort.h"

enum { KEYS_AT_A_CALL = 4096 };

struct ft_sort_input {
    const char *const *paths;
    uint32_t n_paths, n_begun;
    ft_keys_input in; /* the last of those begun */
    bool reading;
    ft_keys_counts done; /* of inputs that are closed */
    ft_sorter *sorter;
};

/* An input that is not there is found before hours go into those in front of it. */
static ft_status check_paths(const char *const *paths, uint32_t n, ft_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(paths[i], "-") != 0 && access(paths[i], R_OK) != 0)
            return ft_fail_errno(err, FT_EIO, errno, "%s: cannot open", paths[i]);
    return FT_OK;
}

ft_status ft_sort_input_open(ft_sort_input **out, const char *const *paths, uint32_t n,
                             uint64_t memory_bytes, const char *tmpdir, ft_error *err)
{
    ft_status st = check_paths(paths, n, err);
    if (st != FT_OK)
        return st;
    ft_sort_input *s = ft_new(ft_sort_input, err);
    if (!s)
        return FT_ENOMEM;
    s->paths = paths;
    s->n_paths = n;
    st = ft_sorter_open(&s->sorter, memory_bytes, tmpdir, err);
    if (st != FT_OK) {
        ft_sort_input_close(s);
        return st;
    }
    *out = s;
    return FT_OK;
}

static void count_input(const ft_keys_input *in, ft_keys_counts *counts)
{
    counts->n_read += in->n_read;
    counts->n_skipped += in->reader ? ft_tokens_n_skipped(in->reader) : 0;
    counts->input_bytes += ft_keys_input_bytes(in);
}

static void end_input(ft_sort_input *s)
{
    count_input(&s->in, &s->done);
    ft_keys_input_close(&s->in);
    s->reading = false;
}

ft_status ft_sort_input_gather(ft_sort_input *s, bool *more, ft_error *err)
{
    ft_status st = FT_OK;
    if (!s->reading) {
        if (s->n_begun == s->n_paths) {
            *more = false;
            return ft_sorter_finish(s->sorter, err);
        }
        s->reading = true;
        st = ft_keys_input_open(&s->in, s->paths[s->n_begun++], err);
    }
    *more = true;
    for (int i = 0; st == FT_OK && i < KEYS_AT_A_CALL; i++) {
        const uint32_t *tokens;
        uint32_t n;
        st = ft_keys_input_read(&s->in, &tokens, &n, err);
        if (st == FT_OK && n == 0) {
            end_input(s);
            break;
        }
        if (st == FT_OK)
            st = ft_sorter_add(s->sorter, tokens, n, err);
    }
    return st;
}

ft_status ft_sort_input_next(ft_sort_input *s, ft_key *key, ft_error *err)
{
    return ft_sorter_next(s->sorter, key, err);
}

void ft_sort_input_count(const ft_sort_input *s, ft_keys_counts *counts)
{
    counts->n_read += s->done.n_read;
    counts->n_skipped += s->done.n_skipped;
    counts->input_bytes += s->done.input_bytes;
    counts->n_duplicates += ft_sorter_n_duplicates(s->sorter);
    if (s->reading)
        count_input(&s->in, counts);
}

void ft_sort_input_close(ft_sort_input *s)
{
    if (!s)
        return;
    ft_keys_input_close(&s->in);
    ft_sorter_close(s->sorter);
    free(s);
}
