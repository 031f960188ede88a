/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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
                           left < PIECE_BYTES ? left : (uint64_t)PIECE_BYTES};
    }
    return st;
}

struct share {
    const ft_copies *copies;
    uint64_t next;
};

/* Past the caches: to write a line through them it is read first, and by the time that
 * it is needed it is not there any more. */
static void copy_past_caches(uint8_t *to, const uint8_t *from, size_t bytes)
{
#ifdef __SSE2__
    enum { LINE = 64 };
    const size_t head = -(uintptr_t)to % LINE;
    if (head + LINE <= bytes) {
        memcpy(to, from, head);
        to += head;
        from += head;
        bytes -= head;
        for (; bytes >= LINE; to += LINE, from += LINE, bytes -= LINE)
            for (int i = 0; i < LINE / 16; i++)
                _mm_stream_si128((__m128i *)to + i,
                                 _mm_loadu_si128((const __m128i *)from + i));
        _mm_sfence();
    }
#endif
    memcpy(to, from, bytes);
}

static void copy_share(void *arg, uint32_t)
{
    share *s = (share *)arg;
    for (;;) {
        const uint64_t i = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED);
        if (i >= s->copies->n)
            return;
        const ft_copy *c = &s->copies->list[i];
        copy_past_caches((uint8_t *)c->to, (const uint8_t *)c->from, c->bytes);
    }
}

void ft_copies_run(ft_copies *c, ft_pool *pool)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < c->n; i++)
        bytes += c->list[i].bytes;
    share s = {c, 0};
    if (bytes >= ALONE_BYTES)
        ft_pool_share(pool, copy_share, &s);
    else
        for (uint64_t i = 0; i < c->n; i++)
            memcpy(c->list[i].to, c->list[i].from, c->list[i].bytes);
    c->n = 0;
}
