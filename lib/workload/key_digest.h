/* SPDX-License-Identifier: Apache-2.0
 *
 * A number that tells libraries apart: the sum, mod 2^64, of one for each key. So it is
 * the same whatever holds the keys, the layout of an index or a file, and in any order.
 */
#ifndef FT_WORKLOAD_KEY_DIGEST_H
#define FT_WORKLOAD_KEY_DIGEST_H

#include "trie/trie.h"

uint64_t ft_key_digest(const uint32_t *tokens, uint32_t n);

/* The sum over all keys of the trie, by n_threads (0: one a processor). FT_ENOMEM. */
ft_status ft_library_digest(const ft_trie *t, uint32_t n_threads, uint64_t *digest,
                            ft_error *err);

#endif
