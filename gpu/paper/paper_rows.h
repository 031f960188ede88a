/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the engine table that gpu/paper adds, or paper_absent.c in its place:
 * number, name, what it is.
 */
#ifndef FT_GPU_PAPER_ROWS_H
#define FT_GPU_PAPER_ROWS_H

#define FT_PAPER_ROWS(ROW)                                                             \
    ROW(0, "paper", "FlashTrie as published: a binary search a proposal")              \
    ROW(1, "paper-linear", "its ablation: a linear probe a proposal")                  \
    ROW(2, "paper-two-pointer", "its ablation: one thread merges")                     \
    ROW(3, "paper-per-child", "its ablation: a scan of the proposals a child")         \
    ROW(4, "ppt", "its ablation: token sets a position, a superset of the results")

#endif
