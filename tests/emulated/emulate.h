/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernels run without a GPU, and the host's copies, for tests: in C, as they
 * are.
 */
#ifndef EMULATE_H
#define EMULATE_H

#include <stdbool.h>

#include "schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "engine/engine.h"
#include "trie/index.h"

/* Of memory<>: see gpu/block_memory.cuh; and the grid-wide kernel. */
typedef enum { EMU_HASTY, EMU_SMALL, EMU_SPARING, EMU_CLUSTER, EMU_GRID } emu_memory;

typedef struct emu_run {
    const ft_index *index; /* "wide" or "compact" */
    const ft_batch *batch;
    const ft_search_params *params;
    emu_memory memory;
    unsigned n_blocks;  /* of a cluster or grid; else 1 */
    bool stats, starts; /* ask for statistics; compact: let there be tables of starts */
    emu_schedule schedule;
} emu_run;

/* The number of faults that the machine found, told as TAP's comments; *n_differ
 * becomes the number of queries whose records are not those of `want`. */
unsigned emulate(const emu_run *e, const ft_results *want, unsigned *n_differ);

/* Bytes that gpu/copy.cu leaves wrong, of many copies of all sizes. */
unsigned emu_wrong_copies(bool by_team);

#ifdef __cplusplus
}
#endif

#endif
