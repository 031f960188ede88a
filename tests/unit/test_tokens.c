/* SPDX-License-Identifier: Apache-2.0
 *
 * Token sequences: text and binary in, out, and what is wrong with them.
 */
#include "io_util.h"

#include <malloc.h>

#include "io/tokens.h"

static ft_tokens *open_tokens(const void *data, size_t bytes)
{
    ft_error err = {0};
    ft_tokens *r = NULL;
    assert_ok(ft_tokens_open(&r, stream_of(data, bytes, "keys"), &err), err);
    return r;
}

static void assert_key(ft_tokens *r, uint32_t n_want, const uint32_t *want)
{
    ft_error err = {0};
    const uint32_t *tokens;
    uint32_t n;
    assert_ok(ft_tokens_next(r, &tokens, &n, &err), err);
    assert_int_equal(n, n_want);
    if (n)
        assert_memory_equal(tokens, want, n * sizeof *want);
    if (n)
        assert_int_equal((uintptr_t)tokens % sizeof *tokens, 0);
}

#define KEY(...)                                                                       \
    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (const uint32_t[])     \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define END 0, NULL

/* Read to the first error, which must be one; its message is checked. */
static void assert_bad(const void *data, size_t bytes, const char *message)
{
    ft_error err = {0}, again = {0};
    ft_tokens *r = NULL;
    const uint32_t *tokens;
    uint32_t n = 1;
    ft_status st = ft_tokens_open(&r, stream_of(data, bytes, "keys"), &err);
    while (st == FT_OK && n)
        st = ft_tokens_next(r, &tokens, &n, &err);
    assert_int_equal(st, FT_EFORMAT);
    assert_int_equal(err.status, FT_EFORMAT);
    if (message)
        assert_string_equal(err.message, message);
    if (r) { /* it goes on failing */
        assert_int_equal(ft_tokens_next(r, &tokens, &n, &again), FT_EFORMAT);
        assert_string_equal(again.message, err.message);
    }
    ft_tokens_close(r);
}

static void assert_bad_text(const char *text, const char *message)
{
    char want[512];
    snprintf(want, sizeof want, "keys: line %s", message);
    assert_bad(text, strlen(text), want);
    /* The same with well-formed lines around it, enough for the fast parser. */
    char *longer = malloc(strlen(text) + 4000);
    size_t n = 0;
    for (int i = 0; i < 100; i++)
        n += (size_t)sprintf(longer + n, "%d 2\n", i + 10);
    n += (size_t)sprintf(longer + n, "%s", text);
    sprintf(longer + n, "\n123456 1\n123456 2\n");
    snprintf(want, sizeof want, "keys: line %d%s", atoi(message) + 100,
             strchr(message, ','));
    assert_bad(longer, strlen(longer), want);
    free(longer);
}

static void text_golden(void **state)
{
    (void)state;
    static const char text[] = "1 2 3\n"
                               "\n"
                               "  10\t 20  \r\n"
                               " \t \n"
                               "\r\n"
                               "0\n"
                               "007 00000000000000000000000000012\n"
                               "4294967294 99999999 100000000 1234567890\n"
                               "54999 55000 65535 65536 2097152 4194304";
    ft_tokens *r = open_tokens(text, sizeof text - 1);
    assert_false(ft_tokens_is_binary(r));
    assert_string_equal(ft_tokens_name(r), "keys");
    assert_key(r, KEY(1, 2, 3));
    assert_int_equal(ft_tokens_place(r), 1);
    assert_key(r, KEY(10, 20));
    assert_int_equal(ft_tokens_place(r), 3);
    assert_int_equal(ft_tokens_n_skipped(r), 1);
    assert_key(r, KEY(0));
    assert_int_equal(ft_tokens_n_skipped(r), 3);
    assert_key(r, KEY(7, 12));
    assert_key(r, KEY(4294967294u, 99999999, 100000000, 1234567890));
    assert_key(r, KEY(54999, 55000, 65535, 65536, 2097152, 4194304)); /* R24 */
    assert_int_equal(ft_tokens_place(r), 9);
    assert_key(r, END);
    assert_key(r, END);
    ft_tokens_close(r);
    ft_tokens_close(NULL);
}

static void text_empty(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "\n\n \r\n", "   "};
    static const int n_skipped[] = {0, 1, 3, 1};
    for (int i = 0; i < 4; i++) {
        ft_tokens *r = open_tokens(texts[i], strlen(texts[i]));
        assert_key(r, END);
        assert_int_equal(ft_tokens_n_skipped(r), n_skipped[i]);
        ft_tokens_close(r);
    }
}

