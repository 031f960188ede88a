/* SPDX-License-Identifier: Apache-2.0
 *
 * Build an index from keys in order: one pass, level by level (paper Section 2.2;
 * Appendix A). Memory: the level arrays, about as large as the finished index; never
 * the keys.
 */
#ifndef FT_TRIE_BUILD_H
#define FT_TRIE_BUILD_H

#include "io/stream.h"
#include "trie/keys.h"

typedef struct ft_builder ft_builder;

/* Chains down to leaves as links into a tail of shared suffixes (paper Appendix A). */
typedef enum ft_tails_when {
    FT_TAILS_NEVER,
    FT_TAILS_IF_THEY_PAY, /* as Equation 1 has it */
    FT_TAILS_ALWAYS
} ft_tails_when;

typedef struct ft_tail_summary {
    uint64_t n_links;
    uint64_t n_folded; /* tokens of all suffixes */
    uint64_t n_tail;   /* tokens that are stored for them */
    uint64_t n_flags;  /* as many tokens would take what the links' flags do */
    bool measured, kept;
} ft_tail_summary;

/* Equation 1: with k tokens a suffix, of which the share alpha is stored, tails pay if
 * alpha < 1 - 1 / k. It leaves the flags out; here they count. */
static inline double ft_tail_alpha(const ft_tail_summary *s)
{
    return s->n_folded ? (double)s->n_tail / (double)s->n_folded : 1.0;
}

static inline double ft_tail_limit(const ft_tail_summary *s)
{
    const uint64_t cost = s->n_links + s->n_flags;
    return cost < s->n_folded ? 1.0 - (double)cost / (double)s->n_folded : 0.0;
}

static inline bool ft_tails_pay(const ft_tail_summary *s)
{
    return s->n_tail + s->n_links + s->n_flags < s->n_folded; /* times n_folded */
}

typedef struct ft_build_options {
    const char *layout;   /* a name of ft_layout_name; NULL: the default */
    ft_tails_when tails;  /* over a layout that takes them */
    bool ids;             /* store key numbers */
    int compress_level;   /* zstd level of the sections; 0: stored plain */
    uint32_t n_threads;   /* 0: one a processor */
    uint64_t block_bytes; /* of input that a thread takes at a time; 0: 4 MiB */
} ft_build_options;

typedef struct ft_build_summary {
    uint64_t n_keys, n_nodes, file_bytes;
    double bits_per_node;
    ft_tail_summary tails;
} ft_build_summary;

/* FT_EINVAL for an unknown layout, or tails over one that does not take them. */
ft_status ft_builder_open(ft_builder **out, const ft_build_options *options,
                          ft_error *err);

/* Add the next key, which is after the previous one in order and shares its first `lcp`
 * tokens with it (0 for the first key). The caller has checked both (trie/keys.h). */
ft_status ft_builder_add(ft_builder *b, const uint32_t *tokens, uint32_t n,
                         uint32_t lcp, ft_error *err);

/* Called now and then, by one thread at a time. */
typedef struct ft_build_tick {
    void (*fn)(void *arg, const ft_keys *keys);
    void *arg;
} ft_build_tick;

/* Add all keys of `keys`, of which none has been read. Where they are a single input of
 * tokens, all threads parse it, and the blocks of it that they hold, two a thread, are
 * memory as well. `tick` may be NULL. */
ft_status ft_builder_add_keys(ft_builder *b, ft_keys *keys, const ft_build_tick *tick,
                              ft_error *err);

/* Write the index to a seekable sink and fill *summary. The builder is spent. */
ft_status ft_builder_finish(ft_builder *b, ft_sink *out, ft_build_summary *summary,
                            ft_error *err);
void ft_builder_close(ft_builder *b);

/* Layouts by number, NULL past the last; the default is number 0. */
const char *ft_layout_name(uint32_t i);
const char *ft_layout_summary(uint32_t i);
bool ft_layout_takes_tails(uint32_t i);

#endif
