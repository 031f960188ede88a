/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/ids.h"

#include "trie/parallel.h"

enum { PIECE_IDS = 1 << 16 };

static unsigned id_width(uint64_t n_keys)
{
    return n_keys > 1 ? ft_bit_width(n_keys - 1) : 1;
}

ft_status ft_ids_build(ft_writer *w, const ft_levels *levels)
{
    if (!levels->ids)
        return FT_OK;
    const unsigned width = id_width(levels->n_keys);
    ft_bits_out bits = {.w = w};
    ft_section_begin(w, FT_SECTION_IDS, levels->n_keys, width,
                     ft_packed_bytes(levels->n_keys, width));
    ft_group_iter it = ft_levels_from(levels, 0);
    for (const ft_chunk *c = ft_chunk_first(&it); c; c = ft_chunk_next(&it))
        for (uint64_t i = 0; i < c->n_numbers; i++) {
            uint64_t number = 0;
            memcpy(&number, c->numbers + i * FT_KEY_NUMBER_BYTES, FT_KEY_NUMBER_BYTES);
            ft_bits_put(&bits, number, width);
        }
    return ft_bits_end_packed(&bits);
}

ft_status ft_ids_open(ft_trie *trie, const ft_sections *sections, uint32_t *n_used,
                      ft_error *err)
{
    if (!trie->has_ids)
        return FT_OK;
    const unsigned width = id_width(trie->n_keys);
    const ft_section_want want = {FT_SECTION_IDS, width, trie->n_keys,
                                  ft_packed_bytes(trie->n_keys, width)};
    const void *data;
    const ft_status st = ft_sections_find(sections, &want, &data, err);
    if (st != FT_OK)
        return st;
    trie->ids = data;
    trie->id_bits = width;
    ++*n_used;
    return FT_OK;
}

static ft_status check_ids(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    const ft_trie *t = arg;
    for (uint64_t i = begin; i < end; i++)
        if (ft_packed_get(t->ids, i, t->id_bits) >= t->n_keys)
            return ft_fail(err, FT_EFORMAT, "section ids: number %llu is out of range",
                           (unsigned long long)i);
    return FT_OK;
}

ft_status ft_ids_verify(const ft_trie *trie, uint32_t n_threads, ft_error *err)
{
    if (!trie->has_ids)
        return FT_OK;
    if (!ft_packed_padding_ok(trie->ids, trie->n_keys, trie->id_bits))
        return ft_fail(err, FT_EFORMAT, "section ids: bits beyond the last are set");
    return ft_parallel(trie->n_keys, PIECE_IDS, n_threads, check_ids, (void *)trie,
                       err);
}