static void text_errors(void **state)
{
    (void)state;
    static const char range[] = "token out of range (0 to 4294967294)";
    static const char none[] = "4294967295 means \"no token\" and cannot be in a key";
    char want[200];
    assert_bad_text("1 x", "1, column 3: unexpected 'x': a key is decimal tokens");
    assert_bad_text("5\n1 2 -3",
                    "2, column 5: unexpected '-': a key is decimal tokens");
    assert_bad_text("+1", "1, column 1: unexpected '+': a key is decimal tokens");
    assert_bad_text("12345678x",
                    "1, column 9: unexpected 'x': a key is decimal tokens");
    assert_bad_text("1\v2",
                    "1, column 2: unexpected byte 0x0B: a key is decimal tokens");
    assert_bad_text("1,2", "1, column 2: unexpected ',': a key is decimal tokens");
    assert_bad_text("\xC2\xB2",
                    "1, column 1: unexpected byte 0xC2: a key is decimal tokens");
    assert_bad_text("1 2\r3",
                    "1, column 4: unexpected byte 0x0D: a key is decimal tokens");
    assert_bad_text("1 \r \n",
                    "1, column 3: unexpected byte 0x0D: a key is decimal tokens");
    assert_bad_text("1\r\r\n",
                    "1, column 2: unexpected byte 0x0D: a key is decimal tokens");
    assert_bad("1\r", 2,
               "keys: line 1, column 2: unexpected byte 0x0D: a key is decimal tokens");
    assert_bad("1\0002\n", 4,
               "keys: line 1, column 2: unexpected byte 0x00: a key is decimal tokens");
    snprintf(want, sizeof want, "2, column 3: %s", none);
    assert_bad_text("1\n2 4294967295", want);
    snprintf(want, sizeof want, "1, column 3: %s", range);
    assert_bad_text("2 4294967296", want);
    assert_bad_text("2 99999999999999999999999999999999", want);
    assert_bad_text("2 00000000000018446744073709551617", want); /* 1, modulo 2^64 */
    assert_bad_text("2 18446744073709551617 x", want);
}

/* The longest key, and one token more; keys whose line crosses every border. */
static void text_long_keys(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_buf b = {0};
    uint32_t *key = malloc((FT_MAX_KEY_TOKENS + 1) * sizeof *key);
    for (uint32_t i = 0; i <= FT_MAX_KEY_TOKENS; i++)
        key[i] = FT_NO_TOKEN - 1 - i;
    ft_sink *s = sink_into(&b);
    for (int i = 0; i < 3; i++)
        assert_ok(ft_tokens_write_text(s, key, FT_MAX_KEY_TOKENS, &err), err);
    assert_int_equal(b.len, 3 * 720885);
    ft_tokens *r = open_tokens(b.data, b.len);
    for (int i = 0; i < 3; i++)
        assert_key(r, FT_MAX_KEY_TOKENS, key);
    assert_key(r, END);
    ft_tokens_close(r);
    assert_ok(ft_tokens_write_text(s, key, FT_MAX_KEY_TOKENS + 1, &err), err);
    assert_bad(b.data, b.len,
               "keys: line 4, column 720886: key of more than 65535 tokens");
    close_sink(s);
    ft_buf_free(&b);
    free(key);
}

/* Megabytes of blanks between two tokens: one key, and no memory for the line. From a
 * file, since memory is its own window. */
static void text_long_line(void **state)
{
    (void)state;
    enum { BLANKS = 9 << 20 };
    static char path[] = "/tmp/flashtrie-test-tokens-XXXXXX";
    ft_error err = {0};
    const int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    for (int i = 0; i < 2; i++) {
        fputs("17", f);
        for (int j = 0; j < BLANKS; j++)
            fputc(j % 2 ? ' ' : '\t', f);
        fputs(i ? "18 x\n" : "18\r\n\n5\n", f);
    }
    fclose(f);
    ft_stream *s;
    ft_tokens *r = NULL;
    const struct mallinfo2 before = mallinfo2(); /* all zero under a sanitizer */
    assert_ok(ft_stream_open(&s, path, &err), err);
    assert_ok(ft_tokens_open(&r, s, &err), err);
    assert_key(r, KEY(17, 18));
    const struct mallinfo2 after = mallinfo2();
    assert_true(after.uordblks + after.hblkhd <
                before.uordblks + before.hblkhd + BLANKS / 2);
    assert_key(r, KEY(5));
    assert_int_equal(ft_tokens_place(r), 3);
    const uint32_t *tokens;
    uint32_t n;
    char want[64];
    assert_int_equal(ft_tokens_next(r, &tokens, &n, &err), FT_EFORMAT);
    snprintf(want, sizeof want, ": line 4, column %d: unexpected 'x'",
             2 + BLANKS + 3 + 1);
    assert_message(err, want);
    ft_tokens_close(r);
    unlink(path);
}

