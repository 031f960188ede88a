/* SPDX-License-Identifier: Apache-2.0
 *
 * Which suffixes are stored, as MARISA has it: sorted by their tokens from the last to
 * the first, a suffix that another ends with stands right before it, or before others
 * that do. The chains are sorted, told whose tokens stand for theirs, and put back in
 * their order, all in place; so are the tokens of those that are stored, which stay in
 * the order of keys, so that those of siblings lie together.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "trie/parallel.h"
#include "trie/tails_fold.h"

enum { FEW = 12, PIECE_CHAINS = 1 << 15 };

static inline uint64_t number_of(const ft_chain *c)
{
    return ft_chain_large(c->link_level);
}

/* Token number d from the end, plus 1; 0 in front of the first. */
static inline uint64_t key_at(const uint32_t *tokens, const ft_chain *c, uint32_t d)
{
    return d < ft_chain_small(c->place_n)
               ? (uint64_t)tokens[ft_chain_large(c->place_n) - 1 - d] + 1
               : 0;
}

/* Does x come before y, of which the last d tokens are the same? */
static bool before(const uint32_t *tokens, const ft_chain *x, const ft_chain *y,
                   uint32_t d)
{
    for (;; d++) {
        const uint64_t a = key_at(tokens, x, d), b = key_at(tokens, y, d);
        if (a != b || a == 0)
            return a < b;
    }
}

static void sort_few(const uint32_t *tokens, ft_chain *c, uint64_t n, uint32_t d)
{
    for (uint64_t i = 1; i < n; i++) {
        const ft_chain x = c[i];
        uint64_t hole = i;
        for (; hole && before(tokens, &x, &c[hole - 1], d); hole--)
            c[hole] = c[hole - 1];
        c[hole] = x;
    }
}

/* A part of the array whose suffixes have their last d tokens in common. */
typedef struct part {
    ft_chain *c;
    uint64_t n;
    uint32_t d;
} part;

/* Cut in three by the token at depth d: smaller, equal, larger than that of a drawn
 * place. */
static void cut(const uint32_t *tokens, const part *p, uint64_t *seed, part out[3])
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint64_t pivot = key_at(tokens, &p->c[(*seed >> 24) % p->n], p->d);
    uint64_t lo = 0, at = 0, hi = p->n;
    while (at < hi) {
        const ft_chain x = p->c[at];
        const uint64_t key = key_at(tokens, &x, p->d);
        if (key < pivot) {
            p->c[at++] = p->c[lo];
            p->c[lo++] = x;
        } else if (key > pivot) {
            p->c[at] = p->c[--hi];
            p->c[hi] = x;
        } else {
            at++;
        }
    }
    out[0] = (part){p->c, lo, p->d};
    out[1] = (part){p->c + lo, pivot ? hi - lo : 0, p->d + 1};
    out[2] = (part){p->c + hi, p->n - hi, p->d};
}

/* Parts that threads sort. */
typedef struct parts {
    const uint32_t *tokens;
    part *list;
    uint64_t n, cap;
} parts;

static ft_status add_part(parts *all, part p, ft_error *err)
{
    void *list = all->list;
    const ft_status st = ft_reserve(&list, &all->cap, all->n + 1, sizeof p, err);
    all->list = list;
    if (st == FT_OK)
        all->list[all->n++] = p;
    return st;
}

/* Multikey quicksort, or, with a list to put them into, down to parts that are small
 * enough for a thread. The largest part is the loop's, so the recursion is as deep as
 * the logarithm of n, however long the suffixes are. */
static ft_status sort_part(const uint32_t *tokens, part p, uint64_t *seed, parts *list,
                           ft_error *err)
{
    while (p.n > (list ? PIECE_CHAINS : FEW)) {
        ft_status st = FT_OK;
        part cuts[3];
        cut(tokens, &p, seed, cuts);
        unsigned largest = cuts[1].n >= cuts[0].n ? 1 : 0;
        largest = cuts[2].n > cuts[largest].n ? 2 : largest;
        for (unsigned i = 0; i < 3 && st == FT_OK; i++)
            if (i != largest)
                st = sort_part(tokens, cuts[i], seed, list, err);
        if (st != FT_OK)
            return st;
        p = cuts[largest];
    }
    if (list)
        return add_part(list, p, err);
    sort_few(tokens, p.c, p.n, p.d);
    return FT_OK;
}

static ft_status sort_parts(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const parts *all = arg;
    ft_status st = FT_OK;
    for (uint64_t i = begin; i < end && st == FT_OK; i++) {
        uint64_t seed = i;
        st = sort_part(all->tokens, all->list[i], &seed, NULL, err);
    }
    return st;
}

static ft_status sort_chains(ft_fold *f, uint32_t n_threads, ft_error *err)
{
    parts all = {.tokens = f->tokens};
    uint64_t seed = f->n_chains;
    ft_status st =
        sort_part(f->tokens, (part){f->chains, f->n_chains, 0}, &seed, &all, err);
    if (st == FT_OK)
        st = ft_parallel(all.n, 1, n_threads, sort_parts, &all, err);
    free(all.list);
    return st;
}

