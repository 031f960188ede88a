/* SPDX-License-Identifier: Apache-2.0
 *
 * Proposal grids, own format, in and out.
 */
#include "io_util.h"

#include <math.h>
#include <sys/wait.h>

#include "io/grid.h"

/* T = 2, K = 3, ids, vocabulary of 100, two queries: by hand, see ft-grid(5). */
enum { QUERY_BYTES = 8 + 24 + 24, GRID_BYTES = 64 + 2 * QUERY_BYTES };
static const uint32_t golden_tokens[12] = {5, 6, FT_NO_TOKEN, 7, 0, 99,
                                           1, 2, 3,           4, 5, 6};
static const float golden_logp[12] = {-0.5f, -1,  -2, -3.25f, -INFINITY, 0,
                                      1,     -10, -7, -8,     -9,        -100};

static void golden_grid(uint8_t g[GRID_BYTES])
{
    memset(g, 0, GRID_BYTES);
    memcpy(g, "FTGRID1\n", 8);
    put_u32(g + 8, 2);
    put_u32(g + 12, 3);
    put_u32(g + 16, 1);
    put_u32(g + 20, 100);
    put_u64(g + 24, 2);
    for (int q = 0; q < 2; q++) {
        uint8_t *p = g + 64 + q * QUERY_BYTES;
        put_u64(p, q ? UINT64_MAX : 1234567890123);
        for (int i = 0; i < 6; i++) {
            put_u32(p + 8 + 4 * i, golden_tokens[6 * q + i]);
            put_f32(p + 32 + 4 * i, golden_logp[6 * q + i]);
        }
    }
}

static ft_grid *open_grid(const void *data, size_t bytes)
{
    ft_error err = {0};
    ft_grid *g = NULL;
    assert_ok(ft_grid_open(&g, stream_of(data, bytes, "g.ftg"), &err), err);
    return g;
}

static void assert_golden_batch(const ft_batch *b)
{
    assert_int_equal(b->n_steps, 2);
    assert_int_equal(b->n_proposals, 3);
    assert_int_equal(b->n_queries, 2);
    assert_memory_equal(b->tokens, golden_tokens, sizeof golden_tokens);
    assert_memory_equal(b->logp, golden_logp, sizeof golden_logp);
}

static void golden(void **state)
{
    (void)state;
    uint8_t bytes[GRID_BYTES];
    ft_error err = {0};
    ft_batch b = {0};
    golden_grid(bytes);
    ft_grid *g = open_grid(bytes, sizeof bytes);
    const ft_grid_shape *shape = ft_grid_shape_of(g);
    assert_int_equal(shape->n_steps, 2);
    assert_int_equal(shape->n_proposals, 3);
    assert_int_equal(shape->vocab, 100);
    assert_int_equal(shape->n_queries, 2);
    assert_true(shape->has_ids);
    assert_false(shape->half);
    assert_ok(ft_grid_read(g, &b, 10, false, 0, &err), err);
    assert_golden_batch(&b);
    assert_int_equal(b.ids[0], 1234567890123);
    assert_int_equal(b.ids[1], UINT64_MAX);
    for (int i = 0; i < 2; i++) {
        assert_ok(ft_grid_read(g, &b, 10, false, 0, &err), err);
        assert_int_equal(b.n_queries, 0);
    }
    ft_grid_close(g);
    ft_grid_close(NULL);

    /* Written, it is the same bytes. */
    ft_buf out = {0};
    ft_sink *s = sink_into(&out);
    const ft_grid_shape same = {2, 3, 100, true, false, 2};
    assert_ok(ft_grid_write_header(s, &same, &err), err);
    assert_ok(ft_grid_write(s, &same, 1234567890123, golden_tokens, golden_logp, &err),
              err);
    assert_ok(
        ft_grid_write(s, &same, UINT64_MAX, golden_tokens + 6, golden_logp + 6, &err),
        err);
    close_sink(s);
    assert_int_equal(out.len, GRID_BYTES);
    assert_memory_equal(out.data, bytes, GRID_BYTES);
    ft_buf_free(&out);
    ft_batch_free(&b);
}

