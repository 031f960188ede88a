/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of a grid reader: shared by grid.c (own format, batches) and grid_npy.c (the
 * headers of NumPy files), nobody else's business.
 */
#ifndef FT_IO_GRID_READER_H
#define FT_IO_GRID_READER_H

#include "io/grid.h"

typedef enum token_type { TOKEN_U32, TOKEN_I32, TOKEN_I64 } token_type;

struct ft_grid {
    ft_grid_shape shape;
    ft_stream *in;      /* the grid; NumPy: the tokens */
    ft_stream *logp_in; /* NumPy: the log-probs; own format: NULL */
    token_type token_type;
    uint64_t n_values; /* a query: T * K */
    uint64_t n_read;   /* queries */
    void *scratch;     /* values of the file that are not as they are in memory */
    ft_error failure;  /* status is not FT_OK: every later call fails the same */
};

/* Refuse what no grid of ours has; *n_values = T * K. */
ft_status ft_grid_check_shape(const ft_grid_shape *shape, const char *name,
                              uint64_t *n_values, ft_error *err);

/* Read both headers of g->in and g->logp_in: the shape and the token type. */
ft_status ft_grid_read_npy_headers(ft_grid *g, ft_error *err);

#endif
