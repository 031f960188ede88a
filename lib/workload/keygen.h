/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries of any size, made as they are read: exactly n_keys unique keys come out in
 * order, without sorting and without holding them. A node with n keys at and below it
 * decides, by a hash of its path and the seed, whether it is a key, into how many
 * children the rest parts, which tokens these are, and how many keys each gets; then
 * the walk goes down, depth first. Memory: the children of the nodes on the path.
 *
 * The same parameters give the same keys on any machine (workload/fixmath.h). What a
 * preset gives, as measured (degree: mean children of the nodes that have any):
 *
 *                     paper                              titles
 *     keys            1M      10M     100M    800M       1M      10M     100M
 *     nodes a key     @P1 @P10 @P100 @P800       @T1 @T10 @T100
 *     tokens a key    @L
 *
 * In `paper`, 0.30 of the labels are above 65,535, as in the set s10m that the layouts
 * were measured with.
 */
#ifndef FT_WORKLOAD_KEYGEN_H
#define FT_WORKLOAD_KEYGEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define FT_KEYGEN_MAX_KEYS (UINT64_C(1) << 40)

typedef struct ft_keygen_params {
    uint64_t n_keys;     /* exactly so many come out: 1 to FT_KEYGEN_MAX_KEYS */
    uint64_t seed;       /* another seed, another library of the same kind */
    uint32_t vocab;      /* tokens are below this: 1 to 2^32 - 1 */
    uint32_t max_length; /* tokens of the longest key: 1 to 65535 */
    double skew;         /* exponent of the power law over token ids: 0 to 4 */
    double id_noise;     /* bits by which an id's frequency strays from it: 0 to 8 */
    double sharing;      /* 0 to 1: n keys below a node part into about n^(1-sharing) */
    double fans;         /* 0 to 1: chance that all keys below a node part at once */
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
 * shared with the key before. False at the end. */
bool ft_keygen_next(ft_keygen *g, const uint32_t **tokens, uint32_t *n, uint32_t *lcp);
void ft_keygen_close(ft_keygen *g);

#endif
