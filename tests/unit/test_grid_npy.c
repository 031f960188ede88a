/* SPDX-License-Identifier: Apache-2.0
 *
 * Proposal grids from pairs of NumPy files.
 */
#include "io_util.h"

#include <math.h>

#include "io/grid.h"

/* A .npy file by hand; returns its length. */
static size_t npy(uint8_t *to, int version, const char *dictionary, const void *data,
                  size_t bytes)
{
    const size_t prefix = version == 1 ? 10 : 12, n = strlen(dictionary);
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (uint8_t)version;
    to[7] = 0;
    put_u32(to + 8, (uint32_t)n);
    memcpy(to + prefix, dictionary, n);
    if (bytes)
        memcpy(to + prefix + n, data, bytes);
    return prefix + n + bytes;
}

typedef struct pair {
    uint8_t tokens[1024], logp[1024];
    size_t n_tokens, n_logp;
} pair;

static ft_status open_pair(ft_grid **g, const pair *p, ft_error *err)
{
    return ft_grid_open_npy(g, stream_of(p->tokens, p->n_tokens, "t.npy"),
                            stream_of(p->logp, p->n_logp, "l.npy"), err);
}

#define SHAPED(descr, shape)                                                           \
    "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", }   \n"

static const float npy_logp[6] = {-1, -2, -3, -4, -5, -6};

static pair good_pair(void)
{
    static const int32_t tokens[6] = {1, -1, 3, 2147483647, 0, 6};
    pair p;
    p.n_tokens = npy(p.tokens, 1, SHAPED("<i4", "(1, 2, 3)"), tokens, sizeof tokens);
    p.n_logp = npy(p.logp, 1, SHAPED("<f4", "(1, 2, 3)"), npy_logp, sizeof npy_logp);
    return p;
}

static void assert_pair(const pair *p, uint32_t n_queries, uint32_t t, uint32_t k,
                        const uint32_t *tokens, const float *logp)
{
    ft_error err = {0};
    ft_batch b = {0};
    ft_grid *g = NULL;
    assert_ok(open_pair(&g, p, &err), err);
    assert_ok(ft_grid_read(g, &b, 100, true, 20, &err), err);
    assert_int_equal(b.n_queries, n_queries);
    assert_int_equal(b.n_steps, t);
    assert_int_equal(b.n_proposals, k);
    for (uint32_t q = 0; q < n_queries; q++)
        assert_int_equal(b.ids[q], 20 + q);
    if (n_queries) {
        assert_memory_equal(b.tokens, tokens, n_queries * t * k * sizeof *tokens);
        assert_memory_equal(b.logp, logp, n_queries * t * k * sizeof *logp);
    }
    assert_ok(ft_grid_read(g, &b, 100, true, 20, &err), err);
    assert_int_equal(b.n_queries, 0);
    ft_grid_close(g);
    ft_batch_free(&b);
}

static void npy_pairs(void **state)
{
    (void)state;
    static const uint32_t tokens[6] = {1, FT_NO_TOKEN, 3, 2147483647, 0, 6};
    static const uint32_t tokens_u4[6] = {1, FT_NO_TOKEN, 3, 4294967294u, 0, 6};
    static const int64_t tokens_i8[6] = {1, -1, 3, 4294967294, 0, 6};
    static const uint16_t halves[6] = {0xBC00, 0xC000, 0xC200, 0xC400, 0xC500, 0xC600};
    pair p = good_pair();
    assert_pair(&p, 1, 2, 3, tokens, npy_logp);
    /* Other shapes, versions, types, orders of keys, quotes and blanks. */
    p.n_tokens = npy(p.tokens, 2, SHAPED("<u4", "(2, 3)"), tokens_u4, sizeof tokens_u4);
    p.n_logp = npy(p.logp, 3, SHAPED("<f2", "(2,3,)"), halves, sizeof halves);
    assert_pair(&p, 1, 2, 3, tokens_u4, npy_logp);
    p.n_tokens = npy(p.tokens, 1,
                     "{\"shape\":(3,1,2),\"fortran_order\":False,\"descr\":\"<i8\"}",
                     tokens_i8, sizeof tokens_i8);
    p.n_logp = npy(p.logp, 1, SHAPED("<f4", "(3, 1, 2)"), npy_logp, sizeof npy_logp);
    assert_pair(&p, 3, 1, 2, tokens_u4, npy_logp);
    p.n_tokens = npy(p.tokens, 1, SHAPED("<i4", "(0, 2, 3)"), NULL, 0);
    p.n_logp = npy(p.logp, 1, SHAPED("<f4", "(0, 2, 3)"), NULL, 0);
    assert_pair(&p, 0, 2, 3, NULL, NULL);
}

