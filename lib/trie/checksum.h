/* SPDX-License-Identifier: Apache-2.0
 *
 * Checksums of the index file: XXH3-64 (libxxhash), little-endian hosts.
 */
#ifndef FT_TRIE_CHECKSUM_H
#define FT_TRIE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* XXH3-64 with seed 0. */
uint64_t ft_checksum(const void *data, size_t bytes);

#endif
