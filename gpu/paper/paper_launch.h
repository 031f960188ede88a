/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of the paper's kernel: each ablation is instantiated in a file of its own,
 * which provides one ft_paper_kernels.
 */
#ifndef FT_GPU_PAPER_LAUNCH_H
#define FT_GPU_PAPER_LAUNCH_H

#include "../room.h"
#include "../device_index.h"
#include "paper_question.h"

/* What PPT knows of the library (Appendix I); device memory. */
typedef struct ft_paper_sets {
    uint32_t depth;
    const uint64_t *offsets; /* depth + 1: of each position's tokens, ascending */
    const uint32_t *tokens;
    const uint8_t *ends; /* depth: do keys end behind the position's token? */
    ft_gpu_room memory;
} ft_paper_sets;

/* The constraint on the device: the one or the other. */
typedef struct ft_paper_constraint {
    ft_device_index index;
    ft_paper_sets sets;
} ft_paper_constraint;

typedef struct ft_paper_kernels {
    /* Once an engine; what it has made is closed also when it fails. FT_EUNAVAILABLE:
     * not an index of the kernel's. */
    ft_status (*load)(ft_paper_constraint *c, const ft_index *index, ft_error *err);

    /* Blocks that a multiprocessor runs at a time. */
    ft_status (*occupancy)(bool timed, int *n_blocks, ft_error *err);
    ft_status (*launch)(const ft_paper_constraint *c, const ft_paper_question *q,
                        bool timed, uint32_t n_blocks, cudaStream_t stream,
                        ft_error *err);
} ft_paper_kernels;

extern const ft_paper_kernels ft_paper_binary, ft_paper_linear, ft_paper_two_pointer,
    ft_paper_per_child, ft_paper_ppt;

/* `load` of those that search tries. */
ft_status ft_paper_load_trie(ft_paper_constraint *c, const ft_index *index,
                             ft_error *err);

#endif
