/* SPDX-License-Identifier: Apache-2.0
 *
 * The index file as the builder writes it: sections worked out by hand, sizes, order,
 * sameness of bytes, refused options.
 */
#include "keyset.h"

#include "trie/bitvec.h"
#include "trie/format.h"
#include "trie/level_map.h"

/* root -> 1 -> 2 -> 70000; 1 ends a key too; root -> 200000 -> 5. */
static keyset hand_made(void)
{
    keyset s = {0};
    KEY(&s, 1);
    KEY(&s, 1, 2, 70000);
    KEY(&s, 200000, 5);
    return s;
}

static const void *section(const ft_buf *file, uint32_t type, ft_section_entry *entry)
{
    ft_index_front front;
    memcpy(&front, file->data, sizeof front);
    for (uint32_t i = 0; i < front.header.n_sections; i++)
        if (front.table[i].type == type) {
            *entry = front.table[i];
            return file->data + front.table[i].offset;
        }
    return NULL;
}

static uint64_t first_word(const ft_buf *file, uint32_t type, uint64_t items)
{
    ft_section_entry e;
    uint64_t word;
    const void *data = section(file, type, &e);
    assert_non_null(data);
    assert_int_equal(e.items, items);
    memcpy(&word, data, sizeof word);
    return word;
}

static void test_narrow_by_hand(void **state)
{
    keyset s = hand_made();
    ft_buf file = {0};
    ft_section_entry e;
    (void)state;
    const ft_build_summary sum = keyset_build(&s, "narrow", true, 0, &file);
    assert_int_equal(sum.n_keys, 3);
    assert_int_equal(sum.n_nodes, 6);
    assert_true(sum.bits_per_node == (double)file.len * 8 / 6);

    ft_index_header h;
    memcpy(&h, file.data, sizeof h);
    assert_memory_equal(h.magic, "FTINDEX\n", 8);
    assert_int_equal(h.layout, FT_LAYOUT_NARROW);
    assert_int_equal(h.flags, FT_INDEX_HAS_IDS | FT_INDEX_LEVEL_ORDER);
    assert_int_equal(h.depth, 3);
    assert_int_equal(h.max_token, 200000);
    assert_int_equal(h.n_sections, 10);
    assert_int_equal(h.file_bytes, file.len);

    /* Nodes: 0 root, 1 "1", 2 "200000", 3 "1 2", 4 "200000 5", 5 "1 2 70000".
     * LOUDS 110 10 10 10 0 0, terminal 0 1 0 0 1 1 (first bit lowest). */
    assert_int_equal(first_word(&file, FT_SECTION_LOUDS, 11), 0x0AB);
    assert_int_equal(first_word(&file, FT_SECTION_TERMINAL, 6), 0x32);
    assert_int_equal(first_word(&file, FT_SECTION_HIGH_FLAGS, 5), 0x12);
    const uint16_t low[] = {1, 200000 & 0xFFFF, 2, 5, 70000 & 0xFFFF};
    assert_memory_equal(section(&file, FT_SECTION_LABELS_LOW, &e), low, sizeof low);
    /* High parts 3 and 1 in 2 bits; key numbers of nodes 1, 4, 5 are 0, 2, 1. */
    assert_int_equal(first_word(&file, FT_SECTION_HIGH, 2), 3 | 1 << 2);
    assert_int_equal(first_word(&file, FT_SECTION_IDS, 3), 0 | 2 << 2 | 1 << 4);
    assert_non_null(section(&file, FT_SECTION_IDS, &e));
    assert_int_equal(e.param, 2);
    ft_buf_free(&file);
    keyset_free(&s);
}

static void test_wide_by_hand(void **state)
{
    keyset s = hand_made();
    ft_buf file = {0};
    ft_section_entry e;
    (void)state;
    keyset_build(&s, "wide", false, 0, &file);
    assert_int_equal(first_word(&file, FT_SECTION_LOUDS, 11), 0x0AB);
    assert_int_equal(first_word(&file, FT_SECTION_TERMINAL, 6), 0x32);
    const uint32_t labels[] = {1, 200000, 2, 5, 70000};
    assert_memory_equal(section(&file, FT_SECTION_LABELS, &e), labels, sizeof labels);
    assert_null(section(&file, FT_SECTION_TERMINAL_RANK, &e));
    assert_null(section(&file, FT_SECTION_IDS, &e));
    ft_buf_free(&file);
    keyset_free(&s);
}

/* Where no token needs high bits, narrow stores none. */
static void test_no_high_parts(void **state)
{
    keyset s = {0};
    ft_buf file = {0};
    ft_section_entry e;
    (void)state;
    KEY(&s, 0);
    KEY(&s, 65535, 65535);
    keyset_build(&s, "narrow", false, 0, &file);
    assert_null(section(&file, FT_SECTION_HIGH_FLAGS, &e));
    assert_null(section(&file, FT_SECTION_HIGH, &e));
    ft_buf_free(&file);
    keyset_free(&s);
}

