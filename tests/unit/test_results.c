/* SPDX-License-Identifier: Apache-2.0
 *
 * Result records: the wire format, TSV and JSON lines.
 */
#include "io_util.h"

#include <math.h>

#include "io/results.h"

/* Two results, {7 8} and {4294967294}, then a query without any: by hand. */
static const uint8_t golden[] = {
    2,    0,    0,    0,    0, 0, 0,    0,    /* n */
    0,    0,    0,    0,    0, 0, 4,    0xC0, /* -2.5 */
    0,    0,    0,    0,    0, 0, 0xE0, 0xBF, /* -0.5 */
    2,    0,    0,    0,    0, 0, 0,    0,    /* ends */
    3,    0,    0,    0,    0, 0, 0,    0,    /* */
    7,    0,    0,    0,    8, 0, 0,    0,    /* worst: {7 8} */
    0xFE, 0xFF, 0xFF, 0xFF,                   /* best */
    0,    0,    0,    0,    0, 0, 0,    0,    /* n = 0 */
};
enum { FIRST_BYTES = 52 };

static void assert_golden(const ft_record *r)
{
    assert_int_equal(r->n, 2);
    assert_true(ft_record_score(r, 0) == -2.5);
    assert_true(ft_record_score(r, 1) == -0.5);
    assert_int_equal(ft_record_end(r, UINT64_MAX), 0);
    assert_int_equal(ft_record_end(r, 0), 2);
    assert_int_equal(ft_record_end(r, 1), 3);
    assert_int_equal(ft_record_token(r, 0), 7);
    assert_int_equal(ft_record_token(r, 1), 8);
    assert_int_equal(ft_record_token(r, 2), 4294967294u);
}

static void view(void **state)
{
    (void)state;
    uint8_t shifted[sizeof golden + 1]; /* at an odd address */
    ft_error err = {0};
    ft_record r;
    uint64_t used;
    memcpy(shifted + 1, golden, sizeof golden);
    assert_ok(ft_record_view(&r, shifted + 1, sizeof golden, &used, &err), err);
    assert_int_equal(used, FIRST_BYTES);
    assert_golden(&r);
    assert_ok(ft_record_view(&r, shifted + 1 + used, sizeof golden - used, &used, &err),
              err);
    assert_int_equal(used, 8);
    assert_int_equal(r.n, 0);
}

static void read_stream(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_buf b = {0};
    ft_record r;
    bool more = false;
    ft_stream *s = stream_of(golden, sizeof golden, "out");
    assert_ok(ft_record_read(s, 0, &b, &r, &more, &err), err);
    assert_true(more);
    assert_golden(&r);
    assert_ok(ft_record_read(s, 1, &b, &r, &more, &err), err);
    assert_true(more);
    assert_int_equal(r.n, 0);
    assert_ok(ft_record_read(s, 2, &b, &r, &more, &err), err);
    assert_false(more);
    ft_stream_close(s);
    ft_buf_free(&b);
}

static ft_status read_one(const uint8_t *data, size_t bytes, ft_error *err)
{
    ft_buf b = {0};
    ft_record r;
    bool more = false;
    ft_stream *s = stream_of(data, bytes, "out");
    const ft_status st = ft_record_read(s, 5, &b, &r, &more, err);
    assert_true(st == FT_OK || !more);
    ft_stream_close(s);
    ft_buf_free(&b);
    return st;
}

static void r19_cut_anywhere(void **state)
{
    (void)state;
    for (size_t cut = 1; cut < FIRST_BYTES; cut++) {
        ft_error err = {0};
        ft_record r;
        uint64_t used = 99;
        char want[80];
        const int need = cut < 8 ? 8 : cut < 40 ? 40 : FIRST_BYTES;
        snprintf(want, sizeof want, "cut short (%zu of %d bytes)", cut, need);
        assert_int_equal(ft_record_view(&r, golden, cut, &used, &err), FT_EFORMAT);
        assert_string_equal(err.message, want);
        assert_int_equal(used, 99);
        snprintf(want, sizeof want, "out: query 5: cut short (%zu of %d bytes)", cut,
                 need);
        assert_int_equal(read_one(golden, cut, &err), FT_EFORMAT);
        assert_string_equal(err.message, want);
    }
}

