/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/key_digest.h"

#include <stdatomic.h>

#include "trie/parallel.h"
#include "workload/fixmath.h"

enum { PIECE = 1024 }; /* of the root's children: pieces of one take turns */

typedef struct summing {
    const ft_trie *t;
    _Atomic uint64_t sum;
} summing;

uint64_t ft_key_digest(const uint32_t *tokens, uint32_t n)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < n; i++)
        hash = ft_mix(hash, tokens[i]);
    return ft_mix(hash, n);
}

static ft_status add_piece(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    summing *s = arg;
    ft_cursor *c;
    const uint32_t *tokens;
    uint32_t n;
    uint64_t node, sum = 0;
    ft_status st = ft_cursor_open_run(&c, s->t, begin, end - begin, err);
    if (st != FT_OK)
        return st;
    while ((st = ft_cursor_next(c, &tokens, &n, &node, err)) == FT_OK && n)
        sum += ft_key_digest(tokens, n);
    ft_cursor_close(c);
    atomic_fetch_add(&s->sum, sum);
    return st;
}

ft_status ft_library_digest(const ft_trie *t, uint32_t n_threads, uint64_t *digest,
                            ft_error *err)
{
    summing s = {.t = t};
    const uint64_t n = t->ops->children(t, 0).count;
    const uint64_t fair = n / ft_thread_count(n_threads) / 8 + 1;
    const ft_status st =
        ft_parallel(n, fair < PIECE ? fair : PIECE, n_threads, add_piece, &s, err);
    if (st == FT_OK)
        *digest = atomic_load(&s.sum);
    return st;
}
