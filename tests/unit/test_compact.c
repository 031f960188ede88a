/* SPDX-License-Identifier: Apache-2.0
 *
 * The compact layout against the narrow one: every accessor on every node, on shapes
 * that its blocks, regions, classes and directories make special; and damaged bytes.
 * The file is over 500 lines: there are many shapes, and all share the comparison.
 */
#include "keyset.h"

#include "../fuzz/walk_index.h"
#include "base/score.h"
#include "trie/token_set.h"
#include "trie/format.h"
#include "trie/compact_codes.h"

/* Two indexes of the same keys. */
typedef struct pair {
    ft_buf file[2];
    ft_builder *builder[2];
    ft_index *ix[2];
    const ft_trie *narrow, *compact;
    uint32_t previous[64], n_previous;
} pair;

static void pair_open(pair *p, bool ids, int level)
{
    ft_error err = {0};
    *p = (pair){0};
    for (int i = 0; i < 2; i++) {
        const ft_build_options options = {
            .layout = i ? "compact" : "narrow", .ids = ids, .compress_level = level};
        assert_ok(ft_builder_open(&p->builder[i], &options, &err), err);
    }
}

static void pair_add(pair *p, const uint32_t *tokens, uint32_t n, uint32_t lcp)
{
    ft_error err = {0};
    for (int i = 0; i < 2; i++)
        assert_ok(ft_builder_add(p->builder[i], tokens, n, lcp, &err), err);
}

static void pair_finish(pair *p)
{
    ft_error err = {0};
    for (int i = 0; i < 2; i++) {
        ft_build_summary summary;
        ft_sink *sink = sink_into(&p->file[i]);
        assert_ok(ft_builder_finish(p->builder[i], sink, &summary, &err), err);
        close_sink(sink);
        ft_builder_close(p->builder[i]);
        assert_ok(ft_index_open_memory(&p->ix[i], p->file[i].data, p->file[i].len,
                                       "pair", FT_VERIFY_FULL, &err),
                  err);
    }
    p->narrow = ft_index_trie(p->ix[0]);
    p->compact = ft_index_trie(p->ix[1]);
}

static void pair_close(pair *p)
{
    for (int i = 0; i < 2; i++) {
        ft_index_close(p->ix[i]);
        ft_buf_free(&p->file[i]);
    }
}

/* The entries of the compact index, and how many there are. */
static const ft_compact_region *regions_of(const pair *p, uint64_t *n)
{
    for (uint32_t i = 0; i < ft_index_n_sections(p->ix[1]); i++) {
        const ft_section_info s = ft_index_section(p->ix[1], i);
        *n = s.raw_bytes / sizeof(ft_compact_region);
        if (s.type == FT_SECTION_REGIONS)
            return s.data;
    }
    fail_msg("there is no section regions");
    return NULL;
}

/* Of edges with these codes in these runs, the hits are those that the filter has. */
static void check_hits(const ft_hits *hits, const ft_range *runs, uint32_t n_runs,
                       const uint32_t *codes, const uint64_t *filter)
{
    uint32_t n = 0, edge = 0;
    for (uint32_t run = 0; run < n_runs; run++)
        for (uint64_t i = 0; i < runs[run].count; i++, edge++)
            if (filter[codes[edge] % 65536 / 64] >> codes[edge] % 64 & 1) {
                assert_true(n < hits->n);
                assert_int_equal(hits->edges[n], edge);
                assert_int_equal(hits->runs[n], run);
                assert_int_equal(hits->codes[n++], codes[edge]);
            }
    assert_int_equal(n, hits->n);
}

/* Probe siblings of which these are the codes, cut into runs: one in four of the low 16
 * bits there are is in the filter, or each. */
