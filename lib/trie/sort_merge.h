/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorted sources of keys merged into one, equal keys dropped.
 */
#ifndef FT_TRIE_SORT_MERGE_H
#define FT_TRIE_SORT_MERGE_H

#include "trie/sort_chunk.h"
#include "trie/sort_run.h"

typedef struct ft_sort_source {
    ft_sort_chunk *chunk;  /* or, where it is NULL: */
    ft_sort_reader reader; /* closed with the merge */
    ft_key key;            /* the next; n = 0: the source is used up */
} ft_sort_source;

typedef struct ft_sort_merge {
    ft_sort_source *sources;
    uint32_t n;
    uint32_t *loser; /* of the match at each inner node of the tree, 1 to n - 1 */
    uint32_t winner; /* whose key was handed out last */
    bool started;
    uint64_t n_duplicates; /* between sources */
} ft_sort_merge;

/* For n sources, which the caller fills in. *m is zeroed. */
ft_status ft_sort_merge_open(ft_sort_merge *m, uint32_t n, ft_error *err);

/* The next key, with what it shares with the one before, valid until the next call; n =
 * 0 at the end. */
ft_status ft_sort_merge_next(ft_sort_merge *m, ft_key *key, ft_error *err);
void ft_sort_merge_close(ft_sort_merge *m);

#endif
