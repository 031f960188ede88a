/* SPDX-License-Identifier: Apache-2.0
 *
 * Stock MARISA, the programs marisa-build and marisa-lookup: whether they are here,
 * keys as they take them, and what they did with them.
 */
#ifndef FT_CMD_BENCH_MARISA_H
#define FT_CMD_BENCH_MARISA_H

#include "bench_child.h"

/* Are they in PATH? Else this is the status of their rows. */
bool ft_bench_has_marisa(void);
#define FT_BENCH_NO_MARISA "unavailable: no marisa-build and marisa-lookup in PATH"

/* The number of tries of "marisa", which has as many as it comes with, and "marisa-n1";
 * NULL: the name is another one. */
const char *ft_bench_marisa_tries(const char *name);

/* The largest token that keys may have. */
#define FT_BENCH_MARISA_MAX UINT32_C(4097152080)

/* Write a key as a line. Are its tokens small enough? */
ft_status ft_bench_marisa_encode(ft_sink *out, const ft_key *key, bool *fits,
                                 ft_error *err);

/* For a child: become the program, which reads lines from where `keys` is. They return
 * only where that fails. */
void ft_bench_marisa_build(const ft_bench_scratch *keys, const char *n_tries,
                           const char *index);
void ft_bench_marisa_look_up(const ft_bench_scratch *keys, const char *index,
                             const char *answers);

/* Lines before where `keys` is: such a child moves that. */
uint64_t ft_bench_marisa_n_read(const ft_bench_scratch *keys);

uint64_t ft_bench_marisa_lines(const char *text, size_t n);

/* How many lines of answers are of keys that were found. */
uint64_t ft_bench_marisa_found(const char *text, size_t n);

#endif
