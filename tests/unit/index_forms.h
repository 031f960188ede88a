/* SPDX-License-Identifier: Apache-2.0
 *
 * Small indexes of every form, and the means to damage them and to make their checksums
 * right again.
 */
#ifndef TESTS_UNIT_INDEX_FORMS_H
#define TESTS_UNIT_INDEX_FORMS_H

#include "keyset.h"

#include "../fuzz/walk_index.h"
#include "trie/checksum.h"
#include "trie/format.h"

static const uint32_t alphabet[] = {0, 5, 9, 65535, 65536, 200000};

/* A small index with every section of its layout. */
static inline void make_small(ft_buf *file, const char *layout, bool ids, int level)
{
    keyset s = keyset_random(11, 40, alphabet, 6, 4);
    keyset_build(&s, layout, ids, level, file);
    keyset_free(&s);
}

static const struct {
    const char *layout;
    bool ids;
    int level;
} forms[] = {
    {"narrow", false, 0},       {"narrow", true, 0},        {"wide", false, 0},
    {"wide", true, 0},          {"narrow", true, 3},        {"wide", false, 3},
    {"compact", false, 0},      {"compact", true, 0},       {"compact", true, 3},
    {"narrow-tails", false, 0}, {"narrow-tails", true, 0},  {"narrow-tails", true, 3},
    {"wide-tails", false, 0},   {"wide-tails", true, 3},    {"compact-tails", false, 0},
    {"compact-tails", true, 0}, {"compact-tails", true, 3},
};
enum { N_FORMS = sizeof forms / sizeof *forms, N_LOUDS_FORMS = 6 };

static inline void make_form(ft_buf *file, unsigned i)
{
    make_small(file, forms[i].layout, forms[i].ids, forms[i].level);
}

static inline ft_index_front *front_of(ft_buf *file)
{
    return (ft_index_front *)file->data;
}

static inline ft_section_entry *entry_of(ft_buf *file, uint32_t type)
{
    ft_index_front *f = front_of(file);
    for (uint32_t i = 0; i < f->header.n_sections; i++)
        if (f->table[i].type == type)
            return &f->table[i];
    fail_msg("no section %u", type);
    return NULL;
}

static inline void *bytes_of(ft_buf *file, uint32_t type)
{
    return file->data + entry_of(file, type)->offset;
}

static inline void seal_header(ft_buf *file)
{
    front_of(file)->header.checksum = ft_index_front_checksum(front_of(file));
}

/* Make all checksums right (sections of one piece). */
static inline void seal(ft_buf *file)
{
    ft_index_front *f = front_of(file);
    for (uint32_t i = 0; i < f->header.n_sections; i++) {
        ft_section_entry *e = &f->table[i];
        const uint64_t sum = ft_checksum(file->data + e->offset, e->stored_bytes);
        assert_true(e->stored_bytes <= FT_SECTION_PIECE);
        e->checksum = ft_checksum(&sum, e->stored_bytes ? sizeof sum : 0);
    }
    seal_header(file);
}

static inline ft_status try_open(const void *data, uint64_t bytes, ft_verify verify,
                                 ft_error *err)
{
    ft_index *ix = NULL;
    const ft_status st = ft_index_open_memory(&ix, data, bytes, "small", verify, err);
    if (st == FT_OK)
        walk_index(ix, 10000);
    else
        assert_null(ix);
    ft_index_close(ix);
    return st;
}

static inline void assert_refused(const ft_buf *file, ft_verify verify,
                                  const char *message)
{
    ft_error err = {0};
    assert_int_equal(try_open(file->data, file->len, verify, &err), FT_EFORMAT);
    assert_string_equal(err.message, message);
}

#endif