/* Batches of any size are the same queries; without ids they are numbered. */
static void batches(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_buf out = {0};
    ft_batch b = {0};
    ft_sink *s = sink_into(&out);
    const ft_grid_shape shape = {1, 2, 0, false, false, FT_GRID_UNTIL_END};
    assert_ok(ft_grid_write_header(s, &shape, &err), err);
    for (uint32_t q = 0; q < 100; q++)
        assert_ok(ft_grid_write(s, &shape, 0, (const uint32_t[]){q, 2 * q},
                                (const float[]){(float)q, -1}, &err),
                  err);
    close_sink(s);
    for (uint32_t max = 1; max < 120; max += 17) {
        ft_grid *g = open_grid(out.data, out.len);
        uint32_t q = 0;
        do {
            assert_ok(ft_grid_read(g, &b, max, false, 1000, &err), err);
            for (uint32_t i = 0; i < b.n_queries; i++, q++) {
                assert_int_equal(b.ids[i], 1000 + q);
                assert_int_equal(b.tokens[2 * i + 1], 2 * q);
                assert_true(b.logp[2 * i] == (float)q);
            }
            assert_true(b.n_queries == max || q == 100);
        } while (b.n_queries);
        assert_int_equal(q, 100);
        ft_grid_close(g);
    }
    ft_batch_free(&b);
    ft_buf_free(&out);
}

/* The status of reading it all, and the complete queries before the error. */
static ft_status read_all(const uint8_t *data, size_t bytes, uint32_t *n, ft_error *err)
{
    ft_error again = {0};
    ft_batch b = {0};
    ft_grid *g = NULL;
    ft_status st = ft_grid_open(&g, stream_of(data, bytes, "g.ftg"), err);
    *n = 0;
    if (st == FT_OK) {
        st = ft_grid_read(g, &b, 10, false, 0, err);
        *n = b.n_queries;
        for (uint64_t i = 0; i < *n * 6; i++) /* with all their values */
            assert_true(b.tokens[i] == golden_tokens[i]);
        if (st == FT_OK && b.n_queries)
            st = ft_grid_read(g, &b, 10, false, 0, err);
        if (st != FT_OK) { /* it goes on failing, with nothing more to answer */
            assert_int_equal(ft_grid_read(g, &b, 10, false, 0, &again), st);
            assert_string_equal(again.message, err->message);
            assert_int_equal(b.n_queries, 0);
        }
    }
    ft_grid_close(g);
    ft_batch_free(&b);
    return st;
}

static void r19_cut_anywhere(void **state)
{
    (void)state;
    uint8_t bytes[GRID_BYTES];
    char want[100];
    for (int known = 0; known < 2; known++) {
        golden_grid(bytes);
        if (!known)
            put_u64(bytes + 24, FT_GRID_UNTIL_END);
        for (int cut = 0; cut < GRID_BYTES; cut++) {
            ft_error err = {0};
            uint32_t n;
            const int q = cut < 64 ? 0 : (cut - 64) / QUERY_BYTES;
            const int part = cut < 64 ? cut : (cut - 64) % QUERY_BYTES;
            const ft_status st = read_all(bytes, (size_t)cut, &n, &err);
            assert_int_equal(n, q);
            if (!known && cut >= 64 && part == 0) {
                assert_ok(st, err);
                continue;
            }
            assert_int_equal(st, FT_EFORMAT);
            if (cut == 0)
                snprintf(want, sizeof want, "g.ftg: empty: not a proposal grid");
            else if (cut < 64)
                snprintf(want, sizeof want,
                         "g.ftg: grid header cut short (%d of 64 bytes)", part);
            else
                snprintf(want, sizeof want,
                         "g.ftg: query %d: grid cut short (%d of 56 bytes)", q, part);
            assert_string_equal(err.message, want);
        }
    }
}

