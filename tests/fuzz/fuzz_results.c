/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a result stream. Reading from a stream and viewing in memory agree,
 * records keep what results.h promises, written as wire they are the same bytes, and
 * text has a line a result.
 */
#include "fuzz_util.h"

#include <math.h>

#include "base/score.h"
#include "io/results.h"

enum { MAX_BYTES = 1 << 22 }; /* of one input: a zstd frame can hold any number */

static uint64_t number_of(void *arg, const uint32_t *tokens, uint32_t n)
{
    check(n >= 1 && n <= FT_MAX_KEY_TOKENS);
    *(uint64_t *)arg += tokens[n - 1];
    return tokens[0] % 2 ? UINT64_MAX : tokens[0];
}

static void check_record(const ft_record *r)
{
    for (uint64_t i = 0; i < r->n; i++) {
        const uint64_t start = ft_record_end(r, i - 1), end = ft_record_end(r, i);
        check(end > start && end - start <= FT_MAX_KEY_TOKENS);
        check(i ? ft_record_score(r, i) >= ft_record_score(r, i - 1)
                : !isnan(ft_record_score(r, i)));
        for (uint64_t j = start; j < end; j++)
            check(ft_record_token(r, j) != FT_NO_TOKEN);
    }
}

static void check_text(const ft_record *r, ft_results_format format)
{
    ft_buf text = {0};
    ft_sink *s = fuzz_sink(&text);
    uint64_t sum = 0, n_lines = 0;
    check(ft_record_write(s, format, 3, r, number_of, &sum, NULL) == FT_OK);
    check(ft_sink_close(s, NULL) == FT_OK);
    for (uint64_t i = 0; i < text.len; i++)
        n_lines += text.data[i] == '\n';
    check(n_lines == r->n);
    check(text.len == 0 || text.data[text.len - 1] == '\n');
    ft_buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ft_error err = {0}, view_err = {0};
    ft_stream *in = fuzz_stream(data, bytes);
    ft_buf b = {0}, wire = {0};
    ft_sink *out = fuzz_sink(&wire);
    const bool plain = !fuzz_is_zstd(data, bytes);
    ft_status st = FT_OK;
    bool more = true;
    for (uint64_t q = 0; wire.len < MAX_BYTES; q++) {
        const uint64_t at = wire.len;
        ft_record r, view;
        uint64_t used = 0;
        st = ft_record_read(in, q, &b, &r, &more, &err);
        if (plain && (st != FT_OK || more)) {
            check(ft_record_view(&view, data + at, bytes - at, &used, &view_err) == st);
            check(st == FT_OK || strstr(err.message, view_err.message));
        }
        if (st != FT_OK || !more)
            break;
        check_record(&r);
        check_text(&r, FT_TSV);
        check_text(&r, FT_JSONL);
        check(ft_record_write(out, FT_WIRE, q, &r, NULL, NULL, NULL) == FT_OK);
        check(wire.len - at == b.len && !memcmp(wire.data + at, b.data, b.len));
        check(!plain || (used == b.len && !memcmp(data + at, b.data, b.len)));
    }
    if (st != FT_OK)
        check_failure(st, &err);
    else
        check(!plain || more || wire.len == bytes);
    ft_sink_close(out, NULL);
    ft_stream_close(in);
    ft_buf_free(&b);
    ft_buf_free(&wire);
    return 0;
}
