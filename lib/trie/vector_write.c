/* SPDX-License-Identifier: Apache-2.0
 *
 * A bit vector's sections. The directories are made with the bits, each piece's as if
 * it were the first, and made good when the ones of all pieces are known.
 */
#include <stdlib.h>

#include "trie/louds.h"
#include "trie/parallel.h"

enum {
    PIECE_BLOCKS = FT_SECTION_PIECE / (FT_BLOCK_BITS / 8),
    RANK_WORDS = 2 /* a block */
};

typedef struct writing {
    const ft_vector_source *v;
    ft_bitvec sizes;
    uint64_t *rank; /* NULL: no directories */
    uint32_t *hints;
    uint64_t *ones; /* of each piece, then of all before it */
} writing;

static ft_status fill(void *arg, uint64_t at, uint64_t n, uint8_t *out, ft_error *err)
{
    const writing *x = arg;
    ft_bits_out b = ft_bits_window(out, at, n);
    (void)err;
    x->v->put(x->v->map, &b);
    ft_bits_close(&b);
    if (x->rank) {
        const uint64_t block = at / (FT_BLOCK_BITS / 8);
        x->ones[at / FT_SECTION_PIECE] = ft_bitvec_count(b.out, n / (FT_BLOCK_BITS / 8),
                                                         x->rank + block * RANK_WORDS);
    }
    return FT_OK;
}

static ft_status settle(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const writing *x = arg;
    const uint64_t n_blocks = ft_bitvec_blocks(x->sizes.n_bits);
    (void)err;
    for (uint64_t i = begin; i < end; i++) {
        const uint64_t first = i * PIECE_BLOCKS, left = n_blocks - first;
        const uint64_t last = left < PIECE_BLOCKS ? n_blocks : first + PIECE_BLOCKS;
        ft_bitvec_settle(&x->sizes, x->rank, x->hints, first, last, x->ones[i],
                         x->ones[i + 1] - x->ones[i]);
    }
    return FT_OK;
}

static ft_status write_directories(ft_writer *w, writing *x, uint64_t n_pieces)
{
    const ft_vector_source *v = x->v;
    const uint64_t blocks = ft_bitvec_blocks(v->n_bits);
    const uint64_t hints = ft_bitvec_hints(v->n_bits - v->n_ones);
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= n_pieces; i++) {
        const uint64_t here = x->ones[i];
        x->ones[i] = sum;
        sum += here;
    }
    assert(sum == v->n_ones);
    ft_status st = ft_parallel(n_pieces, 1, w->n_threads, settle, x, w->err);
    if (st == FT_OK) {
        const ft_section s = {v->rank_type, 0, blocks, ft_bitvec_rank_bytes(v->n_bits)};
        st = ft_section_copy(w, &s, x->rank);
    }
    if (st == FT_OK && v->hints_type) {
        const ft_section s = {v->hints_type, 0, hints, hints * sizeof *x->hints};
        st = ft_section_copy(w, &s, x->hints);
    }
    return st;
}

ft_status ft_vector_write(ft_writer *w, const ft_vector_source *v)
{
    const uint64_t bytes = ft_bitvec_bytes(v->n_bits);
    const uint64_t n_pieces = (bytes - 1) / FT_SECTION_PIECE + 1;
    const ft_section s = {v->type, 0, v->n_bits, bytes};
    writing x = {.v = v, .sizes = {.n_bits = v->n_bits, .n_ones = v->n_ones}};
    ft_status st = FT_OK;
    if (v->rank_type) {
        x.rank = ft_alloc_aligned(ft_bitvec_blocks(v->n_bits) * RANK_WORDS,
                                  sizeof *x.rank, w->err);
        x.ones = ft_calloc(n_pieces + 1, sizeof *x.ones, w->err);
        if (v->hints_type)
            x.hints = ft_calloc(ft_bitvec_hints(v->n_bits - v->n_ones), sizeof *x.hints,
                                w->err);
        if (!x.rank || !x.ones || (v->hints_type && !x.hints))
            st = FT_ENOMEM;
    }
    if (st == FT_OK)
        st = ft_section_fill(w, &s, fill, &x);
    if (st == FT_OK && v->rank_type)
        st = write_directories(w, &x, n_pieces);
    free(x.rank);
    free(x.ones);
    free(x.hints);
    return st;
}