/* Many lines over many windows of a file: every border falls somewhere else. */
static void text_many_lines(void **state)
{
    (void)state;
    enum { LINES = 400000 };
    static char path[] = "/tmp/flashtrie-test-tokens-XXXXXX";
    ft_error err = {0};
    FILE *f = fdopen(mkstemp(path), "w");
    for (uint32_t i = 0; i < LINES; i++)
        fprintf(f, "%u %u%s%u\n", i, i * 2654435761u % FT_NO_TOKEN,
                i % 7 ? " " : "  \t", i % 10);
    fclose(f);
    ft_stream *s;
    ft_tokens *r;
    assert_ok(ft_stream_open(&s, path, &err), err);
    assert_ok(ft_tokens_open(&r, s, &err), err);
    for (uint32_t i = 0; i < LINES; i++) {
        assert_key(r, KEY(i, i * 2654435761u % FT_NO_TOKEN, i % 10));
        assert_int_equal(ft_tokens_place(r), i + 1);
    }
    assert_key(r, END);
    ft_tokens_close(r);
    unlink(path);
}

/* A line is there as soon as it has been typed. */
static void text_interactive(void **state)
{
    (void)state;
    ft_error err = {0};
    int ends[2];
    ft_tokens *r;
    ft_stream *s = stream_of_pipe(ends);
    send_bytes(ends[1], "5\n6", 3);
    assert_ok(ft_tokens_open(&r, s, &err), err);
    assert_key(r, KEY(5));
    send_bytes(ends[1], "7\n", 2);
    assert_key(r, KEY(67));
    close(ends[1]);
    assert_key(r, END);
    ft_tokens_close(r);
}

static const uint8_t binary[] = {
    'F', 'T', 'K', 'E', 'Y', 'S', '1', '\n', 0, 0, 0, 0, 0, 0, 0, 0, /* header */
    1,   0,   0,   0,   7,   0,   0,   0,                            /* {7} */
    2,   0,   0,   0,   7,   0,   0,   0,    0, 0, 1, 0,             /* {7 65536} */
    1,   0,   0,   0,   254, 255, 255, 255,                          /* {4294967294} */
};

static void binary_golden(void **state)
{
    (void)state;
    uint8_t shifted[sizeof binary + 1]; /* at an odd address */
    memcpy(shifted + 1, binary, sizeof binary);
    for (int i = 0; i < 2; i++) {
        ft_tokens *r = open_tokens(i ? shifted + 1 : binary, sizeof binary);
        assert_true(ft_tokens_is_binary(r));
        assert_key(r, KEY(7));
        assert_int_equal(ft_tokens_place(r), 0);
        assert_key(r, KEY(7, 65536));
        assert_key(r, KEY(4294967294u));
        assert_int_equal(ft_tokens_place(r), 2);
        assert_key(r, END);
        ft_tokens_close(r);
    }
}

static void binary_write(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_buf b = {0};
    ft_sink *s = sink_into(&b);
    assert_ok(ft_tokens_write_binary_header(s, &err), err);
    assert_ok(ft_tokens_write_binary(s, (const uint32_t[]){7}, 1, &err), err);
    assert_ok(ft_tokens_write_binary(s, (const uint32_t[]){7, 65536}, 2, &err), err);
    assert_ok(ft_tokens_write_binary(s, (const uint32_t[]){4294967294u}, 1, &err), err);
    close_sink(s);
    assert_int_equal(b.len, sizeof binary);
    assert_memory_equal(b.data, binary, sizeof binary);
    ft_buf_free(&b);
}

static void r19_binary_cut_anywhere(void **state)
{
    (void)state;
    static const size_t borders[] = {16, 24, 36, 44}; /* of the header and records */
    for (size_t cut = 1; cut < sizeof binary; cut++) {
        bool border = false;
        for (int i = 0; i < 4; i++)
            border |= cut == borders[i];
        if (!border)
            assert_bad(binary, cut, NULL);
    }
    assert_bad(binary, 15, "keys: header cut short (15 of 16 bytes)");
    assert_bad(binary, 26, "keys: record 1: cut short (2 of 4 bytes)");
    assert_bad(binary, 35, "keys: record 1: cut short (11 of 12 bytes)");
    assert_bad(binary, 5,
               "keys: line 1, column 1: unexpected 'F': a key is decimal "
               "tokens");
}