static void check_probe(const ft_trie *t, uint64_t first, uint32_t n,
                        const uint32_t *codes, bool all, uint64_t *seed)
{
    uint64_t filter[FT_FILTER_WORDS];
    ft_hits *hits = malloc(sizeof *hits);
    for (unsigned i = 0; i < FT_FILTER_WORDS; i++)
        filter[i] = all ? UINT64_MAX : next_random(seed) & next_random(seed);
    const uint64_t longest = next_random(seed) % 2 ? 24 : 1000;
    for (uint32_t done = 0, here; done < n; done += here) {
        ft_range runs[FT_MANY];
        uint32_t n_runs = 0;
        for (here = 0; n_runs < FT_MANY && done + here < n && here < FT_PROBE_EDGES;
             n_runs++) {
            const uint32_t left = n - done - here, room = FT_PROBE_EDGES - here;
            uint64_t count = 1 + next_random(seed) % longest;
            count = count < left ? count : left;
            count = count < room ? count : room;
            runs[n_runs] = (ft_range){first + done + here, count};
            here += (uint32_t)count;
        }
        t->ops->probe(t, runs, n_runs, filter, hits);
        check_hits(hits, runs, n_runs, codes + done, filter);
        ft_compact_probe_portable(t, runs, n_runs, filter, hits);
        check_hits(hits, runs, n_runs, codes + done, filter);
    }
    free(hits);
}

/* A few labels of a group: there or not, find says the same; codes are what `code`
 * says.
 */
static void check_labels(const pair *p, ft_range r, const uint32_t *labels,
                         uint32_t level, uint64_t *seed)
{
    const ft_trie *t = p->compact;
    uint32_t *codes = malloc((r.count + 1) * sizeof *codes);
    t->ops->codes(t, r.first, r.count, codes);
    const uint64_t step = r.count < 100 ? 1 : r.count / 64;
    for (uint64_t i = 0; i < r.count; i += step) {
        assert_int_equal(t->ops->code(t, labels[i], level), codes[i]);
        assert_int_equal(t->ops->find(t, r, labels[i]), r.first + i);
        const uint32_t other = labels[i] ^ (uint32_t)(next_random(seed) % 4);
        assert_true(t->ops->find(t, r, other) ==
                    p->narrow->ops->find(p->narrow, r, other));
    }
    if (next_random(seed) % 8 == 0)
        check_probe(t, r.first, (uint32_t)r.count, codes, r.count % 2, seed);
    if (r.count > 1) { /* a run within the group */
        const uint64_t from = next_random(seed) % r.count;
        const uint64_t n = 1 + next_random(seed) % (r.count - from);
        uint32_t *part = malloc(n * sizeof *part);
        t->ops->codes(t, r.first + from, n, part);
        assert_memory_equal(part, codes + from, n * sizeof *part);
        check_probe(t, r.first + from, (uint32_t)n, part, false, seed);
        t->ops->labels(t, r.first + from, n, part);
        assert_memory_equal(part, labels + from, n * sizeof *part);
        free(part);
    }
    free(codes);
}

/* Nodes asked about together, near and far: both layouts say what each does alone. */
static void check_many(const ft_trie *t)
{
    uint64_t nodes[FT_MANY], seed = 2;
    ft_range children[FT_MANY];
    uint8_t flags[FT_MANY];
    for (uint64_t from = 0; from < t->n_nodes; from += 1 + t->n_nodes / 40) {
        const uint64_t left = t->n_nodes - from;
        const uint32_t n = left < FT_MANY ? (uint32_t)left : FT_MANY;
        for (uint32_t i = 0; i < n; i++)
            nodes[i] = i % 4 ? from + i : next_random(&seed) % t->n_nodes;
        t->ops->children_many(t, nodes, n, children);
        for (uint32_t i = 0; i < n; i++) {
            const ft_range r = t->ops->children(t, nodes[i]);
            assert_int_equal(children[i].count, r.count);
            assert_true(children[i].first == r.first || !r.count);
            nodes[i] += nodes[i] == 0 && t->n_nodes > 1; /* not of the root */
        }
        if (t->n_nodes == 1)
            return;
        t->ops->flags_many(t, nodes, n, flags);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(flags[i], t->ops->flags(t, nodes[i]));
    }
}

