/* SPDX-License-Identifier: Apache-2.0
 *
 * One ordered stream of keys out of many inputs: order checks, merging, subtraction,
 * every form of input.
 */
#include "keyset.h"

#include <fcntl.h>
#include <zstd.h>

#include "io/tokens.h"

static char folder[] = "/tmp/ft-test-keys-XXXXXX";

enum { MAX_PATHS = 8, PATH_BYTES = 64 };

/* Input number i, written to the scratch folder. */
static const char *path_of(unsigned i)
{
    static char paths[MAX_PATHS][PATH_BYTES];
    snprintf(paths[i], PATH_BYTES, "%s/%u", folder, i);
    return paths[i];
}

static void write_input(unsigned i, const void *data, size_t bytes)
{
    FILE *f = fopen(path_of(i), "wb");
    assert_non_null(f);
    if (bytes)
        assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

typedef enum input_form {
    TEXT,
    BINARY,
    ZSTD_TEXT,
    INDEX,
    INDEX_ZSTD,
    N_INPUT_FORMS
} input_form;

static void compress(ft_buf *b)
{
    ft_buf z = {0};
    ft_error err = {0};
    assert_ok(ft_buf_reserve(&z, ZSTD_compressBound(b->len), &err), err);
    z.len = ZSTD_compress(z.data, z.cap, b->data, b->len, 1);
    assert_false(ZSTD_isError(z.len));
    ft_buf_free(b);
    *b = z;
}

static void write_set(unsigned i, const keyset *s, input_form form)
{
    ft_error err = {0};
    ft_buf b = {0};
    if (form == INDEX || form == INDEX_ZSTD) {
        keyset_build(s, i % 2 ? "wide" : "narrow", false, 0, &b);
    } else {
        ft_sink *sink = sink_into(&b);
        if (form == BINARY)
            assert_ok(ft_tokens_write_binary_header(sink, &err), err);
        for (uint64_t k = 0; k < s->n; k++) {
            const test_key *key = &s->keys[k];
            assert_ok((form == BINARY ? ft_tokens_write_binary : ft_tokens_write_text)(
                          sink, key->tokens, key->n, &err),
                      err);
        }
        close_sink(sink);
    }
    if (form == ZSTD_TEXT || form == INDEX_ZSTD)
        compress(&b);
    write_input(i, b.data, b.len);
    ft_buf_free(&b);
}

static ft_keys *open_keys(uint32_t n_paths, uint32_t n_subtract)
{
    const char *paths[MAX_PATHS];
    ft_error err = {0};
    ft_keys *k = NULL;
    for (uint32_t i = 0; i < n_paths + n_subtract; i++)
        paths[i] = path_of(i);
    const ft_keys_options options = {.paths = paths,
                                     .n_paths = n_paths,
                                     .subtract = paths + n_paths,
                                     .n_subtract = n_subtract};
    assert_ok(ft_keys_open(&k, &options, &err), err);
    return k;
}

/* The stream gives the keys of *want, each with the right lcp. */
static void assert_keys(ft_keys *k, const keyset *want)
{
    ft_error err = {0};
    ft_key key;
    for (uint64_t i = 0; i < want->n; i++) {
        const test_key *w = &want->keys[i];
        uint32_t lcp = 0;
        if (i)
            ft_keys_compare(w[-1].tokens, w[-1].n, w->tokens, w->n, &lcp);
        assert_ok(ft_keys_next(k, &key, &err), err);
        assert_int_equal(key.n, w->n);
        assert_memory_equal(key.tokens, w->tokens, key.n * sizeof *key.tokens);
        assert_int_equal(key.lcp, lcp);
    }
    for (int again = 0; again < 2; again++) {
        assert_ok(ft_keys_next(k, &key, &err), err);
        assert_int_equal(key.n, 0);
    }
}

static void test_compare(void **state)
{
    const uint32_t a[] = {1, 2, 3}, b[] = {1, 2, 4};
    uint32_t lcp;
    (void)state;
    assert_true(ft_keys_compare(a, 3, b, 3, &lcp) < 0);
    assert_int_equal(lcp, 2);
    assert_true(ft_keys_compare(b, 3, a, 3, &lcp) > 0);
    assert_true(ft_keys_compare(a, 2, b, 3, &lcp) < 0);
    assert_int_equal(lcp, 2);
    assert_true(ft_keys_compare(a, 2, b, 2, &lcp) == 0);
    assert_true(ft_keys_compare(NULL, 0, b, 1, &lcp) < 0);
    assert_int_equal(lcp, 0);
}

/* One input of each form: the same keys. */
static void test_forms(void **state)
{
    const uint32_t alphabet[] = {0, 9, 10, 65535, 65536, 0xFFFFFFFE};
    keyset s = keyset_random(21, 300, alphabet, 6, 5);
    (void)state;
    for (input_form form = TEXT; form < N_INPUT_FORMS; form++) {
        write_set(0, &s, form);
        ft_keys *k = open_keys(1, 0);
        assert_keys(k, &s);
        const ft_keys_counts c = ft_keys_counts_of(k);
        assert_int_equal(c.n_read, s.n);
        assert_int_equal(c.n_duplicates, 0);
        assert_true(c.input_bytes > s.n);
        ft_keys_close(k);
    }
    keyset_free(&s);
}

static void test_empty_inputs(void **state)
{
    keyset none = {0};
    (void)state;
    for (input_form form = TEXT; form < N_INPUT_FORMS; form++)
        for (unsigned n = 1; n <= 3; n++) {
            for (unsigned i = 0; i <= n; i++)
                write_set(i, &none, form);
            ft_keys *k = open_keys(n, n > 1);
            assert_keys(k, &none);
            ft_keys_close(k);
        }
}

static bool contains(const keyset *s, const test_key *key)
{
    return s->n && bsearch(key, s->keys, s->n, sizeof *s->keys, by_order);
}

/* Any number of inputs, of any forms, less others: against sets. */
static void test_merge_and_subtract(void **state)
{
    const uint32_t alphabet[] = {0, 9, 10, 70000};
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        const uint32_t n_in = 1 + (uint32_t)seed % 5, n_out = (uint32_t)(seed / 3) % 3;
        keyset in = {0}, out = {0}, want = {0};
        uint64_t total = 0, dropped = 0;
        for (uint32_t i = 0; i < n_in + n_out; i++) {
            keyset s = keyset_random(seed * 100 + i, seed * 3, alphabet, 4, 4);
            write_set(i, &s, (input_form)((seed + i) % N_INPUT_FORMS));
            for (uint64_t j = 0; j < s.n; j++)
                keyset_add(i < n_in ? &in : &out, s.keys[j].tokens, s.keys[j].n);
            total += i < n_in ? s.n : 0;
            keyset_free(&s);
        }
        keyset_settle(&in);
        keyset_settle(&out);
        for (uint64_t j = 0; j < in.n; j++)
            if (contains(&out, &in.keys[j]))
                dropped++;
            else
                keyset_add(&want, in.keys[j].tokens, in.keys[j].n);
        ft_keys *k = open_keys(n_in, n_out);
        assert_keys(k, &want);
        const ft_keys_counts c = ft_keys_counts_of(k);
        assert_int_equal(c.n_read, total);
        assert_int_equal(c.n_duplicates, total - in.n);
        assert_int_equal(c.n_subtracted, dropped);
        ft_keys_close(k);
        keyset_free(&in);
        keyset_free(&out);
        keyset_free(&want);
    }
}

