/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/trie.h"

#include "base/bits.h"

uint64_t ft_trie_walk(const ft_trie *t, const uint32_t *tokens, uint32_t n)
{
    uint64_t node = 0;
    for (uint32_t i = 0; i < n && node != UINT64_MAX; i++)
        node = t->ops->find(t, t->ops->children(t, node), tokens[i]);
    return node;
}

uint64_t ft_trie_key_number(const ft_trie *t, uint64_t node)
{
    if (!t->has_ids)
        return UINT64_MAX;
    const uint64_t rank = t->ops->terminal_rank(t, node);
    return rank < t->n_keys ? ft_packed_get(t->ids, rank, t->id_bits) : UINT64_MAX;
}