static void trailing_bytes(void **state)
{
    (void)state;
    uint8_t bytes[GRID_BYTES + 1] = {0};
    ft_error err = {0};
    uint32_t n;
    golden_grid(bytes);
    assert_int_equal(read_all(bytes, GRID_BYTES + 1, &n, &err), FT_EFORMAT);
    assert_int_equal(n, 2);
    assert_string_equal(err.message,
                        "g.ftg: data after the last of 2 queries, at byte 176");
    put_u64(bytes + 24, 0);
    assert_int_equal(read_all(bytes, 65, &n, &err), FT_EFORMAT);
    assert_string_equal(err.message,
                        "g.ftg: data after the last of 0 queries, at byte 64");
    assert_ok(read_all(bytes, 64, &n, &err), err); /* no query is fine */
    assert_int_equal(n, 0);
}

static void assert_bad_header(size_t at, uint32_t value, const char *message)
{
    uint8_t bytes[GRID_BYTES];
    ft_error err = {0};
    uint32_t n;
    golden_grid(bytes);
    put_u32(bytes + at, value);
    assert_int_equal(read_all(bytes, sizeof bytes, &n, &err), FT_EFORMAT);
    assert_string_equal(err.message, message);
}

static void r14_header_errors(void **state)
{
    (void)state;
    assert_bad_header(0, 1, "g.ftg: not a proposal grid, ft-grid(5)");
    assert_bad_header(8, 0, "g.ftg: grid of 0 steps of 3 proposals: at least 1");
    assert_bad_header(12, 0, "g.ftg: grid of 2 steps of 0 proposals: at least 1");
    assert_bad_header(8, UINT32_MAX,
                      "g.ftg: grid of 4294967295 steps of 3 proposals: at most 65535, "
                      "16777216 and 1073741824 in all");
    assert_bad_header(12, (1 << 24) + 1,
                      "g.ftg: grid of 2 steps of 16777217 proposals: at most 65535, "
                      "16777216 and 1073741824 in all");
    assert_bad_header(16, 5, "g.ftg: grid header: unknown flags 0x4");
    assert_bad_header(16, 0x80000001u, "g.ftg: grid header: unknown flags 0x80000000");
    for (size_t at = 32; at < 64; at += 4)
        assert_bad_header(at, 1 << 24,
                          "g.ftg: grid header: reserved bytes are not zero");
}

static void r19_other_kinds(void **state)
{
    (void)state;
    uint8_t bytes[64] = "FTKEYS1\n";
    ft_error err = {0};
    uint32_t n;
    assert_int_equal(read_all(bytes, 64, &n, &err), FT_EFORMAT);
    assert_message(err, "g.ftg: is binary keys, ft-tokens(5), not a proposal grid");
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    assert_int_equal(read_all(bytes, 64, &n, &err), FT_EFORMAT);
    assert_message(err, "g.ftg: is a NumPy array, not a proposal grid");
}

/* A header that claims gigabytes is answered with what is there: no memory is taken for
 * the rest (under ASan or a memory limit it could not be). */
static void hostile_sizes(void **state)
{
    (void)state;
    uint8_t bytes[GRID_BYTES];
    ft_error err = {0};
    ft_batch b = {0};
    ft_grid *g;
    golden_grid(bytes);
    put_u32(bytes + 8, 64);
    put_u32(bytes + 12, 1 << 24);
    put_u64(bytes + 24, UINT64_MAX - 1);
    g = open_grid(bytes, sizeof bytes);
    assert_int_equal(ft_grid_read(g, &b, UINT32_MAX, false, 0, &err), FT_EFORMAT);
    assert_string_equal(err.message,
                        "g.ftg: query 0: grid cut short (112 of 8589934600 bytes)");
    assert_true(b.cap_values <= 1 << 17);
    ft_grid_close(g);
    ft_batch_free(&b);
}

