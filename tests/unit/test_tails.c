/* SPDX-License-Identifier: Apache-2.0
 *
 * Links and tails: what is folded and shared, the order of nodes that the numbers do
 * not give, searches where all is tied, and damaged bytes. The accessors are tested
 * with those of the other layouts, in test_trie.c.
 */
#include "index_forms.h"

#include "baseline/baseline.h"
#include "engine/engine.h"
#include "engine/topset.h"
#include "trie/tails.h"

static ft_build_summary build_when(const keyset *s, ft_tails_when when, ft_buf *out)
{
    ft_error err = {0};
    ft_builder *b;
    ft_build_summary summary = {0};
    const ft_build_options options = {.layout = "narrow", .tails = when};
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
    return summary;
}

/* Chains of 3, 3, 2 and 4 tokens: 3 4 5 twice, 4 5 at its end, 8 3 4 5 around it. */
static keyset shared_set(void)
{
    keyset s = {0};
    KEY(&s, 1);
    KEY(&s, 1, 2, 7);
    KEY(&s, 1, 2, 9);
    KEY(&s, 1, 3, 4, 5);
    KEY(&s, 2, 3, 4, 5);
    KEY(&s, 2, 4, 5);
    KEY(&s, 8, 3, 4, 5);
    keyset_settle(&s);
    return s;
}

static void test_folding_and_sharing(void **state)
{
    keyset s = shared_set();
    ft_buf file = {0}, same = {0};
    ft_tail_summary t;
    (void)state;
    const ft_build_summary b = build_when(&s, FT_TAILS_ALWAYS, &file);
    assert_true(b.tails.measured && b.tails.kept);
    assert_int_equal(b.tails.n_links, 4);
    assert_int_equal(b.tails.n_folded, 12);
    assert_int_equal(b.tails.n_tail, 4);
    assert_true(ft_tail_alpha(&b.tails) == 4 / 12.0);
    assert_true(ft_tail_limit(&b.tails) == 1 - 4 / 12.0);
    assert_int_equal(b.n_nodes, 18);

    ft_index *ix = keyset_index(&s, "narrow-tails", false, 0, &same);
    assert_int_equal(same.len, file.len);
    assert_memory_equal(same.data, file.data, file.len);
    assert_true(ft_index_tails(ix, &t));
    assert_int_equal(t.n_links, 4);
    assert_int_equal(t.n_folded, 12);
    assert_int_equal(t.n_tail, 4);
    assert_int_equal(ft_index_trie(ix)->n_numbered, 18 - (12 - 4));
    ft_index_close(ix);

    ix = keyset_index(&s, "narrow", false, 0, &same);
    assert_false(ft_index_tails(ix, &t));
    ft_index_close(ix);
    ft_buf_free(&file);
    ft_buf_free(&same);
    keyset_free(&s);
}

/* Equation 1 both ways: k = 3 with everything shared, and with nothing. */
static void test_auto(void **state)
{
    ft_buf file[2] = {{0}, {0}};
    (void)state;
    for (int share = 0; share <= 1; share++) {
        keyset s = {0};
        for (uint32_t i = 0; i < 500; i++)
            KEY(&s, i, share ? 7 : 1000 + i, 8);
        keyset_settle(&s);
        const ft_build_summary b = build_when(&s, FT_TAILS_IF_THEY_PAY, &file[0]);
        assert_true(b.tails.measured);
        assert_int_equal(b.tails.n_folded, 1500);
        assert_int_equal(b.tails.kept, false); /* every first token differs */
        build_when(&s, FT_TAILS_NEVER, &file[1]);
        assert_int_equal(file[0].len, file[1].len);
        assert_memory_equal(file[0].data, file[1].data, file[0].len);
        keyset_free(&s);
    }
    keyset s = {0};
    for (uint32_t i = 0; i < 500; i++) { /* 1 i: parents of two chains each */
        KEY(&s, i, 1, 7, 8);
        KEY(&s, i, 2, 7, 8);
    }
    keyset_settle(&s);
    ft_build_summary b = build_when(&s, FT_TAILS_IF_THEY_PAY, &file[0]);
    assert_true(b.tails.kept);
    assert_int_equal(b.tails.n_tail, 6);
    assert_int_equal(front_of(&file[0])->header.layout, FT_LAYOUT_NARROW_TAILS);
    assert_int_equal(front_of(&file[0])->header.flags, 0);
    b = build_when(&s, FT_TAILS_NEVER, &file[1]);
    assert_false(b.tails.measured);
    keyset_free(&s);
    ft_buf_free(&file[0]);
    ft_buf_free(&file[1]);
}