/* All nodes, in order. */
static void check_pair(const pair *p)
{
    const ft_trie *a = p->narrow, *b = p->compact;
    uint64_t seed = 1, place = 0, level_end = 1;
    uint32_t level = 0;
    ft_buf room[2] = {{0}, {0}};
    ft_error err = {0};
    assert_int_equal(a->n_nodes, b->n_nodes);
    assert_int_equal(a->n_keys, b->n_keys);
    assert_ok(ft_index_verify(p->ix[1], &err), err);
    for (uint64_t node = 0, next = 1; node < a->n_nodes; node++) {
        if (node == level_end) {
            level++;
            level_end = next;
        }
        const ft_range r = a->ops->children(a, node), s = b->ops->children(b, node);
        const unsigned flags = a->ops->flags(a, node);
        assert_int_equal(r.count, s.count);
        assert_int_equal(flags, b->ops->flags(b, node));
        if (node == 0 || next_random(&seed) % 8 == 0)
            place = b->ops->seek(b, node);
        const ft_visit v = b->ops->visit(b, node, &place);
        assert_int_equal(v.children.count, r.count);
        assert_int_equal(v.terminal, (flags & FT_NODE_TERMINAL) != 0);
        if (a->has_ids) {
            assert_int_equal(a->ops->terminal_rank(a, node),
                             b->ops->terminal_rank(b, node));
            assert_true(!(flags & FT_NODE_TERMINAL) ||
                        ft_trie_key_number(a, node) == ft_trie_key_number(b, node));
        }
        if (r.count == 0)
            continue;
        assert_int_equal(r.first, s.first);
        assert_int_equal(v.children.first, r.first);
        next = r.first + r.count;
        for (int i = 0; i < 2; i++) {
            room[i].len = 0;
            assert_ok(ft_buf_reserve(&room[i], r.count * 4, &err), err);
        }
        a->ops->labels(a, r.first, r.count, (uint32_t *)room[0].data);
        b->ops->labels(b, r.first, r.count, (uint32_t *)room[1].data);
        assert_memory_equal(room[0].data, room[1].data, r.count * 4);
        check_labels(p, r, (const uint32_t *)room[1].data, level + 1, &seed);
    }
    ft_buf_free(&room[0]);
    ft_buf_free(&room[1]);
    check_many(a);
    check_many(b);
}

static void add_set(pair *p, const keyset *s)
{
    for (uint64_t i = 0; i < s->n; i++) {
        const test_key *k = &s->keys[i];
        uint32_t lcp = 0;
        if (i)
            ft_keys_compare(k[-1].tokens, k[-1].n, k->tokens, k->n, &lcp);
        pair_add(p, k->tokens, k->n, lcp);
    }
}

static void check_set(const keyset *s, bool ids, int level)
{
    pair p;
    pair_open(&p, ids, level);
    add_set(&p, s);
    pair_finish(&p);
    check_pair(&p);
    pair_close(&p);
}

/* Tokens of a skewed distribution, so that classes have different widths. */
static uint32_t skewed(uint64_t *seed, uint32_t n)
{
    const uint64_t r = next_random(seed);
    const unsigned shift = (unsigned)(r >> 56) % 12;
    return (uint32_t)((r & 0xFFFFFFFF) % ((n >> shift) + 1));
}

