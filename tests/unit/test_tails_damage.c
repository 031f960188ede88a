/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged indexes with tails: refused, or safe to walk.
 */
#include "tails_set.h"

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
    enum {
        OFFSET,
        LAST,
        TOKEN,
        SHORT,
        EARLY,
        PADDING,
        FLAG,
        TERMINAL,
        LABEL,
        NODES,
        DEPTH,
        N_CASES
    };
    static const char *const messages[N_CASES] = {
        "small: section link-flags: node 3 starts beyond the tail",
        "small: section tail: the last suffix has no end",
        "small: section tail: token 15, the largest is to be 9",
        "small: section link-flags: node 3 has a tail of one token",
        "small: section link-flags: node 5 has a tail of one token",
        "small: section tail: bits beyond the last are set",
        "small: section link-flags: node 1 is no leaf that ends a key",
        "small: section link-flags: node 3 is no leaf that ends a key",
        "small: node 1: token 10, the largest is to be 9",
        "small: section tree: 7 nodes of 18",
        "small: section tree: depth 5 of 4",
    };
    (void)state;
    keyset s = shared_set();
    for (int c = 0; c < N_CASES; c++) {
        ft_buf file = {0};
        keyset_build(&s, "narrow-tails", false, 0, &file);
        uint16_t *low = bytes_of(&file, FT_SECTION_LABELS_LOW);
        uint64_t *terminal = bytes_of(&file, FT_SECTION_TERMINAL);
        ft_index_tree *tree = bytes_of(&file, FT_SECTION_TREE);
        assert_int_equal(tree->n_nodes, 10);
        assert_int_equal(tree->depth, 3);
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
        if (c == LABEL)
            low[0] = 10;
        if (c == NODES)
            tree->n_nodes = 7;
        if (c == DEPTH)
            tree->depth = 5;
        if (c == TERMINAL) /* node 2 ends the key in place of node 3 */
            *terminal = (*terminal & ~(uint64_t)8) | 4;
        seal(&file);
        assert_refused(&file, FT_VERIFY_STRUCTURE, messages[c]);
        ft_buf_free(&file);
    }
    keyset_free(&s);
}

/* Where a link keeps its label, the tail has at least a token for it. */
static void test_hostile_compact(void **state)
{
    keyset s = shared_set();
    ft_buf file = {0};
    (void)state;
    keyset_build(&s, "compact-tails", false, 0, &file);
    assert_int_equal(entry_of(&file, FT_SECTION_LINK_HIGH)->param, 2);
    assert_int_equal(entry_of(&file, FT_SECTION_TAIL)->items, 3);
    put_field(&file, FT_SECTION_LINK_HIGH, 0, 3);
    seal(&file);
    assert_refused(&file, FT_VERIFY_STRUCTURE,
                   "small: section link-flags: node 3 starts beyond the tail");
    keyset_build(&s, "compact-tails", false, 0, &file);
    put_field(&file, FT_SECTION_LINK_HIGH, 0, 1); /* 4 5 in place of 3 4 5 */
    seal(&file);
    assert_refused(&file, FT_VERIFY_STRUCTURE,
                   "small: section tail: 17 nodes in all, 18 expected");
    ft_buf_free(&file);
    keyset_free(&s);
}

/* Of slots for 32 bits, links use 16. */
static void test_hostile_wide(void **state)
{
    keyset s = {0};
    ft_buf file = {0};
    (void)state;
    KEY(&s, 1, 2, 3);
    KEY(&s, 2, 2, 3);
    KEY(&s, 200000);
    keyset_settle(&s);
    keyset_build(&s, "wide-tails", false, 0, &file);
    uint32_t *labels = bytes_of(&file, FT_SECTION_LABELS);
    assert_int_equal(labels[1], 3);
    assert_int_equal(entry_of(&file, FT_SECTION_TAIL)->param, 33);
    labels[1] |= 1 << 16;
    seal(&file);
    assert_refused(&file, FT_VERIFY_STRUCTURE,
                   "small: section link-flags: node 2 has a label");
    ft_buf_free(&file);
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
    assert_refused(&file, FT_VERIFY_NONE, "small: section tree: missing");
    ft_buf_free(&file);
}

/* Every bit of every section, sealed: refused, or safe to walk. */
static void test_bit_flips(void **state)
{
    (void)state;
    for (int layout = 0; layout < N_INNER; layout++) {
        ft_buf file = {0};
        uint64_t n_refused = 0, n = 0;
        make_small(&file, tailed[layout], true, 0);
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile),      cmocka_unit_test(test_hostile_compact),
        cmocka_unit_test(test_hostile_wide), cmocka_unit_test(test_level_order_flag),
        cmocka_unit_test(test_bit_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
