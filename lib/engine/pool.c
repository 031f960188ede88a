/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pool.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

enum { SPINS = 4000 }; /* about 20 microseconds, some steps of a search */

struct ft_pool {
    uint32_t n_members;
    uint32_t n_started;
    pthread_t *threads; /* members 1 .. n_members - 1 */
    ft_barrier gate;    /* opens when there is a job, and when it is done */
    ft_barrier inner;
    void (*job)(void *arg, uint32_t member); /* NULL: leave */
    void *arg;
    struct ft_member {
        ft_pool *pool;
        uint32_t number;
    } * members;
};

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void barrier_init(ft_barrier *b, uint32_t n_members)
{
    atomic_init(&b->n_members, n_members);
    b->n_spins = n_members <= ft_n_processors() ? SPINS : 0;
    atomic_init(&b->n_arrived, 0);
    atomic_init(&b->round, 0);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->turned, NULL);
}

static void barrier_destroy(ft_barrier *b)
{
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->turned);
}

void ft_barrier_wait(ft_barrier *b)
{
    const unsigned round = atomic_load_explicit(&b->round, memory_order_acquire);
    const unsigned before =
        atomic_fetch_add_explicit(&b->n_arrived, 1, memory_order_acq_rel);
    if (before + 1 == atomic_load_explicit(&b->n_members, memory_order_relaxed)) {
        atomic_store_explicit(&b->n_arrived, 0, memory_order_relaxed);
        pthread_mutex_lock(&b->lock);
        atomic_store_explicit(&b->round, round + 1, memory_order_release);
        pthread_cond_broadcast(&b->turned);
        pthread_mutex_unlock(&b->lock);
        return;
    }
    for (unsigned i = 0; i < b->n_spins; i++) {
        if (atomic_load_explicit(&b->round, memory_order_acquire) != round)
            return;
        relax();
    }
    pthread_mutex_lock(&b->lock);
    while (atomic_load_explicit(&b->round, memory_order_acquire) == round)
        pthread_cond_wait(&b->turned, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

static void *member_main(void *arg)
{
    const struct ft_member *m = arg;
    ft_pool *p = m->pool;
    for (;;) {
        ft_barrier_wait(&p->gate);
        if (!p->job)
            return NULL;
        p->job(p->arg, m->number);
        ft_barrier_wait(&p->gate);
    }
}

/* Members that started wait at the gate; those that did not are not counted there. */
static void stop(ft_pool *p)
{
    p->job = NULL;
    atomic_store(&p->gate.n_members, p->n_started + 1);
    ft_barrier_wait(&p->gate);
    for (uint32_t i = 0; i < p->n_started; i++)
        pthread_join(p->threads[i], NULL);
}

ft_status ft_pool_open(ft_pool **out, uint32_t n_members, ft_error *err)
{
    ft_pool *p = ft_new(ft_pool, err);
    if (!p)
        return FT_ENOMEM;
    ft_status st = FT_OK;
    p->n_members = n_members;
    barrier_init(&p->gate, n_members);
    barrier_init(&p->inner, n_members);
    p->threads = ft_calloc(n_members, sizeof *p->threads, err);
    p->members = ft_calloc(n_members, sizeof *p->members, err);
    if (!p->threads || !p->members) {
        st = FT_ENOMEM;
        goto fail;
    }
    for (uint32_t i = 1; i < n_members; i++) {
        p->members[i] = (struct ft_member){p, i};
        const int e =
            pthread_create(&p->threads[i - 1], NULL, member_main, &p->members[i]);
        if (e) {
            st = ft_fail_errno(err, FT_ENOMEM, e, "cannot start thread %u of %u", i + 1,
                               n_members);
            goto fail;
        }
        p->n_started++;
    }
    *out = p;
    return FT_OK;
fail:
    ft_pool_close(p);
    return st;
}

uint32_t ft_pool_n_members(const ft_pool *p)
{
    return p->n_members;
}

ft_barrier *ft_pool_barrier(ft_pool *p)
{
    return &p->inner;
}

void ft_pool_run(ft_pool *p, void (*job)(void *arg, uint32_t member), void *arg)
{
    if (p->n_members == 1) {
        job(arg, 0);
        return;
    }
    p->job = job;
    p->arg = arg;
    ft_barrier_wait(&p->gate);
    job(arg, 0);
    ft_barrier_wait(&p->gate);
}

void ft_pool_close(ft_pool *p)
{
    if (!p)
        return;
    stop(p);
    barrier_destroy(&p->gate);
    barrier_destroy(&p->inner);
    free(p->threads);
    free(p->members);
    free(p);
}

uint32_t ft_n_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        const int n = CPU_COUNT(&set);
        if (n > 0)
            return (uint32_t)n;
    }
    return 1;
}
