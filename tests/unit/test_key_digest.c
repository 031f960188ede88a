/* SPDX-License-Identifier: Apache-2.0
 *
 * The digest of a library: that of its keys, whatever the layout and the threads.
 */
#include "keyset.h"

#include "workload/key_digest.h"

static uint64_t sum_of(const keyset *s)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < s->n; i++)
        sum += ft_key_digest(s->keys[i].tokens, s->keys[i].n);
    return sum;
}

static void check_layouts(const keyset *s)
{
    ft_buf file = {.len = 0};
    ft_error err = {0};
    const char *layout;
    for (uint32_t i = 0; (layout = ft_layout_name(i)); i++) {
        ft_index *ix = keyset_index(s, layout, false, 0, &file);
        for (uint32_t n_threads = 1; n_threads < 8; n_threads += 3) {
            uint64_t digest = 1;
            assert_ok(ft_library_digest(ft_index_trie(ix), n_threads, &digest, &err),
                      err);
            assert_int_equal(digest, sum_of(s));
        }
        ft_index_close(ix);
    }
    ft_buf_free(&file);
}

static void test_small(void **state)
{
    (void)state;
    keyset s = {0};
    check_layouts(&s);
    assert_int_equal(sum_of(&s), 0);
    KEY(&s, 7);
    check_layouts(&s);
    KEY(&s, 7, 0);
    KEY(&s, 7, 0, 0, 9);
    check_layouts(&s);
    keyset_free(&s);
}

static void test_many(void **state)
{
    (void)state;
    enum { WIDE = 5000, FEW = 6 };
    static uint32_t alphabet[WIDE];
    for (uint32_t i = 0; i < WIDE; i++)
        alphabet[i] = 3 * i + 1;
    /* More first tokens than a thread takes at a time; then few, and deep ones. */
    keyset s = keyset_random(3, 20000, alphabet, WIDE, 3);
    check_layouts(&s);
    keyset_free(&s);
    s = keyset_random(4, 5000, alphabet, FEW, 40);
    check_layouts(&s);
    keyset_free(&s);
}

/* Libraries that are alike but for which tokens are together, and where keys end. */
static void test_apart(void **state)
{
    (void)state;
    keyset s[5] = {{0}};
    KEY(&s[0], 1, 2);
    KEY(&s[0], 3, 4);
    KEY(&s[1], 1, 4);
    KEY(&s[1], 3, 2);
    KEY(&s[2], 1, 2, 3);
    KEY(&s[2], 4);
    KEY(&s[3], 2, 1);
    KEY(&s[3], 3, 4);
    KEY(&s[4], 1, 2, 0);
    KEY(&s[4], 3, 4);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(sum_of(&s[i]), sum_of(&s[k]));
    for (int i = 0; i < 5; i++)
        keyset_free(&s[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