static keyset skewed_set(uint64_t seed, uint64_t n_keys, uint32_t n_tokens,
                         uint32_t scale, uint32_t max_length)
{
    keyset s = {0};
    uint32_t tokens[64];
    for (uint64_t i = 0; i < n_keys; i++) {
        const uint32_t n = 1 + (uint32_t)(next_random(&seed) % max_length);
        for (uint32_t j = 0; j < n; j++)
            tokens[j] = skewed(&seed, n_tokens) * scale;
        keyset_add(&s, tokens, n);
    }
    keyset_settle(&s);
    return s;
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        const uint32_t n_tokens = 1u << (seed % 15);
        keyset s = skewed_set(seed, 1 + seed * seed * 3, n_tokens, 1, 1 + seed % 9);
        check_set(&s, seed % 2, seed % 3 ? 0 : 3);
        keyset_free(&s);
    }
}

/* Ids far apart: sets are sparse, and no table follows the range of ids. */
static void test_sparse_vocabulary(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        keyset s = skewed_set(seed, 4000, 40000, 107374, 1 + (uint32_t)seed);
        check_set(&s, seed % 2, 0);
        keyset_free(&s);
    }
}

/* Members of a sparse set that share their high bits: thousands, or few with long gaps
 * between them. */
static void test_clusters(void **state)
{
    (void)state;
    for (uint32_t step = 1; step < 1u << 20; step *= 37) {
        keyset s = {0};
        for (uint32_t i = 0; i < 20000; i++) {
            const uint32_t near = 70000 + i * 2, far = (1u << 31) + i / 16 * step;
            KEY(&s, near, 70001 + i * 3);
            KEY(&s, 5, far);
            KEY(&s, 5, near, far);
            KEY(&s, far);
        }
        KEY(&s, 0xFFFFFFFE, 0xFFFFFFFE, 0xFFFFFFFE);
        keyset_settle(&s);
        check_set(&s, false, 0);
        keyset_free(&s);
    }
}

static void test_odd_tokens(void **state)
{
    static const uint32_t odd[] = {0,        1,        54999,      55000,
                                   65535,    65536,    1u << 21,   (1u << 21) + 1,
                                   1u << 22, 1u << 31, 0xFFFFFFFD, 0xFFFFFFFE};
    const uint32_t n = sizeof odd / sizeof *odd;
    (void)state;
    for (uint32_t last = 1; last <= n; last++) {
        keyset s = keyset_random(last, 300, odd + n - last, last, 5);
        check_set(&s, true, 0);
        keyset_free(&s);
        s = keyset_random(last, 300, odd, last, 5);
        check_set(&s, false, 0);
        keyset_free(&s);
    }
}

static void test_small_shapes(void **state)
{
    (void)state;
    keyset s = {0};
    check_set(&s, true, 0); /* the empty library */
    KEY(&s, 7);
    check_set(&s, true, 0);
    keyset_free(&s);
    KEY(&s, 0xFFFFFFFE, 0, 0xFFFFFFFE);
    check_set(&s, false, 0);
    keyset_free(&s);
    for (uint32_t n = 1; n < 700; n += 1 + n / 3) { /* around the ends of blocks */
        for (uint32_t i = 0; i < n; i++)
            KEY(&s, i * 3);
        check_set(&s, true, 0);
        for (uint32_t i = 0; i < n; i++)
            KEY(&s, 1, i * 5);
        keyset_settle(&s);
        check_set(&s, true, 0);
        keyset_free(&s);
    }
}

/* Levels with vocabularies of their own get regions of their own. */
static void test_regions(void **state)
{
    pair p;
    keyset s = {0};
    uint64_t seed = 3;
    (void)state;
    for (uint32_t i = 0; i < 30000; i++) {
        uint32_t tokens[14];
        const uint32_t n = 2 + (uint32_t)(next_random(&seed) % 13);
        for (uint32_t j = 0; j < n; j++) {
            const uint32_t level = j < 2 ? 0 : j < 4 ? 1 : j < 6 ? 2 : j < 10 ? 3 : 4;
            tokens[j] = level * 5000 + skewed(&seed, level % 2 ? 30 : 4000);
        }
        keyset_add(&s, tokens, n);
    }
    keyset_settle(&s);
    pair_open(&p, true, 0);
    add_set(&p, &s);
    pair_finish(&p);
    uint64_t n;
    regions_of(&p, &n);
    assert_true(n > 3);
    check_pair(&p);
    pair_close(&p);
    keyset_free(&s);
}

