/* SPDX-License-Identifier: Apache-2.0
 *
 * Result streams: ft-results(5), the paper's wire format (Appendix D.3). Engines hand
 * out wire records; writers pass them on or print them as TSV or JSON lines.
 */
#ifndef FT_IO_RESULTS_H
#define FT_IO_RESULTS_H

#include "io/stream.h"

/* Wire records of a batch: record q is bytes.data[offset[q] .. offset[q + 1]). */
typedef struct ft_results {
    ft_buf bytes;
    uint64_t *offset; /* n_queries + 1 */
    uint64_t n_queries, cap_offsets;
} ft_results;

void ft_results_free(ft_results *r);

/* Empty r and make room for n_queries offsets. */
ft_status ft_results_reset(ft_results *r, uint64_t n_queries, ft_error *err);

/* One wire record, decoded in place (unaligned little-endian memory: use the getters).
 * Result i (0 = worst, n - 1 = best). */
typedef struct ft_record {
    uint64_t n;
    const uint8_t *scores, *ends, *tokens;
} ft_record;

double ft_record_score(const ft_record *r, uint64_t i);
uint64_t ft_record_end(const ft_record *r, uint64_t i); /* ends[i]; i = -1 is 0 */
uint32_t ft_record_token(const ft_record *r, uint64_t j);

/* View the record at [data, data + bytes); *used is its length. Refuses counts and
 * offsets that do not fit the bytes or do not ascend, scores that are NaN or descend,
 * results that are no key (1 to 65,535 tokens, none of them FT_NO_TOKEN). */
ft_status ft_record_view(ft_record *r, const uint8_t *data, uint64_t bytes,
                         uint64_t *used, ft_error *err);

/* Read one record of a stream into *b (replaced) and view it. *more is false at the end
 * of input; a record cut short is an error that names the query. */
ft_status ft_record_read(ft_stream *in, uint64_t query, ft_buf *b, ft_record *r,
                         bool *more, ft_error *err);

typedef enum ft_results_format { FT_WIRE, FT_TSV, FT_JSONL } ft_results_format;

/* Key number of a result, or UINT64_MAX where numbers are not stored. */
typedef uint64_t ft_key_number_fn(void *arg, const uint32_t *tokens, uint32_t n);

/* Write one record in a text form, best first: `query rank score tokens [key number]`,
 * score by %.17g. key_number may be NULL. JSON lines write infinite scores as strings.
 * FT_WIRE writes the record as it is. */
ft_status ft_record_write(ft_sink *out, ft_results_format format, uint64_t query_id,
                          const ft_record *r, ft_key_number_fn *key_number, void *arg,
                          ft_error *err);

#endif