static void assert_bad_slot(int q, int slot, float logp, const char *message)
{
    uint8_t bytes[GRID_BYTES];
    ft_error err = {0};
    uint32_t n;
    golden_grid(bytes);
    put_f32(bytes + 64 + q * QUERY_BYTES + 32 + 4 * slot, logp);
    assert_int_equal(read_all(bytes, sizeof bytes, &n, &err), FT_EFORMAT);
    assert_int_equal(n, q);
    assert_string_equal(err.message, message);
}

static void r17_nan_and_infinity(void **state)
{
    (void)state;
    assert_bad_slot(0, 0, NAN,
                    "g.ftg: query 0, position 0, rank 0: log-probability is NaN");
    assert_bad_slot(0, 5, -NAN,
                    "g.ftg: query 0, position 1, rank 2: log-probability is NaN");
    assert_bad_slot(1, 4, INFINITY,
                    "g.ftg: query 1, position 1, rank 1: log-probability is +infinity");
    /* Where the slot is empty, nobody looks. */
    uint8_t bytes[GRID_BYTES];
    ft_error err = {0};
    uint32_t n;
    golden_grid(bytes);
    put_f32(bytes + 64 + 32 + 8, NAN);
    assert_ok(read_all(bytes, sizeof bytes, &n, &err), err);
    assert_int_equal(n, 2);
}

/* Empty slots first, in the middle and last stay where they are: nothing shifts. */
static void r13_ragged(void **state)
{
    (void)state;
    const uint32_t e = FT_NO_TOKEN;
    const uint32_t tokens[12] = {e, 1, 2, 3, e, 4, 5, 6, e, e, e, e};
    const float logp[12] = {NAN, -1, -2, -3, INFINITY, -4, -5, -6, 0, 0, 0, 0};
    const ft_grid_shape shape = {4, 3, 0, false, false, 1};
    ft_error err = {0};
    ft_buf out = {0};
    ft_batch b = {0};
    ft_sink *s = sink_into(&out);
    assert_ok(ft_grid_write_header(s, &shape, &err), err);
    assert_ok(ft_grid_write(s, &shape, 0, tokens, logp, &err), err);
    close_sink(s);
    ft_grid *g = open_grid(out.data, out.len);
    assert_ok(ft_grid_read(g, &b, 2, false, 0, &err), err);
    assert_int_equal(b.n_queries, 1);
    assert_memory_equal(b.tokens, tokens, sizeof tokens);
    for (int i = 0; i < 12; i++)
        assert_true(tokens[i] == e || b.logp[i] == logp[i]);
    ft_grid_close(g);
    ft_batch_free(&b);
    ft_buf_free(&out);
}

static void r15_beyond_the_vocabulary(void **state)
{
    (void)state;
    uint8_t bytes[GRID_BYTES];
    ft_error err = {0};
    ft_batch b = {0};
    golden_grid(bytes);
    put_u32(bytes + 20, 6); /* of 5, 6, none, 7, 0, 99 only 5 and 0 are below */
    ft_grid *g = open_grid(bytes, sizeof bytes);
    assert_ok(ft_grid_read(g, &b, 1, false, 0, &err), err);
    static const uint32_t want[6] = {5,           FT_NO_TOKEN, FT_NO_TOKEN,
                                     FT_NO_TOKEN, 0,           FT_NO_TOKEN};
    assert_memory_equal(b.tokens, want, sizeof want);
    ft_grid_close(g);
    /* A NaN out there is one all the same. */
    put_f32(bytes + 64 + 32 + 4, NAN);
    g = open_grid(bytes, sizeof bytes);
    assert_int_equal(ft_grid_read(g, &b, 1, false, 0, &err), FT_EFORMAT);
    assert_message(err, "query 0, position 0, rank 1: log-probability is NaN");
    ft_grid_close(g);
    ft_batch_free(&b);
}

