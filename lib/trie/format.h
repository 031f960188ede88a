/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the index file, byte for byte: ft-index(5). Little-endian. The file is the
 * header, the section table, then the sections in the order of the table, each at the
 * next multiple of FT_SECTION_ALIGN behind the one before; what lies between is zero.
 */
#ifndef FT_TRIE_FORMAT_H
#define FT_TRIE_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define FT_INDEX_MAGIC "FTINDEX\n"

enum {
    FT_INDEX_VERSION = 2,
    FT_BYTE_ORDER = 0x01020304,
    FT_SECTION_ALIGN = 64,
    FT_MAX_SECTIONS = 30,
    FT_SECTIONS_AT = 2048, /* offset of the first section */
    FT_SECTION_PIECE =
        1 << 20,             /* bytes that are hashed, or compressed, by themselves */
    FT_INDEX_HAS_IDS = 1,    /* flags: key numbers are stored */
    FT_INDEX_LEVEL_ORDER = 2 /* flags: nodes are numbered level by level */
};

/* Nodes and keys are fewer than this; every size below follows from them and fits 64
 * bits with room to spare. */
#define FT_MAX_NODES ((uint64_t)1 << 40)

typedef struct ft_index_header {
    uint8_t magic[8];
    uint32_t byte_order;
    uint32_t version;
    uint32_t layout;
    uint32_t flags;
    uint64_t file_bytes;
    uint64_t n_keys;
    uint64_t n_nodes; /* the root included */
    uint32_t depth;
    uint32_t max_token;
    uint32_t n_sections;
    uint32_t zero1;
    uint64_t
        checksum; /* of header and whole table (FT_SECTIONS_AT bytes), this field 0 */
    uint8_t zero2[56];
} ft_index_header;

static_assert(sizeof(ft_index_header) == 128, "see ft-index(5)");
static_assert(offsetof(ft_index_header, byte_order) == 8, "see ft-index(5)");
static_assert(offsetof(ft_index_header, version) == 12, "see ft-index(5)");
static_assert(offsetof(ft_index_header, layout) == 16, "see ft-index(5)");
static_assert(offsetof(ft_index_header, flags) == 20, "see ft-index(5)");
static_assert(offsetof(ft_index_header, file_bytes) == 24, "see ft-index(5)");
static_assert(offsetof(ft_index_header, n_keys) == 32, "see ft-index(5)");
static_assert(offsetof(ft_index_header, n_nodes) == 40, "see ft-index(5)");
static_assert(offsetof(ft_index_header, depth) == 48, "see ft-index(5)");
static_assert(offsetof(ft_index_header, max_token) == 52, "see ft-index(5)");
static_assert(offsetof(ft_index_header, n_sections) == 56, "see ft-index(5)");
static_assert(offsetof(ft_index_header, zero1) == 60, "see ft-index(5)");
static_assert(offsetof(ft_index_header, checksum) == 64, "see ft-index(5)");
static_assert(offsetof(ft_index_header, zero2) == 72, "see ft-index(5)");

typedef struct ft_section_entry {
    uint32_t type;
    uint32_t encoding;
    uint64_t offset;
    uint64_t stored_bytes;
    uint64_t raw_bytes;
    uint64_t checksum; /* of the stored bytes: XXH3-64 of the XXH3-64 of each piece */
    uint64_t items;    /* bits or entries */
    uint32_t param;    /* bits a field of a packed array, else 0 */
    uint8_t zero[12];
} ft_section_entry;