/* Does x end with y? */
static bool ends_with(const uint32_t *tokens, const ft_chain *x, const ft_chain *y)
{
    const uint32_t n = ft_chain_small(y->place_n);
    return ft_chain_small(x->place_n) >= n &&
           memcmp(tokens + ft_chain_large(x->place_n) - n,
                  tokens + ft_chain_large(y->place_n) - n, n * sizeof *tokens) == 0;
}

/* The chains of one stored suffix: tell each whose tokens stand for it, the longest,
 * and of equal ones the first key's. Equation 1 asks for alpha < 1 - 1 / k, and so for
 * fewer stored tokens and links than there are tokens. */
static void settle_group(ft_chain *c, uint64_t n, bool choosy)
{
    const uint32_t longest = ft_chain_small(c[n - 1].place_n);
    uint64_t owner = FT_NO_CHAIN, n_tokens = 0;
    for (uint64_t i = 0; i < n; i++) {
        n_tokens += ft_chain_small(c[i].place_n);
        if (ft_chain_small(c[i].place_n) == longest && number_of(&c[i]) < owner)
            owner = number_of(&c[i]);
    }
    if (choosy && longest + n >= n_tokens)
        owner = FT_NO_CHAIN;
    for (uint64_t i = 0; i < n; i++)
        c[i].place_n = ft_chain_pair(owner, ft_chain_small(c[i].place_n));
}

static void find_owners(ft_fold *f, bool choosy)
{
    for (uint64_t end = f->n_chains, begin; end > 0; end = begin) {
        const ft_chain *longest = &f->chains[end - 1];
        begin = end - 1;
        while (begin > 0 && ends_with(f->tokens, longest, &f->chains[begin - 1]))
            begin--;
        settle_group(f->chains + begin, end - begin, choosy);
    }
}

static inline void swap(ft_chain *x, ft_chain *y)
{
    const ft_chain c = *x;
    *x = *y;
    *y = c;
}

/* Back into the order of their numbers: first into the right one of many pieces, since
 * what goes to and fro in a piece stays in the cache. */
static void put_back(ft_chain *chains, uint64_t n)
{
    enum { PIECES = 256 };
    uint64_t next[PIECES];
    unsigned shift = 0;
    while (n >> shift >= PIECES)
        shift++;
    for (uint64_t i = 0; i < PIECES; i++)
        next[i] = i << shift;
    for (uint64_t i = 0; i << shift < n; i++) {
        const uint64_t end = (i + 1) << shift < n ? (i + 1) << shift : n;
        while (next[i] < end) {
            const uint64_t piece = number_of(&chains[next[i]]) >> shift;
            if (piece == i)
                next[i]++;
            else
                swap(&chains[next[i]], &chains[next[piece]++]);
        }
    }
    for (uint64_t i = 0; i < n; i++)
        while (number_of(&chains[i]) != i)
            swap(&chains[i], &chains[number_of(&chains[i])]);
}

/* Keep the tokens of owners only, and say where each chain starts in them. */
static ft_status store(ft_fold *f, ft_error *err)
{
    ft_chain *const chains = f->chains;
    uint64_t from = 0, to = 0;
    for (uint64_t i = 0; i < f->n_chains; i++) {
        const uint32_t n = ft_chain_small(chains[i].place_n);
        if (ft_chain_large(chains[i].place_n) == i) {
            const uint32_t level = ft_chain_small(chains[i].link_level);
            memmove(f->tokens + to, f->tokens + from, n * sizeof *f->tokens);
            chains[i].link_level = ft_chain_pair(to, level);
            to += n;
        }
        from += n;
    }
    f->n_tokens = to;
    f->last = ft_calloc(ft_words(to), sizeof *f->last, err);
    if (!f->last)
        return FT_ENOMEM;
    for (uint64_t i = 0; i < f->n_chains; i++) {
        const uint64_t owner = ft_chain_large(chains[i].place_n);
        const uint32_t n = ft_chain_small(chains[i].place_n);
        if (owner == FT_NO_CHAIN)
            continue;
        const ft_chain *o = &chains[owner];
        const uint64_t end = ft_chain_large(o->link_level) + ft_chain_small(o->place_n);
        if (owner == i)
            ft_bit_set(f->last, end - 1);
        chains[i].link_level =
            ft_chain_pair(end - n, ft_chain_small(chains[i].link_level));
        f->n_links++;
        f->n_folded += n;
    }
    f->n_left -= f->n_folded - (f->labels ? 0 : f->n_links);
    return FT_OK;
}

/* Give back the room of tokens that are not stored; no failure if that fails. */
static void shrink(ft_fold *f)
{
    uint32_t *less = ft_realloc(f->tokens, f->n_tokens, sizeof *f->tokens, NULL);
    f->tokens = less ? less : f->tokens;
}

ft_status ft_fold_share(ft_fold *f, bool choosy, uint32_t n_threads, ft_error *err)
{
    ft_status st = sort_chains(f, n_threads, err);
    if (st != FT_OK)
        return st;
    find_owners(f, choosy);
    put_back(f->chains, f->n_chains);
    st = store(f, err);
    if (st == FT_OK)
        shrink(f);
    return st;
}
