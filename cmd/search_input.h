/* SPDX-License-Identifier: Apache-2.0
 *
 * The grids of a command line as batches. A thread reads the next batch while the
 * caller searches the one in hand.
 */
#ifndef SEARCH_INPUT_H
#define SEARCH_INPUT_H

#include "ft.h"
#include "options.h"

typedef struct search_input search_input;

/* Grids are operands 1 and up, or standard input. keep_half: see ft_batch. */
ft_status search_input_open(search_input **out, const ft_operands *operands,
                            uint32_t batch_size, bool keep_half, ft_error *err);

/* The next batch, good until the next call; without queries it is the end. On a failure
 * it holds the complete queries before that, and nothing follows. */
ft_status search_input_next(search_input *in, const ft_batch **batch, ft_error *err);

/* After the end or a failure of the input. Whoever gives up earlier leaves it to the
 * end of the process, since the reader may be waiting for input that never comes. */
void search_input_close(search_input *in);

#endif