/* Rare tokens are literal: all of them, or beside frequent ones; also in runs that are
 * longer than a block; up to the largest for which codes fit, and not beyond. */
static void test_literal(void **state)
{
    static const uint32_t largest[] = {1 << 21, 1 << 27, 0xFFFFFFF0, 0xFFFFFFFE};
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        for (uint32_t frequent = 0; frequent <= 300; frequent += 300) {
            pair p;
            keyset s = {0};
            uint64_t seed = i, n;
            for (uint32_t k = 0; k < 4000; k++) {
                const uint32_t rare = (uint32_t)(next_random(&seed) % largest[i]);
                if (frequent)
                    KEY(&s, k % 3, skewed(&seed, frequent), rare);
                else
                    KEY(&s, k % 3, rare);
            }
            KEY(&s, 4, largest[i]);
            keyset_settle(&s);
            pair_open(&p, true, 0);
            add_set(&p, &s);
            pair_finish(&p);
            const ft_compact_region *r = regions_of(&p, &n);
            bool literal = false;
            for (uint64_t k = 1; k < n; k++)
                literal |= ft_region_is_literal(&r[k]);
            assert_int_equal(literal, i < 3);
            check_pair(&p);
            pair_close(&p);
            keyset_free(&s);
        }
}

/* A node below the root with 2^21 children, and nodes behind it. */
static void test_hub(void **state)
{
    pair p;
    (void)state;
    pair_open(&p, false, 0);
    for (uint32_t i = 0; i < 1u << 21; i++) {
        const uint32_t key[] = {5, i * 3, 9, 9};
        pair_add(&p, key, i % 1000 ? 2 : 4, i ? 1 : 0);
    }
    pair_add(&p, (const uint32_t[]){6, 1, 3, 4, 5}, 5, 0);
    pair_add(&p, (const uint32_t[]){7, 2}, 2, 0);
    pair_finish(&p);
    check_pair(&p);
    pair_close(&p);
}

/* Blocks whose nodes have thousands of children each: groups are far from the first
 * child of the block. More than one stretch of the checks, with key numbers. */
static void test_wide_groups(void **state)
{
    pair p;
    (void)state;
    pair_open(&p, true, 0);
    for (uint32_t i = 0; i < 400; i++)
        for (uint32_t j = 0; j < (i % 7 ? 200u : 9000u); j++)
            for (uint32_t k = 0; k < 2 - j % 2; k++) {
                const uint32_t key[] = {i, j * 2, k + i};
                const bool first = k == 0;
                pair_add(&p, key, 3, !first ? 2 : j ? 1 : 0);
            }
    pair_finish(&p);
    assert_true(p.compact->n_nodes > 2 * 4096 * FT_COMPACT_BLOCK);
    check_pair(&p);
    pair_close(&p);
}

static void test_smaller(void **state)
{
    pair p;
    keyset s = skewed_set(1, 60000, 20000, 1, 8);
    (void)state;
    pair_open(&p, false, 0);
    add_set(&p, &s);
    pair_finish(&p);
    assert_true(p.file[1].len * 10 < p.file[0].len * 9);
    pair_close(&p);
    keyset_free(&s);
}

/* A small index with several regions would be large, so: one with every section. With a
 * scale of 1 token sets are bitmaps and the rare tokens literal; with a large one sets
 * are sparse. */
static void make_small(ft_buf *file, uint32_t scale, int level)
{
    keyset s = skewed_set(5, 150, scale > 1 ? 400 : 40, scale, 5);
    keyset_build(&s, "compact", true, level, file);
    if (level == 0) {
        const ft_index_front *f = (const ft_index_front *)file->data;
        ft_compact_region r[2];
        memcpy(r, file->data + f->table[0].offset, sizeof r);
        assert_int_equal(ft_region_is_literal(&r[1]), scale == 1);
    }
    keyset_free(&s);
}