static void test_refused_options(void **state)
{
    ft_error err = {0};
    ft_builder *b;
    (void)state;
    const ft_build_options options = {.layout = "wide", .tails = FT_TAILS_ALWAYS};
    assert_int_equal(ft_builder_open(&b, &options, &err), FT_EINVAL);
    assert_string_equal(err.message, "tails go with layout narrow, not with wide");
}

/* More than 65,536 tokens in the tail: offsets have high parts. */
static void test_long_tail(void **state)
{
    keyset s = {0};
    ft_buf file = {0};
    uint64_t seed = 5;
    (void)state;
    for (uint32_t i = 0; i < 40000; i++)
        KEY(&s, i, (uint32_t)next_random(&seed) % 300000,
            (uint32_t)next_random(&seed) % 300000, i % 9);
    keyset_settle(&s);
    ft_index *ix = keyset_index(&s, "narrow-tails", true, 0, &file);
    const ft_trie *t = ft_index_trie(ix);
    assert_true(entry_of(&file, FT_SECTION_LINK_HIGH)->param >= 2);
    for (uint64_t i = 0; i < s.n; i++) {
        const uint64_t node = ft_trie_walk(t, s.keys[i].tokens, s.keys[i].n);
        assert_true(node >= t->n_numbered && node != UINT64_MAX);
        assert_int_equal(ft_trie_key_number(t, node), i);
    }
    ft_index_close(ix);
    ft_buf_free(&file);
    keyset_free(&s);
}

/* All pairs of nodes of a depth are in the order of their tokens. */
static void test_before(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        keyset s = keyset_random(seed, 30 + 4 * seed, alphabet, 6, 9);
        ft_buf file = {0};
        ft_index *ix = keyset_index(&s, "narrow-tails", false, 0, &file);
        const ft_trie *t = ft_index_trie(ix);
        for (uint32_t n = 1; n <= t->depth; n++)
            for (uint64_t i = 0; i < s.n; i++)
                for (uint64_t j = 0; j < s.n; j++) {
                    if (s.keys[i].n < n || s.keys[j].n < n)
                        continue;
                    const uint64_t a = ft_trie_walk(t, s.keys[i].tokens, n);
                    const uint64_t b = ft_trie_walk(t, s.keys[j].tokens, n);
                    const bool same = memcmp(s.keys[i].tokens, s.keys[j].tokens,
                                             n * sizeof(uint32_t)) == 0;
                    assert_int_equal(a == b, same);
                    assert_int_equal(t->ops->before(t, a, b), !same && i < j);
                }
        ft_index_close(ix);
        ft_buf_free(&file);
        keyset_free(&s);
    }
}

/* Few different log-probs, so that nearly all sums are ties. */
enum { STEPS = 7, TOKENS = 5, QUERIES = 4, BATCH = STEPS * TOKENS * QUERIES };

static void search(const ft_buf *file, const char *engine, uint32_t n_threads,
                   const ft_batch *batch, const ft_search_params *params,
                   ft_results *out)
{
    ft_error err = {0};
    ft_index *ix;
    ft_engine *e;
    const ft_engine_options options = {.n_threads = n_threads};
    assert_ok(
        ft_index_open_memory(&ix, file->data, file->len, "ties", FT_VERIFY_FULL, &err),
        err);
    assert_ok(ft_engine_open(&e, engine, ix, &options, &err), err);
    assert_ok(ft_engine_search(e, batch, params, out, NULL, &err), err);
    ft_engine_close(e);
    ft_index_close(ix);
}

