/* SPDX-License-Identifier: Apache-2.0
 *
 * Links and tails: what is folded and shared, the order of nodes that the numbers do
 * not give, and searches where all is tied. The accessors are tested with those of the
 * other layouts, in test_trie.c.
 */
#include "tails_set.h"

#include "baseline/baseline.h"
#include "engine/engine.h"
#include "engine/topset.h"

static ft_build_summary build_when(const keyset *s, int layout, ft_tails_when when,
                                   ft_buf *out)
{
    ft_error err = {0};
    ft_builder *b;
    ft_build_summary summary = {0};
    const ft_build_options options = {.layout = inner[layout], .tails = when};
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

/* With their labels in the tree the tails are 4 5 twice, 5 and 3 4 5. */
static void check_folding(int layout)
{
    const unsigned n_tail = layout == COMPACT ? 3 : 4;
    const unsigned n_folded = layout == COMPACT ? 8 : 12;
    keyset s = shared_set();
    ft_buf file = {0}, same = {0};
    ft_tail_summary t;
    const ft_build_summary b = build_when(&s, layout, FT_TAILS_ALWAYS, &file);
    assert_true(b.tails.measured && b.tails.kept);
    assert_int_equal(b.tails.n_links, 4);
    assert_int_equal(b.tails.n_folded, n_folded);
    assert_int_equal(b.tails.n_tail, n_tail);
    assert_true(ft_tail_alpha(&b.tails) == n_tail / (double)n_folded);
    assert_int_equal(b.n_nodes, 18);
    assert_int_equal(b.n_keys, s.n);

    ft_index *ix = keyset_index(&s, tailed[layout], false, 0, &same);
    assert_int_equal(same.len, file.len);
    assert_memory_equal(same.data, file.data, file.len);
    assert_true(ft_index_tails(ix, &t));
    assert_int_equal(t.n_links, 4);
    assert_int_equal(t.n_folded, n_folded);
    assert_int_equal(t.n_tail, n_tail);
    assert_int_equal(t.n_flags, b.tails.n_flags);
    assert_int_equal(ft_index_trie(ix)->n_numbered, 18 - (12 - 4));
    ft_index_close(ix);

    ix = keyset_index(&s, inner[layout], false, 0, &same);
    assert_false(ft_index_tails(ix, &t));
    ft_index_close(ix);
    ft_buf_free(&file);
    ft_buf_free(&same);
    keyset_free(&s);
}

static void test_folding_and_sharing(void **state)
{
    (void)state;
    for (int layout = 0; layout < N_INNER; layout++)
        check_folding(layout);
}

/* Over compact, a chain is folded if that pays, whatever the others do. */
static void test_choice(void **state)
{
    keyset s = {0};
    ft_buf file = {0};
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        KEY(&s, i, 100 + i, 200 + i); /* alone: 2 tokens and a link for 2 */
        KEY(&s, 50 + i, 7, 8);        /* 2 tokens and 20 links for 40 */
    }
    KEY(&s, 90, 300, 301, 302); /* 3 tokens and 2 links for 5 */
    KEY(&s, 91, 301, 302);
    keyset_settle(&s);
    const ft_build_summary b = build_when(&s, COMPACT, FT_TAILS_ALWAYS, &file);
    assert_int_equal(b.tails.n_links, 20);
    assert_int_equal(b.tails.n_folded, 40);
    assert_int_equal(b.tails.n_tail, 2);
    keyset_free(&s);
    ft_buf_free(&file);
}

/* Equation 1 both ways: k = 3 with everything shared but the first token, which is not
 * in the tail where links keep their labels, and with nothing. */
