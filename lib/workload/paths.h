/* SPDX-License-Identifier: Apache-2.0
 *
 * A sample of the paths of a trie: what grids are drawn from.
 */
#ifndef FT_WORKLOAD_PATHS_H
#define FT_WORKLOAD_PATHS_H

#include "trie/trie.h"

typedef enum ft_paths_kind {
    FT_PATHS_KEYS, /* to keys, each as likely as another */
    FT_PATHS_DEEP, /* to nodes n_steps deep, or as deep as the trie is */
    FT_PATHS_EVEN  /* first tokens as likely as each other, then as deep as they lead */
} ft_paths_kind;

/* tokens[i][t] lies at i * n_steps + t; FT_NO_TOKEN past the end of a path, and longer
 * ones are cut. In lexicographic order: neighbours share prefixes. n_steps is what was
 * asked for, or the depth of the trie where that is less. */
typedef struct ft_paths {
    uint32_t n, n_steps;
    uint32_t *tokens;
} ft_paths;

/* n of them, with repetition, n >= 1. FT_EINVAL: the trie has no keys; FT_ENOMEM also
 * where they would take over 4 GiB. */
ft_status ft_paths_sample(ft_paths *out, const ft_trie *t, ft_paths_kind kind,
                          uint32_t n, uint32_t n_steps, uint64_t seed, ft_error *err);
void ft_paths_free(ft_paths *p);

#endif
