/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys by blocks on many threads against keys one by one: the same files, counts and
 * messages, whatever the input, well-formed or not, the blocks and the threads.
 */
#include "keyset.h"

#include <zstd.h>

#include "io/tokens.h"

typedef struct outcome {
    ft_error err;
    ft_keys_counts counts;
    ft_buf file;
} outcome;

static void release(outcome *o)
{
    ft_buf_free(&o->file);
}

static ft_status add_one_by_one(ft_builder *b, ft_keys *keys, ft_error *err)
{
    for (;;) {
        ft_key key;
        ft_status st = ft_keys_next(keys, &key, err);
        if (st == FT_OK && key.n)
            st = ft_builder_add(b, key.tokens, key.n, key.lcp, err);
        if (st != FT_OK || key.n == 0)
            return st;
    }
}

/* n_threads 0: one by one. */
static outcome build(const char *path, bool ids, uint32_t n_threads, uint64_t bytes)
{
    const ft_keys_options keys_options = {.paths = &path, .n_paths = 1};
    const ft_build_options options = {.layout = "wide",
                                      .ids = ids,
                                      .n_threads = n_threads ? n_threads : 1,
                                      .block_bytes = bytes};
    outcome o = {.err.status = FT_OK};
    ft_build_summary summary;
    ft_keys *keys = NULL;
    ft_builder *b = NULL;
    assert_ok(ft_builder_open(&b, &options, &o.err), o.err);
    ft_status st = ft_keys_open(&keys, &keys_options, &o.err);
    if (st == FT_OK)
        st = n_threads ? ft_builder_add_keys(b, keys, NULL, &o.err)
                       : add_one_by_one(b, keys, &o.err);
    if (st == FT_OK) {
        ft_sink *sink = sink_into(&o.file);
        o.counts = ft_keys_counts_of(keys);
        assert_ok(ft_builder_finish(b, sink, &summary, &o.err), o.err);
        close_sink(sink);
    }
    o.err.status = st;
    ft_keys_close(keys);
    ft_builder_close(b);
    return o;
}

static void assert_same(const outcome *a, const outcome *b)
{
    assert_int_equal(a->err.status, b->err.status);
    if (a->err.status != FT_OK) {
        assert_string_equal(a->err.message, b->err.message);
        return;
    }
    assert_int_equal(a->counts.n_read, b->counts.n_read);
    assert_int_equal(a->counts.n_skipped, b->counts.n_skipped);
    assert_int_equal(a->counts.n_duplicates, b->counts.n_duplicates);
    assert_int_equal(a->counts.input_bytes, b->counts.input_bytes);
    assert_int_equal(a->file.len, b->file.len);
    assert_memory_equal(a->file.data, b->file.data, a->file.len);
}

static char path[64];

static void write_file(const ft_buf *bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (bytes->len)
        assert_int_equal(fwrite(bytes->data, 1, bytes->len, f), bytes->len);
    assert_int_equal(fclose(f), 0);
}

static void compare_all(const ft_buf *input, bool ids)
{
    static const uint64_t block_bytes[] = {1, 13, 100, 3000, 0};
    static const uint32_t threads[] = {1, 2, 7};
    write_file(input);
    outcome one = build(path, ids, 0, 0);
    for (unsigned i = 0; i < sizeof block_bytes / sizeof *block_bytes; i++)
        for (unsigned j = 0; j < sizeof threads / sizeof *threads; j++) {
            outcome many = build(path, ids, threads[j], block_bytes[i]);
            assert_same(&one, &many);
            release(&many);
        }
    release(&one);
}

static void put(ft_buf *b, const void *data, size_t n)
{
    ft_error err = {0};
    assert_ok(ft_buf_append(b, data, n, &err), err);
}

static void put_text(ft_buf *b, const char *text)
{
    put(b, text, strlen(text));
}

/* Text as people write it: blanks, empty lines, zeros, line ends of both kinds, keys
 * more than once. */
