/* SPDX-License-Identifier: Apache-2.0
 *
 * A fixed team of threads that runs one function at a time, and a barrier for it. The
 * caller is member 0. Waiting spins for some microseconds, then sleeps, so that a team
 * wider than the machine still makes progress.
 */
#ifndef FT_ENGINE_POOL_H
#define FT_ENGINE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ft_barrier {
    atomic_uint n_members;
    unsigned n_spins;
    atomic_uint n_arrived;
    atomic_uint round;
    pthread_mutex_t lock;
    pthread_cond_t turned;
} ft_barrier;

/* Wait until all n_members have called it. What each wrote before is seen after. */
void ft_barrier_wait(ft_barrier *b);

typedef struct ft_pool ft_pool;

ft_status ft_pool_open(ft_pool **out, uint32_t n_members, ft_error *err);
uint32_t ft_pool_n_members(const ft_pool *p);

/* The barrier over all members, for use inside a job. */
ft_barrier *ft_pool_barrier(ft_pool *p);

/* Run job(arg, member) on every member; return when all have returned. */
void ft_pool_run(ft_pool *p, void (*job)(void *arg, uint32_t member), void *arg);
void ft_pool_close(ft_pool *p);

/* Processors that this process may use. */
uint32_t ft_n_processors(void);

#endif
