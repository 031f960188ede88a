/* SPDX-License-Identifier: Apache-2.0
 *
 * What a builder is made of; for the files that fill one.
 */
#ifndef FT_TRIE_BUILDER_H
#define FT_TRIE_BUILDER_H

#include "trie/build.h"
#include "trie/layout.h"
#include "trie/tails.h"

struct ft_builder {
    const ft_layout *layout;
    const ft_tails_form *form; /* of tails, over the layout or its own */
    ft_tails_when tails;
    int compress_level;
    uint32_t n_threads;
    uint64_t block_bytes;
    bool spent;
    ft_levels levels;
};

/* Refuse more nodes. */
ft_status ft_builder_full(ft_error *err);

#endif
