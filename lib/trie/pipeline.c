/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/pipeline.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"

typedef struct slot {
    bool done; /* worked on, and waits for its turn */
    ft_error error;
} slot;

typedef struct run {
    const ft_pipeline *p;
    uint32_t n_slots;
    slot *slots; /* item i is in slot i % n_slots */
    pthread_mutex_t lock;
    pthread_cond_t change;
    uint64_t n_taken, n_put;
    bool taking, putting; /* somebody is at it, without the lock */
    bool ended;           /* nothing more is taken */
    ft_error failure;
} run;

uint32_t ft_pipeline_slots(uint32_t n_threads)
{
    return n_threads > 1 ? 2 * n_threads : 1;
}

/* An item that could not be taken fails in its turn, like one that went wrong later. */
static void take_and_work(run *r)
{
    const uint32_t i = (uint32_t)(r->n_taken % r->n_slots);
    slot *s = &r->slots[i];
    ft_taken what = FT_TAKEN;
    r->taking = true;
    pthread_mutex_unlock(&r->lock);
    s->error.status = r->p->take(r->p->arg, i, &what, &s->error);
    pthread_mutex_lock(&r->lock);
    const bool failed = s->error.status != FT_OK;
    r->taking = false;
    r->ended = r->ended || failed || what == FT_TAKEN_ALL;
    r->n_taken += failed || what == FT_TAKEN;
    pthread_cond_broadcast(&r->change);
    if (!failed && what != FT_TAKEN)
        return;
    if (!failed) {
        pthread_mutex_unlock(&r->lock);
        s->error.status = r->p->work(r->p->arg, i, &s->error);
        pthread_mutex_lock(&r->lock);
    }
    s->done = true;
    pthread_cond_broadcast(&r->change);
}

static void put(run *r)
{
    const uint32_t i = (uint32_t)(r->n_put % r->n_slots);
    slot *s = &r->slots[i];
    if (s->error.status == FT_OK && r->failure.status == FT_OK) {
        r->putting = true;
        pthread_mutex_unlock(&r->lock);
        s->error.status = r->p->put(r->p->arg, i, &s->error);
        pthread_mutex_lock(&r->lock);
        r->putting = false;
    }
    if (s->error.status != FT_OK && r->failure.status == FT_OK) {
        r->failure = s->error;
        r->ended = true;
    }
    s->done = false;
    r->n_put++;
    pthread_cond_broadcast(&r->change);
}

static void *take_part(void *arg)
{
    run *r = arg;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        if (!r->putting && r->n_put < r->n_taken &&
            r->slots[r->n_put % r->n_slots].done)
            put(r);
        else if (!r->taking && !r->ended && r->n_taken - r->n_put < r->n_slots)
            take_and_work(r);
        else if (r->ended && !r->taking && r->n_put == r->n_taken)
            break;
        else
            pthread_cond_wait(&r->change, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

ft_status ft_pipeline_run(const ft_pipeline *p, uint32_t n_threads, ft_error *err)
{
    run r = {.p = p, .n_slots = ft_pipeline_slots(n_threads)};
    pthread_t thread[FT_MAX_THREADS];
    uint32_t started = 0;
    r.slots = ft_calloc(r.n_slots, sizeof *r.slots, err);
    if (!r.slots)
        return FT_ENOMEM;
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.change, NULL);
    /* Where a thread cannot be had, those that can do its share. */
    while (started + 1 < n_threads &&
           pthread_create(&thread[started], NULL, take_part, &r) == 0)
        started++;
    take_part(&r);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    pthread_cond_destroy(&r.change);
    pthread_mutex_destroy(&r.lock);
    free(r.slots);
    if (r.failure.status != FT_OK && err)
        *err = r.failure;
    return r.failure.status;
}