static void write_refuses(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_buf out = {0};
    ft_sink *s = sink_into(&out);
    const ft_grid_shape shape = {0, 1, 0, false, true, 1};
    assert_int_equal(ft_grid_write_header(s, &shape, &err), FT_EFORMAT);
    assert_int_equal(out.len, 0);
    close_sink(s);
}

/* A batch closes when going on would wait; a record that has begun is waited for. */
static void eager(void **state)
{
    (void)state;
    uint8_t bytes[GRID_BYTES];
    ft_error err = {0};
    ft_batch b = {0};
    ft_grid *g;
    int ends[2];
    golden_grid(bytes);
    put_u64(bytes + 24, FT_GRID_UNTIL_END);
    ft_stream *s = stream_of_pipe(ends);
    send_bytes(ends[1], bytes, GRID_BYTES); /* two queries */
    assert_ok(ft_grid_open(&g, s, &err), err);
    assert_ok(ft_grid_read(g, &b, 10, true, 0, &err), err);
    assert_golden_batch(&b);
    send_bytes(ends[1], bytes + 64, QUERY_BYTES);
    assert_ok(ft_grid_read(g, &b, 10, true, 0, &err), err);
    assert_int_equal(b.n_queries, 1);
    assert_int_equal(b.ids[0], 1234567890123);
    send_bytes(ends[1], bytes + 64, QUERY_BYTES + 20);
    const pid_t child = fork();
    if (child == 0) {
        usleep(50000);
        send_bytes(ends[1], bytes + 64 + 20, QUERY_BYTES - 20);
        _exit(0);
    }
    assert_ok(ft_grid_read(g, &b, 10, true, 0, &err), err);
    assert_int_equal(b.n_queries, 2);
    waitpid(child, NULL, 0);
    send_bytes(ends[1], bytes + 64, 2 * QUERY_BYTES);
    close(ends[1]);
    assert_ok(ft_grid_read(g, &b, 1, true, 0, &err), err);
    assert_int_equal(b.n_queries, 1);
    assert_ok(ft_grid_read(g, &b, 10, true, 0, &err), err);
    assert_int_equal(b.n_queries, 1);
    assert_ok(ft_grid_read(g, &b, 10, true, 0, &err), err);
    assert_int_equal(b.n_queries, 0);
    ft_grid_close(g);
    ft_batch_free(&b);
}

/* The last of a known number of queries is handed out before its end is looked for. */
static void eager_known_end(void **state)
{
    (void)state;
    uint8_t bytes[GRID_BYTES];
    ft_error err = {0};
    ft_batch b = {0};
    ft_grid *g;
    int ends[2];
    golden_grid(bytes);
    ft_stream *s = stream_of_pipe(ends);
    send_bytes(ends[1], bytes, GRID_BYTES);
    assert_ok(ft_grid_open(&g, s, &err), err);
    assert_ok(ft_grid_read(g, &b, 10, false, 0, &err), err); /* the pipe is open */
    assert_golden_batch(&b);
    close(ends[1]);
    assert_ok(ft_grid_read(g, &b, 10, false, 0, &err), err);
    assert_int_equal(b.n_queries, 0);
    ft_grid_close(g);
    ft_batch_free(&b);
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
        cmocka_unit_test(golden),
        cmocka_unit_test(batches),
        cmocka_unit_test(r19_cut_anywhere),
        cmocka_unit_test(trailing_bytes),
        cmocka_unit_test(r14_header_errors),
        cmocka_unit_test(r19_other_kinds),
        cmocka_unit_test(hostile_sizes),
        cmocka_unit_test(r17_nan_and_infinity),
        cmocka_unit_test(r13_ragged),
        cmocka_unit_test(r15_beyond_the_vocabulary),
        cmocka_unit_test(write_refuses),
        cmocka_unit_test(eager),
        cmocka_unit_test(eager_known_end),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