static void assert_bad_pair(const pair *p, const char *message)
{
    ft_error err = {0};
    ft_batch b = {0};
    ft_grid *g = NULL;
    ft_status st = open_pair(&g, p, &err);
    if (st == FT_OK)
        st = ft_grid_read(g, &b, 100, false, 0, &err);
    if (st == FT_OK)
        st = ft_grid_read(g, &b, 100, false, 0, &err);
    assert_int_equal(st, FT_EFORMAT);
    assert_string_equal(err.message, message);
    ft_grid_close(g);
    ft_batch_free(&b);
}

static void assert_bad_dictionary(const char *dictionary, const char *wrong)
{
    char message[200];
    pair p = good_pair();
    p.n_tokens = npy(p.tokens, 1, dictionary, npy_logp, sizeof npy_logp);
    snprintf(message, sizeof message, "t.npy: NumPy header %s", wrong);
    assert_bad_pair(&p, message);
}

static void npy_header_errors(void **state)
{
    (void)state;
    static const char no_shape[] =
        "has a shape that is not (queries, steps, proposals) or (steps, proposals)";
    assert_bad_dictionary("", "is no dictionary");
    assert_bad_dictionary("{'descr' '<i4'}", "is no dictionary");
    assert_bad_dictionary("{'descr': '<i4' 'shape': (1, 2)}", "is no dictionary");
    assert_bad_dictionary("{'descr': '<i4',", "is no dictionary");
    assert_bad_dictionary("{'descr': '<i4', 'x': 1}",
                          "has an unknown key, or one twice");
    assert_bad_dictionary("{'shape': (1, 2), 'shape': (1, 2)}",
                          "has an unknown key, or one twice");
    assert_bad_dictionary("{'descr': [('a', '<i4')]}",
                          "has a descr that is not one plain type");
    assert_bad_dictionary("{'descr': '<i4}", "has a descr that is not one plain type");
    assert_bad_dictionary("{'fortran_order': True",
                          "says Fortran order: save numpy.ascontiguousarray(a)");
    assert_bad_dictionary("{'fortran_order': 0",
                          "has a fortran_order that is neither True nor False");
    assert_bad_dictionary("{'shape': (1, 2, 3, 4)}", no_shape);
    assert_bad_dictionary("{'shape': (5)}", no_shape);
    assert_bad_dictionary("{'shape': (-1, 2)}", no_shape);
    assert_bad_dictionary("{'shape': (1 2)}", no_shape);
    assert_bad_dictionary("{'shape': (99999999999999999999, 2)}", no_shape);
    assert_bad_dictionary("{'descr': '<i4'}", "lacks descr, fortran_order or shape");
    assert_bad_dictionary(SHAPED("<i4", "(2, 3)") "x", "goes on behind the dictionary");
}

