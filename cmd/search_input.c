/* SPDX-License-Identifier: Apache-2.0 */
#include "search_input.h"

#include <pthread.h>
#include <stdlib.h>

#include "grid_input.h"

enum { N_TURNS = 2 }; /* one is read while the other is searched */

typedef struct turn {
    ft_batch batch;
    ft_status status;
    ft_error error;
} turn;

struct search_input {
    const ft_operands *operands;
    uint32_t batch_size;
    pthread_t reader;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t n_read, n_taken, n_done; /* turns */
    turn turns[N_TURNS];
};

static turn *wait_for_room(search_input *in)
{
    pthread_mutex_lock(&in->lock);
    while (in->n_read - in->n_done == N_TURNS)
        pthread_cond_wait(&in->changed, &in->lock);
    pthread_mutex_unlock(&in->lock);
    turn *t = &in->turns[in->n_read % N_TURNS];
    t->batch.n_queries = 0;
    t->status = FT_OK;
    return t;
}

static void hand_over(search_input *in)
{
    pthread_mutex_lock(&in->lock);
    in->n_read++;
    pthread_cond_signal(&in->changed);
    pthread_mutex_unlock(&in->lock);
}

/* All batches of a grid but the last, which *t then is: empty, or a failure. */
static void read_grid(search_input *in, ft_grid *grid, uint64_t *n_queries, turn **t)
{
    const uint64_t first_id = *n_queries;
    for (;;) {
        ft_batch *b = &(*t)->batch;
        (*t)->status =
            ft_grid_read(grid, b, in->batch_size, true, first_id, &(*t)->error);
        *n_queries += b->n_queries;
        if ((*t)->status != FT_OK || b->n_queries == 0)
            return;
        hand_over(in);
        *t = wait_for_room(in);
    }
}

static void *read_all(void *arg)
{
    search_input *in = arg;
    turn *t = wait_for_room(in);
    uint64_t n_queries = 0;
    uint32_t i = 1; /* without grids: one turn, for standard input */
    do {
        ft_grid *grid = NULL;
        t->status = ft_grid_input_open(&grid, in->operands, &i, &t->error);
        if (t->status == FT_OK)
            read_grid(in, grid, &n_queries, &t);
        ft_grid_close(grid);
    } while (t->status == FT_OK && ++i < in->operands->n);
    hand_over(in);
    return NULL;
}

ft_status search_input_open(search_input **out, const ft_operands *operands,
                            uint32_t batch_size, bool keep_half, ft_error *err)
{
    search_input *in = ft_new(search_input, err);
    if (!in)
        return FT_ENOMEM;
    in->operands = operands;
    in->batch_size = batch_size;
    for (int i = 0; i < N_TURNS; i++)
        in->turns[i].batch.keep_half = keep_half;
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->changed, NULL);
    const int e = pthread_create(&in->reader, NULL, read_all, in);
    if (e) {
        free(in);
        return ft_fail_errno(err, FT_ENOMEM, e, "cannot start a thread");
    }
    *out = in;
    return FT_OK;
}

ft_status search_input_next(search_input *in, const ft_batch **batch, ft_error *err)
{
    pthread_mutex_lock(&in->lock);
    in->n_done = in->n_taken;
    pthread_cond_signal(&in->changed);
    while (in->n_read == in->n_taken)
        pthread_cond_wait(&in->changed, &in->lock);
    pthread_mutex_unlock(&in->lock);
    const turn *t = &in->turns[in->n_taken++ % N_TURNS];
    *batch = &t->batch;
    if (t->status != FT_OK)
        *err = t->error;
    return t->status;
}

void search_input_close(search_input *in)
{
    if (!in)
        return;
    pthread_join(in->reader, NULL);
    for (int i = 0; i < N_TURNS; i++)
        ft_batch_free(&in->turns[i].batch);
    pthread_mutex_destroy(&in->lock);
    pthread_cond_destroy(&in->changed);
    free(in);
}