static void test_ties(void **state)
{
    static const char *const engines[] = {"cpu", "marisa-opt"};
    ft_error err = {0};
    (void)state;
    assert_ok(ft_baseline_register(&err), err);
    for (uint64_t seed = 0; seed < 40; seed++) {
        const uint32_t values = 1 + (uint32_t)seed % 3;
        keyset s = keyset_random(seed, 60 + 10 * seed, alphabet, TOKENS, STEPS);
        ft_buf narrow = {0}, tails = {0};
        ft_results want = {0}, got = {0};
        uint32_t tokens[BATCH];
        float logp[BATCH];
        uint64_t random = seed;
        for (uint32_t i = 0; i < BATCH; i++) {
            tokens[i] = alphabet[i % TOKENS];
            logp[i] = -(float)(next_random(&random) % values);
        }
        const ft_batch batch = {.n_queries = QUERIES,
                                .n_steps = STEPS,
                                .n_proposals = TOKENS,
                                .tokens = tokens,
                                .logp = logp};
        ft_search_params params = FT_SEARCH_DEFAULTS;
        params.beam = 1 + (uint32_t)seed % 19;
        params.n_results = 1 + (uint32_t)seed % 23;
        params.alpha = seed % 2 ? 0 : 5;
        assert_int_equal(keyset_build(&s, "narrow", false, 0, &narrow).n_keys, s.n);
        assert_int_equal(keyset_build(&s, "narrow-tails", false, 0, &tails).n_keys,
                         s.n);
        search(&narrow, "cpu", 1, &batch, &params, &want);
        assert_true(want.bytes.len > 8 * QUERIES);
        for (int e = 0; e < 2; e++)
            for (uint32_t n_threads = 1; n_threads <= 3; n_threads += 2) {
                search(&tails, engines[e], n_threads, &batch, &params, &got);
                assert_int_equal(got.bytes.len, want.bytes.len);
                assert_memory_equal(got.bytes.data, want.bytes.data, want.bytes.len);
            }
        ft_results_free(&want);
        ft_results_free(&got);
        ft_buf_free(&narrow);
        ft_buf_free(&tails);
        keyset_free(&s);
    }
}

/* Keys of one length from the last to the first, all tied: what a trim leaves as the
 * bound keeps none of the better ones out. */
static void test_topset(void **state)
{
    enum { WANT = 100, KEYS = 12000 };
    keyset s = {0};
    ft_buf file = {0};
    ft_error err = {0};
    ft_topset set = {0};
    uint64_t seed = 1;
    (void)state;
    for (uint32_t i = 0; i < KEYS; i++)
        KEY(&s, (uint32_t)next_random(&seed) % 60, (uint32_t)next_random(&seed) % 60,
            (uint32_t)next_random(&seed) % 60, (uint32_t)next_random(&seed) % 60);
    keyset_settle(&s);
    ft_index *ix = keyset_index(&s, "narrow-tails", false, 0, &file);
    const ft_trie *t = ft_index_trie(ix);
    ft_topset_use(&set, t);
    ft_topset_reset(&set, WANT);
    for (uint64_t i = s.n; i-- > 0;) {
        const ft_candidate c = {.score = -1,
                                .node = ft_trie_walk(t, s.keys[i].tokens, 4)};
        assert_ok(ft_topset_push(&set, &c, &err), err);
    }
    assert_ok(ft_topset_trim(&set, &err), err);
    ft_topset_sort(&set);
    assert_int_equal(set.n, WANT);
    for (uint64_t i = 0; i < WANT; i++)
        assert_int_equal(set.items[i].node, ft_trie_walk(t, s.keys[i].tokens, 4));
    ft_topset_free(&set);
    ft_index_close(ix);
    ft_buf_free(&file);
    keyset_free(&s);
}

/* Put another value into a field that is set already. */
static void put_field(ft_buf *file, uint32_t type, uint64_t i, uint64_t value)
{
    const unsigned width = entry_of(file, type)->param;
    uint64_t *words = bytes_of(file, type);
    for (unsigned bit = 0; bit < width; bit++) {
        const uint64_t at = i * width + bit, one = (uint64_t)1 << at % 64;
        words[at / 64] = (words[at / 64] & ~one) | (value >> bit & 1 ? one : 0);
    }
}

static uint64_t get_field(ft_buf *file, uint32_t type, uint64_t i)
{
    return ft_packed_get(bytes_of(file, type), i, entry_of(file, type)->param);
}

/* In LOUDS the root has the children 1, 2, 8, of which 1 has 2, 3 and 2 has 3, 4, and
 * 1 2 has 7, 9. Links are nodes 3, 5, 6 and 7; the tail is 8 3 4 5. */
