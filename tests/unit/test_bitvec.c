/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank, select and scans of bit vectors against counting by hand.
 */
#include "keyset.h"

#include <sys/mman.h>

#include "trie/bitvec.h"

typedef struct vector {
    ft_bitvec bits;
    uint64_t *words, *rank;
    uint32_t *hints;
} vector;

static vector make(uint64_t n_bits)
{
    vector v = {.bits.n_bits = n_bits};
    v.words = calloc(ft_bitvec_bytes(n_bits), 1);
    return v;
}

/* Directories by pieces of a few blocks, made good in the wrong order. */
static void index_bits(vector *v)
{
    ft_error err = {0};
    ft_bitvec *b = &v->bits;
    const uint64_t blocks = ft_bitvec_blocks(b->n_bits), step = 3;
    uint64_t *ones = calloc(blocks + 1, sizeof *ones), sum = 0;
    v->rank = malloc(ft_bitvec_rank_bytes(b->n_bits));
    for (uint64_t i = 0; i < blocks; i += step) {
        const uint64_t n = blocks - i < step ? blocks - i : step;
        ones[i] = ft_bitvec_count(v->words + i * 8, n, v->rank + i * 2);
        b->n_ones += ones[i];
    }
    v->hints = malloc(4 * ft_bitvec_hints(b->n_bits - b->n_ones) + 1);
    for (uint64_t i = (blocks - 1) / step * step + step; i > 0;) {
        const uint64_t last = i < blocks ? i : blocks;
        i -= step;
        sum += ones[i];
        ft_bitvec_settle(b, v->rank, v->hints, i, last, b->n_ones - sum, ones[i]);
    }
    free(ones);
    b->words = v->words;
    b->rank = v->rank;
    b->hints = v->hints;
    assert_ok(ft_bitvec_check(&v->bits, 0, blocks, &err), err);
    assert_true(ft_bitvec_padding_ok(&v->bits));
}

static void discard(vector *v)
{
    free(v->rank);
    free(v->hints);
    free(v->words);
}

static void compare(const vector *v)
{
    const ft_bitvec *b = &v->bits;
    ft_bitvec plain = *b;
    uint64_t ones = 0, zeros = 0, pending = 0;
    plain.hints = NULL;
    for (uint64_t i = 0; i < b->n_bits; i++) {
        assert_int_equal(ft_bitvec_rank1(b, i), ones);
        if (ft_bit_get(b->words, i)) {
            assert_int_equal(ft_bitvec_select1(b, ones), i);
            ones++;
            continue;
        }
        assert_int_equal(ft_bitvec_select0(b, zeros), i);
        assert_int_equal(ft_bitvec_select0(&plain, zeros), i);
        for (; pending <= i; pending += 1 + (i - pending) / 3)
            assert_int_equal(ft_bitvec_next0(b, pending), i);
        pending = i + 1;
        zeros++;
    }
    assert_int_equal(ft_bitvec_rank1(b, b->n_bits), ones);
    assert_int_equal(b->n_ones, ones);
}

static void test_against_counting(void **state)
{
    static const uint64_t sizes[] = {1, 63, 64, 65, 511, 512, 513, 1024, 5000, 40000};
    static const unsigned thousandths[] = {0, 1, 30, 500, 970, 999, 1000};
    uint64_t seed = 1;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof thousandths / sizeof *thousandths; j++) {
            vector v = make(sizes[i]);
            for (uint64_t k = 0; k < sizes[i]; k++)
                if (next_random(&seed) % 1000 < thousandths[j])
                    ft_bit_set(v.words, k);
            index_bits(&v);
            compare(&v);
            discard(&v);
        }
}

static void test_get(void **state)
{
    uint64_t seed = 2;
    (void)state;
    vector v = make(1000);
    for (uint64_t k = 0; k < 1000; k++)
        if (next_random(&seed) % 2)
            ft_bit_set(v.words, k);
    index_bits(&v);
    for (uint64_t i = 0; i < 1000; i++)
        for (unsigned n = 1; n <= 64 && i + n <= 1000; n++) {
            uint64_t want = 0;
            for (unsigned k = 0; k < n; k++)
                want |= (uint64_t)ft_bit_get(v.words, i + k) << k;
            assert_int_equal(ft_bitvec_get(&v.bits, i, n), want);
        }
    discard(&v);
}

