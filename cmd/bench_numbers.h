/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments that are lists of numbers: "1,8,64".
 */
#ifndef FT_CMD_BENCH_NUMBERS_H
#define FT_CMD_BENCH_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ft_bench_numbers {
    uint32_t *v; /* free it */
    uint32_t n;
} ft_bench_numbers;

/* At least one number, each from min to max. False, and nothing in *out: `text` is no
 * such list, or memory ran out. */
bool ft_bench_numbers_parse(ft_bench_numbers *out, const char *text, uint32_t min,
                            uint32_t max);

#endif
