/* SPDX-License-Identifier: Apache-2.0
 *
 * Key numbers, the same in all layouts: packed, one for each node that ends a key, in
 * the order of those nodes.
 */
#ifndef FT_TRIE_IDS_H
#define FT_TRIE_IDS_H

#include "trie/layout.h"

/* Parts of a layout's functions; nothing where the trie has no key numbers. `open` adds
 * the section to *n_used and sets trie->ids and trie->id_bits. */
ft_status ft_ids_build(ft_writer *w, const ft_level_map *map);
ft_status ft_ids_open(ft_trie *trie, const ft_sections *sections, uint32_t *n_used,
                      ft_error *err);
ft_status ft_ids_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err);

#endif
