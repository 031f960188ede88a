/* SPDX-License-Identifier: Apache-2.0
 *
 * The trie view against sorted arrays of keys: every accessor, every layout.
 */
#include "keyset.h"

#include "base/score.h"

/* Ids where earlier systems went wrong (R24), and both ends of the range. */
static const uint32_t odd_tokens[] = {
    0,        1,       9,        10,         54999,      55000,      65534,
    65535,    65536,   65537,    131071,     131072,     1u << 21,   (1u << 21) + 1,
    1u << 22, 4000000, 1u << 31, 0xFFFEFFFF, 0xFFFF0000, 0xFFFFFFFD, 0xFFFFFFFE,
};
enum { N_ODD = sizeof odd_tokens / sizeof *odd_tokens };

static bool starts_with(const test_key *k, const uint32_t *prefix, uint32_t n)
{
    return n == 0 || (k->n >= n && memcmp(k->tokens, prefix, n * sizeof *prefix) == 0);
}

/* Siblings, asked about together and one by one. */
static void check_many(const ft_trie *t, ft_range r)
{
    uint64_t nodes[FT_MANY] = {0};
    ft_range children[FT_MANY];
    uint8_t flags[FT_MANY];
    const uint32_t n = r.count < FT_MANY ? (uint32_t)r.count : FT_MANY;
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = r.first + i;
    t->ops->children_many(t, nodes, n, children);
    t->ops->flags_many(t, nodes, n, flags);
    for (uint32_t i = 0; i < n; i++) {
        const ft_range one = t->ops->children(t, nodes[i]);
        assert_int_equal(children[i].count, one.count);
        assert_true(one.count == 0 || children[i].first == one.first);
        assert_int_equal(flags[i], t->ops->flags(t, nodes[i]));
    }
}

/* The children of a prefix, from the sorted keys first to last - 1 that start with it.
 */
static void check_children(const keyset *s, uint64_t first, uint64_t last,
                           uint32_t depth, const ft_trie *t, uint64_t node)
{
    const ft_range r = t->ops->children(t, node);
    uint64_t i = first, found = 0;
    const bool ends = depth > 0 && s->keys[first].n == depth;
    assert_int_equal(t->ops->flags(t, node), (ends ? FT_NODE_TERMINAL : 0) |
                                                 (r.count ? FT_NODE_HAS_CHILDREN : 0));
    uint64_t place = t->ops->seek(t, node);
    const ft_visit v = t->ops->visit(t, node, &place);
    assert_int_equal(v.children.count, r.count);
    assert_int_equal(v.terminal, ends);
    if (node + 1 < t->n_numbered)
        assert_int_equal(place, t->ops->seek(t, node + 1));
    uint32_t *labels = calloc(r.count + 1, sizeof *labels);
    t->ops->labels(t, r.first, r.count, labels);
    for (i += ends; i < last; found++) {
        const uint32_t token = s->keys[i].tokens[depth];
        uint64_t end = i;
        while (end < last && s->keys[end].tokens[depth] == token)
            end++;
        assert_true(found < r.count);
        assert_int_equal(labels[found], token);
        assert_int_equal(t->ops->find(t, r, token), r.first + found);
        if (token + 1 < FT_NO_TOKEN &&
            (end == last || s->keys[end].tokens[depth] != token + 1))
            assert_true(t->ops->find(t, r, token + 1) == UINT64_MAX);
        check_children(s, i, end, depth + 1, t, r.first + found);
        i = end;
    }
    assert_int_equal(found, r.count);
    if (r.count > 2) { /* a run within the children */
        t->ops->labels(t, r.first + 1, r.count - 2, labels + 1);
        for (uint64_t j = 1; j + 1 < r.count; j++)
            assert_true(labels[j] > labels[j - 1] && labels[j] < labels[j + 1]);
    }
    check_many(t, r);
    free(labels);
}

