/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

enum { LOOK_MS = 50 };

/* Of `since`, beside the time at which the search under way began. */
static const double idle = -1, given_up = -2;

struct ft_bench_watch {
    double limit;
    int (*give_up)(void *arg);
    void *arg;
    pthread_t thread;
    _Atomic double since; /* no lock: searches are timed */
    pthread_mutex_t lock; /* of `closed` */
    pthread_cond_t wake;
    bool closed;
};

/* False: the watch is closed. */
static bool wait_a_little(ft_bench_watch *w)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += LOOK_MS * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->lock);
    if (!w->closed)
        pthread_cond_timedwait(&w->wake, &w->lock, &t);
    const bool closed = w->closed;
    pthread_mutex_unlock(&w->lock);
    return !closed;
}

/* Looks are counted: the time in which the process itself was stopped does not count.
 */
static void *look(void *arg)
{
    ft_bench_watch *w = arg;
    double last = idle;
    uint64_t n_looks = 0;
    while (wait_a_little(w)) {
        double since = atomic_load(&w->since);
        n_looks = since == last ? n_looks + 1 : 0;
        last = since;
        if (since >= 0 && (double)n_looks * LOOK_MS > 1e3 * w->limit &&
            atomic_compare_exchange_strong(&w->since, &since, given_up))
            _exit(w->give_up(w->arg));
    }
    return NULL;
}

ft_status ft_bench_watch_open(ft_bench_watch **out, double limit,
                              int (*give_up)(void *arg), void *arg, ft_error *err)
{
    ft_bench_watch *w = ft_new(ft_bench_watch, err);
    if (!w)
        return FT_ENOMEM;
    w->limit = limit;
    w->give_up = give_up;
    w->arg = arg;
    atomic_init(&w->since, idle);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &clock);
    pthread_condattr_destroy(&clock);
    const int errnum = pthread_create(&w->thread, NULL, look, w);
    if (errnum) {
        pthread_cond_destroy(&w->wake);
        pthread_mutex_destroy(&w->lock);
        free(w);
        return ft_fail_errno(err, FT_ENOMEM, errnum, "cannot start a thread");
    }
    *out = w;
    return FT_OK;
}

void ft_bench_watch_begin(ft_bench_watch *w)
{
    if (w)
        atomic_store(&w->since, ft_seconds());
}

void ft_bench_watch_end(ft_bench_watch *w)
{
    if (w && atomic_exchange(&w->since, idle) == given_up)
        for (;;)
            pause(); /* it came back too late: the process is about to end */
}

void ft_bench_watch_close(ft_bench_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
