/* SPDX-License-Identifier: Apache-2.0
 *
 * A leader and its helpers. The leader (the caller) shares out a job; helpers that are
 * awake join in, and the leader waits only for those that have joined. A helper that
 * wakes up late holds nobody up. One that the system puts off in the midst of its share
 * does: with more threads than idle processors a search can be slower than with one.
 */
#ifndef FT_ENGINE_POOL_H
#define FT_ENGINE_POOL_H

#include <stdint.h>

#include "base/status.h"

typedef struct ft_pool ft_pool;

/* n_members >= 1 counts the leader, who is member 0. */
ft_status ft_pool_open(ft_pool **out, uint32_t n_members, ft_error *err);

/* Members that can be at work at the same time: no more than there are processors. */
uint32_t ft_pool_n_abreast(const ft_pool *p);

/* Run work(arg, 0) here, and work(arg, m) once on each helper m that turns up before it
 * returns; then wait for these. The work must be complete when any one member's call
 * has returned and those of all that joined have too. What the leader wrote before is
 * seen by the helpers, and what they wrote is seen after. */
void ft_pool_share(ft_pool *p, void (*work)(void *arg, uint32_t member), void *arg);

/* The same, and then the rest, by the same members: it is waited for, too. What all
 * wrote in the work is seen in `then`, not in `aside`. */
typedef struct ft_pool_job {
    void (*work)(void *arg, uint32_t member);
    void (*then)(void *arg);  /* by the last who is done with its work; may be NULL */
    void (*aside)(void *arg); /* by each of the others meanwhile; may be NULL */
} ft_pool_job;

void ft_pool_run(ft_pool *p, const ft_pool_job *job, void *arg);
void ft_pool_close(ft_pool *p);

/* Processors that this process may use. */
uint32_t ft_n_processors(void);

#endif
