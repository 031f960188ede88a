/* SPDX-License-Identifier: Apache-2.0
 *
 * A loop cut into pieces that threads take in turn. For checks over arrays; what
 * searches has its own pool (engine).
 */
#ifndef FT_TRIE_PARALLEL_H
#define FT_TRIE_PARALLEL_H

#include <stdint.h>

#include "base/status.h"

/* Threads to use where n_threads are asked for, 0: one a processor. */
enum { FT_MAX_THREADS = 256 };
uint32_t ft_thread_count(uint32_t n_threads);

/* Work on items begin to end - 1; called from any thread. */
typedef ft_status ft_piece_fn(void *arg, uint64_t begin, uint64_t end, ft_error *err);

/* Run fn over 0 to total - 1 in pieces of `step` items on n_threads threads, the
 * caller's included (0: one a processor). Where pieces fail, the error is that of the
 * first of them, whatever the threads. */
ft_status ft_parallel(uint64_t total, uint64_t step, uint32_t n_threads,
                      ft_piece_fn *fn, void *arg, ft_error *err);

#endif
