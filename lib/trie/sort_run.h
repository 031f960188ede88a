/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorted runs of keys in a temporary file that has no name, so that nothing is left of
 * it however the process ends. A key is written as what it does not share with the key
 * before it; blocks of these are compressed, each on its own, with zstd. One thread at
 * a time uses a file and its readers.
 */
#ifndef FT_TRIE_SORT_RUN_H
#define FT_TRIE_SORT_RUN_H

#include "trie/keys.h"

typedef struct ft_sort_file ft_sort_file;

typedef struct ft_sort_run {
    uint64_t begin, end;  /* in the file */
    uint32_t token_bytes; /* 1 to 4: of each token */
} ft_sort_run;

/* In `folder`, which outlives the file. block_bytes: before compression, 4 KiB to 1
 * GiB; a file takes about twice that, and zstd's own memory. */
ft_status ft_sort_file_open(ft_sort_file **out, const char *folder,
                            uint32_t block_bytes, ft_error *err);

/* Write a run: begin (no token is above max_token), add its keys in order, end. A full
 * disk names the folder and the way out. */
void ft_sort_file_begin(ft_sort_file *f, uint32_t max_token);
ft_status ft_sort_file_add(ft_sort_file *f, const ft_key *key, ft_error *err);
ft_status ft_sort_file_end(ft_sort_file *f, ft_sort_run *run, ft_error *err);

/* Give the disk room of a run back, where the file system can. */
void ft_sort_file_drop(ft_sort_file *f, const ft_sort_run *run);
uint64_t ft_sort_file_bytes(const ft_sort_file *f);
void ft_sort_file_close(ft_sort_file *f);

typedef struct ft_sort_reader {
    ft_sort_file *file; /* outlives the reader */
    uint64_t at, end;   /* what is left of the run, in the file */
    uint32_t token_bytes;
    uint8_t *block; /* decompressed; p .. block_end is to be read */
    const uint8_t *p, *block_end;
    uint32_t *tokens; /* of the key read last */
    uint32_t n, longest;
} ft_sort_reader;

/* *r is zeroed. longest: tokens of the longest key of the run. Takes block_bytes and
 * 4 bytes for each of `longest`. */
ft_status ft_sort_reader_open(ft_sort_reader *r, ft_sort_file *f,
                              const ft_sort_run *run, uint32_t longest, ft_error *err);

/* The next key, valid until the next call; n = 0 at the end. */
ft_status ft_sort_reader_next(ft_sort_reader *r, ft_key *key, ft_error *err);
void ft_sort_reader_close(ft_sort_reader *r);

#endif