static void check_auto_apart(int layout, bool share)
{
    ft_buf file[2] = {{0}, {0}};
    keyset s = {0};
    for (uint32_t i = 0; i < 500; i++)
        KEY(&s, i, share ? 7 : 1000 + i, 8);
    keyset_settle(&s);
    const bool kept = layout == COMPACT && share;
    const ft_build_summary b = build_when(&s, layout, FT_TAILS_IF_THEY_PAY, &file[0]);
    assert_true(b.tails.measured);
    assert_int_equal(b.tails.kept, kept);
    build_when(&s, layout, kept ? FT_TAILS_ALWAYS : FT_TAILS_NEVER, &file[1]);
    assert_int_equal(file[0].len, file[1].len);
    assert_memory_equal(file[0].data, file[1].data, file[0].len);
    keyset_free(&s);
    ft_buf_free(&file[0]);
    ft_buf_free(&file[1]);
}

static void check_auto_kept(int layout)
{
    ft_buf file = {0};
    keyset s = {0};
    for (uint32_t i = 0; i < 500; i++) { /* 1 i: parents of two chains each */
        KEY(&s, i, 1, 7, 8);
        KEY(&s, i, 2, 7, 8);
    }
    keyset_settle(&s);
    ft_build_summary b = build_when(&s, layout, FT_TAILS_IF_THEY_PAY, &file);
    assert_true(b.tails.kept);
    assert_int_equal(b.tails.n_tail, layout == COMPACT ? 2 : 6);
    assert_int_equal(front_of(&file)->header.layout,
                     FT_LAYOUT_NARROW_TAILS + (uint32_t)layout);
    assert_int_equal(front_of(&file)->header.flags, 0);
    b = build_when(&s, layout, FT_TAILS_NEVER, &file);
    assert_false(b.tails.measured);
    keyset_free(&s);
    ft_buf_free(&file);
}

/* What the flags of all nodes take counts, and is more than two chains save. */
static void check_flags_count(int layout)
{
    ft_buf file = {0};
    keyset s = {0};
    for (uint32_t i = 0; i < 120; i++)
        KEY(&s, i);
    KEY(&s, 3, 1, 2, 3);
    KEY(&s, 4, 1, 2, 3);
    keyset_settle(&s);
    const ft_build_summary b = build_when(&s, layout, FT_TAILS_IF_THEY_PAY, &file);
    const unsigned tail_bits = layout == WIDE ? 33 : 8;
    assert_int_equal(b.tails.n_flags, (123 + 123 / 4) / tail_bits);
    if (layout != COMPACT)
        assert_true(b.tails.n_tail + b.tails.n_links < b.tails.n_folded);
    assert_false(b.tails.kept);
    keyset_free(&s);
    ft_buf_free(&file);
}

static void test_auto(void **state)
{
    (void)state;
    for (int layout = 0; layout < N_INNER; layout++) {
        check_auto_apart(layout, true);
        check_auto_apart(layout, false);
        check_auto_kept(layout);
        check_flags_count(layout);
    }
}

static void test_refused_options(void **state)
{
    ft_error err = {0};
    ft_builder *b;
    (void)state;
    for (int layout = 0; layout < N_INNER; layout++) {
        const ft_build_options options = {.layout = tailed[layout],
                                          .tails = FT_TAILS_ALWAYS};
        assert_int_equal(ft_builder_open(&b, &options, &err), FT_EINVAL);
    }
    assert_string_equal(err.message, "layout compact-tails takes no tails");
}

/* More than 65,536 tokens in the tail: starts have high parts. Each four share one. */
static void test_long_tail(void **state)
{
    keyset s = {0};
    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        uint64_t seed = i / 4;
        const uint32_t a = (uint32_t)next_random(&seed) % 300000;
        const uint32_t b = (uint32_t)next_random(&seed) % 300000;
        KEY(&s, i, a, b, i / 4 % 9);
    }
    keyset_settle(&s);
    for (int layout = 0; layout < N_INNER; layout++) {
        ft_buf file = {0};
        ft_index *ix = keyset_index(&s, tailed[layout], true, 0, &file);
        const ft_trie *t = ft_index_trie(ix);
        assert_true(entry_of(&file, FT_SECTION_TAIL)->items > 65536);
        assert_true(entry_of(&file, FT_SECTION_LINK_HIGH)->param >=
                    (layout == COMPACT ? 17 : 2));
        for (uint64_t i = 0; i < s.n; i++) {
            const uint64_t node = ft_trie_walk(t, s.keys[i].tokens, s.keys[i].n);
            assert_true(node >= t->n_numbered && node != UINT64_MAX);
            assert_int_equal(ft_trie_key_number(t, node), i);
        }
        ft_index_close(ix);
        ft_buf_free(&file);
    }
    keyset_free(&s);
}

