/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte streams: sources (files, pipes, memory, zstd) and sinks (direct, atomic,
 * memory).
 */
#include "io_util.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <zstd.h>

static char folder[] = "/tmp/flashtrie-test-stream-XXXXXX";
static char path_text[4096];

static const char *path_of(const char *name)
{
    snprintf(path_text, sizeof path_text, "%s/%s", folder, name);
    return path_text;
}

static void write_file(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

/* Bytes that zstd can compress, but not to nothing. */
static uint8_t *some_bytes(size_t n)
{
    uint8_t *p = malloc(n);
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (uint8_t)(x >> 24 & 15);
    }
    return p;
}

static size_t compress_to(uint8_t *to, size_t cap, const void *data, size_t bytes)
{
    const size_t n = ZSTD_compress(to, cap, data, bytes, 3);
    assert_false(ZSTD_isError(n));
    return n;
}

static void peek_skip_read(void **state)
{
    (void)state;
    ft_error err = {0};
    const uint8_t *data;
    size_t n;
    char text[8];
    ft_stream *s = stream_of("hello world", 11, "greeting");
    assert_string_equal(ft_stream_name(s), "greeting");
    assert_true(ft_stream_ready(s));
    assert_ok(ft_stream_peek(s, 5, &data, &n, &err), err);
    assert_int_equal(n, 11);
    assert_memory_equal(data, "hello", 5);
    ft_stream_skip(s, 6);
    assert_int_equal(ft_stream_offset(s), 6);
    assert_ok(ft_stream_read(s, text, 3, &n, &err), err);
    assert_int_equal(n, 3);
    assert_memory_equal(text, "wor", 3);
    /* An absurd want costs nothing: it is answered with what is there. */
    assert_ok(ft_stream_peek(s, SIZE_MAX, &data, &n, &err), err);
    assert_int_equal(n, 2);
    assert_ok(ft_stream_read(s, text, 8, &n, &err), err);
    assert_int_equal(n, 2);
    assert_ok(ft_stream_peek(s, 1, &data, &n, &err), err);
    assert_int_equal(n, 0);
    assert_int_equal(ft_stream_offset(s), 11);
    assert_true(ft_stream_ready(s));
    ft_stream_close(s);
    ft_stream_close(NULL);
}

static void assert_reads(ft_stream *s, const uint8_t *want, size_t bytes, size_t step)
{
    ft_error err = {0};
    uint8_t *got = malloc(step);
    size_t at = 0, n;
    do {
        assert_ok(ft_stream_read(s, got, step, &n, &err), err);
        assert_true(n <= bytes - at);
        assert_memory_equal(got, want + at, n);
        at += n;
    } while (n);
    assert_int_equal(at, bytes);
    assert_int_equal(ft_stream_offset(s), bytes);
    free(got);
    ft_stream_close(s);
}

/* Plain and compressed, file and memory, short and long reads. */
static void large_inputs(void **state)
{
    (void)state;
    enum { BYTES = 5000011 };
    static const size_t steps[] = {1 << 22, 1 << 20, 65537, 999};
    ft_error err = {0};
    ft_stream *s;
    uint8_t *bytes = some_bytes(BYTES), *packed = malloc(ZSTD_compressBound(BYTES));
    const size_t n = compress_to(packed, ZSTD_compressBound(BYTES), bytes, BYTES);
    write_file("plain", bytes, BYTES);
    write_file("packed", packed, n);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_ok(ft_stream_open(&s, path_of("plain"), &err), err);
        assert_reads(s, bytes, BYTES, steps[i]);
        assert_ok(ft_stream_open(&s, path_of("packed"), &err), err);
        assert_reads(s, bytes, BYTES, steps[i]);
        assert_reads(stream_of(bytes, BYTES, "m"), bytes, BYTES, steps[i]);
        assert_reads(stream_of(packed, n, "m"), bytes, BYTES, steps[i]);
    }
    /* A peek wider than the buffer. */
    const uint8_t *data;
    size_t avail;
    assert_ok(ft_stream_open(&s, path_of("packed"), &err), err);
    assert_ok(ft_stream_peek(s, 10, &data, &avail, &err), err);
    ft_stream_skip(s, 7);
    assert_ok(ft_stream_peek(s, 3000000, &data, &avail, &err), err);
    assert_true(avail >= 3000000);
    assert_memory_equal(data, bytes + 7, avail);
    ft_stream_skip(s, avail);
    assert_int_equal(ft_stream_offset(s), avail + 7);
    ft_stream_close(s);
    free(bytes);
    free(packed);
}

