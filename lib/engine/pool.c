/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    SPINS = 4000,    /* before a helper sleeps: some tens of microseconds */
    PATIENCE = 1000, /* spins of the leader between two yields */
    COUNT_BITS = 12
};

/* The state in one word: members at work, helpers that have not left yet, whether more
 * may join, and the number of the job. */
#define AT_WORK ((uint64_t)1)
#define HERE ((uint64_t)1 << COUNT_BITS)
#define ALL_AT_WORK (HERE - AT_WORK)
#define ALL_HERE (OPEN - HERE)
#define OPEN ((uint64_t)1 << 2 * COUNT_BITS)
#define NEXT_JOB (OPEN << 1)

typedef struct member {
    ft_pool *pool;
    uint32_t number;
} member;

struct ft_pool {
    uint32_t n_abreast, n_started;
    unsigned n_spins;
    atomic_uint_fast64_t state;
    const ft_pool_job *job; /* NULL: leave */
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t posted;
    atomic_uint n_asleep;
    pthread_t *threads; /* members 1 .. n_members - 1 */
    member *members;
};

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static uint64_t job_of(uint64_t state)
{
    return state / NEXT_JOB;
}

/* Wait for a job other than `last`: spin, then sleep. */
static uint64_t await_job(ft_pool *p, uint64_t last)
{
    for (unsigned i = 0; i < p->n_spins; i++) {
        const uint64_t s = atomic_load_explicit(&p->state, memory_order_acquire);
        if (job_of(s) != last)
            return s;
        relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->n_asleep, 1);
    uint64_t s;
    while (job_of(s = atomic_load(&p->state)) == last)
        pthread_cond_wait(&p->posted, &p->lock);
    atomic_fetch_sub(&p->n_asleep, 1);
    pthread_mutex_unlock(&p->lock);
    return s;
}

/* Work on a job, which counts until `done` is taken off the state. */
static void take_part(ft_pool *p, const ft_pool_job *job, void *arg, uint32_t number,
                      uint64_t done)
{
    job->work(arg, number);
    const uint64_t s = atomic_fetch_sub(&p->state, done) - done;
    void (*const rest)(void *) = s & ALL_AT_WORK ? job->aside : job->then;
    if (rest)
        rest(arg);
}

static void *help(void *arg)
{
    const member *m = arg;
    ft_pool *p = m->pool;
    uint64_t last = 0;
    for (;;) {
        uint_fast64_t s = await_job(p, last);
        last = job_of(s);
        while ((s & OPEN) && job_of(s) == last) {
            if (!atomic_compare_exchange_weak_explicit(
                    &p->state, &s, s + AT_WORK + HERE, memory_order_acq_rel,
                    memory_order_acquire))
                continue;
            if (!p->job)
                return NULL;
            take_part(p, p->job, p->arg, m->number, AT_WORK);
            atomic_fetch_sub_explicit(&p->state, HERE, memory_order_release);
            break;
        }
    }
}

/* Post a job that the leader is at work on; helpers may join from now on. */
static void post(ft_pool *p, const ft_pool_job *job, void *arg)
{
    p->job = job;
    p->arg = arg;
    const uint64_t s = atomic_load_explicit(&p->state, memory_order_relaxed);
    atomic_store(&p->state, (job_of(s) + 1) * NEXT_JOB | OPEN | AT_WORK);
    if (atomic_load(&p->n_asleep)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->posted);
        pthread_mutex_unlock(&p->lock);
    }
}

void ft_pool_run(ft_pool *p, const ft_pool_job *job, void *arg)
{
    post(p, job, arg);
    take_part(p, job, arg, 0, OPEN + AT_WORK);
    for (unsigned i = 1;
         atomic_load_explicit(&p->state, memory_order_acquire) & ALL_HERE; i++) {
        if (i % PATIENCE == 0)
            sched_yield();
        relax();
    }
}

void ft_pool_share(ft_pool *p, void (*work)(void *arg, uint32_t member), void *arg)
{
    const ft_pool_job job = {.work = work};
    ft_pool_run(p, &job, arg);
}

ft_status ft_pool_open(ft_pool **out, uint32_t n_members, ft_error *err)
{
    ft_pool *p = ft_new(ft_pool, err);
    if (!p)
        return FT_ENOMEM;
    ft_status st = FT_OK;
    const uint32_t n_processors = ft_n_processors();
    p->n_abreast = n_members < n_processors ? n_members : n_processors;
    p->n_spins = n_members <= n_processors ? SPINS : 0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->posted, NULL);
    p->threads = ft_calloc(n_members, sizeof *p->threads, err);
    p->members = ft_calloc(n_members, sizeof *p->members, err);
    if (!p->threads || !p->members) {
        st = FT_ENOMEM;
        goto fail;
    }
    for (uint32_t i = 1; i < n_members; i++) {
        p->members[i] = (member){p, i};
        const int e = pthread_create(&p->threads[i - 1], NULL, help, &p->members[i]);
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

uint32_t ft_pool_n_abreast(const ft_pool *p)
{
    return p->n_abreast;
}

void ft_pool_close(ft_pool *p)
{
    if (!p)
        return;
    post(p, NULL, NULL); /* stays open: every helper comes by and leaves */
    for (uint32_t i = 0; i < p->n_started; i++)
        pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->posted);
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