static void npy_errors(void **state)
{
    (void)state;
    static const int32_t negative[6] = {1, -1, 3, 4, -2, 6};
    static const int64_t wide[6] = {1, -1, 3, 4, 5, 4294967296};
    pair p = good_pair(), good = p;
    p.n_tokens = npy(p.tokens, 1, SHAPED(">i4", "(1, 2, 3)"), negative, 24);
    assert_bad_pair(&p,
                    "t.npy: tokens of type '>i4': save them as '<i4', '<u4' or '<i8'");
    p = good;
    p.n_logp = npy(p.logp, 1, SHAPED("<f8", "(1, 2, 3)"), negative, 24);
    assert_bad_pair(
        &p, "l.npy: log-probabilities of type '<f8': save them as '<f2' or '<f4'");
    memcpy(p.tokens, good.logp, sizeof p.tokens);
    memcpy(p.logp, good.tokens, sizeof p.logp);
    p.n_tokens = good.n_logp;
    p.n_logp = good.n_tokens;
    assert_bad_pair(
        &p, "t.npy: holds log-probabilities and l.npy tokens: give the tokens first");
    p = good;
    p.n_logp = npy(p.logp, 1, SHAPED("<f4", "(1, 3, 2)"), npy_logp, sizeof npy_logp);
    assert_bad_pair(&p, "t.npy: has shape (1, 2, 3), but l.npy has (1, 3, 2)");
    p.n_tokens = npy(p.tokens, 1, SHAPED("<i4", "(6,)"), negative, 24);
    p.n_logp = npy(p.logp, 1, SHAPED("<f4", "(6,)"), npy_logp, sizeof npy_logp);
    assert_bad_pair(
        &p,
        "t.npy: shape (6,) is not (queries, steps, proposals) or (steps, proposals)");
    p.n_tokens = npy(p.tokens, 1, SHAPED("<i4", "(1, 0)"), negative, 24);
    p.n_logp = npy(p.logp, 1, SHAPED("<f4", "(1, 0)"), npy_logp, sizeof npy_logp);
    assert_bad_pair(&p, "t.npy: grid of 1 steps of 0 proposals: at least 1");
    p = good;
    p.n_tokens = npy(p.tokens, 1, SHAPED("<i4", "(1, 2, 3)"), negative, 24);
    assert_bad_pair(&p, "t.npy: query 0, position 1, rank 1: token out of range (0 to "
                        "4294967294, or -1 for an empty slot)");
    p.n_tokens = npy(p.tokens, 1, SHAPED("<i8", "(1, 2, 3)"), wide, sizeof wide);
    assert_bad_pair(&p, "t.npy: query 0, position 1, rank 2: token out of range (0 to "
                        "4294967294, or -1 for an empty slot)");
    p = good;
    put_f32(p.logp + p.n_logp - 4, NAN);
    assert_bad_pair(&p, "l.npy: query 0, position 1, rank 2: log-probability is NaN");
    p = good;
    p.tokens[6] = 4;
    assert_bad_pair(&p, "t.npy: NumPy format 4.0 is unknown (1.0 to 3.0)");
    p.tokens[6] = 2;
    put_u32(p.tokens + 8, UINT32_MAX);
    assert_bad_pair(&p, "t.npy: NumPy header of 4294967295 bytes (at most 65535)");
    memcpy(p.tokens, "FTGRID1\n", 8);
    assert_bad_pair(&p, "t.npy: not a NumPy array (.npy)");
}

static void r19_npy_cut_anywhere(void **state)
{
    (void)state;
    const pair good = good_pair();
    char message[100];
    for (size_t cut = 0; cut < good.n_tokens; cut++) {
        pair p = good;
        p.n_tokens = cut;
        const size_t header = good.n_tokens - 24;
        if (cut < 6)
            snprintf(message, sizeof message, "t.npy: not a NumPy array (.npy)");
        else if (cut < 12)
            snprintf(message, sizeof message, "t.npy: NumPy header cut short");
        else if (cut < header)
            snprintf(message, sizeof message,
                     "t.npy: NumPy header cut short (%zu of %zu bytes)", cut, header);
        else
            snprintf(message, sizeof message,
                     "t.npy: query 0: grid cut short (%zu of 24 bytes)", cut - header);
        assert_bad_pair(&p, message);
    }
    pair p = good;
    p.n_logp -= 1;
    assert_bad_pair(&p, "l.npy: query 0: grid cut short (23 of 24 bytes)");
    p.n_logp += 2;
    snprintf(message, sizeof message,
             "l.npy: data after the last of 1 queries, at byte %zu", good.n_logp);
    assert_bad_pair(&p, message);
}

static void npy_magic(void **state)
{
    (void)state;
    ft_error err = {0};
    bool is = false;
    ft_stream *s = stream_of("\x93NUMPY\x01", 7, "x");
    assert_ok(ft_grid_is_npy(s, &is, &err), err);
    assert_true(is);
    assert_int_equal(ft_stream_offset(s), 0);
    ft_stream_close(s);
    s = stream_of("\x93NUMP", 5, "x");
    assert_ok(ft_grid_is_npy(s, &is, &err), err);
    assert_false(is);
    ft_stream_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_pairs),  cmocka_unit_test(npy_header_errors),
        cmocka_unit_test(npy_errors), cmocka_unit_test(r19_npy_cut_anywhere),
        cmocka_unit_test(npy_magic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
