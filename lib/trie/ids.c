/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/ids.h"

#include "trie/bits_out.h"
#include "trie/bitvec.h"
#include "trie/parallel.h"

enum { PIECE_IDS = 1 << 16 };

static unsigned id_width(uint64_t n_keys)
{
    return n_keys > 1 ? ft_bit_width(n_keys - 1) : 1;
}

static void put_numbers(const ft_chunk *c, uint64_t first, unsigned width,
                        ft_bits_out *b)
{
    for (uint64_t i = first; i < c->n_numbers; i++) {
        uint64_t number = 0;
        memcpy(&number, c->numbers + i * FT_KEY_NUMBER_BYTES, FT_KEY_NUMBER_BYTES);
        ft_bits_put(b, number, width);
        if (ft_bits_full(b))
            return;
    }
}

static ft_status fill_ids(void *arg, uint64_t at, uint64_t n, uint8_t *out,
                          ft_error *err)
{
    const ft_level_map *map = arg;
    const unsigned width = id_width(map->levels->n_keys);
    const ft_span *s = ft_map_by_terminals(map, at * 8 / width);
    ft_bits_out b = ft_bits_window(out, at, n);
    (void)err;
    ft_bits_seek(&b, s->terminals * width);
    ft_group_iter it = {.levels = map->levels, .level = s->level, .chunk = s->chunk};
    uint64_t first = s->chunk_numbers;
    for (const ft_chunk *c = it.chunk; c && !ft_bits_full(&b); c = ft_chunk_next(&it)) {
        put_numbers(c, first, width, &b);
        first = 0;
    }
    ft_bits_close(&b);
    return FT_OK;
}

ft_status ft_ids_build(ft_writer *w, const ft_level_map *map)
{
    const uint64_t n = map->levels->n_keys;
    if (!map->levels->ids)
        return FT_OK;
    const unsigned width = id_width(n);
    const ft_section s = {FT_SECTION_IDS, width, n, ft_packed_bytes(n, width)};
    return ft_section_fill(w, &s, fill_ids, (void *)map);
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