static void check_cursor(const keyset *s, const ft_trie *t, const uint32_t *prefix,
                         uint32_t n_prefix)
{
    ft_error err = {0};
    ft_cursor *c;
    const uint32_t *tokens;
    uint32_t n;
    uint64_t node;
    assert_ok(ft_cursor_open(&c, t, prefix, n_prefix, &err), err);
    for (uint64_t i = 0; i < s->n; i++) {
        const test_key *k = &s->keys[i];
        if (!starts_with(k, prefix, n_prefix))
            continue;
        assert_ok(ft_cursor_next(c, &tokens, &n, &node, &err), err);
        assert_int_equal(n, k->n);
        assert_memory_equal(tokens, k->tokens, n * sizeof *tokens);
        assert_int_equal(node, ft_trie_walk(t, tokens, n));
        assert_true(ft_trie_key_number(t, node) == (t->has_ids ? i : UINT64_MAX));
    }
    for (int again = 0; again < 2; again++) {
        assert_ok(ft_cursor_next(c, &tokens, &n, &node, &err), err);
        assert_int_equal(n, 0);
    }
    ft_cursor_close(c);
}

static void check_set(const keyset *s)
{
    ft_buf file = {0};
    for (uint32_t layout = 0; ft_layout_name(layout); layout++)
        for (int ids = 0; ids <= 1; ids++) {
            ft_index *ix =
                keyset_index(s, ft_layout_name(layout), ids, ids ? 3 : 0, &file);
            const ft_trie *t = ft_index_trie(ix);
            assert_string_equal(ft_index_layout(ix), ft_layout_name(layout));
            assert_int_equal(t->n_keys, s->n);
            assert_int_equal(t->has_ids, ids);
            const bool tails = strstr(ft_layout_name(layout), "-tails");
            assert_int_equal(t->level_order, !tails);
            check_children(s, 0, s->n, 0, t, 0);
            check_cursor(s, t, NULL, 0);
            for (uint64_t i = 0; i < s->n; i += 1 + s->n / 7)
                for (uint32_t n = 1; n <= s->keys[i].n && n < 9; n++)
                    check_cursor(s, t, s->keys[i].tokens, n);
            const uint32_t absent[] = {12345, 1};
            check_cursor(s, t, absent, 2);
            assert_true(ft_trie_walk(t, absent, 2) == UINT64_MAX);
            assert_int_equal(ft_trie_walk(t, NULL, 0), 0);
            ft_index_close(ix);
        }
    ft_buf_free(&file);
}

/* Keys with repeated tokens, prefixes of each other, of any depth (R4, R7). */
static void test_random_sets(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        const uint32_t n_alphabet = 1 + (uint32_t)(seed % N_ODD);
        const uint32_t *alphabet = odd_tokens + (N_ODD - n_alphabet) * (seed % 2);
        keyset s = keyset_random(seed, 1 + seed * 5, alphabet, n_alphabet,
                                 1 + (uint32_t)seed % 7);
        check_set(&s);
        keyset_free(&s);
    }
}

static void test_R24_odd_tokens(void **state)
{
    keyset s = {0};
    (void)state;
    for (uint32_t i = 0; i < N_ODD; i++) {
        KEY(&s, odd_tokens[i]);
        KEY(&s, 7, odd_tokens[i]);
        KEY(&s, odd_tokens[i], odd_tokens[N_ODD - 1 - i], odd_tokens[i]);
    }
    keyset_settle(&s);
    check_set(&s);
    keyset_free(&s);
}

static void test_one_key(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_ODD; i++) {
        keyset s = {0};
        KEY(&s, odd_tokens[i]);
        check_set(&s);
        keyset_free(&s);
    }
}

static void test_empty_library(void **state)
{
    keyset s = {0};
    ft_buf file = {0};
    (void)state;
    for (uint32_t layout = 0; ft_layout_name(layout); layout++)
        for (int ids = 0; ids <= 1; ids++) {
            ft_index *ix = keyset_index(&s, ft_layout_name(layout), ids, 0, &file);
            const ft_trie *t = ft_index_trie(ix);
            const uint32_t token = 0;
            assert_int_equal(t->n_keys, 0);
            assert_int_equal(t->n_nodes, 1);
            assert_int_equal(t->depth, 0);
            assert_int_equal(t->ops->children(t, 0).count, 0);
            assert_int_equal(t->ops->flags(t, 0), 0);
            assert_true(ft_trie_walk(t, &token, 1) == UINT64_MAX);
            assert_true(ft_trie_key_number(t, 0) == UINT64_MAX);
            check_cursor(&s, t, NULL, 0);
            check_cursor(&s, t, &token, 1);
            ft_index_close(ix);
        }
    ft_buf_free(&file);
}

