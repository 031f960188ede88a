/* SPDX-License-Identifier: Apache-2.0
 *
 * Items that come in order, are worked on by many threads, and go on in order. There is
 * no thread of its own for either end: whoever is free takes the next item, or hands on
 * the next one that is done.
 */
#ifndef FT_TRIE_PIPELINE_H
#define FT_TRIE_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "trie/parallel.h"

typedef enum ft_taken {
    FT_TAKEN,      /* there is an item in the slot */
    FT_TAKE_LATER, /* there is none yet: ask again */
    FT_TAKEN_ALL   /* there are no more */
} ft_taken;

typedef struct ft_pipeline {
    void *arg; /* of the three functions */

    /* Get the next item into a slot, one call at a time, and without waiting long: the
     * pipeline may have failed in between. */
    ft_status (*take)(void *arg, uint32_t slot, ft_taken *what, ft_error *err);

    /* Called for several slots at a time. */
    ft_status (*work)(void *arg, uint32_t slot, ft_error *err);

    /* Hand on what is in a slot: in order, one call at a time. */
    ft_status (*put)(void *arg, uint32_t slot, ft_error *err);
} ft_pipeline;

/* Slots that n threads (from ft_thread_count) keep busy: their numbers are below. */
uint32_t ft_pipeline_slots(uint32_t n_threads);

/* Run until there are no more items, on n_threads threads (from ft_thread_count), the
 * caller's included. Of items that fail, the first counts, and nothing is handed on
 * from there on. */
ft_status ft_pipeline_run(const ft_pipeline *p, uint32_t n_threads, ft_error *err);

#endif