static void assert_bad(size_t at, uint64_t value, const char *message)
{
    uint8_t bytes[sizeof golden];
    char want[200];
    ft_error err = {0};
    ft_record r;
    uint64_t used;
    memcpy(bytes, golden, sizeof golden);
    put_u64(bytes + at, value);
    assert_int_equal(ft_record_view(&r, bytes, sizeof bytes, &used, &err), FT_EFORMAT);
    assert_string_equal(err.message, message);
    snprintf(want, sizeof want, "out: query 5: %s", message);
    assert_int_equal(read_one(bytes, sizeof bytes, &err), FT_EFORMAT);
    assert_string_equal(err.message, want);
}

static void hostile_records(void **state)
{
    (void)state;
    assert_bad(0, UINT64_MAX, "18446744073709551615 results: not a result stream");
    assert_bad(0, UINT64_C(1) << 60,
               "1152921504606846976 results: not a result stream");
    assert_bad(0, 1 << 30, "cut short (60 of 17179869192 bytes)");
    assert_bad(24, 0, "result 0: tokens 0 to 0 are no key (1 to 65535)");
    assert_bad(24, 3, "result 1: tokens 3 to 3 are no key (1 to 65535)");
    assert_bad(32, 1, "result 1: tokens 2 to 1 are no key (1 to 65535)");
    assert_bad(32, UINT64_MAX,
               "result 1: tokens 2 to 18446744073709551615 are no key (1 to 65535)");
    assert_bad(24, 65536, "result 0: tokens 0 to 65536 are no key (1 to 65535)");
    assert_bad(32, 60000, "cut short (60 of 240040 bytes)");
    assert_bad(8, UINT64_C(0x7FF8000000000000), "result 0: score nan after -inf");
    assert_bad(16, UINT64_C(0xC010000000000000), "result 1: score -4 after -2.5");
    assert_bad(40, UINT64_C(0xFFFFFFFF00000007),
               "token 1 is 4294967295, which is no "
               "token");
}

static void stream_failure(void **state)
{
    (void)state;
    static const uint8_t packed[] = {0x28, 0xB5, 0x2F, 0xFD,
                                     0x20}; /* zstd, cut short */
    ft_error err = {0};
    assert_int_equal(read_one(packed, sizeof packed, &err), FT_EFORMAT);
    assert_message(err, "out: zstd frame cut short"); /* named once */
}

/* Key numbers for the test: the sum of the tokens, none for a single token. */
static uint64_t number_of(void *arg, const uint32_t *tokens, uint32_t n)
{
    uint64_t sum = *(uint64_t *)arg;
    for (uint32_t i = 0; i < n; i++)
        sum += tokens[i];
    return n == 1 ? UINT64_MAX : sum;
}

static void assert_written(ft_results_format format, const uint8_t *data, size_t bytes,
                           bool numbers, const char *want, size_t want_bytes)
{
    ft_error err = {0};
    ft_buf b = {0};
    ft_record r;
    uint64_t used, base = 100;
    ft_sink *s = sink_into(&b);
    for (uint64_t q = 0; bytes; q++, data += used, bytes -= used) {
        assert_ok(ft_record_view(&r, data, bytes, &used, &err), err);
        assert_ok(ft_record_write(s, format, q + 9, &r, numbers ? number_of : NULL,
                                  &base, &err),
                  err);
    }
    close_sink(s);
    assert_int_equal(b.len, want_bytes);
    assert_memory_equal(b.data, want, want_bytes);
    ft_buf_free(&b);
}