static ft_status try_open(ft_buf *file, ft_error *err)
{
    ft_index_front *f = (ft_index_front *)file->data;
    ft_index *ix = NULL;
    f->header.checksum = ft_index_front_checksum(f);
    const ft_status st = ft_index_open_memory(&ix, file->data, file->len, "small",
                                              FT_VERIFY_STRUCTURE, err);
    if (st == FT_OK)
        walk_index(ix, 5000);
    ft_index_close(ix);
    return st;
}

/* Sections in which the structure leaves no bit free. */
static bool is_rigid(uint32_t type)
{
    return type != FT_SECTION_CODES && type != FT_SECTION_IDS &&
           type != FT_SECTION_TOKEN_SETS;
}

/* Every bit of every section: refused, by a message that names a section, or walked
 * safely (sanitizers watch). */
static void flip_bits(uint32_t scale)
{
    ft_buf file = {0};
    make_small(&file, scale, 0);
    const ft_index_front *f = (const ft_index_front *)file.data;
    for (uint32_t i = 0; i < f->header.n_sections; i++) {
        const ft_section_entry *e = &f->table[i];
        uint64_t n_refused = 0;
        for (uint64_t bit = 0; bit < e->raw_bytes * 8; bit++) {
            ft_error err = {0};
            uint8_t *byte = file.data + e->offset + bit / 8;
            *byte ^= (uint8_t)(1 << bit % 8);
            if (try_open(&file, &err) != FT_OK) {
                n_refused++;
                assert_int_equal(err.status, FT_EFORMAT);
                assert_message(err, "small: section ");
            } else if (is_rigid(e->type)) {
                fail_msg("section %u: bit %llu flipped is not seen", e->type,
                         (unsigned long long)bit);
            }
            *byte ^= (uint8_t)(1 << bit % 8);
        }
        assert_true(n_refused > 0);
    }
    assert_int_equal(try_open(&file, NULL), FT_OK);
    ft_buf_free(&file);
}

static void test_bit_flips(void **state)
{
    (void)state;
    flip_bits(1700);
    flip_bits(1);
}

static void refuse_region(ft_buf *file, const char *what)
{
    ft_error err = {0};
    assert_int_equal(try_open(file, &err), FT_EFORMAT);
    assert_message(err, "small: section regions: region 1: ");
    assert_message(err, what);
}

/* Wrong numbers of a region with literal codes: each refused for what it is, so that
 * none gets by where the sizes of the sections happen to agree. */
static void test_wrong_region(void **state)
{
    static const char last[] = "its last class is wrong";
    static const struct {
        size_t at;
        uint32_t add; /* mod 2^32 */
        const char *what;
    } wrong[] = {
        {offsetof(ft_compact_region, n_nodes), 1, "nodes out of range"},
        {offsetof(ft_compact_region, level), -1u, "level out of range"},
        {offsetof(ft_compact_region, level), 1000, "level out of range"},
        {offsetof(ft_compact_region, n_tokens), 1, "do not add up to its tokens"},
        {offsetof(ft_compact_region, n_tokens), 1u << 31, "more tokens than there are"},
        {offsetof(ft_compact_region, size), 1, "more codes than its width has"},
        {offsetof(ft_compact_region, size), -1u, "do not add up to its tokens"},
        {offsetof(ft_compact_region, width), 33, "more codes than its width has"},
        {offsetof(ft_compact_region, width[3]), 1, last},
        {offsetof(ft_compact_region, width[3]), -1u, last},
    };
    ft_buf file = {0};
    (void)state;
    make_small(&file, 1, 0);
    ft_index_front *f = (ft_index_front *)file.data;
    uint8_t *at = file.data + f->table[0].offset + sizeof(ft_compact_region);
    ft_compact_region good, r;
    memcpy(&good, at, sizeof good);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t v;
        memcpy(&v, at + wrong[i].at, sizeof v);
        v += wrong[i].add;
        memcpy(at + wrong[i].at, &v, sizeof v);
        refuse_region(&file, wrong[i].what);
        memcpy(at, &good, sizeof good);
    }

    /* No token has a code. */
    r = (ft_compact_region){.n_nodes = good.n_nodes, .level = good.level};
    memcpy(at, &r, sizeof r);
    refuse_region(&file, last);

    /* Codes of literal tokens would be 2^32 and more. */
    r = good;
    r.width[FT_CODE_CLASSES - 1] = 32;
    memcpy(at, &r, sizeof r);
    f->header.max_token = UINT32_MAX - 1;
    refuse_region(&file, last);
    ft_buf_free(&file);
}

