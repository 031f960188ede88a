/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys in any order become unique keys in order, in bounded memory: what does not fit
 * is sorted piece by piece and spilled to a temporary file without a name
 * (trie/sort_run.h) that is merged at the end.
 */
#ifndef FT_TRIE_SORT_H
#define FT_TRIE_SORT_H

#include "trie/keys.h"

typedef struct ft_sorter ft_sorter;

/* Room for any key, twice, and for what it takes to merge. */
#define FT_SORT_MIN_MEMORY (UINT64_C(1) << 20)

/* memory_bytes: at least FT_SORT_MIN_MEMORY; half a megabyte more may be taken where
 * keys are very long. tmpdir: a folder, checked now, used when memory is full. */
ft_status ft_sorter_open(ft_sorter **out, uint64_t memory_bytes, const char *tmpdir,
                         ft_error *err);

/* Take a key of 1 to FT_MAX_KEY_TOKENS tokens, none of them FT_NO_TOKEN. Memory that is
 * full is sorted and written by another thread while the next is filled. */
ft_status ft_sorter_add(ft_sorter *s, const uint32_t *tokens, uint32_t n,
                        ft_error *err);

/* No key comes any more. */
ft_status ft_sorter_finish(ft_sorter *s, ft_error *err);

/* After that: the next key in order; n = 0 at the end. */
ft_status ft_sorter_next(ft_sorter *s, ft_key *key, ft_error *err);

/* Keys dropped so far because another is equal to them: all of them, at the end. */
uint64_t ft_sorter_n_duplicates(const ft_sorter *s);

/* What was spilled, once it is finished: runs and bytes written, those of merges in
 * between included. */
uint64_t ft_sorter_n_runs(const ft_sorter *s);
uint64_t ft_sorter_spilled_bytes(const ft_sorter *s);
void ft_sorter_close(ft_sorter *s);

#endif
