/* SPDX-License-Identifier: Apache-2.0
 *
 * The external sort: its result is that of sorting in memory, whatever the memory, the
 * shape of the keys and the order they come in; it leaves nothing behind, and says what
 * to do where the disk is full.
 */
#include "keyset.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/score.h"
#include "trie/sort.h"
#include "trie/sort_merge.h"

static char folder[] = "/tmp/ft-test-sort-XXXXXX";

enum { MIB = 1 << 20 };

static ft_sorter *open_sorter(uint64_t memory_bytes)
{
    ft_error err = {0};
    ft_sorter *s = NULL;
    assert_ok(ft_sorter_open(&s, memory_bytes, folder, &err), err);
    return s;
}

static void add(ft_sorter *s, const uint32_t *tokens, uint32_t n)
{
    ft_error err = {0};
    assert_ok(ft_sorter_add(s, tokens, n, &err), err);
}

static void finish(ft_sorter *s)
{
    ft_error err = {0};
    assert_ok(ft_sorter_finish(s, &err), err);
}

static ft_key next_key(ft_sorter *s)
{
    ft_error err = {0};
    ft_key key;
    assert_ok(ft_sorter_next(s, &key, &err), err);
    return key;
}

static void assert_key(ft_key got, const test_key *before, const test_key *want)
{
    uint32_t lcp = 0;
    if (before)
        ft_keys_compare(before->tokens, before->n, want->tokens, want->n, &lcp);
    assert_int_equal(got.n, want->n);
    assert_int_equal(got.lcp, lcp);
    assert_memory_equal(got.tokens, want->tokens, want->n * sizeof *want->tokens);
}

static unsigned files_in_folder(void)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* The sorter, which has been given all keys of *want and `more` that are equal to some
 * and is finished, hands them out, says so again at the end, and goes. */
static void assert_sorted(ft_sorter *s, const keyset *want, uint64_t more)
{
    for (uint64_t i = 0; i < want->n; i++)
        assert_key(next_key(s), i ? &want->keys[i - 1] : NULL, &want->keys[i]);
    assert_int_equal(next_key(s).n, 0);
    assert_int_equal(next_key(s).n, 0);
    assert_int_equal(ft_sorter_n_duplicates(s), more);
    assert_int_equal(files_in_folder(), 0);
    ft_sorter_close(s);
}

static void shuffle(keyset *s, uint64_t seed)
{
    for (uint64_t i = s->n; i > 1; i--) {
        const uint64_t j = next_random(&seed) % i;
        const test_key k = s->keys[i - 1];
        s->keys[i - 1] = s->keys[j];
        s->keys[j] = k;
    }
}

static void add_all(ft_sorter *s, const keyset *set)
{
    for (uint64_t i = 0; i < set->n; i++)
        add(s, set->keys[i].tokens, set->keys[i].n);
}

static void test_nothing(void **state)
{
    const keyset none = {0};
    (void)state;
    ft_sorter *s = open_sorter(FT_SORT_MIN_MEMORY);
    finish(s);
    assert_sorted(s, &none, 0);
    ft_sorter_close(open_sorter(64 * MIB)); /* and closed unused */
    ft_sorter_close(NULL);
}

/* Alphabets: few tokens, so that prefixes and duplicates abound; the ends of the range;
 * many. */
static void test_random_keys(void **state)
{
    static const uint32_t few[] = {0, 1, 2},
                          ends[] = {
                              0, 255, 256, 65535, 65536, 1 << 24, FT_NO_TOKEN - 1};
    static const struct {
        const uint32_t *alphabet;
        uint32_t n_alphabet, max_length;
    } shape[] = {{few, 3, 12}, {few, 1, 64}, {ends, 7, 6}, {NULL, 5000, 9}};
    uint32_t many[5000];
    (void)state;
    for (uint32_t i = 0; i < 5000; i++)
        many[i] = i * 400;
    for (unsigned i = 0; i < sizeof shape / sizeof *shape; i++)
        for (uint64_t memory = MIB; memory <= 64 * MIB; memory *= 64) {
            const uint32_t *alphabet = shape[i].alphabet ? shape[i].alphabet : many;
            keyset want = keyset_random(i, 60000, alphabet, shape[i].n_alphabet,
                                        shape[i].max_length);
            keyset given = {calloc(want.n, sizeof *want.keys), want.n};
            memcpy(given.keys, want.keys, want.n * sizeof *want.keys);
            ft_sorter *s = open_sorter(memory);
            for (uint64_t round = 0; round < 3; round++) {
                shuffle(&given, round);
                add_all(s, &given);
            }
            finish(s);
            assert_sorted(s, &want, 2 * want.n);
            free(given.keys);
            keyset_free(&want);
        }
}

