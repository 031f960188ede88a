/* SPDX-License-Identifier: Apache-2.0
 *
 * Grids named on the command line.
 */
#ifndef FT_CMD_GRID_INPUT_H
#define FT_CMD_GRID_INPUT_H

#include "ft.h"
#include "options.h"

/* Open operand *i as a grid; none there: standard input. A NumPy file of tokens takes
 * the operand behind it as its log-probs, and *i moves to that. */
ft_status ft_grid_input_open(ft_grid **out, const ft_operands *operands, uint32_t *i,
                             ft_error *err);

#endif
