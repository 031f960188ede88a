/* SPDX-License-Identifier: Apache-2.0
 *
 * One ordered stream of unique keys out of any number of inputs: token text, token
 * binary or an index (its keys), zstd or plain. Checks each input's order and merges
 * them, or sorts inputs in any order; drops equal keys (counted), takes out the keys of
 * the `subtract` inputs.
 */
#ifndef FT_TRIE_KEYS_H
#define FT_TRIE_KEYS_H

#include "io/stream.h"

typedef struct ft_keys ft_keys;

typedef struct ft_keys_options {
    const char *const *paths; /* n_paths of them; "-" is standard input */
    uint32_t n_paths;
    const char *const *subtract;
    uint32_t n_subtract;

    /* Inputs, `subtract` too, come in any order. They are read one after another and
     * sorted in memory_bytes (trie/sort.h), a quarter of it for `subtract` where there
     * is any; what does not fit goes through a file without a name in tmpdir. The paths
     * outlive the stream. */
    bool sort;
    uint64_t memory_bytes;
    const char *tmpdir;
} ft_keys_options;

typedef struct ft_key {
    const uint32_t *tokens; /* valid until the next call */
    uint32_t n;             /* 0: the end */
    uint32_t lcp;           /* tokens shared with the key before it */
} ft_key;

typedef struct ft_keys_counts {
    uint64_t n_read;       /* keys read from the inputs */
    uint64_t n_skipped;    /* empty lines */
    uint64_t n_duplicates; /* equal keys dropped, within and between inputs */
    uint64_t n_subtracted;
    uint64_t input_bytes; /* decompressed bytes read, for progress */
} ft_keys_counts;

ft_status ft_keys_open(ft_keys **out, const ft_keys_options *options, ft_error *err);

/* Read on where all inputs have to be read before the first key: some thousand keys at
 * a call, so that the caller can show how far it is. *more = false: there is no more to
 * read, or there was no need to. ft_keys_next does what is left of it. */
ft_status ft_keys_gather(ft_keys *k, bool *more, ft_error *err);

/* Out of order: FT_EORDER, naming the input, the line or record, both keys (cut when
 * long) and the way out. */
ft_status ft_keys_next(ft_keys *k, ft_key *key, ft_error *err);
ft_keys_counts ft_keys_counts_of(const ft_keys *k);
void ft_keys_close(ft_keys *k);

/* Lexicographic order by token, a prefix first; *lcp: tokens shared. <0, 0, >0. */
int ft_keys_compare(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b,
                    uint32_t *lcp);

#endif