static void written_forms(void **state)
{
    (void)state;
    static const char tsv[] = "9\t0\t-0.5\t4294967294\n9\t1\t-2.5\t7 8\n";
    static const char tsv_keys[] = "9\t0\t-0.5\t4294967294\n9\t1\t-2.5\t7 8\t115\n";
    static const char jsonl[] =
        "{\"query\":9,\"rank\":0,\"score\":-0.5,\"tokens\":[4294967294]}\n"
        "{\"query\":9,\"rank\":1,\"score\":-2.5,\"tokens\":[7,8]}\n";
    static const char jsonl_keys[] =
        "{\"query\":9,\"rank\":0,\"score\":-0.5,\"tokens\":[4294967294]}\n"
        "{\"query\":9,\"rank\":1,\"score\":-2.5,\"tokens\":[7,8],\"key\":115}\n";
    assert_written(FT_TSV, golden, sizeof golden, false, tsv, sizeof tsv - 1);
    assert_written(FT_TSV, golden, sizeof golden, true, tsv_keys, sizeof tsv_keys - 1);
    assert_written(FT_JSONL, golden, sizeof golden, false, jsonl, sizeof jsonl - 1);
    assert_written(FT_JSONL, golden, sizeof golden, true, jsonl_keys,
                   sizeof jsonl_keys - 1);
    assert_written(FT_WIRE, golden, sizeof golden, false, (const char *)golden,
                   sizeof golden);
}

static void written_scores(void **state)
{
    (void)state;
    static const struct {
        double score;
        const char *tsv, *jsonl;
    } rows[] = {
        {-0.1, "-0.10000000000000001", "-0.10000000000000001"},
        {-1.0 / 3, "-0.33333333333333331", "-0.33333333333333331"},
        {-1e-300, "-1e-300", "-1e-300"},
        {0, "0", "0"},
        {INFINITY, "inf", "\"inf\""},
        {-INFINITY, "-inf", "\"-inf\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t record[28];
        char want[200];
        uint64_t bits;
        memcpy(&bits, &rows[i].score, sizeof bits);
        put_u64(record, 1);
        put_u64(record + 8, bits);
        put_u64(record + 16, 1);
        put_u32(record + 24, 3);
        int n = snprintf(want, sizeof want, "9\t0\t%s\t3\n", rows[i].tsv);
        assert_written(FT_TSV, record, sizeof record, false, want, (size_t)n);
        n = snprintf(want, sizeof want,
                     "{\"query\":9,\"rank\":0,\"score\":%s,\"tokens\":[3]}\n",
                     rows[i].jsonl);
        assert_written(FT_JSONL, record, sizeof record, false, want, (size_t)n);
    }
}

static void batch_of_results(void **state)
{
    (void)state;
    ft_error err = {0};
    ft_results r = {0};
    for (uint64_t n = 0; n < 100; n += 33) {
        assert_ok(ft_results_reset(&r, n, &err), err);
        assert_int_equal(r.n_queries, n);
        assert_int_equal(r.bytes.len, 0);
        for (uint64_t q = 0; q <= n; q++) {
            assert_int_equal(r.offset[q], 0);
            r.offset[q] = q;
        }
        assert_ok(ft_buf_append(&r.bytes, "x", 1, &err), err);
    }
    assert_int_equal(ft_results_reset(&r, UINT64_MAX, &err), FT_ENOMEM);
    assert_int_equal(ft_results_reset(&r, UINT64_MAX / 8, &err), FT_ENOMEM);
    assert_int_equal(r.n_queries, 99); /* untouched */
    ft_results_free(&r);
    assert_null(r.offset);
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
        cmocka_unit_test(view),
        cmocka_unit_test(read_stream),
        cmocka_unit_test(r19_cut_anywhere),
        cmocka_unit_test(hostile_records),
        cmocka_unit_test(stream_failure),
        cmocka_unit_test(written_forms),
        cmocka_unit_test(written_scores),
        cmocka_unit_test(batch_of_results),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
