/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch is asked, as plain structs that go to the kernel by value. All pointers
 * are the device's.
 */
#ifndef FT_GPU_QUESTION_H
#define FT_GPU_QUESTION_H

#include <stdint.h>

/* How beam i of the frontier after a step came about. */
typedef struct ft_gpu_trace {
    uint32_t token;
    uint32_t beam; /* of the frontier before */
} ft_gpu_trace;

/* Where a query's wire record lies in the output. */
typedef struct ft_gpu_record {
    uint64_t at, bytes;
} ft_gpu_record;

typedef struct ft_gpu_step_stats {
    unsigned long long beams, probes, candidates, kept, cycles;
} ft_gpu_step_stats;

typedef struct ft_gpu_question {
    const uint32_t *tokens; /* [n_queries][n_steps][n_proposals] */
    const float *logp;
    uint32_t n_queries, n_steps, n_proposals;
    uint32_t beam, n_results;
    float token_threshold, sentence_threshold;
    const double *norm;  /* n_steps + 1 */
    ft_gpu_trace *trace; /* n_steps * beam a team */
    uint32_t *next_query;
    uint8_t *out;
    unsigned long long *out_used;
    ft_gpu_record *records;   /* n_queries */
    ft_gpu_step_stats *stats; /* n_queries * n_steps, zeroed; or NULL */
} ft_gpu_question;

#endif
