/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"

enum {
    PIECE_BYTES = 256 << 10,
    ALONE_BYTES = 1 << 20 /* so few are not worth a team */
};

ft_status ft_copies_add(ft_copies *c, void *to, const void *from, uint64_t bytes,
                        ft_error *err)
{
    const uint64_t n = bytes / PIECE_BYTES + 1;
    void *list = c->list;
    const ft_status st = ft_reserve(&list, &c->cap, c->n + n, sizeof *c->list, err);
    c->list = (ft_copy *)list;
    for (uint64_t at = 0; st == FT_OK && at < bytes; at += PIECE_BYTES) {
        const uint64_t left = bytes - at;
        c->list[c->n++] = {(uint8_t *)to + at, (const uint8_t *)from + at,
                           left < PIECE_BYTES ? left : PIECE_BYTES};
    }
    return st;
}

struct share {
    const ft_copies *copies;
    uint64_t next;
};

static void copy_share(void *arg, uint32_t)
{
    share *s = (share *)arg;
    for (;;) {
        const uint64_t i = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED);
        if (i >= s->copies->n)
            return;
        const ft_copy *c = &s->copies->list[i];
        memcpy(c->to, c->from, c->bytes);
    }
}

void ft_copies_run(ft_copies *c, ft_pool *pool)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < c->n; i++)
        bytes += c->list[i].bytes;
    share s = {c, 0};
    if (bytes < ALONE_BYTES)
        copy_share(&s, 0);
    else
        ft_pool_share(pool, copy_share, &s);
    c->n = 0;
}
