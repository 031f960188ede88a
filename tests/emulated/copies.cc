/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu/copy.cu, which needs no GPU: all sizes up to a few lines and a large one, to all
 * places in a line.
 */
#include "../../gpu/copy.cu"
#include "emulate.h"

#include <vector>

/* So few bytes that a thread alone copies them, or a team's worth. */
unsigned emu_wrong_copies(bool by_team)
{
    enum { SIZES = 300, ROUNDS = 64, BIG = 3 << 20, GUARD = 0xa5 };
    std::vector<uint8_t> from(BIG + 8), to(ROUNDS * SIZES * SIZES / 2 + 2 * BIG, GUARD);
    std::vector<uint8_t> want = to;
    ft_copies copies = {};
    ft_pool *pool = NULL;
    ft_error err;
    size_t at = 0;
    ft_status st = ft_pool_open(&pool, 3, &err);
    for (size_t i = 0; i < from.size(); i++)
        from[i] = (uint8_t)(i * 0x9E3779B97F4A7C15u >> 56);
    const auto add = [&](size_t bytes) {
        const uint8_t *source = &from[at % 7];
        if (st == FT_OK)
            st = ft_copies_add(&copies, &to[at], source, bytes, &err);
        for (size_t i = 0; i < bytes; i++)
            want[at + i] = source[i];
        at += bytes + 1; /* a byte that stays */
    };
    for (size_t n = 0; n < SIZES; n++)
        for (int round = by_team ? 0 : ROUNDS - 8; round < ROUNDS; round++)
            add(n);
    if (by_team)
        add(BIG);
    if (st == FT_OK)
        ft_copies_run(&copies, pool);
    unsigned n_wrong = st != FT_OK;
    for (size_t i = 0; i < to.size(); i++)
        n_wrong += to[i] != want[i];
    free(copies.list);
    ft_pool_close(pool);
    return n_wrong;
}