static void write_text(unsigned i, const char *text)
{
    write_input(i, text, strlen(text));
}

static void test_duplicates_and_empty_lines(void **state)
{
    keyset want = {0};
    (void)state;
    KEY(&want, 1);
    KEY(&want, 1, 2);
    KEY(&want, 3);
    write_text(0, "1\n1\n\n1 2\n 1\t2 \r\n\n1 2\n3");
    ft_keys *k = open_keys(1, 0);
    assert_keys(k, &want);
    const ft_keys_counts c = ft_keys_counts_of(k);
    assert_int_equal(c.n_read, 6);
    assert_int_equal(c.n_duplicates, 3);
    assert_int_equal(c.n_skipped, 2);
    ft_keys_close(k);
    keyset_free(&want);
}

/* Read to the error, which names input `i` and then says `message`. */
static void assert_order_error(uint32_t n_paths, uint32_t n_subtract, unsigned i,
                               const char *message)
{
    ft_error err = {0};
    ft_key key = {.n = 1};
    char want[FT_ERROR_BYTES];
    const char *paths[MAX_PATHS];
    ft_keys *k = NULL;
    for (uint32_t j = 0; j < n_paths + n_subtract; j++)
        paths[j] = path_of(j);
    const ft_keys_options options = {.paths = paths,
                                     .n_paths = n_paths,
                                     .subtract = paths + n_paths,
                                     .n_subtract = n_subtract};
    ft_status st = ft_keys_open(&k, &options, &err);
    while (st == FT_OK && key.n)
        st = ft_keys_next(k, &key, &err);
    assert_int_equal(st, FT_EORDER);
    snprintf(want, sizeof want, "%s: %s", path_of(i), message);
    assert_string_equal(err.message, want);
    ft_keys_close(k);
}

