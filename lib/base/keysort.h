/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting of short keys that carry a place along.
 */
#ifndef FT_BASE_KEYSORT_H
#define FT_BASE_KEYSORT_H

#include <stdint.h>

/* Sort n < 2^32 keys by their upper halves, ascending; those that share these keep
 * their order. There is room for n in `spare`. */
void ft_keysort(uint64_t *keys, uint64_t *spare, uint64_t n);

#endif