static void test_hostile(void **state)
{
    enum { OFFSET, LAST, TOKEN, SHORT, EARLY, PADDING, FLAG, TERMINAL, N_CASES };
    static const char *const messages[N_CASES] = {
        "small: section link-flags: node 3 starts beyond the tail",
        "small: section tail: the last suffix has no end",
        "small: section tail: token 15, the largest is to be 9",
        "small: section link-flags: node 3 has a tail of one token",
        "small: section link-flags: node 5 has a tail of one token",
        "small: section tail: bits beyond the last are set",
        "small: section link-flags: node 1 is no leaf that ends a key",
        "small: section link-flags: node 3 is no leaf that ends a key",
    };
    (void)state;
    keyset s = shared_set();
    for (int c = 0; c < N_CASES; c++) {
        ft_buf file = {0};
        keyset_build(&s, "narrow-tails", false, 0, &file);
        uint16_t *low = bytes_of(&file, FT_SECTION_LABELS_LOW);
        uint64_t *terminal = bytes_of(&file, FT_SECTION_TERMINAL);
        assert_int_equal(low[2], 0);
        assert_int_equal(low[4], 1);
        assert_int_equal(entry_of(&file, FT_SECTION_TAIL)->items, 4);
        const uint64_t last = get_field(&file, FT_SECTION_TAIL, 3);
        assert_int_equal(last, 5 << 1 | 1);
        if (c == OFFSET)
            low[2] = 4;
        if (c == LAST)
            put_field(&file, FT_SECTION_TAIL, 3, last ^ 1);
        if (c == TOKEN)
            put_field(&file, FT_SECTION_TAIL, 1, 15 << 1);
        if (c == SHORT)
            low[2] = 3;
        if (c == EARLY)
            put_field(&file, FT_SECTION_TAIL, 1,
                      get_field(&file, FT_SECTION_TAIL, 1) | 1);
        if (c == PADDING)
            *(uint64_t *)bytes_of(&file, FT_SECTION_TAIL) |= (uint64_t)1 << 63;
        if (c == FLAG) { /* node 1, which has children, in place of node 3 */
            uint64_t *flags = bytes_of(&file, FT_SECTION_LINK_FLAGS);
            *flags = (*flags & ~(uint64_t)4) | 1;
        }
        if (c == TERMINAL) /* node 2 ends the key in place of node 3 */
            *terminal = (*terminal & ~(uint64_t)8) | 4;
        seal(&file);
        assert_refused(&file, FT_VERIFY_STRUCTURE, messages[c]);
        ft_buf_free(&file);
    }
    keyset_free(&s);
}

static void test_level_order_flag(void **state)
{
    ft_buf file = {0};
    (void)state;
    make_small(&file, "narrow-tails", false, 0);
    front_of(&file)->header.flags |= FT_INDEX_LEVEL_ORDER;
    seal_header(&file);
    assert_refused(&file, FT_VERIFY_NONE,
                   "small: header: flags say level order, tails have none");
    make_small(&file, "narrow", false, 0);
    front_of(&file)->header.layout = FT_LAYOUT_NARROW_TAILS;
    front_of(&file)->header.flags = 0;
    seal_header(&file);
    assert_refused(&file, FT_VERIFY_NONE, "small: section link-high: missing");
    ft_buf_free(&file);
}

/* Every bit of every section, sealed: refused, or safe to walk. */
static void test_bit_flips(void **state)
{
    ft_buf file = {0};
    uint64_t n_refused = 0, n = 0;
    (void)state;
    make_small(&file, "narrow-tails", true, 0);
    for (uint64_t at = FT_SECTIONS_AT; at < file.len; at++)
        for (unsigned bit = 0; bit < 8; bit++, n++) {
            file.data[at] ^= 1u << bit;
            seal(&file);
            n_refused +=
                try_open(file.data, file.len, FT_VERIFY_STRUCTURE, NULL) != FT_OK;
            file.data[at] ^= 1u << bit;
        }
    assert_true(n_refused > n / 2);
    assert_true(n_refused < n); /* a label may change */
    ft_buf_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folding_and_sharing),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_long_tail),
        cmocka_unit_test(test_before),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_topset),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_level_order_flag),
        cmocka_unit_test(test_bit_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
