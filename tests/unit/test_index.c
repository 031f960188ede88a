/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening index files: kinds, damage, hostile bytes (R19).
 */
#include "index_forms.h"

static void assert_kind(const char *bytes, size_t n, const char *message)
{
    uint64_t aligned[8] = {0};
    char want[200];
    memcpy(aligned, bytes, n);
    snprintf(want, sizeof want, "small: %s", message);
    assert_refused(&(ft_buf){(uint8_t *)aligned, n, n}, FT_VERIFY_FULL, want);
}

static void test_R19_other_kinds(void **state)
{
    (void)state;
    assert_kind("", 0, "this is an empty file, not an index");
    assert_kind("FTGRID1\nxxxxxxxx", 16, "this is a proposal grid, not an index");
    assert_kind("FTKEYS1\nxxxxxxxx", 16,
                "this is a token file, not an index: build one with ft-build");
    assert_kind("\x28\xb5\x2f\xfdxxxxxxxx", 12,
                "this is a zstd file: decompress it first (zstd -d)");
    assert_kind("\x1f\x8bxxxxxx", 8, "this is a gzip file, not an index");
    assert_kind("\x93NUMPYxx", 8, "this is a NumPy file, not an index");
    assert_kind("12 13\n", 6,
                "not an index; if these are keys, build one with ft-build");
    assert_kind("hello world", 11, "not an index (its first bytes are others)");
    assert_kind("FTIND", 5, "cut short: 5 bytes");
    assert_kind("FTINDEX\n----", 12, "cut short: 12 bytes");
}

static void test_R19_cut_at_every_byte(void **state)
{
    ft_buf file = {0};
    (void)state;
    for (unsigned form = 0; form < N_FORMS; form++) {
        make_form(&file, form);
        assert_int_equal(try_open(file.data, file.len, FT_VERIFY_FULL, NULL), FT_OK);
        for (uint64_t n = 0; n < file.len; n++)
            for (int verify = FT_VERIFY_FULL; verify <= FT_VERIFY_NONE; verify++)
                assert_int_equal(try_open(file.data, n, (ft_verify)verify, NULL),
                                 FT_EFORMAT);
        ft_buf_append(&file, "", 1, NULL);
        assert_refused(&file, FT_VERIFY_NONE,
                       "small: 1 bytes behind the end of the index");
    }
    ft_buf_free(&file);
}

/* The same with the length in the header made to agree. */
static void test_R19_cut_at_section_borders(void **state)
{
    ft_buf file = {0};
    (void)state;
    for (unsigned form = 0; form < N_FORMS; form++) {
        make_form(&file, form);
        const uint32_t n = front_of(&file)->header.n_sections;
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t end = front_of(&file)->table[i].offset;
            if (end == file.len)
                continue;
            front_of(&file)->header.file_bytes = end;
            seal_header(&file);
            assert_int_equal(try_open(file.data, end, FT_VERIFY_STRUCTURE, NULL),
                             FT_EFORMAT);
            front_of(&file)->header.n_sections = i; /* and the number of sections */
            seal_header(&file);
            assert_int_equal(try_open(file.data, end, FT_VERIFY_STRUCTURE, NULL),
                             FT_EFORMAT);
            front_of(&file)->header.n_sections = n;
        }
    }
    ft_buf_free(&file);
}

static void test_every_bit_flip_is_seen(void **state)
{
    ft_buf file = {0};
    (void)state;
    for (unsigned form = 0; form < N_FORMS; form++) {
        make_form(&file, form);
        for (uint64_t i = 0; i < file.len * 8; i++) {
            file.data[i / 8] ^= (uint8_t)(1 << i % 8);
            if (try_open(file.data, file.len, FT_VERIFY_FULL, NULL) != FT_EFORMAT)
                fail_msg("form %u: bit %llu flipped is not seen", form,
                         (unsigned long long)i);
            file.data[i / 8] ^= (uint8_t)(1 << i % 8);
        }
    }
    ft_buf_free(&file);
}

/* Without checksums flips are refused or walked safely (sanitizers watch). */
static void test_every_bit_flip_is_safe(void **state)
{
    ft_buf file = {0};
    (void)state;
    for (unsigned form = 0; form < N_FORMS; form++) {
        make_form(&file, form);
        uint64_t n_refused = 0;
        for (uint64_t i = 0; i < file.len * 8; i += 1 + (i > 8 * FT_SECTIONS_AT)) {
            file.data[i / 8] ^= (uint8_t)(1 << i % 8);
            seal_header(&file);
            n_refused +=
                try_open(file.data, file.len, FT_VERIFY_STRUCTURE, NULL) != FT_OK;
            file.data[i / 8] ^= (uint8_t)(1 << i % 8);
        }
        assert_true(n_refused > 128 * 8);
    }
    ft_buf_free(&file);
}

