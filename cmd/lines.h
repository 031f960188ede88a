/* SPDX-License-Identifier: Apache-2.0
 *
 * Text files, a line at a time.
 */
#ifndef FT_CMD_LINES_H
#define FT_CMD_LINES_H

#include "ft.h"

/* The next line in *b, without its end (a newline, or a return and a newline); *more is
 * false at the end of input. */
ft_status ft_line_read(ft_stream *in, ft_buf *b, bool *more, ft_error *err);

#endif
