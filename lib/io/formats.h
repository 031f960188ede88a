/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixed parts of the formats of lib/io, as they lie on disk: ft-grid(5),
 * ft-tokens(5). Little-endian; the manual's layout tables move with this file.
 */
#ifndef FT_IO_FORMATS_H
#define FT_IO_FORMATS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the formats are little-endian and are read in place: this host cannot"
#endif

#define FT_KEYS_MAGIC "FTKEYS1\n"
#define FT_GRID_MAGIC "FTGRID1\n"
#define FT_NPY_MAGIC "\x93NUMPY"

enum { FT_MAGIC_BYTES = 8, FT_NPY_MAGIC_BYTES = 6 };

/* Then records: u32 count, u32 tokens[count]. */
typedef struct ft_keys_header {
    char magic[8];
    uint32_t flags;    /* 0 */
    uint32_t reserved; /* 0 */
} ft_keys_header;

static_assert(offsetof(ft_keys_header, flags) == 8, "see ft-tokens(5)");
static_assert(offsetof(ft_keys_header, reserved) == 12, "see ft-tokens(5)");
static_assert(sizeof(ft_keys_header) == 16, "see ft-tokens(5)");

enum {
    FT_GRID_FLAG_IDS = 1,  /* each record starts with a u64 query id */
    FT_GRID_FLAG_HALF = 2, /* log-probs are binary16 */
    FT_GRID_FLAGS = FT_GRID_FLAG_IDS | FT_GRID_FLAG_HALF
};

/* Then a record a query: [u64 id], u32 tokens[T][K], f32 or f16 logp[T][K]. */
typedef struct ft_grid_header {
    char magic[8];
    uint32_t n_steps;     /* T */
    uint32_t n_proposals; /* K */
    uint32_t flags;       /* FT_GRID_FLAG_* */
    uint32_t vocab;       /* 0: unknown */
    uint64_t n_queries;   /* all ones: until the end of input */
    uint8_t reserved[32]; /* 0 */
} ft_grid_header;

static_assert(offsetof(ft_grid_header, n_steps) == 8, "see ft-grid(5)");
static_assert(offsetof(ft_grid_header, n_proposals) == 12, "see ft-grid(5)");
static_assert(offsetof(ft_grid_header, flags) == 16, "see ft-grid(5)");
static_assert(offsetof(ft_grid_header, vocab) == 20, "see ft-grid(5)");
static_assert(offsetof(ft_grid_header, n_queries) == 24, "see ft-grid(5)");
static_assert(offsetof(ft_grid_header, reserved) == 32, "see ft-grid(5)");
static_assert(sizeof(ft_grid_header) == 64, "see ft-grid(5)");

/* A file of another kind, in words for a message; NULL: none of ours. */
static inline const char *ft_formats_kind(const uint8_t *data, size_t bytes)
{
    if (bytes >= FT_MAGIC_BYTES && memcmp(data, FT_KEYS_MAGIC, FT_MAGIC_BYTES) == 0)
        return "binary keys, ft-tokens(5)";
    if (bytes >= FT_MAGIC_BYTES && memcmp(data, FT_GRID_MAGIC, FT_MAGIC_BYTES) == 0)
        return "a proposal grid, ft-grid(5)";
    if (bytes >= FT_NPY_MAGIC_BYTES &&
        memcmp(data, FT_NPY_MAGIC, FT_NPY_MAGIC_BYTES) == 0)
        return "a NumPy array";
    return NULL;
}

#endif
