/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of keys for the tests of the trie, kept as plain sorted arrays: the model that
 * tries are compared with.
 */
#ifndef TESTS_UNIT_KEYSET_H
#define TESTS_UNIT_KEYSET_H

#include "io_util.h"

#include "trie/build.h"
#include "trie/index.h"
#include "trie/keys.h"

typedef struct test_key {
    uint32_t *tokens;
    uint32_t n;
} test_key;

typedef struct keyset {
    test_key *keys;
    uint64_t n;
} keyset;

/* splitmix64: the same numbers everywhere. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline int by_order(const void *a, const void *b)
{
    const test_key *x = a, *y = b;
    uint32_t lcp;
    return ft_keys_compare(x->tokens, x->n, y->tokens, y->n, &lcp);
}

static inline void keyset_add(keyset *s, const uint32_t *tokens, uint32_t n)
{
    if ((s->n & (s->n - 1)) == 0) /* room for a power of two */
        s->keys = realloc(s->keys, (s->n ? 2 * s->n : 1) * sizeof *s->keys);
    test_key *k = &s->keys[s->n++];
    k->n = n;
    k->tokens = malloc(n * sizeof *tokens);
    memcpy(k->tokens, tokens, n * sizeof *tokens);
}

/* Sort and drop duplicates. */
static inline void keyset_settle(keyset *s)
{
    uint64_t kept = 0;
    if (s->n)
        qsort(s->keys, s->n, sizeof *s->keys, by_order);
    for (uint64_t i = 0; i < s->n; i++) {
        if (kept && by_order(&s->keys[kept - 1], &s->keys[i]) == 0)
            free(s->keys[i].tokens);
        else
            s->keys[kept++] = s->keys[i];
    }
    s->n = kept;
}

/* KEY(&set, 1, 2): add a key. */
#define KEY(set, ...)                                                                  \
    keyset_add((set), (const uint32_t[]){__VA_ARGS__},                                 \
               sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Up to n keys of 1 to max_length tokens from an alphabet. */
static inline keyset keyset_random(uint64_t seed, uint64_t n, const uint32_t *alphabet,
                                   uint32_t n_alphabet, uint32_t max_length)
{
    keyset s = {0};
    uint32_t tokens[64];
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t length = 1 + (uint32_t)(next_random(&seed) % max_length);
        for (uint32_t j = 0; j < length; j++)
            tokens[j] = alphabet[next_random(&seed) % n_alphabet];
        keyset_add(&s, tokens, length);
    }
    keyset_settle(&s);
    return s;
}

static inline void keyset_free(keyset *s)
{
    for (uint64_t i = 0; i < s->n; i++)
        free(s->keys[i].tokens);
    free(s->keys);
    *s = (keyset){0};
}

static inline ft_build_summary keyset_build_on(const keyset *s, const char *layout,
                                               bool ids, int compress_level,
                                               uint32_t n_threads, ft_buf *out)
{
    ft_error err = {0};
    ft_builder *b;
    ft_build_summary summary = {0};
    const ft_build_options options = {.layout = layout,
                                      .ids = ids,
                                      .compress_level = compress_level,
                                      .n_threads = n_threads};
    out->len = 0;
    assert_ok(ft_builder_open(&b, &options, &err), err);
    for (uint64_t i = 0; i < s->n; i++) {
        const test_key *k = &s->keys[i];
        uint32_t lcp = 0;
        if (i)
            ft_keys_compare(k[-1].tokens, k[-1].n, k->tokens, k->n, &lcp);
        assert_ok(ft_builder_add(b, k->tokens, k->n, lcp, &err), err);
    }
    ft_sink *sink = sink_into(out);
    assert_ok(ft_builder_finish(b, sink, &summary, &err), err);
    close_sink(sink);
    ft_builder_close(b);
    assert_int_equal(summary.file_bytes, out->len);
    return summary;
}

static inline ft_build_summary keyset_build(const keyset *s, const char *layout,
                                            bool ids, int compress_level, ft_buf *out)
{
    return keyset_build_on(s, layout, ids, compress_level, 2, out);
}

/* Build, open with every check, and verify. */
static inline ft_index *keyset_index(const keyset *s, const char *layout, bool ids,
                                     int compress_level, ft_buf *out)
{
    ft_error err = {0};
    ft_index *ix = NULL;
    keyset_build(s, layout, ids, compress_level, out);
    assert_ok(
        ft_index_open_memory(&ix, out->data, out->len, "test", FT_VERIFY_FULL, &err),
        err);
    assert_ok(ft_index_verify(ix, &err), err);
    return ix;
}

#endif