#define WAY_OUT " (--sort takes any order; sort -u -V gives that of tokens as numbers)"

/* What LC_ALL=C sort makes of numbers. */
static void test_R23_byte_order(void **state)
{
    (void)state;
    write_text(0, "1\n10 1\n9\n");
    assert_order_error(1, 0, 0, "line 3: key out of order: '9' after '10 1'" WAY_OUT);
    write_text(0, "2 1\n\n1 9");
    assert_order_error(1, 0, 0, "line 3: key out of order: '1 9' after '2 1'" WAY_OUT);
    write_text(0, "1 2\n1\n");
    assert_order_error(1, 0, 0, "line 2: key out of order: '1' after '1 2'" WAY_OUT);
}

static void test_order_of_each_input(void **state)
{
    (void)state;
    write_text(0, "1\n2\n9\n");
    write_text(1, "3\n2\n");
    assert_order_error(2, 0, 1, "line 2: key out of order: '2' after '3'" WAY_OUT);
    assert_order_error(1, 1, 1, "line 2: key out of order: '2' after '3'" WAY_OUT);
}

static void test_order_of_binary(void **state)
{
    keyset s = {0};
    (void)state;
    KEY(&s, 5);
    KEY(&s, 6);
    KEY(&s, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    write_set(0, &s, BINARY);
    assert_order_error(1, 0, 0,
                       "record 2: key out of order: '1 2 3 4 5 6 7 8 ...' after '6' "
                       "(--sort takes any order)");
    keyset_free(&s);
}

static void test_standard_input_once(void **state)
{
    static const char *const twice[] = {"-", "-"};
    ft_error err = {0};
    ft_keys *k = NULL;
    (void)state;
    const ft_keys_options merged = {.paths = twice, .n_paths = 2},
                          less = {.paths = twice,
                                  .n_paths = 1,
                                  .subtract = twice,
                                  .n_subtract = 1};
    assert_int_equal(ft_keys_open(&k, &merged, &err), FT_EINVAL);
    assert_string_equal(err.message, "standard input is given more than once");
    assert_int_equal(ft_keys_open(&k, &less, &err), FT_EINVAL);
    assert_null(k);
}

/* An index from a pipe is read into memory. */
static void test_index_from_standard_input(void **state)
{
    static const char *const dash[] = {"-"};
    ft_error err = {0};
    ft_keys *k;
    const uint32_t alphabet[] = {1, 2, 3};
    keyset s = keyset_random(22, 50, alphabet, 3, 4);
    (void)state;
    for (input_form form = TEXT; form < N_INPUT_FORMS; form++) {
        write_set(0, &s, form);
        const int saved = dup(0), fd = open(path_of(0), O_RDONLY);
        assert_int_equal(dup2(fd, 0), 0);
        close(fd);
        assert_ok(
            ft_keys_open(&k, &(ft_keys_options){.paths = dash, .n_paths = 1}, &err),
            err);
        assert_keys(k, &s);
        ft_keys_close(k);
        assert_int_equal(dup2(saved, 0), 0);
        close(saved);
    }
    keyset_free(&s);
}

static void test_damaged_index(void **state)
{
    const uint32_t alphabet[] = {1, 2, 3};
    ft_error err = {0};
    ft_keys *k = NULL;
    ft_buf b = {0};
    const char *path = path_of(0);
    (void)state;
    keyset s = keyset_random(23, 50, alphabet, 3, 4);
    keyset_build(&s, "narrow", false, 0, &b);
    write_input(0, b.data, b.len - 1);
    assert_int_equal(
        ft_keys_open(&k, &(ft_keys_options){.paths = &path, .n_paths = 1}, &err),
        FT_EFORMAT);
    assert_message(err, ": cut short: ");
    assert_null(k);
    ft_buf_free(&b);
    keyset_free(&s);
}

static void test_missing_input(void **state)
{
    static const char *const paths[] = {"/dev/null", "/nonexistent/keys"};
    ft_error err = {0};
    ft_keys *k = NULL;
    (void)state;
    assert_int_equal(
        ft_keys_open(&k, &(ft_keys_options){.paths = paths, .n_paths = 2}, &err),
        FT_EIO);
    assert_message(err, "/nonexistent/keys");
    assert_null(k);
}

/* The same library and options give the same file, whatever form the keys come in. */
static void test_same_index_from_any_form(void **state)
{
    const uint32_t alphabet[] = {0, 9, 10, 65535, 65536, 1u << 22};
    keyset s = keyset_random(24, 3000, alphabet, 6, 6);
    ft_buf first = {0};
    (void)state;
    keyset_build(&s, "narrow", true, 0, &first);
    for (input_form form = TEXT; form < N_INPUT_FORMS; form++) {
        ft_error err = {0};
        ft_buf file = {0};
        ft_builder *b;
        ft_build_summary summary;
        ft_key key;
        write_set(0, &s, form);
        write_set(1, &s, TEXT); /* and again, to be merged */
        ft_keys *k = open_keys(2, 0);
        assert_ok(ft_builder_open(
                      &b, &(ft_build_options){.layout = "narrow", .ids = true}, &err),
                  err);
        for (;;) {
            assert_ok(ft_keys_next(k, &key, &err), err);
            if (key.n == 0)
                break;
            assert_ok(ft_builder_add(b, key.tokens, key.n, key.lcp, &err), err);
        }
        ft_sink *sink = sink_into(&file);
        assert_ok(ft_builder_finish(b, sink, &summary, &err), err);
        close_sink(sink);
        assert_int_equal(file.len, first.len);
        assert_memory_equal(file.data, first.data, first.len);
        ft_builder_close(b);
        ft_keys_close(k);
        ft_buf_free(&file);
    }
    ft_buf_free(&first);
    keyset_free(&s);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MAX_PATHS; i++)
        remove(path_of(i));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_empty_inputs),
        cmocka_unit_test(test_merge_and_subtract),
        cmocka_unit_test(test_duplicates_and_empty_lines),
        cmocka_unit_test(test_R23_byte_order),
        cmocka_unit_test(test_order_of_each_input),
        cmocka_unit_test(test_order_of_binary),
        cmocka_unit_test(test_standard_input_once),
        cmocka_unit_test(test_index_from_standard_input),
        cmocka_unit_test(test_damaged_index),
        cmocka_unit_test(test_missing_input),
        cmocka_unit_test(test_same_index_from_any_form),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
