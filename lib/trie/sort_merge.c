/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of losers (Knuth, TAOCP 3, 5.4.1) that remembers what keys share (Ng and
 * Kakehi, "Merging String Sequences by Longest Common Prefixes", 2008): the key of a
 * source on the winner's path knows how many tokens it shares with the winner, so of
 * two of them the one that shares more comes first, and tokens are compared, from there
 * on, only where both share as many.
 */
#include "trie/sort_merge.h"

#include <stdlib.h>

enum { NOBODY = UINT32_MAX };

ft_status ft_sort_merge_open(ft_sort_merge *m, uint32_t n, ft_error *err)
{
    m->sources = ft_calloc(n, sizeof *m->sources, err);
    m->loser = ft_calloc(n, sizeof *m->loser, err);
    if (!m->sources || !m->loser)
        return FT_ENOMEM;
    m->n = n;
    return FT_OK;
}

void ft_sort_merge_close(ft_sort_merge *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        ft_sort_reader_close(&m->sources[i].reader);
    free(m->sources);
    free(m->loser);
    *m = (ft_sort_merge){.n_duplicates = m->n_duplicates};
}

static ft_status advance(ft_sort_source *s, ft_error *err)
{
    return s->chunk ? ft_sort_chunk_next(s->chunk, &s->key, err)
                    : ft_sort_reader_next(&s->reader, &s->key, err);
}

/* Does a's key come before b's? The other one's lcp becomes that of the two. Both lcps
 * are with the key handed out last. */
static bool beats(ft_key *a, ft_key *b)
{
    uint32_t more;
    if (a->n == 0 || b->n == 0)
        return b->n == 0;
    if (a->lcp != b->lcp)
        return a->lcp > b->lcp;
    const uint32_t lcp = a->lcp;
    const int order = ft_keys_compare(a->tokens + lcp, a->n - lcp, b->tokens + lcp,
                                      b->n - lcp, &more);
    (order <= 0 ? b : a)->lcp = lcp + more;
    return order <= 0;
}

/* Source i goes up the tree and stays where it loses; the best gets to the top. */
static void play(ft_sort_merge *m, uint32_t i)
{
    for (uint32_t node = (i + m->n) / 2; node; node /= 2) {
        const uint32_t other = m->loser[node];
        if (other == NOBODY) { /* only at the start: wait here for the other half */
            m->loser[node] = i;
            return;
        }
        if (!beats(&m->sources[i].key, &m->sources[other].key)) {
            m->loser[node] = i;
            i = other;
        }
    }
    m->winner = i;
}

static ft_status start(ft_sort_merge *m, ft_error *err)
{
    for (uint32_t i = 0; i < m->n; i++)
        m->loser[i] = NOBODY;
    for (uint32_t i = 0; i < m->n; i++) {
        const ft_status st = advance(&m->sources[i], err);
        if (st != FT_OK)
            return st;
        play(m, i);
    }
    m->started = true;
    return FT_OK;
}

/* Go on behind the winner. */
static ft_status step(ft_sort_merge *m, ft_error *err)
{
    ft_sort_source *s = &m->sources[m->winner];
    if (s->key.n == 0)
        return FT_OK; /* the end goes on being the end */
    const ft_status st = advance(s, err);
    if (st == FT_OK)
        play(m, m->winner);
    return st;
}

ft_status ft_sort_merge_next(ft_sort_merge *m, ft_key *key, ft_error *err)
{
    if (m->n == 0) {
        *key = (ft_key){0};
        return FT_OK;
    }
    for (;;) {
        const ft_status st = m->started ? step(m, err) : start(m, err);
        if (st != FT_OK)
            return st;
        *key = m->sources[m->winner].key;
        /* A key that is shared whole is no extension of the one before: its equal. */
        if (key->n == 0 || key->lcp < key->n)
            return FT_OK;
        m->n_duplicates++;
    }
}
