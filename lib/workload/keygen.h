/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries of any size, made as they are read: exactly n_keys unique keys come out in
 * order, without sorting and without holding them. A node with n keys at and below it
 * decides, by random numbers of its own, whether it is a key, into how many children
 * the rest parts, which tokens these are, and how many keys each gets; then the walk
 * goes down, depth first. Memory: the nodes on the path.
 *
 * The same parameters give the same keys on any machine (workload/fixmath.h). The
 * presets, as measured; a degree is the mean over the nodes that have children:
 *
 *                        paper                        titles
 *     keys               1M     10M    100M   800M    1M     10M    100M
 *     nodes a key        1.19   1.17   1.16   1.15    2.95   2.95   2.95
 *     tokens a key       3.28   3.76   3.79   5.21    6.33   7.26   7.49
 *     longest key        12     15     16     16      64     64     64
 *     degree, root       61k    337k   1.17M  1.89M   48k    133k   185k
 *     degree, level 1    7.0    9.2    22.8   28.6    3.5    4.9    14.4
 *     level 2            3.9    5.2    6.5    15.9    2.4    3.2    5.1
 *     level 3            2.9    3.9    3.9    9.9     1.9    2.4    2.8
 *     level 4            2.5    3.1    2.9    5.7     1.6    1.9    2.1
 *     level 5            2.2    2.6    2.5    3.9     1.4    1.6    1.6
 *     level 6            2.0    2.3    2.2    3.0     1.2    1.4    1.4
 *     level 7            1.8    2.1    2.0    2.5     1.1    1.2    1.2
 *     keys that are
 *     prefixes of keys     0.11   0.10   0.09   0.08    0.14   0.14   0.14
 *     labels > 65,535      0.30   0.31   0.30   0.30    0.10   0.10   0.10
 */
#ifndef FT_WORKLOAD_KEYGEN_H
#define FT_WORKLOAD_KEYGEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define FT_KEYGEN_MAX_KEYS (UINT64_C(1) << 40)
#define FT_KEYGEN_READABLE 16

typedef struct ft_keygen_params {
    uint64_t n_keys;     /* exactly so many come out: 1 to FT_KEYGEN_MAX_KEYS */
    uint64_t seed;       /* another seed, another library of the same kind */
    uint32_t vocab;      /* tokens are below this: 1 to 2^32 - 1 */
    uint32_t max_length; /* tokens of the longest key: 1 to 65535 */
    double skew;         /* exponent of the power law over token ids: 0 to 4 */
    double id_noise;     /* bits by which an id's frequency strays from it: 0 to 8 */
    double sharing;      /* 0 to 1: n keys below a node part into about n^(1-sharing) */
    double fans;         /* 0 to 1: chance that all keys below a node part at once;
                          * halfway from there to 1 where they are fewer than 8 */
    double prefix_keys;  /* 0 to 1: chance that a node with children is a key */
    double tail; /* mean tokens of a key behind the last that it shares: 0 to 1000 */
    double long_tails; /* 0 to 1: part of the keys whose tails are ten times that */
} ft_keygen_params;

/* Presets by number; NULL past the last. */
const char *ft_keygen_preset_name(uint32_t i);
const char *ft_keygen_preset_summary(uint32_t i);

/* FT_EINVAL for an unknown name. */
ft_status ft_keygen_preset(ft_keygen_params *p, const char *name, ft_error *err);

/* FT_EINVAL, naming the one that is out of range. */
ft_status ft_keygen_check(const ft_keygen_params *p, ft_error *err);

typedef struct ft_keygen ft_keygen;

/* FT_EINVAL for parameters out of range, or where there are not so many keys. */
ft_status ft_keygen_open(ft_keygen **out, const ft_keygen_params *p, ft_error *err);

/* The next key: *tokens (valid until the next call), *n >= 1 of them, the first *lcp
 * shared with the key before. False at the end. FT_KEYGEN_READABLE words can be read
 * there whatever *n is. */
bool ft_keygen_next(ft_keygen *g, const uint32_t **tokens, uint32_t *n, uint32_t *lcp);
void ft_keygen_close(ft_keygen *g);

#endif