/* Several frames, empty and skippable ones among them, are one stream. */
static void zstd_frames(void **state)
{
    (void)state;
    static const uint8_t skippable[] = {0x5A, 0x2A, 0x4D, 0x18, 3,  0,
                                        0,    0,    'x',  'y',  'z'};
    uint8_t all[1024], want[] = "onetwothree";
    size_t n = 0;
    memcpy(all, skippable, sizeof skippable);
    n += sizeof skippable;
    n += compress_to(all + n, 300, "one", 3);
    n += compress_to(all + n, 300, "", 0);
    n += compress_to(all + n, 300, "twothree", 8);
    memcpy(all + n, skippable, sizeof skippable);
    n += sizeof skippable;
    assert_reads(stream_of(all, n, "frames"), want, 11, 4);
    write_file("frames", all, n);
    ft_error err = {0};
    ft_stream *s;
    assert_ok(ft_stream_open(&s, path_of("frames"), &err), err);
    assert_reads(s, want, 11, 1 << 21);
}

static ft_status read_all(const uint8_t *data, size_t bytes, ft_error *err)
{
    ft_stream *s = stream_of(data, bytes, "x.zst");
    uint8_t sink[64];
    size_t n = 1;
    ft_status st = FT_OK;
    while (st == FT_OK && n)
        st = ft_stream_read(s, sink, sizeof sink, &n, err);
    if (st != FT_OK) { /* it goes on failing */
        ft_error again = {0};
        assert_int_equal(ft_stream_read(s, sink, sizeof sink, &n, &again), st);
        assert_string_equal(again.message, err->message);
        assert_true(ft_stream_ready(s));
    }
    ft_stream_close(s);
    return st;
}

static void r19_zstd_cut_anywhere(void **state)
{
    (void)state;
    uint8_t *bytes = some_bytes(1000), packed[2000];
    const size_t first = compress_to(packed, 1000, bytes, 500);
    const size_t n = first + compress_to(packed + first, 1000, bytes + 500, 500);
    ft_error err = {0};
    assert_ok(read_all(packed, n, &err), err);
    for (size_t cut = 4; cut < n; cut++) { /* shorter: not yet known as zstd */
        if (cut == first)
            continue;
        assert_int_equal(read_all(packed, cut, &err), FT_EFORMAT);
        const bool in_magic = cut > first && cut < first + 4;
        assert_message(err, in_magic ? "x.zst: garbage after a zstd frame"
                                     : "x.zst: zstd frame cut short");
    }
    packed[n / 2] ^= 0x10;
    packed[n] = 'G';
    assert_int_equal(read_all(packed, n, &err), FT_EFORMAT);
    packed[n / 2] ^= 0x10;
    assert_int_equal(read_all(packed, n + 1, &err), FT_EFORMAT);
    char place[64];
    snprintf(place, sizeof place, "garbage after a zstd frame, at compressed byte %zu",
             n);
    assert_message(err, place);
    free(bytes);
}

/* A frame that claims a 2 GiB window is refused with the way out. */
static void zstd_window(void **state)
{
    (void)state;
    static const uint8_t wide[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 21 << 3, 1, 0, 0};
    ft_error err = {0};
    assert_int_equal(read_all(wide, sizeof wide, &err), FT_EFORMAT);
    assert_message(err, "x.zst: zstd window over 128 MiB");
    assert_message(err, "zstd -d --long=31");
}

static void open_failures(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_stream *s = NULL;
    uint8_t byte;
    size_t n;
    assert_int_equal(ft_stream_open(&s, "/nonexistent/x", &err), FT_EIO);
    assert_message(err, "/nonexistent/x: cannot open: No such file");
    assert_null(s);
    assert_ok(ft_stream_open(&s, folder, &err), err);
    assert_int_equal(ft_stream_read(s, &byte, 1, &n, &err), FT_EIO);
    assert_message(err, ": cannot read: Is a directory");
    ft_stream_close(s);
}

