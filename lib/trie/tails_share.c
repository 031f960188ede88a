/* SPDX-License-Identifier: Apache-2.0
 *
 * Which suffixes are stored, as MARISA has it: sorted by their tokens from the last to
 * the first, a suffix that another ends with stands right before it, or before others
 * that do. What is stored goes by the order of nodes, so that the links of siblings lie
 * together.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "trie/tails_fold.h"

enum { FEW = 12, LENGTH_BITS = 16 };

typedef struct suffix {
    uint64_t end; /* << LENGTH_BITS: the place behind its last token; and its length */
    uint64_t link;
} suffix;

static inline uint32_t length_of(const suffix *s)
{
    return s->end & ((1u << LENGTH_BITS) - 1);
}

/* Token number d from the end, plus 1; 0 in front of the first. */
static inline uint64_t key_at(const uint32_t *tokens, const suffix *s, uint32_t d)
{
    return d < length_of(s) ? (uint64_t)tokens[(s->end >> LENGTH_BITS) - 1 - d] + 1 : 0;
}

/* Does x come before y, of which the last d tokens are the same? */
static bool before(const uint32_t *tokens, const suffix *x, const suffix *y, uint32_t d)
{
    for (;; d++) {
        const uint64_t a = key_at(tokens, x, d), b = key_at(tokens, y, d);
        if (a != b || a == 0)
            return a < b;
    }
}

static void sort_few(const uint32_t *tokens, suffix *s, uint64_t n, uint32_t d)
{
    for (uint64_t i = 1; i < n; i++) {
        const suffix x = s[i];
        uint64_t hole = i;
        for (; hole && before(tokens, &x, &s[hole - 1], d); hole--)
            s[hole] = s[hole - 1];
        s[hole] = x;
    }
}

/* A part of the array whose suffixes have their last d tokens in common. */
typedef struct part {
    suffix *s;
    uint64_t n;
    uint32_t d;
} part;

/* Cut in three by the token at depth d: smaller, equal, larger than that of a drawn
 * place. */
static void cut(const uint32_t *tokens, const part *p, uint64_t *seed, part out[3])
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint64_t pivot = key_at(tokens, &p->s[(*seed >> 24) % p->n], p->d);
    uint64_t lo = 0, at = 0, hi = p->n;
    while (at < hi) {
        const suffix x = p->s[at];
        const uint64_t key = key_at(tokens, &x, p->d);
        if (key < pivot) {
            p->s[at++] = p->s[lo];
            p->s[lo++] = x;
        } else if (key > pivot) {
            p->s[at] = p->s[--hi];
            p->s[hi] = x;
        } else {
            at++;
        }
    }
    out[0] = (part){p->s, lo, p->d};
    out[1] = (part){p->s + lo, pivot ? hi - lo : 0, p->d + 1};
    out[2] = (part){p->s + hi, p->n - hi, p->d};
}

/* Multikey quicksort. The largest part is the loop's, so the recursion is as deep as
 * the logarithm of n, however long the suffixes are. */
static void sort_suffixes(const uint32_t *tokens, part p, uint64_t *seed)
{
    while (p.n > FEW) {
        part parts[3];
        cut(tokens, &p, seed, parts);
        unsigned largest = parts[1].n >= parts[0].n ? 1 : 0;
        largest = parts[2].n > parts[largest].n ? 2 : largest;
        for (unsigned i = 0; i < 3; i++)
            if (i != largest)
                sort_suffixes(tokens, parts[i], seed);
        p = parts[largest];
    }
    sort_few(tokens, p.s, p.n, p.d);
}

/* Does x end with y? */
static bool ends_with(const uint32_t *tokens, const suffix *x, const suffix *y)
{
    const uint32_t n = length_of(y);
    return length_of(x) >= n &&
           memcmp(tokens + (x->end >> LENGTH_BITS) - n,
                  tokens + (y->end >> LENGTH_BITS) - n, n * sizeof *tokens) == 0;
}

/* For each link the one whose tokens are stored for it: the longest suffix that ends
 * with its own, and of equal ones that of the first node. */
static void find_owners(const uint32_t *tokens, const suffix *s, uint64_t n,
                        uint64_t *owner)
{
    for (uint64_t end = n; end > 0;) {
        const suffix *longest = &s[end - 1];
        uint64_t first = longest->link, begin = end - 1;
        while (begin > 0 && ends_with(tokens, longest, &s[begin - 1])) {
            begin--;
            if (length_of(&s[begin]) == length_of(longest) && s[begin].link < first)
                first = s[begin].link;
        }
        for (; end > begin; end--)
            owner[s[end - 1].link] = first;
    }
}

/* Store the tokens of the owners, and turn all places into those of the tail. */
static ft_status store(ft_fold *f, const uint64_t *owner, ft_error *err)
{
    uint64_t n_tail = 0, at = 0;
    for (uint64_t i = 0; i < f->n_links; i++)
        n_tail += owner[i] == i ? f->links[i].n : 0;
    uint32_t *tail = ft_calloc(n_tail, sizeof *tail, err);
    f->last = ft_calloc(ft_words(n_tail), sizeof *f->last, err);
    if (!tail || !f->last) {
        free(tail);
        return FT_ENOMEM;
    }
    for (uint64_t i = 0; i < f->n_links; i++) {
        ft_link *l = &f->links[i];
        if (owner[i] != i)
            continue;
        memcpy(tail + at, f->tokens + l->at, l->n * sizeof *tail);
        l->at = at;
        at += l->n;
        f->last[(at - 1) / 64] |= (uint64_t)1 << (at - 1) % 64;
    }
    for (uint64_t i = 0; i < f->n_links; i++) {
        const ft_link *from = &f->links[owner[i]];
        f->links[i].at = from->at + from->n - f->links[i].n;
    }
    free(f->tokens);
    f->tokens = tail;
    f->n_tokens = f->cap_tokens = n_tail;
    return FT_OK;
}

ft_status ft_fold_share(ft_fold *f, ft_error *err)
{
    const uint64_t n = f->n_links;
    suffix *s = ft_calloc(n, sizeof *s, err);
    uint64_t *owner = ft_calloc(n, sizeof *owner, err);
    ft_status st = FT_ENOMEM;
    if (s && owner) {
        uint64_t seed = n;
        for (uint64_t i = 0; i < n; i++) {
            const ft_link *l = &f->links[i];
            s[i] = (suffix){(l->at + l->n) << LENGTH_BITS | l->n, i};
        }
        sort_suffixes(f->tokens, (part){s, n, 0}, &seed);
        find_owners(f->tokens, s, n, owner);
        st = store(f, owner, err);
    }
    free(s);
    free(owner);
    return st;
}