static void assert_bad_binary(size_t at, uint32_t value, const char *message)
{
    uint8_t bytes[sizeof binary];
    memcpy(bytes, binary, sizeof binary);
    put_u32(bytes + at, value);
    assert_bad(bytes, sizeof bytes, message);
}

static void r14_binary_errors(void **state)
{
    (void)state;
    assert_bad_binary(8, 1,
                      "keys: header: flags 0x1, reserved 0x0: known here is only 0");
    assert_bad_binary(12, 256,
                      "keys: header: flags 0x0, reserved 0x100: known here is only 0");
    assert_bad_binary(24, 0, "keys: record 1: key of 0 tokens (1 to 65535)");
    assert_bad_binary(24, 65536, "keys: record 1: key of 65536 tokens (1 to 65535)");
    assert_bad_binary(24, UINT32_MAX,
                      "keys: record 1: key of 4294967295 tokens (1 to 65535)");
    assert_bad_binary(24, 65535, "keys: record 1: cut short (20 of 262144 bytes)");
    assert_bad_binary(32, FT_NO_TOKEN,
                      "keys: record 1: token 1 is 4294967295, which means \"no token\" "
                      "and cannot be in a key");
}

static void r19_other_kinds(void **state)
{
    (void)state;
    uint8_t bytes[64] = "FTGRID1\n";
    assert_bad(bytes, 64, "keys: is a proposal grid, ft-grid(5), not token sequences");
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    assert_bad(bytes, 64, "keys: is a NumPy array, not token sequences");
}

/* Records of every length, over many windows of a file. */
static void binary_through_windows(void **state)
{
    (void)state;
    static char path[] = "/tmp/flashtrie-test-tokens-XXXXXX";
    ft_error err = {0};
    ft_sink *out;
    uint32_t key[3000];
    close(mkstemp(path));
    assert_ok(ft_sink_open(&out, path, &err), err);
    assert_ok(ft_tokens_write_binary_header(out, &err), err);
    for (uint32_t i = 0; i < 3000; i++) {
        key[i] = i * i;
        assert_ok(ft_tokens_write_binary(out, key, i + 1, &err), err);
    }
    close_sink(out);
    ft_stream *s;
    ft_tokens *r;
    assert_ok(ft_stream_open(&s, path, &err), err);
    assert_ok(ft_tokens_open(&r, s, &err), err);
    for (uint32_t i = 0; i < 3000; i++)
        assert_key(r, i + 1, key);
    assert_key(r, END);
    ft_tokens_close(r);
    unlink(path);
}

static void single_tokens(void **state)
{
    (void)state;
    static const char text[] = "42 4294967294,4294967295x007";
    const char *p = text, *const end = text + sizeof text - 1;
    uint32_t token = 1;
    assert_true(ft_token_parse(&p, end, &token));
    assert_int_equal(token, 42);
    assert_ptr_equal(p, text + 2);
    assert_false(ft_token_parse(&p, end, &token)); /* a blank */
    assert_int_equal(token, 42);
    assert_ptr_equal(p, text + 2);
    p++;
    assert_true(ft_token_parse(&p, end, &token));
    assert_int_equal(token, 4294967294u);
    p++;
    assert_false(ft_token_parse(&p, end, &token)); /* no token */
    assert_ptr_equal(p, text + 14);
    p = end - 3;
    assert_true(ft_token_parse(&p, end, &token));
    assert_int_equal(token, 7);
    assert_false(ft_token_parse(&p, end, &token)); /* the end */
    p = text;
    assert_true(ft_token_parse(&p, text + 1, &token));
    assert_int_equal(token, 4);
}

static int set_up(void **state)
{
    (void)state;
    alarm(TEST_SECONDS);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_golden),
        cmocka_unit_test(text_empty),
        cmocka_unit_test(text_errors),
        cmocka_unit_test(text_long_keys),
        cmocka_unit_test(text_long_line),
        cmocka_unit_test(text_many_lines),
        cmocka_unit_test(text_interactive),
        cmocka_unit_test(binary_golden),
        cmocka_unit_test(binary_write),
        cmocka_unit_test(r19_binary_cut_anywhere),
        cmocka_unit_test(r14_binary_errors),
        cmocka_unit_test(r19_other_kinds),
        cmocka_unit_test(binary_through_windows),
        cmocka_unit_test(single_tokens),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