static_assert(sizeof(ft_section_entry) == 64, "see ft-index(5)");
static_assert(offsetof(ft_section_entry, encoding) == 4, "see ft-index(5)");
static_assert(offsetof(ft_section_entry, offset) == 8, "see ft-index(5)");
static_assert(offsetof(ft_section_entry, stored_bytes) == 16, "see ft-index(5)");
static_assert(offsetof(ft_section_entry, raw_bytes) == 24, "see ft-index(5)");
static_assert(offsetof(ft_section_entry, checksum) == 32, "see ft-index(5)");
static_assert(offsetof(ft_section_entry, items) == 40, "see ft-index(5)");
static_assert(offsetof(ft_section_entry, param) == 48, "see ft-index(5)");
static_assert(offsetof(ft_section_entry, zero) == 52, "see ft-index(5)");
static_assert(sizeof(ft_index_header) + FT_MAX_SECTIONS * sizeof(ft_section_entry) ==
                  FT_SECTIONS_AT,
              "see ft-index(5)");

/* What the first FT_SECTIONS_AT bytes hold. */
typedef struct ft_index_front {
    ft_index_header header;
    ft_section_entry table[FT_MAX_SECTIONS];
} ft_index_front;

/* The section FT_SECTION_TREE: what is left of the trie beside the tails. */
typedef struct ft_index_tree {
    uint64_t n_nodes; /* the root included */
    uint32_t depth;
    uint32_t zero;
} ft_index_tree;

static_assert(sizeof(ft_index_tree) == 16, "see ft-index(5)");
static_assert(offsetof(ft_index_tree, depth) == 8, "see ft-index(5)");
static_assert(offsetof(ft_index_tree, zero) == 12, "see ft-index(5)");

/* Plain, or a zstd frame for each FT_SECTION_PIECE bytes. */
enum { FT_ENCODING_PLAIN = 0, FT_ENCODING_ZSTD = 1 };

/* Values are part of the format; never reuse one. */
enum {
    FT_SECTION_LOUDS = 1,
    FT_SECTION_LOUDS_RANK = 2,
    FT_SECTION_LOUDS_SELECT = 3,
    FT_SECTION_TERMINAL = 4,
    FT_SECTION_TERMINAL_RANK = 5,
    FT_SECTION_LABELS = 6,
    FT_SECTION_LABELS_LOW = 7,
    FT_SECTION_HIGH_FLAGS = 8,
    FT_SECTION_HIGH_RANK = 9,
    FT_SECTION_HIGH = 10,
    FT_SECTION_IDS = 11,
    FT_SECTION_TAIL = 16, /* 16 to 20: layouts with tails (tails.h) */
    FT_SECTION_LINK_FLAGS = 17,
    FT_SECTION_LINK_RANK = 18,
    FT_SECTION_LINK_HIGH = 19,
    FT_SECTION_TREE = 20,
    FT_SECTION_REGIONS = 32, /* 32 to 41: layout compact (compact_format.h) */
    FT_SECTION_TOKEN_SETS = 33,
    FT_SECTION_TOKEN_CLASSES = 34,
    FT_SECTION_ROOT_BLOCKS = 35,
    FT_SECTION_BLOCKS = 36,
    FT_SECTION_SIBLINGS = 38,
    FT_SECTION_SIBLING_RANK = 39,
    FT_SECTION_CODES = 41
    /* 37, 40, 42 and 43 were version 1's; 64 is kept for label text. */
};

/* Values of ft_index_header.layout. */
enum {
    FT_LAYOUT_NARROW = 1,
    FT_LAYOUT_WIDE = 2,
    FT_LAYOUT_COMPACT = 3,
    FT_LAYOUT_NARROW_TAILS = 4,
    FT_LAYOUT_WIDE_TAILS = 5,
    FT_LAYOUT_COMPACT_TAILS = 6
};

/* Offset of the section behind one that ends at `end`. */
static inline uint64_t ft_section_align(uint64_t end)
{
    return (end + (FT_SECTION_ALIGN - 1)) & ~(uint64_t)(FT_SECTION_ALIGN - 1);
}

/* Name of a section type for people, NULL where it is not known. */
const char *ft_section_name(uint32_t type);

/* The header checksum of a file whose first FT_SECTIONS_AT bytes are *front. */
uint64_t ft_index_front_checksum(const ft_index_front *front);

#endif