enum order { SCATTERED, ASCENDING, DESCENDING };

/* Key number i of 2^20: three tokens, in the order of i. */
static test_key numbered(uint32_t tokens[3], uint32_t i)
{
    tokens[0] = i >> 12;
    tokens[1] = i >> 4 & 0xFF;
    tokens[2] = i & 0xF;
    return (test_key){tokens, 3};
}

/* In memory; in a few runs; in more than can be merged at once. */
static void test_runs(void **state)
{
    enum { N = 1 << 20 };
    /* A mebibyte makes 70 runs and merges 36 at once: 35 become one first. 32 hold all
     * keys in two chunks. */
    static const struct {
        uint64_t memory, n_runs;
    } where[] = {{MIB, 70 + 1}, {16 * MIB, 3}, {32 * MIB, 0}, {64 * MIB, 0}};
    (void)state;
    for (unsigned w = 0; w < sizeof where / sizeof *where; w++)
        for (enum order order = SCATTERED; order <= DESCENDING; order++) {
            ft_sorter *s = open_sorter(where[w].memory);
            uint32_t tokens[2][3];
            for (uint32_t i = 0; i < N; i++) {
                const uint32_t at = order == ASCENDING    ? i
                                    : order == DESCENDING ? N - 1 - i
                                                          : i * 0x9E375u % N;
                add(s, numbered(tokens[0], at).tokens, 3);
            }
            finish(s);
            assert_int_equal(ft_sorter_n_runs(s), where[w].n_runs);
            assert_int_equal(ft_sorter_spilled_bytes(s) != 0, where[w].n_runs != 0);
            for (uint32_t i = 0; i < N; i++) {
                const test_key before = numbered(tokens[(i + 1) % 2], i - 1),
                               want = numbered(tokens[i % 2], i);
                assert_key(next_key(s), i ? &before : NULL, &want);
            }
            assert_int_equal(next_key(s).n, 0);
            assert_int_equal(files_in_folder(), 0);
            ft_sorter_close(s);
        }
}

/* The longest keys there are fit in the least memory, one a chunk, and are merged two
 * at a time. */
static void test_longest_keys(void **state)
{
    enum { N = 9 };
    keyset want = {0};
    uint32_t *tokens = calloc(FT_MAX_KEY_TOKENS, sizeof *tokens);
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t t = 0; t < FT_MAX_KEY_TOKENS; t++)
            tokens[t] = 0x01020304u * (t % 97);
        tokens[FT_MAX_KEY_TOKENS - 1 - 7000 * i] = FT_NO_TOKEN - 1;
        keyset_add(&want, tokens, FT_MAX_KEY_TOKENS);
    }
    keyset_settle(&want);
    ft_sorter *s = open_sorter(FT_SORT_MIN_MEMORY);
    for (uint32_t i = N; i-- > 0;)
        add(s, want.keys[i].tokens, want.keys[i].n);
    add(s, want.keys[4].tokens, want.keys[4].n);
    KEY(&want, FT_NO_TOKEN - 1); /* behind them all */
    add(s, want.keys[N].tokens, 1);
    finish(s);
    /* Each but the short one is a run, and eight merges of two leave two. */
    assert_int_equal(ft_sorter_n_runs(s), 10 + 8);
    assert_sorted(s, &want, 1);
    keyset_free(&want);
    free(tokens);
}

/* Each key is the start of the next one, so each step into the keys leaves all but two
 * undecided: recursion into them would be a thousand deep. Long ones that are equal
 * need as many steps and leave nothing. */
