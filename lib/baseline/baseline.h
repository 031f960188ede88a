/* SPDX-License-Identifier: Apache-2.0
 *
 * The systems that the paper compares with, as rows of the engine table. They give the
 * same bytes as every engine and exist to be measured.
 */
#ifndef FT_BASELINE_BASELINE_H
#define FT_BASELINE_BASELINE_H

#include "engine/engine.h"

/* MARISA-Int (paper Appendix B.1): each candidate is walked from the root, twice, and
 * nothing of that is kept; a flat vector and a partial sort; one thread, whatever the
 * options say. To be used with the layout "wide-tails" or "wide". */
extern const ft_engine_ops ft_engine_marisa_int;

/* MARISA-Opt (paper Appendix B.2): state carried from step to step, a worker pool over
 * beams, a two-pointer merge of sorted proposals with sorted children, one shared
 * bounded min-heap. To be used with the layout "wide", which is what it stores. */
extern const ft_engine_ops ft_engine_marisa_opt;

/* Add the rows to the engine table. */
ft_status ft_baseline_register(ft_error *err);

/* The same with the paper's own kernel and its ablations: "paper", "paper-linear",
 * "paper-two-pointer", "paper-per-child", "ppt" (gpu/paper; where there is no CUDA they
 * say so when they are opened). */
ft_status ft_paper_register(ft_error *err);

#endif
