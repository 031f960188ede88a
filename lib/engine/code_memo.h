/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of tokens, remembered. A search maps each proposal to the code that the trie
 * stores for it; models propose the same tokens again and again, and a table look-up is
 * cheaper than a rank over sets. Tables fill as they are asked; threads
 * share them (two that ask at once store the same).
 */
#ifndef FT_ENGINE_CODE_MEMO_H
#define FT_ENGINE_CODE_MEMO_H

#include <stdatomic.h>

#include "base/score.h"
#include "trie/trie.h"

typedef struct ft_code_memo {
    const ft_trie *trie;
    /* By code set, over all ids: 0 not yet asked, FT_NO_TOKEN no code, else code + 1.
     * NULL: tokens are their own codes, or there are too many ids for a table. */
    atomic_uint *known[FT_MAX_CODE_SETS];
} ft_code_memo;

ft_status ft_code_memo_open(ft_code_memo *m, const ft_trie *trie, ft_error *err);
void ft_code_memo_close(ft_code_memo *m);

/* ops->code with a memory; `known` is of the level's set. */
static inline uint32_t ft_code_remembered(const ft_code_memo *m, atomic_uint *known,
                                          uint32_t token, uint32_t level)
{
    if (!known)
        return m->trie->ops->code(m->trie, token, level);
    if (token > m->trie->max_token)
        return FT_NO_TOKEN;
    const uint32_t v = atomic_load_explicit(&known[token], memory_order_relaxed);
    if (v)
        return v == FT_NO_TOKEN ? v : v - 1;
    const uint32_t code = m->trie->ops->code(m->trie, token, level);
    atomic_store_explicit(&known[token], code == FT_NO_TOKEN ? code : code + 1,
                          memory_order_relaxed);
    return code;
}

#endif
