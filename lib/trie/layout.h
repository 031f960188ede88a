/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts are rows: how a trie is written as sections, read back and verified. A new
 * layout is a file with one row and its place in the table of layout.c.
 */
#ifndef FT_TRIE_LAYOUT_H
#define FT_TRIE_LAYOUT_H

#include "trie/level_map.h"
#include "trie/trie.h"
#include "trie/writer.h"

/* The sections of an opened file: sizes, offsets and encodings have been checked, the
 * bytes have not. data[i] are the raw bytes of table[i]. */
typedef struct ft_sections {
    const ft_index_header *header;
    const ft_section_entry *table;
    const void **data;
    uint32_t n;
} ft_sections;

typedef struct ft_layout {
    const char *name;
    const char *summary;
    uint32_t id; /* ft_index_header.layout */

    /* Write all sections; the level arrays may be spent on it. */
    ft_status (*build)(ft_writer *w, ft_level_map *map);

    /* Fill trie->ops, trie->n_numbered if it is not n_nodes, trie->layout (one
     * allocation, the caller frees it after `close`), trie->ids and trie->id_bits from
     * the sections; the rest of *trie is filled already. Checks that the sections are
     * those of the layout, and their sizes against the header. On failure trie->layout
     * is NULL or still to be freed. */
    ft_status (*open)(ft_trie *trie, const ft_sections *sections, ft_error *err);

    /* Check the bytes, so that afterwards every accessor stays in bounds and every walk
     * ends: directories, tree shape, depth, counts, fields and labels within range. */
    ft_status (*verify)(const ft_trie *trie, uint32_t n_threads, ft_error *err);

    /* Free what trie->layout has beside itself, however far `open` got. NULL: nothing.
     */
    void (*close)(ft_trie *trie);
} ft_layout;

extern const ft_layout ft_layout_narrow, ft_layout_wide, ft_layout_compact,
    ft_layout_narrow_tails, ft_layout_wide_tails, ft_layout_compact_tails;

/* Rows by number (NULL past the last), by name (NULL name: the default) and by id; NULL
 * where there is none. */
const ft_layout *ft_layout_row(uint32_t i);
const ft_layout *ft_layout_by_name(const char *name);
const ft_layout *ft_layout_by_id(uint32_t id);

/* What a section must be. */
typedef struct ft_section_want {
    uint32_t type;
    uint32_t param;
    uint64_t items;
    uint64_t raw_bytes;
} ft_section_want;

/* Bytes of the section that `want` describes, in *data. FT_EFORMAT: it is missing or of
 * another size. */
ft_status ft_sections_find(const ft_sections *s, const ft_section_want *want,
                           const void **data, ft_error *err);

/* Table entry of a type, or NULL. */
const ft_section_entry *ft_sections_entry(const ft_sections *s, uint32_t type);

/* Refuse sections beyond the first n_known that the layout has asked for. */
ft_status ft_sections_only(const ft_sections *s, uint32_t n_known, ft_error *err);

#endif