/* Sections one behind the other at multiples of 64, zeros between. */
static void test_sections_in_order(void **state)
{
    const uint32_t alphabet[] = {1, 2, 3, 70000, 90000};
    keyset s = keyset_random(5, 500, alphabet, 5, 6);
    ft_buf file = {0};
    ft_index_front front;
    (void)state;
    for (int level = 0; level <= 3; level += 3) {
        keyset_build(&s, "narrow", true, level, &file);
        memcpy(&front, file.data, sizeof front);
        uint64_t end = FT_SECTIONS_AT;
        for (uint32_t i = 0; i < front.header.n_sections; i++) {
            const ft_section_entry *e = &front.table[i];
            assert_int_equal(e->offset % FT_SECTION_ALIGN, 0);
            assert_true(e->offset >= end && e->offset - end < FT_SECTION_ALIGN);
            for (; end < e->offset; end++)
                assert_int_equal(file.data[end], 0);
            end += e->stored_bytes;
            assert_int_equal(e->encoding, level ? FT_ENCODING_ZSTD : FT_ENCODING_PLAIN);
        }
        assert_int_equal(end, file.len);
    }
    ft_buf_free(&file);
    keyset_free(&s);
}

static void build_levels(ft_builder *b, ft_buf *out, ft_error *err)
{
    ft_build_summary summary;
    out->len = 0;
    ft_sink *sink = sink_into(out);
    assert_ok(ft_builder_finish(b, sink, &summary, err), *err);
    close_sink(sink);
}

static void assert_same_file(const ft_buf *a, const ft_buf *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

/* Enough keys for several chunks a level and several pieces a section. */
static void test_same_bytes_again(void **state)
{
    uint32_t alphabet[300];
    ft_buf a = {0}, b = {0};
    (void)state;
    for (uint32_t i = 0; i < 300; i++)
        alphabet[i] = i * 701;
    keyset s = keyset_random(6, 200000, alphabet, 300, 5);
    for (uint32_t layout = 0; ft_layout_name(layout); layout++)
        for (int level = 0; level <= 1; level++) {
            const char *name = ft_layout_name(layout);
            keyset_build_on(&s, name, true, level, 1, &a);
            keyset_build_on(&s, name, true, level, 2, &b);
            assert_same_file(&a, &b);
            keyset_build_on(&s, name, true, level, 7, &b);
            assert_same_file(&a, &b);
        }
    keyset_build(&s, NULL, true, 1, &b); /* the default */
    keyset_build(&s, ft_layout_name(0), true, 1, &a);
    assert_same_file(&a, &b);
    ft_buf_free(&a);
    ft_buf_free(&b);
    keyset_free(&s);
}

/* A node with so many children that the bits of the tree take several pieces, and most
 * of them hold nothing else. */
static void test_hub_across_pieces(void **state)
{
    const uint32_t n = 9 << 20;
    ft_buf file[2] = {{0}};
    ft_error err = {0};
    ft_index *ix;
    (void)state;
    for (uint32_t layout = 0; ft_layout_name(layout); layout++) {
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            const ft_build_options options = {.layout = ft_layout_name(layout),
                                              .n_threads = threads};
            ft_builder *b;
            uint32_t key[] = {7, 0, 5};
            assert_ok(ft_builder_open(&b, &options, &err), err);
            for (; key[1] < n; key[1]++)
                assert_ok(ft_builder_add(b, key, 2, key[1] > 0, &err), err);
            key[1] = n - 1;
            assert_ok(ft_builder_add(b, key, 3, 2, &err), err);
            build_levels(b, &file[threads / 2], &err);
            ft_builder_close(b);
        }
        assert_same_file(&file[0], &file[1]);
        assert_ok(ft_index_open_memory(&ix, file[0].data, file[0].len, "hub",
                                       FT_VERIFY_FULL, &err),
                  err);
        const ft_trie *t = ft_index_trie(ix);
        assert_int_equal(ft_trie_walk(t, (const uint32_t[]){7, n - 1, 5}, 3), n + 2);
        assert_int_equal(ft_trie_walk(t, (const uint32_t[]){7, 12345678 % n}, 2),
                         2 + 12345678 % n);
        ft_index_close(ix);
    }
    ft_buf_free(&file[0]);
    ft_buf_free(&file[1]);
}

/* The paper's point (Section 2.2): narrow labels make the index smaller. */
static void test_narrow_is_smaller(void **state)
{
    uint32_t alphabet[2000];
    ft_buf file = {0};
    (void)state;
    for (uint32_t i = 0; i < 2000; i++)
        alphabet[i] = i * 100;
    keyset s = keyset_random(7, 100000, alphabet, 2000, 4);
    const ft_build_summary narrow = keyset_build(&s, "narrow", false, 0, &file);
    const ft_build_summary wide = keyset_build(&s, "wide", false, 0, &file);
    assert_int_equal(narrow.n_nodes, wide.n_nodes);
    assert_true((double)narrow.file_bytes < 0.65 * (double)wide.file_bytes);
    assert_true(wide.bits_per_node < 32 + 2.5 + 1 + 0.2);
    ft_buf_free(&file);
    keyset_free(&s);
}

