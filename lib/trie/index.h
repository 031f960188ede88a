/* SPDX-License-Identifier: Apache-2.0
 *
 * The index file: ft-index(5). Opened by mapping; verified unless the caller trusts it.
 */
#ifndef FT_TRIE_INDEX_H
#define FT_TRIE_INDEX_H

#include "io/stream.h"
#include "trie/build.h"
#include "trie/trie.h"

typedef struct ft_index ft_index;

typedef enum ft_verify {
    FT_VERIFY_FULL,      /* checksums and structure (default) */
    FT_VERIFY_STRUCTURE, /* structure only: safe to walk, whatever the bytes */
    FT_VERIFY_NONE       /* header and section table only: trusted files */
} ft_verify;

/* Map the file and verify it. Whatever the bytes are, the outcome is an error that says
 * what is wrong or a view that is safe to walk (not with FT_VERIFY_NONE). */
ft_status ft_index_open(ft_index **out, const char *path, ft_verify verify,
                        uint32_t n_threads, ft_error *err);

/* The same over memory that stays the caller's; `data` is aligned to 8 bytes. */
ft_status ft_index_open_memory(ft_index **out, const void *data, uint64_t bytes,
                               const char *name, ft_verify verify, ft_error *err);

/* Does the stream start with the magic of an index? */
ft_status ft_index_is_index(ft_stream *in, bool *index, ft_error *err);

const ft_trie *ft_index_trie(const ft_index *ix);
const char *ft_index_layout(const ft_index *ix); /* "narrow", "wide", ... */
const char *ft_index_name(const ft_index *ix);   /* the path */
uint64_t ft_index_file_bytes(const ft_index *ix);
void ft_index_close(ft_index *ix);

/* Sections, for stats, verify and the device copy. */
typedef struct ft_section_info {
    const char *name; /* "louds", "terminal", ... */
    uint32_t type, encoding;
    uint64_t offset, stored_bytes, raw_bytes, checksum;
    const void *data; /* raw bytes in memory */
} ft_section_info;

/* What tails hold; false: the index has none. */
bool ft_index_tails(const ft_index *ix, ft_tail_summary *out);

uint32_t ft_index_n_sections(const ft_index *ix);
ft_section_info ft_index_section(const ft_index *ix, uint32_t i);

/* Everything that FT_VERIFY_FULL checks, and the order of all siblings, the depth and
 * the key numbers: every structural invariant of ft-index(5). */
ft_status ft_index_verify(const ft_index *ix, ft_error *err);

#endif
