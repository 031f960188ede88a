/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes, bits and slots beyond 2^32: what writes and what reads them, with nothing
 * before them but the counts, or memory that is never touched.
 */
#include "keyset.h"

#include <sys/mman.h>

#include "trie/compact.h"
#include "trie/compact_nodes.h"
#include "trie/louds.h"

/* So many nodes might come before those that are there: a multiple of every block. */
static const uint64_t before = UINT64_C(1) << 33;

enum { N_WORDS = 64 };

static void *reserve(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static ft_levels some_levels(void)
{
    static const uint32_t alphabet[] = {0, 1, 5, 70000, 1 << 24, 4294967294};
    keyset s = keyset_random(3, 30000, alphabet, 6, 7);
    ft_levels l;
    ft_error err = {0};
    assert_ok(ft_levels_open(&l, false, &err), err);
    for (uint64_t i = 0; i < s.n; i++) {
        const test_key *k = &s.keys[i];
        uint32_t lcp = 0;
        if (i)
            ft_keys_compare(k[-1].tokens, k[-1].n, k->tokens, k->n, &lcp);
        assert_ok(ft_levels_add(&l, k->tokens, k->n, lcp, &err), err);
    }
    keyset_free(&s);
    return l;
}

static void move_away(ft_level_map *map)
{
    for (uint64_t i = 0; i <= map->n_spans; i++)
        map->spans[i].node += before;
}

static void put_window(const ft_vector_source *v, uint64_t word, uint64_t *out)
{
    ft_bits_out b = ft_bits_window((uint8_t *)out, word * 8, N_WORDS * 8);
    v->put(v->map, &b);
    ft_bits_close(&b);
}

/* The nodes from number 2^33 on have the bits that they have from 0 on. */
static void test_bits_of_far_nodes(void **state)
{
    ft_levels l = some_levels();
    ft_level_map near, far;
    ft_error err = {0};
    uint64_t a[N_WORDS], b[N_WORDS];
    (void)state;
    assert_ok(ft_level_map_open(&near, &l, 1, &err), err);
    assert_ok(ft_level_map_open(&far, &l, 1, &err), err);
    move_away(&far);
    const ft_vector_source tree[2] = {ft_louds_tree(&near), ft_louds_tree(&far)};
    const ft_vector_source ends[2] = {ft_louds_terminals(&near),
                                      ft_louds_terminals(&far)};
    /* Not from the root's own bits on: the root is always node 0. */
    assert_true(l.n_nodes > 10000);
    for (uint64_t word = 8; word < 2 * l.n_nodes / 64; word += 5) {
        put_window(&tree[0], word, a);
        put_window(&tree[1], word + 2 * before / 64, b);
        assert_memory_equal(a, b, sizeof a);
    }
    for (uint64_t word = 8; word < l.n_nodes / 64; word += 5) {
        put_window(&ends[0], word, a);
        put_window(&ends[1], word + before / 64, b);
        assert_memory_equal(a, b, sizeof a);
    }
    for (uint64_t node = 1; node <= l.n_nodes; node += 7) {
        assert_int_equal(ft_map_siblings_before(&near, node),
                         ft_map_siblings_before(&far, node + before));
        assert_int_equal(ft_map_parents_before(&near, node),
                         ft_map_parents_before(&far, node + before));
    }
    ft_level_map_close(&near);
    ft_level_map_close(&far);
    ft_levels_free(&l);
}

/* Runs of ones into windows far away cost what the windows hold. */
static void test_far_window(void **state)
{
    const uint64_t far = UINT64_C(1) << 40;
    uint64_t out[2];
    (void)state;
    ft_bits_out b = ft_bits_window((uint8_t *)out, far / 8, sizeof out);
    ft_bits_seek(&b, 3);
    ft_bits_ones(&b, far + 62);
    ft_bits_put(&b, 0, 7);
    ft_bits_ones(&b, far);
    assert_true(ft_bits_full(&b));
    assert_true(out[0] == ~UINT64_C(0));
    assert_true(out[1] == ~(UINT64_C(0x7F) << 1));
}

/* Directories of bits behind 2^33 others, of which all but 1000 are ones. */
static void test_settle_far_directory(void **state)
{
    const uint64_t first = before / FT_BLOCK_BITS, n_blocks = 5;
    const uint64_t n_zeros = 1000 + 500,
                   n_bits = (first + n_blocks) * FT_BLOCK_BITS - 9;
    uint64_t words[5 * 8] = {0}, ones;
    (void)state;
    uint64_t *rank = reserve((first + n_blocks + 1) * 16);
    uint32_t *hints = reserve(n_zeros * 4);
    memset(words, 0xff, sizeof words);
    for (unsigned i = 0; i < 500; i++)
        words[i * 5 / 64] &= ~(UINT64_C(1) << i * 5 % 64);
    words[39] &= ft_low_mask(64 - 9);
    ones = ft_bitvec_count(words, n_blocks, rank + first * 2);
    assert_int_equal(ones, n_blocks * 512 - 9 - 500);
    const ft_bitvec b = {.n_bits = n_bits, .n_ones = before - 1000 + ones};
    ft_bitvec_settle(&b, rank, hints, first, first + n_blocks, before - 1000, ones);
    assert_int_equal(rank[first * 2], before - 1000);
    assert_int_equal(rank[(first + 1) * 2], before - 1000 + 512 - 103);
    assert_int_equal(hints[1], first); /* zero number 1024 is the 24th from here on */
    munmap(rank, (first + n_blocks + 1) * 16);
    munmap(hints, n_zeros * 4);
}

/* Slots of nodes where a region has more than 2^32 of them. */
static void test_far_slots(void **state)
{
    ft_compact_plan plan = {.n_root_children = 3, .n_regions = 2};
    (void)state;
    plan.region[0].n_nodes = before + 1;
    plan.region[1].n_nodes = before;
    const ft_compact_shape s = ft_compact_shape_of(NULL, &plan);
    assert_int_equal(s.n_blocks, 2 * before / 128 + 1);
    assert_int_equal(ft_shape_slot(&s, 4), 0);
    assert_int_equal(ft_shape_slot(&s, 4 + before), before);
    assert_int_equal(ft_shape_slot(&s, 5 + before), before + 128);
    assert_int_equal(ft_shape_slot(&s, 5 + 2 * before), 2 * before + 128);
}

/* The largest numbers that a block holds, one at a time. */
static void test_block_place(void **state)
{
    const uint64_t most[3] = {(UINT64_C(1) << 42) - 1, (UINT64_C(1) << 46) - 1,
                              (UINT64_C(1) << 40) - 1};
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        ft_compact_block b;
        ft_block_place(&b, i == 0 ? most[0] : 0, i == 1 ? most[1] : 0,
                       i == 2 ? most[2] : 0);
        assert_true(ft_block_first_child(&b) == (i == 0 ? most[0] : 0));
        assert_true(ft_block_codes(&b) == (i == 1 ? most[1] : 0));
        assert_true(ft_block_terminals(&b) == (i == 2 ? most[2] : 0));
    }
}

