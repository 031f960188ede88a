/* SPDX-License-Identifier: Apache-2.0
 *
 * What an ft_index is made of; for the files that open and verify one.
 */
#ifndef FT_TRIE_IMAGE_H
#define FT_TRIE_IMAGE_H

#include "trie/index.h"
#include "trie/layout.h"

struct ft_index {
    char *name;
    const uint8_t *bytes;
    uint64_t n_bytes;
    bool mapped; /* bytes are ours to unmap */
    uint32_t n_threads;
    ft_index_front front; /* a copy that has been checked */
    const ft_layout *layout;
    ft_trie trie;
    const void *data[FT_MAX_SECTIONS]; /* raw bytes of each section */
    void *owned[FT_MAX_SECTIONS];      /* those that were decompressed */
};

/* Check what the bytes are, header, table, and that all between sections is zero; fill
 * ix->front. Messages of this and the next two lack the name. */
ft_status ft_image_check_front(ft_index *ix, ft_error *err);

/* Fill ix->data; zstd sections are decompressed. */
ft_status ft_image_load(ft_index *ix, ft_error *err);

/* Compare the checksums of the stored bytes. */
ft_status ft_image_check_sums(const ft_index *ix, ft_error *err);

#endif
