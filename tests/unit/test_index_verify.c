/* SPDX-License-Identifier: Apache-2.0
 *
 * Index files whose checksums are right and whose content is not: what the structure
 * check refuses, and what `verify` finds beyond it.
 */
#include "index_forms.h"

/* Open with all checksums right, then verify. */
static void assert_verify_finds(ft_buf *file, const char *message)
{
    ft_error err = {0};
    ft_index *ix = NULL;
    seal(file);
    assert_ok(
        ft_index_open_memory(&ix, file->data, file->len, "small", FT_VERIFY_FULL, &err),
        err);
    walk_index(ix, 10000);
    assert_int_equal(ft_index_verify(ix, &err), FT_EFORMAT);
    assert_string_equal(err.message, message);
    ft_index_close(ix);
}

static void make_keys(ft_buf *file, const char *layout)
{
    keyset s = {0};
    KEY(&s, 3);
    KEY(&s, 4, 9);
    KEY(&s, 4, 12);
    KEY(&s, 4, 70000);
    keyset_build(&s, layout, true, 0, file);
    keyset_free(&s);
}

static void test_verify(void **state)
{
    ft_buf file = {0};
    (void)state;
    make_keys(&file, "narrow");
    uint16_t *low = bytes_of(&file, FT_SECTION_LABELS_LOW);
    low[3] = 9; /* 9 twice */
    assert_verify_finds(&file, "small: node 2: child token 9 comes after 9");
    low[3] = 8;
    assert_verify_finds(&file, "small: node 2: child token 8 comes after 9");

    make_keys(&file, "wide");
    uint32_t *labels = bytes_of(&file, FT_SECTION_LABELS);
    labels[0] = 5;
    assert_verify_finds(&file, "small: node 0: child token 4 comes after 5");

    make_keys(&file, "wide");
    front_of(&file)->header.max_token = 70001;
    assert_verify_finds(&file, "small: header: largest token 70001, it is 70000");

    make_keys(&file, "wide");
    uint64_t *ids = bytes_of(&file, FT_SECTION_IDS);
    ids[0] ^= 3; /* key number 0 becomes 3 */
    assert_verify_finds(&file,
                        "small: section ids: node 1 has key number 3, its place is 0");

    /* Key 3 moves from its leaf to the node 4 above; both bits lie in one block word.
     */
    make_keys(&file, "wide");
    uint64_t *terminal = bytes_of(&file, FT_SECTION_TERMINAL);
    terminal[0] ^= 1 << 1 | 1 << 2;
    assert_verify_finds(&file, "small: node 1: a leaf that ends no key");
    ft_buf_free(&file);
}

static void assert_structure(ft_buf *file, const char *message)
{
    seal(file);
    assert_refused(file, FT_VERIFY_FULL, message);
    assert_refused(file, FT_VERIFY_STRUCTURE, message);
}

static void test_structure(void **state)
{
    ft_buf file = {0};
    (void)state;
    make_keys(&file, "narrow"); /* LOUDS 110 0 1110 0 0 0 */
    uint64_t *louds = bytes_of(&file, FT_SECTION_LOUDS);
    assert_int_equal(louds[0], 0x73);
    louds[0] = 0x79; /* 10 0: the third node comes before its parent */
    assert_structure(&file,
                     "small: section louds: a node comes before its parent (word 0)");

    make_keys(&file, "narrow");
    louds = bytes_of(&file, FT_SECTION_LOUDS);
    louds[0] |= 1 << 7;
    assert_structure(&file, "small: section louds: rank directory is wrong at block 0");
    uint64_t *rank = bytes_of(&file, FT_SECTION_LOUDS_RANK);
    for (unsigned word = 1; word < 8; word++)
        rank[1] += (uint64_t)1 << 9 * (word - 1);
    assert_structure(&file, "small: section louds: 6 ones up to block 1, 5 expected");

    make_keys(&file, "narrow");
    louds = bytes_of(&file, FT_SECTION_LOUDS);
    louds[0] |= 1 << 11;
    assert_structure(&file, "small: section louds: bits beyond the last are set");

    make_keys(&file, "narrow");
    front_of(&file)->header.depth = 3;
    assert_structure(&file, "small: section louds: depth 2, 3 expected");

    make_keys(&file, "narrow");
    uint64_t *terminal = bytes_of(&file, FT_SECTION_TERMINAL);
    terminal[0] ^= 3;
    assert_structure(&file, "small: section terminal: the root ends a key");

    make_keys(&file, "narrow");
    uint32_t *hints = bytes_of(&file, FT_SECTION_LOUDS_SELECT);
    hints[0] = 1;
    assert_structure(&file, "small: section louds: select hints are wrong at block 0");

    make_keys(&file, "narrow");
    uint64_t *high = bytes_of(&file, FT_SECTION_HIGH);
    assert_int_equal(high[0], 1);
    high[0] = 0;
    assert_structure(&file, "small: section high: part 0 is zero");

    make_keys(&file, "narrow");
    uint16_t *low = bytes_of(&file, FT_SECTION_LABELS_LOW);
    low[4]++;
    assert_structure(
        &file, "small: section labels-low: token 70001, the largest is to be 70000");
    ft_buf_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_verify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
