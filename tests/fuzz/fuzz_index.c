/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as an index: refused, or safe to walk. The bytes are tried as they are,
 * then with sizes and header checksum put right, so that the checks behind them are
 * reached.
 */
#include <string.h>

#include "trie/format.h"
#include "walk_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { BUDGET = 50000 };

static volatile uint64_t sink;

static void try_index(const void *data, size_t bytes, ft_verify verify)
{
    ft_index *ix;
    if (ft_index_open_memory(&ix, data, bytes, "fuzz", verify, NULL) != FT_OK)
        return;
    sink = walk_index(ix, BUDGET);
    ft_index_close(ix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    /* Exactly as long as the input, so that reading past it is seen. */
    void *copy = calloc(bytes ? bytes : 1, 1);
    if (!copy)
        return 0;
    if (bytes)
        memcpy(copy, data, bytes);
    try_index(copy, bytes, FT_VERIFY_FULL);
    if (bytes >= FT_SECTIONS_AT) {
        ft_index_front *front = copy;
        memcpy(front->header.magic, FT_INDEX_MAGIC, sizeof front->header.magic);
        front->header.byte_order = FT_BYTE_ORDER;
        front->header.version = FT_INDEX_VERSION;
        front->header.file_bytes = bytes;
        front->header.checksum = ft_index_front_checksum(front);
        try_index(copy, bytes, FT_VERIFY_STRUCTURE);
    }
    free(copy);
    return 0;
}
