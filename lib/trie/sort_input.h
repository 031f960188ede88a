/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of keys in any order (trie/keys.h), read one after another, as one stream in
 * order.
 */
#ifndef FT_TRIE_SORT_INPUT_H
#define FT_TRIE_SORT_INPUT_H

#include "trie/keys.h"

typedef struct ft_sort_input ft_sort_input;

/* Paths and their strings outlive it. Files that cannot be read are found now. */
ft_status ft_sort_input_open(ft_sort_input **out, const char *const *paths, uint32_t n,
                             uint64_t memory_bytes, const char *tmpdir, ft_error *err);

/* Read some thousand keys. *more = false: all have been read; no call after that. */
ft_status ft_sort_input_gather(ft_sort_input *s, bool *more, ft_error *err);

/* When all have been read: the next key in order; n = 0 at the end. */
ft_status ft_sort_input_next(ft_sort_input *s, ft_key *key, ft_error *err);

/* Add what this stream has counted. */
void ft_sort_input_count(const ft_sort_input *s, ft_keys_counts *counts);
void ft_sort_input_close(ft_sort_input *s);

#endif
