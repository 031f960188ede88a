/* SPDX-License-Identifier: Apache-2.0
 *
 * A picture of a part of a trie, for the terminal.
 */
#ifndef FT_CMD_INSPECT_TREE_H
#define FT_CMD_INSPECT_TREE_H

#include "ft.h"
#include "vocab.h"

typedef struct ft_tree {
    ft_sink *out;
    const ft_trie *trie;
    const ft_vocab *vocab; /* or NULL */
    bool ascii;            /* also where the locale is not UTF-8 */
    bool one_level;        /* children, each with the number of its own */
    uint64_t limit;        /* keys; dots stand for the rest */
} ft_tree;

/* Draw what is below `node`, which prefix[0..n_prefix) leads to. */
ft_status ft_tree_draw(const ft_tree *t, const uint32_t *prefix, uint32_t n_prefix,
                       uint64_t node, ft_error *err);

#endif