static void put_key_text(ft_buf *b, const test_key *k, uint64_t *seed)
{
    static const char *const gaps[] = {" ", " ", " ", "\t", "   ", " \t "};
    static const char *const ends[] = {"\n",  "\n",   "\n",   "\r\n",
                                       " \n", "\n\n", "\n \n"};
    char number[16];
    for (uint32_t i = 0; i < k->n; i++) {
        snprintf(number, sizeof number, next_random(seed) % 30 ? "%u" : "%012u",
                 k->tokens[i]);
        put_text(b, i                        ? gaps[next_random(seed) % 6]
                    : next_random(seed) % 20 ? ""
                                             : " ");
        put_text(b, number);
    }
    put_text(b, ends[next_random(seed) % 7]);
}

static void put_key_binary(ft_buf *b, const test_key *k)
{
    put(b, &k->n, sizeof k->n);
    put(b, k->tokens, k->n * sizeof *k->tokens);
}

static void put_keys(ft_buf *b, const keyset *s, bool binary, uint64_t *seed)
{
    static const uint32_t zeros[2];
    b->len = 0;
    if (binary) {
        put_text(b, "FTKEYS1\n");
        put(b, zeros, sizeof zeros);
    }
    for (uint64_t i = 0; i < s->n; i++)
        for (uint64_t n = next_random(seed) % 8 ? 1 : 3; n; n--) {
            if (binary)
                put_key_binary(b, &s->keys[i]);
            else
                put_key_text(b, &s->keys[i], seed);
        }
    if (!binary && next_random(seed) % 2)
        b->len--; /* the last line need not end */
}

static keyset some_keys(uint64_t seed)
{
    static const uint32_t alphabet[] = {0, 1, 2, 9, 10, 70000, 4294967294};
    return keyset_random(seed, 200, alphabet, 3 + seed % 5, 1 + seed % 6);
}

static void test_same_as_one_by_one(void **state)
{
    ft_buf input = {0};
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t random = seed;
        keyset s = some_keys(seed);
        put_keys(&input, &s, seed % 2, &random);
        compare_all(&input, seed % 3 == 0);
        keyset_free(&s);
    }
    ft_buf_free(&input);
}

/* Change, drop or double some bytes, or cut the end. */
static void damage(ft_buf *b, uint64_t *seed)
{
    static const char bytes[] = "0 9\n\r\tx-\0\377";
    if (b->len == 0)
        return;
    const uint64_t at = next_random(seed) % b->len;
    switch (next_random(seed) % 4) {
    case 0:
        b->data[at] = (uint8_t)bytes[next_random(seed) % (sizeof bytes - 1)];
        break;
    case 1:
        memmove(b->data + at, b->data + at + 1, b->len - at - 1);
        b->len--;
        break;
    case 2:
        put(b, "", 1);
        memmove(b->data + at + 1, b->data + at, b->len - at - 1);
        break;
    default:
        b->len = at;
    }
}

static void test_same_messages(void **state)
{
    ft_buf input = {0};
    unsigned n_failed = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t random = seed * 77;
        keyset s = some_keys(seed);
        put_keys(&input, &s, seed % 2, &random);
        damage(&input, &random);
        compare_all(&input, false);
        outcome o = build(path, false, 2, 50);
        n_failed += o.err.status != FT_OK;
        release(&o);
        keyset_free(&s);
    }
    assert_true(n_failed > 30);
    ft_buf_free(&input);
}

/* A damaged frame: keys before it are read, and wrong ones go first. */
static void test_zstd(void **state)
{
    ft_buf input = {0}, frame = {0};
    ft_error err = {0};
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t random = seed;
        keyset s = some_keys(seed);
        put_keys(&input, &s, seed % 2, &random);
        frame.len = 0;
        assert_ok(ft_buf_reserve(&frame, ZSTD_compressBound(input.len), &err), err);
        frame.len = ZSTD_compress(frame.data, frame.cap, input.data, input.len, 1);
        if (seed > 2)
            damage(&frame, &random);
        compare_all(&frame, false);
        keyset_free(&s);
    }
    ft_buf_free(&input);
    ft_buf_free(&frame);
}