static void test_nested_keys(void **state)
{
    enum { LENGTH = 3000 };
    keyset want = {0}, given;
    uint32_t tokens[LENGTH];
    (void)state;
    for (uint32_t i = 0; i < LENGTH; i++) {
        tokens[i] = i % 5;
        keyset_add(&want, tokens, i + 1);
    }
    given = (keyset){calloc(LENGTH, sizeof *want.keys), LENGTH};
    memcpy(given.keys, want.keys, LENGTH * sizeof *want.keys);
    for (uint64_t memory = MIB; memory <= 64 * MIB; memory *= 64) {
        ft_sorter *s = open_sorter(memory);
        shuffle(&given, memory);
        add_all(s, &given);
        for (int i = 0; i < 1000; i++)
            add(s, tokens, LENGTH);
        finish(s);
        assert_sorted(s, &want, 1000);
    }
    free(given.keys);
    keyset_free(&want);
}

/* Counts on both sides of what a byte holds, tokens of each width, keys that go on over
 * several blocks. */
static void test_run_file(void **state)
{
    static const uint32_t count[] = {1, 2, 13, 14, 15, 16, 17, 255, 256, 5000};
    static const uint32_t max_token[] = {0, 255, 256, 1 << 24, FT_NO_TOKEN - 1};
    enum { N_COUNTS = sizeof count / sizeof *count, BLOCK = 4096 };
    ft_error err = {0};
    ft_sort_file *f = NULL;
    ft_sort_run run[5];
    uint32_t *tokens = calloc(FT_MAX_KEY_TOKENS, sizeof *tokens);
    (void)state;
    assert_ok(ft_sort_file_open(&f, folder, BLOCK, &err), err);
    for (unsigned w = 0; w < 5; w++) {
        ft_sort_file_begin(f, max_token[w]);
        for (unsigned i = 0; i < N_COUNTS; i++)
            for (unsigned j = 0; j < N_COUNTS; j++) {
                for (uint32_t t = 0; t < count[j]; t++)
                    tokens[count[i] + t] = max_token[w] - (max_token[w] ? t % 7 : 0);
                /* The key before has more than count[i] tokens but for the first. */
                const uint32_t shared = i || j ? count[i] : 0;
                ft_key key = {tokens, shared + count[j], shared};
                assert_ok(ft_sort_file_add(f, &key, &err), err);
            }
        assert_ok(ft_sort_file_end(f, &run[w], &err), err);
    }
    for (unsigned w = 5; w-- > 0;) {
        ft_sort_reader r = {0};
        ft_key key;
        assert_ok(ft_sort_reader_open(&r, f, &run[w], 2 * 5000, &err), err);
        for (unsigned i = 0; i < N_COUNTS; i++)
            for (unsigned j = 0; j < N_COUNTS; j++) {
                const uint32_t shared = i || j ? count[i] : 0;
                assert_ok(ft_sort_reader_next(&r, &key, &err), err);
                assert_int_equal(key.lcp, shared);
                assert_int_equal(key.n, shared + count[j]);
                for (uint32_t t = 0; shared && t < count[j]; t++)
                    assert_int_equal(key.tokens[shared + t],
                                     max_token[w] - (max_token[w] ? t % 7 : 0));
            }
        assert_ok(ft_sort_reader_next(&r, &key, &err), err);
        assert_int_equal(key.n, 0);
        ft_sort_reader_close(&r);
    }
    ft_sort_file_close(f);
    free(tokens);
}

/* The descriptor of the temporary file, which has no other name. */
static int temporary_file(void)
{
    for (int fd = 3; fd < 64; fd++) {
        char link[32], path[256] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, folder))
            return fd;
    }
    fail_msg("no temporary file is open");
    return -1;
}

/* Bytes that are not those that were written are found, not sorted. */
static void test_damaged_run(void **state)
{
    ft_error err = {0};
    ft_sort_file *f = NULL;
    ft_sort_run run;
    ft_key key;
    const uint32_t tokens[] = {1, 2, 3};
    (void)state;
    assert_ok(ft_sort_file_open(&f, folder, 4096, &err), err);
    ft_sort_file_begin(f, 3);
    assert_ok(ft_sort_file_add(f, &(ft_key){tokens, 3, 0}, &err), err);
    assert_ok(ft_sort_file_end(f, &run, &err), err);
    for (uint64_t end = run.begin; ++end < run.end;) {
        ft_sort_reader r = {0};
        const ft_sort_run cut = {run.begin, end, run.token_bytes};
        assert_ok(ft_sort_reader_open(&r, f, &cut, 3, &err), err);
        assert_int_equal(ft_sort_reader_next(&r, &key, &err), FT_EIO);
        assert_message(err, "the temporary file does not read as written");
        ft_sort_reader_close(&r);
    }
    for (uint64_t at = run.begin; at < run.end; at++) {
        const int fd = temporary_file();
        uint8_t byte;
        assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
        byte ^= 0xFF;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
        ft_sort_reader r = {0};
        assert_ok(ft_sort_reader_open(&r, f, &run, 3, &err), err);
        assert_int_equal(ft_sort_reader_next(&r, &key, &err), FT_EIO);
        ft_sort_reader_close(&r);
        byte ^= 0xFF;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    }
    /* Shorter keys than are there. */
    ft_sort_reader r = {0};
    assert_ok(ft_sort_reader_open(&r, f, &run, 2, &err), err);
    assert_int_equal(ft_sort_reader_next(&r, &key, &err), FT_EIO);
    ft_sort_reader_close(&r);
    ft_sort_file_close(f);
}