static void standard_input(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_stream *s;
    const int saved = dup(STDIN_FILENO);
    write_file("in", "typed", 5);
    for (int i = 0; i < 2; i++) {
        const int fd = open(path_of("in"), O_RDONLY);
        assert_true(fd >= 0);
        dup2(fd, STDIN_FILENO);
        close(fd);
        assert_ok(ft_stream_open(&s, i ? "-" : NULL, &err), err);
        assert_string_equal(ft_stream_name(s), "(standard input)");
        assert_reads(s, (const uint8_t *)"typed", 5, 10);
        assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* stays open */
    }
    dup2(saved, STDIN_FILENO);
    close(saved);
}

/* What has arrived can be had without waiting for more, and ready() says when not. */
static void ready_on_a_pipe(void **state)
{
    (void)state;
    ft_error err = {0};
    const uint8_t *data;
    size_t n;
    int ends[2];
    ft_stream *s = stream_of_pipe(ends);
    assert_false(ft_stream_ready(s));
    send_bytes(ends[1], "1", 1);
    assert_true(ft_stream_ready(s));
    assert_ok(ft_stream_peek(s, 1, &data, &n, &err), err);
    assert_int_equal(n, 1);
    ft_stream_skip(s, 1);
    assert_false(ft_stream_ready(s));
    send_bytes(ends[1], "(", 1); /* as zstd's magic starts, but not at the start */
    assert_true(ft_stream_ready(s));
    ft_stream_skip(s, 1);
    assert_false(ft_stream_ready(s));
    close(ends[1]);
    assert_true(ft_stream_ready(s));
    assert_ok(ft_stream_peek(s, 1, &data, &n, &err), err);
    assert_int_equal(n, 0);
    ft_stream_close(s);
}

/* Compressed bytes that give no byte of input yet: reading would wait. */
static void ready_on_a_zstd_pipe(void **state)
{
    (void)state;
    ft_error err = {0};
    uint8_t packed[200];
    char text[4];
    size_t n, got, at = 0, n_waits = 0;
    int ends[2];
    n = compress_to(packed, sizeof packed, "1234", 4);
    ft_stream *s = stream_of_pipe(ends);
    for (size_t i = 0; i < n; i++) {
        send_bytes(ends[1], packed + i, 1);
        for (; ft_stream_ready(s); at++) {
            assert_ok(ft_stream_read(s, text + at, 1, &got, &err), err);
            assert_int_equal(got, 1);
        }
        n_waits += at < 4;
    }
    assert_true(n_waits >= 5); /* magic and frame header at least */
    assert_int_equal(at, 4);
    assert_memory_equal(text, "1234", 4);
    assert_false(ft_stream_ready(s));
    close(ends[1]);
    assert_true(ft_stream_ready(s));
    assert_ok(ft_stream_read(s, text, 1, &got, &err), err);
    assert_int_equal(got, 0);
    ft_stream_close(s);
}

static void nonblocking_input(void **state)
{
    (void)state;
    ft_error err = {0};
    char text[4];
    size_t got;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    const int saved = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    const pid_t child = fork();
    if (child == 0) {
        usleep(50000);
        send_bytes(ends[1], "late", 4);
        _exit(0);
    }
    ft_stream *s;
    assert_ok(ft_stream_open(&s, NULL, &err), err);
    assert_ok(ft_stream_read(s, text, 4, &got, &err), err);
    assert_int_equal(got, 4);
    ft_stream_close(s);
    waitpid(child, NULL, 0);
    close(ends[1]);
    dup2(saved, STDIN_FILENO);
    close(saved);
}

static int set_up(void **state)
{
    (void)state;
    alarm(TEST_SECONDS);
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", "packed", "frames", "in"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    return rmdir(folder); /* fails if anything was left behind */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peek_skip_read),       cmocka_unit_test(large_inputs),
        cmocka_unit_test(zstd_frames),          cmocka_unit_test(r19_zstd_cut_anywhere),
        cmocka_unit_test(zstd_window),          cmocka_unit_test(open_failures),
        cmocka_unit_test(standard_input),       cmocka_unit_test(ready_on_a_pipe),
        cmocka_unit_test(ready_on_a_zstd_pipe), cmocka_unit_test(nonblocking_input),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
