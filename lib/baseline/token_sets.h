/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tokens a library's keys have at each position: what PPT goes by, the ablation
 * without a trie (paper, Appendix I).
 */
#ifndef FT_BASELINE_TOKEN_SETS_H
#define FT_BASELINE_TOKEN_SETS_H

#include "trie/trie.h"

typedef struct ft_token_sets {
    uint32_t depth;    /* of the trie */
    uint64_t *offsets; /* depth + 1: of position d's tokens, which ascend */
    uint32_t *tokens;
    uint8_t *ends; /* depth: does a key end with position d's token? */
} ft_token_sets;

/* Visits all nodes, on n_threads threads (0: one a processor). */
ft_status ft_token_sets_make(ft_token_sets *out, const ft_trie *trie,
                             uint32_t n_threads, ft_error *err);
void ft_token_sets_free(ft_token_sets *s);

#endif
