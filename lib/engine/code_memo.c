/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/code_memo.h"

#include <stdlib.h>

#include "base/mem.h"

enum { MAX_IDS = 1 << 24 }; /* 64 MiB a table, of which what is asked is touched */

ft_status ft_code_memo_open(ft_code_memo *m, const ft_trie *trie, ft_error *err)
{
    ft_code_memo fresh = {.trie = trie};
    if (trie->ops->code && trie->max_token < MAX_IDS) {
        uint32_t n_sets = 0;
        for (uint32_t level = 1; level <= trie->depth; level++) {
            const uint32_t set = trie->ops->code_set(trie, level);
            n_sets = set + 1 > n_sets ? set + 1 : n_sets;
        }
        for (uint32_t i = 0; i < n_sets; i++) {
            fresh.known[i] =
                ft_calloc((uint64_t)trie->max_token + 1, sizeof *fresh.known[i], err);
            if (!fresh.known[i]) {
                ft_code_memo_close(&fresh);
                return FT_ENOMEM;
            }
        }
    }
    *m = fresh;
    return FT_OK;
}

void ft_code_memo_close(ft_code_memo *m)
{
    for (uint32_t i = 0; i < FT_MAX_CODE_SETS; i++)
        free(m->known[i]);
    *m = (ft_code_memo){0};
}