/* A compact trie of one parent with five children, all of them behind 2^32 others. */
static void test_far_compact(void **state)
{
    const uint64_t parent = (UINT64_C(1) << 32) + 128 * 5 + 71, child = before + 100;
    const uint64_t block = parent / 128, child_block = child / 128;
    const uint64_t n_blocks = (before >> 7) + 64, far_bit = UINT64_C(1) << 36;
    static const uint8_t codes[] = {3, 77, 78, 200, 255};
    ft_compact *l = calloc(1, sizeof *l);
    uint32_t out[5];
    (void)state;
    ft_compact_block *blocks = reserve(n_blocks * sizeof *blocks);
    uint64_t *siblings = reserve(n_blocks * 16), *bits = reserve(far_bit / 8 + 4096);

    blocks[block].child[71 / 64] |= UINT64_C(1) << 71 % 64;
    ft_block_place(&blocks[block], child, 1, before + 14);
    ft_bit_set(siblings, child);
    ft_bit_set(siblings, child + 5);
    ft_block_place(&blocks[child_block], 0, far_bit, 0);
    memcpy((uint8_t *)bits + far_bit / 8 + child % 128, codes, sizeof codes);

    const uint64_t n = n_blocks * 128;
    l->n_regions = 2;
    l->region[0] = (ft_region){.n_nodes = 2};
    l->region[1] = (ft_region){.node = 2, .n_nodes = n, .level = 2, .width = {8}};
    l->region[2] = (ft_region){.node = 2 + n, .slot = n};
    l->first[1] = 2;
    l->first[2] = UINT64_MAX;
    l->shift[1] = (uint64_t)-2;
    l->n_root_children = l->n_root_blocks = 1;
    l->n_blocks = n_blocks;
    l->n_slots = n;
    l->blocks = blocks;
    l->siblings = siblings;
    l->codes = bits;
    const ft_trie t = {.ops = &ft_compact_ops, .layout = l, .n_nodes = n + 2};

    const ft_range r = t.ops->children(&t, 2 + parent);
    assert_int_equal(r.first, 2 + child);
    assert_int_equal(r.count, 5);
    assert_int_equal(t.ops->children(&t, 3 + parent).count, 0);
    t.ops->codes(&t, r.first, r.count, out);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(out[i], codes[i]);
    assert_int_equal(t.ops->terminal_rank(&t, 2 + block * 128), before + 14);

    munmap(blocks, n_blocks * sizeof *blocks);
    munmap(siblings, n_blocks * 16);
    munmap(bits, far_bit / 8 + 4096);
    free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_far_nodes),    cmocka_unit_test(test_far_window),
        cmocka_unit_test(test_settle_far_directory), cmocka_unit_test(test_far_slots),
        cmocka_unit_test(test_block_place),          cmocka_unit_test(test_far_compact),
    };
    alarm(TEST_SECONDS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