static void test_layout_table(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (; ft_layout_name(n); n++)
        assert_non_null(ft_layout_summary(n));
    assert_true(n >= 2);
    assert_null(ft_layout_summary(n));
}

static void assert_refused(const ft_build_options *options, const char *message)
{
    ft_error err = {0};
    ft_builder *b = NULL;
    assert_int_equal(ft_builder_open(&b, options, &err), FT_EINVAL);
    assert_string_equal(err.message, message);
    assert_null(b);
}

static void test_refused_options(void **state)
{
    (void)state;
    assert_refused(&(ft_build_options){.layout = "tiny"}, "no layout is called 'tiny'");
    assert_refused(&(ft_build_options){.compress_level = 99},
                   "compression level 99 is not within 0 to 22");
    assert_refused(&(ft_build_options){.compress_level = -1},
                   "compression level -1 is not within 0 to 22");
}

/* A pipe cannot take a header that is written last. */
static void test_pipe_is_refused(void **state)
{
    ft_error err = {0};
    ft_builder *b;
    ft_sink *sink;
    ft_build_summary summary;
    char path[32];
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", fds[1]);
    assert_ok(ft_builder_open(&b, &(ft_build_options){.layout = NULL}, &err), err);
    assert_ok(ft_sink_open(&sink, path, &err), err);
    assert_int_equal(ft_builder_finish(b, sink, &summary, &err), FT_EINVAL);
    assert_string_equal(err.message,
                        "an index is written to a regular file, from its start");
    assert_int_equal(ft_sink_close(sink, NULL), FT_OK);
    ft_builder_close(b);
    close(fds[0]);
    close(fds[1]);
}

static void test_full_disk(void **state)
{
    ft_error err = {0};
    ft_sink *sink;
    ft_builder *b;
    ft_build_summary summary = {.n_keys = 77};
    const uint32_t token = 1;
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_ok(ft_builder_open(&b, &(ft_build_options){.layout = NULL}, &err), err);
    assert_ok(ft_builder_add(b, &token, 1, 0, &err), err);
    assert_ok(ft_sink_open(&sink, "/dev/full", &err), err);
    assert_int_not_equal(ft_builder_finish(b, sink, &summary, &err), FT_OK);
    assert_int_equal(summary.n_keys, 77);
    ft_sink_close(sink, NULL);
    ft_builder_close(b);
}

/* Groups of siblings run over group and chunk borders: of 200 children and of 1. */
static void test_siblings(void **state)
{
    ft_levels l = {.n_levels = 2};
    ft_level_map map;
    ft_error err = {0};
    (void)state;
    l.level = calloc(2, sizeof *l.level);
    ft_chunk *chunk[5];
    static const uint64_t nodes[] = {1, 64, 100, 36, 1};
    for (unsigned i = 0; i < 5; i++) {
        chunk[i] = calloc(1, sizeof(ft_chunk) + 2 * sizeof(ft_group));
        chunk[i]->n_nodes = nodes[i];
        if (i > 1)
            chunk[i - 1]->next = chunk[i];
    }
    chunk[0]->groups[0].first = chunk[0]->groups[0].child = 1;
    chunk[1]->groups[0].first = 1;
    chunk[4]->groups[0].first = 1;
    l.level[0] = (ft_level){chunk[0], chunk[0]};
    l.level[1] = (ft_level){chunk[1], chunk[4]};
    assert_ok(ft_level_map_open(&map, &l, 2, &err), err);
    ft_sibling_cursor c = ft_map_siblings(&map, 0);
    assert_int_equal(ft_siblings_node(&c), 1);
    assert_int_equal(ft_siblings_next(&c), 200);
    assert_int_equal(ft_siblings_node(&c), 201);
    assert_int_equal(ft_siblings_next(&c), 1);
    assert_int_equal(ft_siblings_node(&c), 202);
    assert_int_equal(ft_siblings_next(&c), 0);
    c = ft_map_siblings(&map, 1);
    assert_int_equal(ft_siblings_node(&c), 201);
    c = ft_map_siblings(&map, 2);
    assert_int_equal(ft_siblings_node(&c), 202);
    assert_int_equal(ft_map_siblings_before(&map, 1), 0);
    assert_int_equal(ft_map_siblings_before(&map, 2), 1);
    assert_int_equal(ft_map_siblings_before(&map, 201), 1);
    assert_int_equal(ft_map_siblings_before(&map, 202), 2);
    assert_int_equal(ft_map_parents_before(&map, 0), 0);
    assert_int_equal(ft_map_parents_before(&map, 1), 1);
    ft_level_map_close(&map);
    ft_levels_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_narrow_by_hand),
        cmocka_unit_test(test_wide_by_hand),
        cmocka_unit_test(test_no_high_parts),
        cmocka_unit_test(test_sections_in_order),
        cmocka_unit_test(test_same_bytes_again),
        cmocka_unit_test(test_hub_across_pieces),
        cmocka_unit_test(test_narrow_is_smaller),
        cmocka_unit_test(test_layout_table),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_pipe_is_refused),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_siblings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
