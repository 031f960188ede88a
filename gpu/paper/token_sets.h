/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tokens a library's keys have at each position (paper, Appendix I).
 */
#ifndef FT_GPU_PAPER_TOKEN_SETS_H
#define FT_GPU_PAPER_TOKEN_SETS_H

#include "../lib.h"

typedef struct ft_token_sets {
    uint32_t depth;    /* of the trie */
    uint64_t *offsets; /* depth + 1: of position d's tokens, which ascend */
    uint32_t *tokens;
    uint8_t *ends; /* depth: does a key end with position d's token? */
} ft_token_sets;

/* Reads all keys; *out is zeroed before. */
ft_status ft_token_sets_make(ft_token_sets *out, const ft_trie *trie, ft_error *err);
void ft_token_sets_free(ft_token_sets *s);

#endif
