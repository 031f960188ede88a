/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as token sequences. What is read, written in either form and read again is
 * the same; text is read as a plain reading of ft-tokens(5) says, key by key, with the
 * same line and the same verdict.
 */
#include "fuzz_util.h"

#include "io/tokens.h"

enum { MAX_TOKENS = 1 << 20 }; /* of one input: a zstd frame can hold any number */

typedef struct reference {
    const uint8_t *p, *end;
    uint64_t line;
    uint32_t *key;
} reference;

/* The next key of a text without zstd: its length, 0 at the end, -1 if it is wrong. */
static int64_t reference_next(reference *r)
{
    int64_t n = 0;
    while (r->p < r->end) {
        const uint8_t *newline = memchr(r->p, '\n', (size_t)(r->end - r->p));
        const uint8_t *stop = newline ? newline : r->end;
        if (newline && stop > r->p && stop[-1] == '\r')
            stop--;
        r->line++;
        n = 0;
        for (const uint8_t *p = r->p; p < stop;) {
            uint64_t v = 0;
            if (*p == ' ' || *p == '\t') {
                p++;
                continue;
            }
            if (*p < '0' || *p > '9' || n == FT_MAX_KEY_TOKENS)
                return -1;
            for (; p < stop && *p >= '0' && *p <= '9'; p++) {
                v = v * 10 + (uint64_t)(*p - '0');
                if (v >= FT_NO_TOKEN)
                    return -1;
            }
            r->key[n++] = (uint32_t)v;
        }
        r->p = newline ? newline + 1 : r->end;
        if (n)
            break;
    }
    return n;
}

/* Read `b` again and compare it with the keys of `flat`: n, tokens, n, tokens ... */
static void check_same(const ft_buf *b, const ft_buf *flat, bool binary)
{
    const uint32_t *want = (const uint32_t *)flat->data, *tokens;
    uint64_t left = flat->len / sizeof *want;
    uint32_t n;
    ft_tokens *r = NULL;
    check(ft_tokens_open(&r, fuzz_stream(b->data, b->len), NULL) == FT_OK);
    check(ft_tokens_is_binary(r) == binary);
    while (left) {
        check(ft_tokens_next(r, &tokens, &n, NULL) == FT_OK);
        check(n == *want && !memcmp(tokens, want + 1, n * sizeof *tokens));
        want += 1 + n;
        left -= 1 + n;
    }
    check(ft_tokens_next(r, &tokens, &n, NULL) == FT_OK && n == 0);
    check(ft_tokens_n_skipped(r) == 0);
    ft_tokens_close(r);
}

static void check_key(const uint32_t *tokens, uint32_t n)
{
    check(n <= FT_MAX_KEY_TOKENS);
    for (uint32_t i = 0; i < n; i++)
        check(tokens[i] != FT_NO_TOKEN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ft_error err = {0};
    ft_tokens *r = NULL;
    ft_buf flat = {0}, text = {0}, binary = {0};
    const uint32_t *tokens = NULL;
    uint32_t n = 1;
    ft_status st = ft_tokens_open(&r, fuzz_stream(data, bytes), &err);
    reference ref = {.p = data, .end = data + bytes};
    const bool plain =
        st == FT_OK && !ft_tokens_is_binary(r) && !fuzz_is_zstd(data, bytes);
    ft_sink *text_out = fuzz_sink(&text), *binary_out = fuzz_sink(&binary);
    ref.key = malloc(FT_MAX_KEY_TOKENS * sizeof *ref.key);
    check(ref.key && ft_tokens_write_binary_header(binary_out, NULL) == FT_OK);
    while (st == FT_OK && n && flat.len / sizeof *tokens < MAX_TOKENS) {
        st = ft_tokens_next(r, &tokens, &n, &err);
        if (plain) {
            const int64_t want = reference_next(&ref);
            check(st == FT_OK ? want == n : want < 0);
            check(want <= 0 || !memcmp(tokens, ref.key, n * sizeof *tokens));
            check(want <= 0 || ft_tokens_place(r) == ref.line);
        }
        if (st != FT_OK || n == 0)
            break;
        check_key(tokens, n);
        check(ft_buf_append(&flat, &n, sizeof n, NULL) == FT_OK);
        check(ft_buf_append(&flat, tokens, n * sizeof *tokens, NULL) == FT_OK);
        check(ft_tokens_write_text(text_out, tokens, n, NULL) == FT_OK);
        check(ft_tokens_write_binary(binary_out, tokens, n, NULL) == FT_OK);
    }
    if (st != FT_OK)
        check_failure(st, &err);
    check_same(&text, &flat, false);
    check_same(&binary, &flat, true);
    ft_tokens_close(r);
    ft_sink_close(text_out, NULL);
    ft_sink_close(binary_out, NULL);
    ft_buf_free(&flat);
    ft_buf_free(&text);
    ft_buf_free(&binary);
    free(ref.key);
    return 0;
}