/* A line that no block holds, between and behind others: good, or with a mistake. */
static void test_endless_line(void **state)
{
    static const char *const ends[] = {"7\n8\n", "7\n7\n\n8 8\n8 9", "7 x\n", "2\n",
                                       ""};
    ft_buf input = {0};
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        input.len = 0;
        put_text(&input, "1\n1\n\n3 4\n");
        for (unsigned j = 0; j < (3 << 20) / 8; j++)
            put_text(&input, "        ");
        put_text(&input, ends[i]);
        compare_all(&input, true);
    }
    ft_buf_free(&input);
}

static void test_nothing(void **state)
{
    static const char *const texts[] = {"",  "\n", "\n\n\n\n",
                                        " ", "1",  "\r\n1\r\n\r\n"};
    ft_buf input = {0};
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        input.len = 0;
        put_text(&input, texts[i]);
        compare_all(&input, true);
    }
    input.len = 0;
    put(&input, "FTKEYS1\n\0\0\0\0\0\0\0\0", 16);
    compare_all(&input, true);
    ft_buf_free(&input);
}

/* Keys as long as they get, and more levels than a thread keeps memory for. */
static void test_long_keys(void **state)
{
    static uint32_t tokens[65535];
    ft_buf input = {0};
    keyset s = {0};
    uint64_t seed = 1;
    (void)state;
    for (uint32_t i = 0; i < 65535; i++)
        tokens[i] = i * 3;
    for (uint32_t n = 65535; n > 65520; n--)
        keyset_add(&s, tokens, n);
    tokens[30000]++;
    keyset_add(&s, tokens, 65535);
    keyset_settle(&s);
    put_keys(&input, &s, true, &seed);
    write_file(&input);
    outcome one = build(path, true, 0, 0), many = build(path, true, 3, 300000);
    assert_ok(one.err.status, one.err);
    assert_same(&one, &many);
    release(&one);
    release(&many);
    keyset_free(&s);
    ft_buf_free(&input);
}

/* An input that is slow is read as it comes: a key that is wrong is seen before more
 * arrives. */
static void test_slow_input(void **state)
{
    int ends[2];
    char name[32];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    send_bytes(ends[1], "2\n1\n3 3 3\n", 10);
    outcome o = build(name, false, 2, 0); /* the pipe stays open */
    assert_int_equal(o.err.status, FT_EORDER);
    assert_message(o.err, "line 2: key out of order: '1' after '2'");
    close(ends[0]);
    close(ends[1]);
    release(&o);
}

static void count_ticks(void *arg, const ft_keys *keys)
{
    ft_keys_counts *last = arg;
    const ft_keys_counts now = ft_keys_counts_of(keys);
    assert_true(now.n_read >= last->n_read && now.input_bytes >= last->input_bytes);
    *last = now;
}

static void test_ticks(void **state)
{
    ft_buf input = {0};
    ft_error err = {0};
    ft_keys_counts last = {0};
    const ft_build_tick tick = {count_ticks, &last};
    const char *paths[] = {path};
    ft_keys *keys;
    ft_builder *b;
    (void)state;
    for (unsigned i = 1000; i < 9000; i++) {
        char line[16];
        snprintf(line, sizeof line, "%u\n", i);
        put_text(&input, line);
    }
    write_file(&input);
    const ft_build_options options = {.n_threads = 2, .block_bytes = 500};
    const ft_keys_options keys_options = {.paths = paths, .n_paths = 1};
    assert_ok(ft_builder_open(&b, &options, &err), err);
    assert_ok(ft_keys_open(&keys, &keys_options, &err), err);
    assert_ok(ft_builder_add_keys(b, keys, &tick, &err), err);
    assert_int_equal(last.n_read, 8000);
    assert_int_equal(last.input_bytes, input.len);
    ft_keys_close(keys);
    ft_builder_close(b);
    ft_buf_free(&input);
}

static int make_path(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_parbuild.XXXXXX");
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_one_by_one),
        cmocka_unit_test(test_same_messages),
        cmocka_unit_test(test_zstd),
        cmocka_unit_test(test_endless_line),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_long_keys),
        cmocka_unit_test(test_slow_input),
        cmocka_unit_test(test_ticks),
    };
    alarm(TEST_SECONDS);
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