/* Bits behind the low ones of a sparse set's members. */
static void test_set_padding(void **state)
{
    ft_buf file = {0};
    ft_error err = {0};
    (void)state;
    make_small(&file, 1700, 0);
    const ft_index_front *f = (const ft_index_front *)file.data;
    ft_compact_region root;
    memcpy(&root, file.data + f->table[0].offset, sizeof root);
    assert_int_equal(f->table[1].type, FT_SECTION_TOKEN_SETS);
    uint64_t *low = (uint64_t *)(file.data + f->table[1].offset);
    const ft_token_set s =
        ft_token_set_at(root.n_tokens, (uint64_t)f->header.max_token + 1, low);
    assert_ptr_equal(s.low, low);
    low[ft_words((uint64_t)s.n * s.low_bits)] = 1;
    assert_int_equal(try_open(&file, &err), FT_EFORMAT);
    assert_message(err, "small: section token-sets: region 0: bits beyond the last");
    ft_buf_free(&file);
}

/* Every word of the table and the regions set to hostile numbers. */
static void test_hostile_numbers(void **state)
{
    static const uint64_t hostile[] = {0,          1,          0x7FFFFFFF, 0xFFFFFFFF,
                                       1ull << 32, 1ull << 40, 1ull << 63, UINT64_MAX};
    (void)state;
    for (int level = 0; level <= 3; level += 3) {
        ft_buf file = {0};
        make_small(&file, level ? 1700 : 1, level);
        const ft_index_front *f = (const ft_index_front *)file.data;
        const uint64_t table_end =
            sizeof(ft_index_header) + f->header.n_sections * sizeof(ft_section_entry);
        const uint64_t end = f->table[0].offset + f->table[0].stored_bytes;
        assert_int_equal(f->table[0].type, FT_SECTION_REGIONS);
        for (uint64_t at = 16; at + 8 <= end; at += 4) {
            if (at >= table_end && at < FT_SECTIONS_AT)
                continue;
            for (unsigned i = 0; i < sizeof hostile / sizeof *hostile; i++) {
                uint64_t good;
                memcpy(&good, file.data + at, 8);
                memcpy(file.data + at, &hostile[i], 8);
                try_open(&file, NULL);
                memcpy(file.data + at, &hostile[i], 4);
                try_open(&file, NULL);
                memcpy(file.data + at, &good, 8);
            }
        }
        assert_int_equal(try_open(&file, NULL), FT_OK);
        ft_buf_free(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),       cmocka_unit_test(test_sparse_vocabulary),
        cmocka_unit_test(test_clusters),     cmocka_unit_test(test_odd_tokens),
        cmocka_unit_test(test_small_shapes), cmocka_unit_test(test_regions),
        cmocka_unit_test(test_literal),      cmocka_unit_test(test_hub),
        cmocka_unit_test(test_wide_groups),  cmocka_unit_test(test_smaller),
        cmocka_unit_test(test_bit_flips),    cmocka_unit_test(test_wrong_region),
        cmocka_unit_test(test_set_padding),  cmocka_unit_test(test_hostile_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