static void test_header_messages(void **state)
{
    ft_buf file = {0};
    (void)state;
    make_small(&file, "narrow", true, 0);
    ft_index_header *h = &front_of(&file)->header;
    const ft_index_header good = *h;

    h->byte_order = 0x04030201;
    assert_refused(&file, FT_VERIFY_NONE,
                   "small: byte order mark 04030201, 01020304 expected: this index was "
                   "written on a machine of the other byte order");
    *h = good;
    h->version = 1;
    assert_refused(
        &file, FT_VERIFY_NONE,
        "small: version 1 of the index format, this program reads version 2: "
        "build the index again");
    *h = good;
    h->n_keys++;
    assert_refused(&file, FT_VERIFY_NONE,
                   "small: header: checksum differs: the file is damaged");
    *h = good;
    h->layout = 99;
    seal_header(&file);
    assert_refused(
        &file, FT_VERIFY_NONE,
        "small: layout 99 is not known: the index comes from another version");
    *h = good;
    h->flags |= 1u << 31;
    seal_header(&file);
    assert_refused(&file, FT_VERIFY_NONE,
                   "small: header: flags 0x80000003 are not known");
    *h = good;
    h->n_nodes = UINT64_C(1) << 60;
    seal_header(&file);
    assert_refused(&file, FT_VERIFY_NONE, "small: header: 1152921504606846976 nodes");
    ft_buf_free(&file);
}

static void test_section_messages(void **state)
{
    ft_buf file = {0};
    (void)state;
    make_small(&file, "narrow", true, 0);
    const ft_index_front good = *front_of(&file);
    ft_section_entry *e = entry_of(&file, FT_SECTION_LABELS_LOW);

    ((uint8_t *)bytes_of(&file, FT_SECTION_LABELS_LOW))[3] ^= 1;
    assert_refused(&file, FT_VERIFY_FULL,
                   "small: section labels-low: checksum differs: the file is damaged");
    ((uint8_t *)bytes_of(&file, FT_SECTION_LABELS_LOW))[3] ^= 1;
    e->type = FT_SECTION_LABELS;
    seal_header(&file);
    assert_refused(&file, FT_VERIFY_NONE, "small: section labels-low: missing");
    e->type = FT_SECTION_LOUDS;
    seal_header(&file);
    assert_refused(&file, FT_VERIFY_NONE, "small: section louds: given twice");
    e->type = 12345;
    seal_header(&file);
    assert_refused(&file, FT_VERIFY_NONE,
                   "small: section table: type 12345 is not known");
    *front_of(&file) = good;
    e->offset += 256;
    seal_header(&file);
    ft_error err = {0};
    assert_int_equal(try_open(file.data, file.len, FT_VERIFY_NONE, &err), FT_EFORMAT);
    assert_message(err, "small: section labels-low: at offset ");
    ft_buf_free(&file);
}

/* Lengths that a file claims cost no memory that it does not back. */
static void test_hostile_lengths(void **state)
{
    ft_buf file = {0};
    ft_error err = {0};
    (void)state;
    for (unsigned form = 0; form < N_LOUDS_FORMS; form++) {
        make_form(&file, form);
        ft_section_entry *e = entry_of(&file, FT_SECTION_LOUDS);
        front_of(&file)->header.n_nodes = (UINT64_C(1) << 40) - 1;
        e->items = (UINT64_C(1) << 41) - 3;
        e->raw_bytes = (e->items / 512 + 1) * 64;
        if (!forms[form].level) {
            seal_header(&file);
            assert_int_equal(try_open(file.data, file.len, FT_VERIFY_NONE, &err),
                             FT_EFORMAT);
            assert_message(err, "section louds: two lengths");
            e->stored_bytes = e->raw_bytes;
        }
        seal_header(&file);
        assert_int_equal(try_open(file.data, file.len, FT_VERIFY_NONE, &err),
                         FT_EFORMAT);
        assert_message(err, forms[form].level ? "section louds: zstd frames cannot hold"
                                              : "reaches beyond the end of the file");
    }
    ft_buf_free(&file);
}

/* zstd sections: other frames than the table says, though all checksums are right. */
static void test_bad_frame(void **state)
{
    ft_buf file = {0};
    ft_error err = {0};
    (void)state;
    make_small(&file, "narrow", true, 3);
    uint8_t *frame = bytes_of(&file, FT_SECTION_LOUDS);
    frame[entry_of(&file, FT_SECTION_LOUDS)->stored_bytes - 1] ^= 0x55;
    frame[8] ^= 0xFF;
    seal(&file);
    assert_int_equal(try_open(file.data, file.len, FT_VERIFY_FULL, &err), FT_EFORMAT);
    assert_message(err, "small: section louds: ");
    ft_buf_free(&file);
}

/* Scratch files of the tests below. */
static char folder[] = "/tmp/ft-test-index-XXXXXX";

