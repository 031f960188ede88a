/* SPDX-License-Identifier: Apache-2.0 */
#include "base/keysort.h"

#include <string.h>

enum { DIGITS = 4 };

/* A byte after the other, from the lowest on. */
void ft_keysort(uint64_t *keys, uint64_t *spare, uint64_t n)
{
    uint32_t count[DIGITS][256] = {{0}};
    uint64_t *from = keys, *to = spare;
    for (uint64_t i = 0; i < n; i++)
        for (unsigned d = 0; d < DIGITS; d++)
            count[d][keys[i] >> (32 + 8 * d) & 255]++;
    for (unsigned d = 0; d < DIGITS && n; d++) {
        uint32_t *place = count[d], before = 0;
        const unsigned shift = 32 + 8 * d;
        if (place[from[0] >> shift & 255] == n)
            continue; /* all have the same byte there, as those of many floats */
        for (unsigned v = 0; v < 256; v++) {
            const uint32_t here = place[v];
            place[v] = before;
            before += here;
        }
        for (uint64_t i = 0; i < n; i++)
            to[place[from[i] >> shift & 255]++] = from[i];
        uint64_t *const sorted = to;
        to = from;
        from = sorted;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof *keys);
}
