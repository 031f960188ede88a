/* SPDX-License-Identifier: Apache-2.0
 *
 * Both ways to probe codes of the compact layout against one that decodes them one by
 * one: random blocks, widths, filters and runs.
 */
#include "keyset.h"

#include "trie/compact_codes.h"

enum { ROUNDS = 400, MAX_BLOCKS = 6, MAX_WIDTH = 28 /* two of them fit a load */ };

typedef void (*probe_fn)(const ft_trie *t, const ft_range *runs, uint32_t n,
                         const uint64_t *filter, ft_hits *hits);

/* A view of one region and its arrays, none longer than an index promises. */
typedef struct view {
    ft_compact layout;
    ft_trie trie;
    uint64_t n_nodes;
    ft_compact_block *blocks;
    uint64_t *codes;
    uint64_t bit[MAX_BLOCKS * FT_COMPACT_BLOCK];
} view;

static unsigned class_of(const view *v, uint64_t node)
{
    const ft_compact_block *c = &v->blocks[node / FT_COMPACT_BLOCK];
    const unsigned at = node % FT_COMPACT_BLOCK;
    return (unsigned)ft_bit_get(c->low, at) | (unsigned)ft_bit_get(c->high, at) << 1;
}

static void set_region(view *v, uint64_t *seed)
{
    ft_region *r = &v->layout.region[1];
    uint32_t code = 0;
    for (unsigned c = 0; c < FT_CODE_CLASSES; c++) {
        r->width[c] = (uint32_t)(next_random(seed) % (MAX_WIDTH + 1));
        r->classes.base[c] = code;
        code += UINT32_C(1) << r->width[c];
    }
    r->node = 1;
    r->n_nodes = v->n_nodes;
    ft_region_set_widths(r);
    v->layout.n_regions = 2;
    v->layout.first[1] = 1;
    v->layout.first[2] = UINT64_MAX;
    v->layout.shift[1] = (uint64_t)-1;
}

static void open_view(view *v, uint64_t *seed)
{
    const uint64_t n_blocks = 1 + next_random(seed) % MAX_BLOCKS;
    *v = (view){.n_nodes = n_blocks * FT_COMPACT_BLOCK - next_random(seed) % 100};
    v->blocks = calloc(n_blocks, sizeof *v->blocks);
    for (uint64_t b = 0; b < n_blocks; b++)
        for (unsigned i = 0; i < 2; i++) {
            v->blocks[b].low[i] = next_random(seed);
            v->blocks[b].high[i] = next_random(seed);
        }
    set_region(v, seed);
    uint64_t bit = next_random(seed) % 200;
    for (uint64_t i = 0; i < v->n_nodes; i++) {
        if (i % FT_COMPACT_BLOCK == 0) {
            bit += next_random(seed) % 100; /* where a block says who ends keys */
            ft_block_place(&v->blocks[i / FT_COMPACT_BLOCK], 0, bit, 0);
        }
        v->bit[i] = bit;
        bit += v->layout.region[1].width[class_of(v, i)];
    }
    const uint64_t n_words = ft_words(bit) + 1;
    v->codes = malloc(n_words * sizeof *v->codes);
    for (uint64_t i = 0; i < n_words; i++)
        v->codes[i] = next_random(seed);
    v->layout.n_code_bits = bit;
    v->layout.codes = v->codes;
    v->layout.blocks = v->blocks;
    v->layout.n_blocks = n_blocks;
    v->trie = (ft_trie){.ops = &ft_compact_ops, .layout = &v->layout};
}

static void close_view(view *v)
{
    free(v->blocks);
    free(v->codes);
}

static uint32_t code_of(const view *v, uint64_t node)
{
    const ft_region *r = &v->layout.region[1];
    const unsigned cls = class_of(v, node - 1);
    const uint64_t bits = ft_code_bits(v->codes, v->bit[node - 1]);
    return r->classes.base[cls] + (uint32_t)(bits & ft_low_mask(r->width[cls]));
}

/* Runs anywhere, of 1 to 20 or 700 siblings. */
static uint32_t choose_runs(const view *v, ft_range *runs, uint64_t *seed)
{
    const uint64_t longest = next_random(seed) % 3 ? 20 : 700;
    const uint64_t most = 1 + next_random(seed) % FT_MANY;
    uint32_t n = 0;
    for (uint64_t edges = 0; n < most; n++) {
        const uint64_t at = next_random(seed) % v->n_nodes;
        uint64_t count = 1 + next_random(seed) % longest;
        count = count < v->n_nodes - at ? count : v->n_nodes - at;
        if ((edges += count) > FT_PROBE_EDGES)
            break;
        runs[n] = (ft_range){1 + at, count};
    }
    return n;
}

static void check_view(const view *v, probe_fn probe, uint64_t *seed)
{
    ft_range runs[FT_MANY];
    uint64_t filter[FT_FILTER_WORDS];
    ft_hits *hits = malloc(sizeof *hits);
    const uint32_t n_runs = choose_runs(v, runs, seed);
    const unsigned how = next_random(seed) % 4;
    for (unsigned i = 0; i < FT_FILTER_WORDS; i++)
        filter[i] = how == 0   ? UINT64_MAX
                    : how == 1 ? 0
                    : how == 2 ? next_random(seed)
                               : next_random(seed) & next_random(seed) &
                                     next_random(seed) & next_random(seed);
    probe(&v->trie, runs, n_runs, filter, hits);
    uint32_t n = 0, edge = 0;
    for (uint32_t run = 0; run < n_runs; run++)
        for (uint64_t i = 0; i < runs[run].count; i++, edge++) {
            const uint32_t code = code_of(v, runs[run].first + i);
            if (!(filter[code % 65536 / 64] >> code % 64 & 1))
                continue;
            assert_true(n < hits->n);
            assert_int_equal(hits->codes[n], code);
            assert_int_equal(hits->edges[n], edge);
            assert_int_equal(hits->runs[n++], run);
        }
    assert_int_equal(n, hits->n);
    free(hits);
}

static void check_views(probe_fn probe)
{
    uint64_t seed = 7;
    view *v = malloc(sizeof *v);
    for (unsigned round = 0; round < ROUNDS; round++) {
        open_view(v, &seed);
        for (unsigned i = 0; i < 4; i++)
            check_view(v, probe, &seed);
        close_view(v);
    }
    free(v);
}

static void test_portable(void **state)
{
    (void)state;
    check_views(ft_compact_probe_portable);
}

static void test_avx512(void **state)
{
    (void)state;
    if (!ft_compact_has_avx512()) {
        print_message("skipped: the processor lacks what the probe by AVX-512 needs\n");
        skip();
    }
    check_views(ft_compact_probe_avx512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_portable),
        cmocka_unit_test(test_avx512),
    };
    alarm(TEST_SECONDS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