/* A node with 2^21 children: hints lie thousands of blocks apart. */
static void test_hub(void **state)
{
    const uint64_t hub = 1 << 21, leaves = 3000, n = leaves + hub + leaves;
    (void)state;
    vector v = make(n);
    for (uint64_t i = 0; i < hub; i++)
        ft_bit_set(v.words, leaves + i);
    index_bits(&v);
    for (uint64_t k = 0; k < 2 * leaves; k++)
        assert_int_equal(ft_bitvec_select0(&v.bits, k), k < leaves ? k : k + hub);
    assert_int_equal(ft_bitvec_next0(&v.bits, leaves), leaves + hub);
    assert_int_equal(ft_bitvec_next0(&v.bits, leaves + 777), leaves + hub);
    assert_int_equal(ft_bitvec_rank1(&v.bits, leaves + hub), hub);
    discard(&v);
}

static void *reserve(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

/* Places beyond 2^32, in memory that is zero and mostly never touched. */
static void test_beyond_32_bits(void **state)
{
    const uint64_t far = (UINT64_C(1) << 33) + 12345, n = far + 1000;
    const uint64_t blocks = ft_bitvec_blocks(n);
    (void)state;
    uint64_t *words = reserve(ft_bitvec_bytes(n)), *rank = reserve(blocks * 16);
    ft_bit_set(words, far);
    for (unsigned word = far / 64 % 8 + 1; word < 8; word++)
        rank[far / FT_BLOCK_BITS * 2 + 1] |= (uint64_t)1 << 9 * (word - 1);
    for (uint64_t i = far / FT_BLOCK_BITS + 1; i < blocks; i++)
        rank[i * 2] = 1;
    const ft_bitvec b = {.words = words, .rank = rank, .n_bits = n, .n_ones = 1};
    assert_int_equal(ft_bitvec_rank1(&b, far), 0);
    assert_int_equal(ft_bitvec_rank1(&b, far + 1), 1);
    assert_int_equal(ft_bitvec_rank1(&b, n), 1);
    assert_int_equal(ft_bitvec_select1(&b, 0), far);
    assert_int_equal(ft_bitvec_select0(&b, far - 1), far - 1);
    assert_int_equal(ft_bitvec_select0(&b, far), far + 1);
    assert_int_equal(ft_bitvec_select0(&b, UINT64_C(1) << 32), UINT64_C(1) << 32);
    munmap(words, ft_bitvec_bytes(n));
    munmap(rank, blocks * 16);
}

/* Every directory bit counts: flip each and the check fails. */
static void test_check_sees_each_bit(void **state)
{
    uint64_t seed = 3;
    (void)state;
    vector v = make(3000);
    for (uint64_t k = 0; k < 3000; k++)
        if (next_random(&seed) % 2)
            ft_bit_set(v.words, k);
    index_bits(&v);
    uint8_t *parts[] = {(uint8_t *)v.rank, (uint8_t *)v.hints};
    const uint64_t bytes[] = {ft_bitvec_rank_bytes(3000),
                              4 * ft_bitvec_hints(3000 - v.bits.n_ones)};
    for (unsigned part = 0; part < 2; part++)
        for (uint64_t i = 0; i < bytes[part] * 8; i++) {
            ft_error err = {0};
            parts[part][i / 8] ^= (uint8_t)(1 << i % 8);
            ft_status st = FT_OK; /* in pieces of two blocks, as threads do it */
            for (uint64_t at = 0; at < 6 && st == FT_OK; at += 2)
                st = ft_bitvec_check(&v.bits, at, at + 2, &err);
            assert_int_equal(st, FT_EFORMAT);
            parts[part][i / 8] ^= (uint8_t)(1 << i % 8);
        }
    v.words[3000 / 64] |= (uint64_t)1 << 3000 % 64;
    assert_false(ft_bitvec_padding_ok(&v.bits));
    v.words[3000 / 64] ^= (uint64_t)1 << 3000 % 64;
    v.words[ft_bitvec_bytes(3000) / 8 - 1] = 1;
    assert_false(ft_bitvec_padding_ok(&v.bits));
    discard(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_counting),
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_hub),
        cmocka_unit_test(test_beyond_32_bits),
        cmocka_unit_test(test_check_sees_each_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
