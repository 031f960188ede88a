/* SPDX-License-Identifier: Apache-2.0
 *
 * Proposal grids: ft-grid(5). Own format (f32 or f16 log-probs, with or without query
 * ids, a known number of queries or until the end of input) and pairs of NumPy files.
 */
#ifndef FT_IO_GRID_H
#define FT_IO_GRID_H

#include "base/score.h"
#include "io/stream.h"

#define FT_GRID_UNTIL_END UINT64_MAX

typedef struct ft_grid_shape {
    uint32_t n_steps;     /* T: 1 to 65,535 */
    uint32_t n_proposals; /* K: 1 to 2^24; T * K at most 2^30 */
    uint32_t vocab;       /* ids are below this; 0: unknown */
    bool has_ids;
    bool half;          /* log-probs are binary16 in the file */
    uint64_t n_queries; /* FT_GRID_UNTIL_END: until the end of input */
} ft_grid_shape;

/* Queries of one shape, as an engine takes them. tokens[q][t][k] and logp[q][t][k] lie
 * at (q * n_steps + t) * n_proposals + k. Slots with FT_NO_TOKEN are empty (their
 * log-prob means nothing); the reader empties slots beyond the vocabulary and has
 * refused NaN and +inf. */
typedef struct ft_batch {
    uint32_t n_queries, n_steps, n_proposals;
    uint64_t *ids; /* query ids: the grid's, else the place over all grids given */
    uint32_t *tokens;
    float *logp;
    bool keep_half; /* caller's wish: leave binary16 log-probs as they are */
    bool half;      /* then: logp holds binary16 values (ft_batch_logp16) */
    uint64_t cap_values, cap_queries; /* room, in values and in queries */
} ft_batch;

void ft_batch_free(ft_batch *b);

/* The log-probs of a batch whose `half` is set. */
static inline const uint16_t *ft_batch_logp16(const ft_batch *b)
{
    return (const uint16_t *)(const void *)b->logp;
}

typedef struct ft_grid ft_grid;

/* Takes over `in` and closes it with the reader, also when this call fails. */
ft_status ft_grid_open(ft_grid **out, ft_stream *in, ft_error *err);

/* A pair of .npy files: shape (Q,T,K) or (T,K), C order; tokens int32, uint32 or int64
 * (-1 is an empty slot), log-probs float16 or float32. Takes over both streams. */
ft_status ft_grid_open_npy(ft_grid **out, ft_stream *tokens, ft_stream *logp,
                           ft_error *err);

/* Does the stream start with NumPy's magic? */
ft_status ft_grid_is_npy(ft_stream *in, bool *npy, ft_error *err);

const ft_grid_shape *ft_grid_shape_of(const ft_grid *g);

/* Read up to `max` queries into *b (its memory is kept and grown). b->n_queries = 0 at
 * the end. With `eager`, stop early as soon as at least one query is there and reading
 * the next would wait. Queries without ids are numbered from `first_id`, counted over
 * this grid. On an error that names a query, *b holds the complete queries before it:
 * the caller answers those first, then reports. */
ft_status ft_grid_read(ft_grid *g, ft_batch *b, uint32_t max, bool eager,
                       uint64_t first_id, ft_error *err);
void ft_grid_close(ft_grid *g);

/* Write a grid: the header, then one record a query (id is written if shape->has_ids;
 * logp is rounded to nearest even where shape->half). */
ft_status ft_grid_write_header(ft_sink *out, const ft_grid_shape *shape, ft_error *err);
ft_status ft_grid_write(ft_sink *out, const ft_grid_shape *shape, uint64_t id,
                        const uint32_t *tokens, const float *logp, ft_error *err);

float ft_half_to_float(uint16_t h);
uint16_t ft_float_to_half(float f);

#endif
