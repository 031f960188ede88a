/* SPDX-License-Identifier: Apache-2.0
 *
 * After these checks every LOUDS accessor stays in bounds, children have larger numbers
 * than their parents, and every walk ends.
 */
#include <stdatomic.h>

#include "base/score.h"
#include "trie/ids.h"
#include "trie/louds.h"
#include "trie/parallel.h"

enum { PIECE_BLOCKS = 1 << 12, PIECE_WORDS = 1 << 15 };

static ft_status check_blocks(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    return ft_bitvec_check(arg, begin, end, err);
}

ft_status ft_vector_verify(const ft_bitvec *b, const char *name, uint32_t n_threads,
                           ft_error *err)
{
    if (!ft_bitvec_padding_ok(b))
        return ft_fail(err, FT_EFORMAT, "section %s: bits beyond the last are set",
                       name);
    if (!b->rank)
        return FT_OK;
    const ft_status st = ft_parallel(ft_bitvec_blocks(b->n_bits), PIECE_BLOCKS,
                                     n_threads, check_blocks, (void *)b, err);
    return st == FT_OK ? st : ft_fail_prefix(err, "section %s", name);
}

/* Before every place but the end there are at least as many ones as zeros: each node
 * has been announced by its parent's run before its own run starts, so children have
 * larger numbers. `begin` and `end` are blocks. */
static ft_status check_tree(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const ft_bitvec *b = arg;
    const uint64_t last = b->n_bits - 1; /* the zero that ends the tree */
    int64_t excess = 2 * (int64_t)b->rank[begin * 2] - (int64_t)(begin * FT_BLOCK_BITS);
    for (uint64_t i = begin * 8; i < end * 8 && i * 64 < last; i++) {
        uint64_t word = b->words[i];
        if (excess >= 64) {
            excess += 2 * (int64_t)ft_popcount(word) - 64;
            continue;
        }
        const uint64_t left = last - i * 64;
        for (unsigned n = left < 64 ? (unsigned)left : 64; n; n--, word >>= 1) {
            excess += word & 1 ? 1 : -1;
            if (excess < 0)
                return ft_fail(err, FT_EFORMAT,
                               "section louds: a node comes before its parent (word "
                               "%llu)",
                               (unsigned long long)i);
        }
    }
    return FT_OK;
}

/* The ones before the end of a level's last node lead to the last node of the next
 * level; the deepest level leads to itself. */
ft_status ft_louds_levels(const ft_louds *l, uint64_t *ends, uint32_t *depth,
                          ft_error *err)
{
    uint64_t last = 0; /* of the level */
    for (*depth = 0;; ++*depth) {
        const uint64_t next = ft_bitvec_select0(&l->louds, last) - last;
        if (ends)
            ends[*depth] = last + 1;
        if (next == last)
            return FT_OK;
        if (*depth == FT_MAX_KEY_TOKENS)
            return ft_fail(err, FT_EFORMAT,
                           "section louds: keys of more than %d tokens",
                           FT_MAX_KEY_TOKENS);
        last = next;
    }
}

static ft_status check_depth(const ft_trie *t, const ft_louds *l, ft_error *err)
{
    uint32_t depth;
    const ft_status st = ft_louds_levels(l, NULL, &depth, err);
    if (st != FT_OK)
        return st;
    if (depth != t->depth)
        return ft_fail(err, FT_EFORMAT, "section louds: depth %u, %u expected", depth,
                       t->depth);
    return FT_OK;
}

typedef struct counter {
    const uint64_t *words;
    _Atomic uint64_t ones;
} counter;

static ft_status count_words(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    counter *c = arg;
    uint64_t ones = 0;
    (void)err;
    for (uint64_t i = begin; i < end; i++)
        ones += ft_popcount(c->words[i]);
    atomic_fetch_add(&c->ones, ones);
    return FT_OK;
}

static ft_status verify_terminals(const ft_trie *t, uint32_t n_threads, ft_error *err)
{
    const ft_louds *l = t->layout;
    counter c = {.words = l->terminal.words};
    ft_status st = ft_vector_verify(&l->terminal, "terminal", n_threads, err);
    if (st == FT_OK)
        st = ft_parallel(ft_words(l->terminal.n_bits), PIECE_WORDS, n_threads,
                         count_words, &c, err);
    if (st != FT_OK)
        return st;
    if (c.ones != t->n_keys)
        return ft_fail(err, FT_EFORMAT, "section terminal: %llu keys, %llu expected",
                       (unsigned long long)c.ones, (unsigned long long)t->n_keys);
    if (ft_bit_get(l->terminal.words, 0))
        return ft_fail(err, FT_EFORMAT, "section terminal: the root ends a key");
    return ft_ids_verify(t, n_threads, err);
}

static ft_status verify_tree(const ft_louds *l, uint32_t n_threads, ft_error *err)
{
    const ft_status st = ft_vector_verify(&l->louds, "louds", n_threads, err);
    return st == FT_OK ? ft_parallel(ft_bitvec_blocks(l->louds.n_bits), PIECE_BLOCKS,
                                     n_threads, check_tree, (void *)&l->louds, err)
                       : st;
}

ft_status ft_louds_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err)
{
    const ft_louds *l = trie->layout;
    ft_status st = verify_tree(l, n_threads, err);
    if (st == FT_OK)
        st = check_depth(trie, l, err);
    return st == FT_OK ? verify_terminals(trie, n_threads, err) : st;
}