/* The longest key, beside a prefix of it. */
static void test_longest_key(void **state)
{
    keyset s = {0};
    ft_buf file = {0};
    uint32_t *tokens = calloc(FT_MAX_KEY_TOKENS, sizeof *tokens);
    uint64_t seed = 9;
    (void)state;
    for (uint32_t i = 0; i < FT_MAX_KEY_TOKENS; i++)
        tokens[i] = (uint32_t)(next_random(&seed) % 200000);
    keyset_add(&s, tokens, FT_MAX_KEY_TOKENS);
    keyset_add(&s, tokens, 30000);
    tokens[40000] = 200001;
    keyset_add(&s, tokens, 50000);
    keyset_settle(&s);
    for (uint32_t layout = 0; ft_layout_name(layout); layout++) {
        ft_index *ix = keyset_index(&s, ft_layout_name(layout), true, 0, &file);
        const ft_trie *t = ft_index_trie(ix);
        assert_int_equal(t->depth, FT_MAX_KEY_TOKENS);
        assert_int_equal(t->n_nodes, 1 + FT_MAX_KEY_TOKENS + 10000);
        check_cursor(&s, t, NULL, 0);
        check_cursor(&s, t, tokens, 35000);
        check_cursor(&s, t, tokens, 45000);
        ft_index_close(ix);
    }
    free(tokens);
    ft_buf_free(&file);
    keyset_free(&s);
}

static void test_too_long_key(void **state)
{
    ft_error err = {0};
    ft_builder *b;
    uint32_t *tokens = calloc(FT_MAX_KEY_TOKENS + 1, sizeof *tokens);
    (void)state;
    assert_ok(ft_builder_open(&b, &(ft_build_options){.layout = NULL}, &err), err);
    assert_int_equal(ft_builder_add(b, tokens, FT_MAX_KEY_TOKENS + 1, 0, &err),
                     FT_EINVAL);
    assert_string_equal(err.message, "a key of 65536 tokens (at most 65535)");
    ft_builder_close(b);
    free(tokens);
}

/* A root with 2^21 children, each with one child: hints far apart, long runs. */
static void test_hub(void **state)
{
    const uint32_t n = 1u << 21;
    (void)state;
    for (uint32_t layout = 0; ft_layout_name(layout); layout++) {
        ft_error err = {0};
        ft_buf file = {0};
        ft_builder *b;
        ft_build_summary summary;
        ft_index *ix;
        const ft_build_options options = {.layout = ft_layout_name(layout),
                                          .ids = true};
        assert_ok(ft_builder_open(&b, &options, &err), err);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t key[] = {3 * i, i};
            assert_ok(ft_builder_add(b, key, 2, 0, &err), err);
        }
        ft_sink *sink = sink_into(&file);
        assert_ok(ft_builder_finish(b, sink, &summary, &err), err);
        close_sink(sink);
        ft_builder_close(b);
        assert_int_equal(summary.n_nodes, 1 + 2 * (uint64_t)n);
        assert_ok(
            ft_index_open_memory(&ix, file.data, file.len, "hub", FT_VERIFY_FULL, &err),
            err);
        assert_ok(ft_index_verify(ix, &err), err);
        const ft_trie *t = ft_index_trie(ix);
        const ft_range hub = t->ops->children(t, 0);
        assert_int_equal(hub.first, 1);
        assert_int_equal(hub.count, n);
        for (uint32_t i = 0; i < n; i += 1 + i / 50) {
            const uint32_t key[] = {3 * i, i};
            const uint64_t node = ft_trie_walk(t, key, 2);
            uint32_t label;
            if (t->level_order)
                assert_int_equal(node, 1 + (uint64_t)n + i);
            assert_int_equal(ft_trie_key_number(t, node), i);
            assert_true(t->ops->find(t, hub, 3 * i + 1) == UINT64_MAX);
            t->ops->labels(t, 1 + i, 1, &label);
            assert_int_equal(label, 3 * i);
        }
        ft_index_close(ix);
        ft_buf_free(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sets), cmocka_unit_test(test_R24_odd_tokens),
        cmocka_unit_test(test_one_key),     cmocka_unit_test(test_empty_library),
        cmocka_unit_test(test_longest_key), cmocka_unit_test(test_too_long_key),
        cmocka_unit_test(test_hub),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
