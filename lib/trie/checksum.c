/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t ft_checksum(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}
