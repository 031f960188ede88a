/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

typedef struct loop {
    uint64_t total, step;
    ft_piece_fn *fn;
    void *arg;
    _Atomic uint64_t next; /* where the next piece starts */
    pthread_mutex_t lock;  /* of what follows */
    uint64_t failed_at;    /* start of the first piece that failed; total: none */
    ft_error error;
} loop;

static void note_failure(loop *l, uint64_t begin, const ft_error *error)
{
    pthread_mutex_lock(&l->lock);
    if (begin < l->failed_at) {
        l->failed_at = begin;
        l->error = *error;
    }
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->next, l->total); /* pieces before `begin` have all been taken */
}

static void *work(void *arg)
{
    loop *l = arg;
    for (;;) {
        uint64_t begin = atomic_load(&l->next), end;
        do {
            if (begin >= l->total)
                return NULL;
            end = l->total - begin > l->step ? begin + l->step : l->total;
        } while (!atomic_compare_exchange_weak(&l->next, &begin, end));
        ft_error error = {0};
        error.status = l->fn(l->arg, begin, end, &error);
        if (error.status != FT_OK)
            note_failure(l, begin, &error);
    }
}

uint32_t ft_thread_count(uint32_t n_threads)
{
    if (n_threads == 0) {
        const long n = sysconf(_SC_NPROCESSORS_ONLN);
        n_threads = n > 0 ? (uint32_t)n : 1;
    }
    return n_threads < FT_MAX_THREADS ? n_threads : FT_MAX_THREADS;
}

ft_status ft_parallel(uint64_t total, uint64_t step, uint32_t n_threads,
                      ft_piece_fn *fn, void *arg, ft_error *err)
{
    loop l = {.total = total, .step = step, .fn = fn, .arg = arg, .failed_at = total};
    pthread_mutex_init(&l.lock, NULL);
    pthread_t thread[FT_MAX_THREADS];
    uint32_t started = 0;
    const uint64_t pieces = total / step + (total % step != 0);
    const uint32_t n = ft_thread_count(n_threads);
    const uint32_t wanted = pieces < n ? (uint32_t)pieces : n;
    /* Where a thread cannot be had, those that can do its share. */
    while (started + 1 < wanted &&
           pthread_create(&thread[started], NULL, work, &l) == 0)
        started++;
    work(&l);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&l.lock);
    if (l.failed_at == total)
        return FT_OK;
    if (err)
        *err = l.error;
    return l.error.status;
}