/* Any number of sources, some of them empty, all with the same keys. */
static void test_merge(void **state)
{
    ft_error err = {0};
    (void)state;
    for (uint32_t n = 0; n <= 9; n++) {
        ft_sort_chunk chunk[9] = {{0}};
        ft_sort_merge m = {0};
        ft_key key;
        assert_ok(ft_sort_merge_open(&m, n, &err), err);
        for (uint32_t i = 0; i < n; i++) {
            assert_ok(ft_sort_chunk_open(&chunk[i], 4096, &err), err);
            for (uint32_t k = 0; i % 4 != 3 && k < 20; k++)
                assert_true(ft_sort_chunk_add(&chunk[i], (uint32_t[]){k / 2, k, k}, 3));
            ft_sort_chunk_sort(&chunk[i]);
            m.sources[i].chunk = &chunk[i];
        }
        for (uint32_t k = 0; n && k < 20; k++) {
            assert_ok(ft_sort_merge_next(&m, &key, &err), err);
            assert_int_equal(key.n, 3);
            assert_int_equal(key.lcp, k % 2);
            assert_int_equal(key.tokens[1], k);
        }
        assert_ok(ft_sort_merge_next(&m, &key, &err), err);
        assert_int_equal(key.n, 0);
        const uint32_t full = n - n / 4;
        assert_int_equal(m.n_duplicates, n ? 20 * (full - 1) : 0);
        ft_sort_merge_close(&m);
        for (uint32_t i = 0; i < n; i++)
            ft_sort_chunk_close(&chunk[i]);
    }
}

static void test_no_folder(void **state)
{
    char path[64];
    ft_error err = {0};
    ft_sorter *s = NULL;
    (void)state;
    snprintf(path, sizeof path, "%s/file", folder);
    assert_int_equal(ft_sorter_open(&s, MIB, path, &err), FT_EIO);
    assert_message(err, strerror(ENOENT));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(ft_sorter_open(&s, MIB, path, &err), FT_EIO);
    assert_message(err, path);
    assert_message(err, strerror(ENOTDIR));
    assert_null(s);
    remove(path);
}

/* A limit on the size of files stands in for a full disk. The error comes from another
 * thread, and it stays. */
static void test_full_disk(void **state)
{
    struct rlimit before, limit;
    ft_error err = {0};
    ft_status st = FT_OK;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 300000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ft_sorter *s = open_sorter(MIB);
    for (uint64_t i = 0, seed = 1; st == FT_OK && i < 10000000; i++) {
        const uint32_t token = (uint32_t)next_random(&seed) >> 1;
        st = ft_sorter_add(s, &token, 1, &err);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(st, FT_EIO);
    assert_message(err, folder);
    assert_message(err, "cannot write the temporary file");
    assert_message(err, "--tmpdir");
    assert_message(err, strerror(EFBIG));
    assert_int_equal(ft_sorter_finish(s, &err), FT_EIO);
    ft_sorter_close(s);
    assert_int_equal(files_in_folder(), 0);
}

static int make_folder(void **state)
{
    (void)state;
    alarm(TEST_SECONDS);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),     cmocka_unit_test(test_random_keys),
        cmocka_unit_test(test_runs),        cmocka_unit_test(test_longest_keys),
        cmocka_unit_test(test_nested_keys), cmocka_unit_test(test_run_file),
        cmocka_unit_test(test_damaged_run), cmocka_unit_test(test_merge),
        cmocka_unit_test(test_no_folder),   cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