static const char *write_file(const char *name, const void *data, size_t bytes)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* Several pieces of checksum and of every parallel check; any number of threads. */
static void test_file_and_threads(void **state)
{
    uint32_t tokens[1000];
    ft_buf file = {0};
    (void)state;
    for (uint32_t i = 0; i < 1000; i++)
        tokens[i] = i * 99;
    for (int level = 0; level <= 1; level++) {
        keyset s = keyset_random(12, 400000, tokens, 1000, 4);
        keyset_build(&s, "wide", true, level, &file);
        const char *path = write_file("big.ftx", file.data, file.len);
        for (uint32_t threads = 0; threads <= 7; threads++) {
            ft_error err = {0};
            ft_index *ix;
            assert_ok(ft_index_open(&ix, path, FT_VERIFY_FULL, threads, &err), err);
            assert_string_equal(ft_index_name(ix), path);
            assert_int_equal(ft_index_file_bytes(ix), file.len);
            assert_int_equal(ft_index_trie(ix)->n_keys, s.n);
            if (threads == 3)
                assert_ok(ft_index_verify(ix, &err), err);
            ft_index_close(ix);
        }
        file.data[file.len / 2] ^= 4;
        write_file("big.ftx", file.data, file.len);
        for (uint32_t threads = 1; threads <= 7; threads += 3) {
            ft_error err = {0};
            ft_index *ix;
            assert_int_equal(ft_index_open(&ix, path, FT_VERIFY_FULL, threads, &err),
                             FT_EFORMAT);
            assert_message(err, "checksum differs: the file is damaged");
        }
        remove(path);
        keyset_free(&s);
    }
    ft_buf_free(&file);
}

static void test_paths(void **state)
{
    ft_error err = {0};
    ft_index *ix;
    char want[400];
    (void)state;
    assert_int_equal(ft_index_open(&ix, "/nonexistent/x.ftx", FT_VERIFY_FULL, 1, &err),
                     FT_EIO);
    assert_string_equal(err.message,
                        "/nonexistent/x.ftx: cannot open: No such file or directory");
    assert_int_equal(ft_index_open(&ix, folder, FT_VERIFY_FULL, 1, &err), FT_EIO);
    snprintf(want, sizeof want, "%s: an index is mapped: give a regular file", folder);
    assert_string_equal(err.message, want);
    const char *path = write_file("empty", "", 0);
    assert_int_equal(ft_index_open(&ix, path, FT_VERIFY_FULL, 1, &err), FT_EFORMAT);
    assert_message(err, "empty: this is an empty file, not an index");
    remove(path);
}

static void test_is_index(void **state)
{
    ft_error err = {0};
    ft_buf file = {0};
    bool yes = false;
    (void)state;
    make_small(&file, "wide", false, 0);
    ft_stream *in = stream_of(file.data, file.len, "x");
    assert_ok(ft_index_is_index(in, &yes, &err), err);
    assert_true(yes);
    assert_int_equal(ft_stream_offset(in), 0);
    ft_stream_close(in);
    in = stream_of("1 2\n", 4, "x");
    assert_ok(ft_index_is_index(in, &yes, &err), err);
    assert_false(yes);
    ft_stream_close(in);
    ft_buf_free(&file);
}

static void test_section_info(void **state)
{
    ft_error err = {0};
    ft_buf file = {0};
    (void)state;
    for (unsigned form = 0; form < N_FORMS; form++) {
        ft_index *ix;
        make_form(&file, form);
        assert_ok(ft_index_open_memory(&ix, file.data, file.len, "small",
                                       FT_VERIFY_FULL, &err),
                  err);
        assert_int_equal(ft_index_n_sections(ix), front_of(&file)->header.n_sections);
        for (uint32_t i = 0; i < ft_index_n_sections(ix); i++) {
            const ft_section_info s = ft_index_section(ix, i);
            assert_non_null(s.name);
            assert_int_equal(s.encoding, forms[form].level ? 1 : 0);
            if (!s.encoding)
                assert_ptr_equal(s.data, file.data + s.offset);
        }
        if (form < N_LOUDS_FORMS)
            assert_string_equal(ft_index_section(ix, 0).name, "louds");
        ft_index_close(ix);
    }
    ft_buf_free(&file);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_R19_other_kinds),
        cmocka_unit_test(test_R19_cut_at_every_byte),
        cmocka_unit_test(test_R19_cut_at_section_borders),
        cmocka_unit_test(test_every_bit_flip_is_seen),
        cmocka_unit_test(test_every_bit_flip_is_safe),
        cmocka_unit_test(test_header_messages),
        cmocka_unit_test(test_section_messages),
        cmocka_unit_test(test_hostile_lengths),
        cmocka_unit_test(test_bad_frame),
        cmocka_unit_test(test_file_and_threads),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_is_index),
        cmocka_unit_test(test_section_info),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