/* More chains than a thread sorts at a time, whatever the threads. */
static void test_threads(void **state)
{
    keyset s = {0};
    uint64_t seed = 3;
    (void)state;
    for (uint32_t i = 0; i < 80000; i++) {
        const uint32_t r = (uint32_t)next_random(&seed);
        KEY(&s, i, r % 40, r / 64 % 50, r / 4096 % 6);
    }
    keyset_settle(&s);
    for (int layout = 0; layout < N_INNER; layout++) {
        ft_buf one = {0}, many = {0};
        assert_true(
            keyset_build_on(&s, tailed[layout], false, 0, 1, &one).tails.n_links >
            1 << 15);
        keyset_build_on(&s, tailed[layout], false, 0, 7, &many);
        assert_int_equal(one.len, many.len);
        assert_memory_equal(one.data, many.data, one.len);
        ft_buf_free(&one);
        ft_buf_free(&many);
    }
    keyset_free(&s);
}

/* All pairs of nodes of a depth are in the order of their tokens. */
static void check_before(const keyset *s, const ft_trie *t)
{
    for (uint32_t n = 1; n <= t->depth; n++)
        for (uint64_t i = 0; i < s->n; i++)
            for (uint64_t j = 0; j < s->n; j++) {
                if (s->keys[i].n < n || s->keys[j].n < n)
                    continue;
                const uint64_t a = ft_trie_walk(t, s->keys[i].tokens, n);
                const uint64_t b = ft_trie_walk(t, s->keys[j].tokens, n);
                const bool same = memcmp(s->keys[i].tokens, s->keys[j].tokens,
                                         n * sizeof(uint32_t)) == 0;
                assert_int_equal(a == b, same);
                assert_int_equal(t->ops->before(t, a, b), !same && i < j);
            }
}

static void test_before(void **state)
{
    (void)state;
    for (int layout = 0; layout < N_INNER; layout++) {
        uint64_t n_links = 0;
        for (uint64_t seed = 0; seed < 12; seed++) {
            keyset s = keyset_random(seed, 30 + 4 * seed, alphabet, 6, 9);
            ft_buf file = {0};
            ft_tail_summary tails;
            ft_index *ix = keyset_index(&s, tailed[layout], false, 0, &file);
            assert_true(ft_index_tails(ix, &tails));
            n_links += tails.n_links;
            check_before(&s, ft_index_trie(ix));
            ft_index_close(ix);
            ft_buf_free(&file);
            keyset_free(&s);
        }
        assert_true(n_links > 20);
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
    static const char *const engines[] = {"cpu", "marisa-opt", "marisa-int"};
    ft_error err = {0};
    (void)state;
    assert_ok(ft_baseline_register(&err), err);
    for (uint64_t seed = 0; seed < 40; seed++) {
        const uint32_t values = 1 + (uint32_t)seed % 3;
        keyset s = keyset_random(seed, 60 + 10 * seed, alphabet, TOKENS, STEPS);
        const char *const layout = tailed[seed / 6 % N_INNER];
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
        assert_int_equal(keyset_build(&s, layout, false, 0, &tails).n_keys, s.n);
        search(&narrow, "cpu", 1, &batch, &params, &want);
        assert_true(want.bytes.len > 8 * QUERIES);
        for (int e = 0; e < 3; e++)
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
    assert_int_equal(ft_topset_sort(&set, NULL), FT_OK);
    assert_int_equal(set.n, WANT);
    for (uint64_t i = 0; i < WANT; i++)
        assert_int_equal(set.items[i].node, ft_trie_walk(t, s.keys[i].tokens, 4));
    ft_topset_free(&set);
    ft_index_close(ix);
    ft_buf_free(&file);
    keyset_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folding_and_sharing),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_long_tail),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_before),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_topset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
