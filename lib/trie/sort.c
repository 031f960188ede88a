/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory is two chunks: while one is filled, another thread sorts the other and writes
 * it as a run. The first chunk is kept until the second is full as well, so that keys
 * that fit in both are never written.
 */
#include "trie/sort.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/score.h"
#include "trie/sort_merge.h"

enum {
    MIN_BLOCK_BYTES = 1 << 14,
    MAX_BLOCK_BYTES = 1 << 20,
    BLOCKS = 1024, /* in all of memory: about as many runs are merged at once */
    /* zstd's working memory at level 1, measured: 315 KB with the smallest blocks, 680
     * KB with the largest; a block more covers what depends on their size. */
    ZSTD_BYTES = 384 << 10
};

struct ft_sorter {
    uint64_t memory_bytes;
    char *folder;
    uint32_t block_bytes;

    ft_sort_chunk chunks[2];
    ft_sort_chunk *filling;

    /* The other thread's; ours when it has been joined. */
    ft_sort_chunk *job;
    bool spill; /* write what is sorted */
    bool working;
    pthread_t thread;
    ft_error job_error;

    ft_sort_file *file; /* opened when there is something to write */
    ft_sort_run
        *runs; /* first_run .. n_runs are there, those before have been merged */
    uint64_t first_run, n_runs, cap_runs;
    uint32_t longest, max_token;

    ft_sort_merge merge;
    uint64_t n_merged_duplicates; /* by merges that are done */
};

static uint32_t block_bytes_for(uint64_t memory_bytes)
{
    const uint64_t bytes = memory_bytes / BLOCKS;
    return bytes < MIN_BLOCK_BYTES   ? MIN_BLOCK_BYTES
           : bytes > MAX_BLOCK_BYTES ? MAX_BLOCK_BYTES
                                     : (uint32_t)bytes;
}

/* What the file takes: two blocks, and zstd. */
static uint64_t file_memory(const ft_sorter *s)
{
    return ZSTD_BYTES + 3 * (uint64_t)s->block_bytes;
}

static ft_status check_folder(const char *folder, ft_error *err)
{
    struct stat st;
    if (stat(folder, &st) != 0)
        return ft_fail_errno(err, FT_EIO, errno, "%s: folder for temporary files",
                             folder);
    if (!S_ISDIR(st.st_mode))
        return ft_fail_errno(err, FT_EIO, ENOTDIR, "%s: folder for temporary files",
                             folder);
    return FT_OK;
}

ft_status ft_sorter_open(ft_sorter **out, uint64_t memory_bytes, const char *tmpdir,
                         ft_error *err)
{
    assert(memory_bytes >= FT_SORT_MIN_MEMORY);
    ft_status st = check_folder(tmpdir, err);
    if (st != FT_OK)
        return st;
    ft_sorter *s = ft_new(ft_sorter, err);
    if (!s)
        return FT_ENOMEM;
    s->memory_bytes = memory_bytes;
    s->block_bytes = block_bytes_for(memory_bytes);
    s->filling = &s->chunks[0];
    s->folder = ft_strdup(tmpdir, err);
    st = s->folder ? FT_OK : FT_ENOMEM;
    for (int i = 0; i < 2 && st == FT_OK; i++) {
        st =
            ft_sort_chunk_open(&s->chunks[i], (memory_bytes - file_memory(s)) / 2, err);
        if (st != FT_OK)
            ft_fail_prefix(err, "sorting in %llu bytes of memory",
                           (unsigned long long)memory_bytes);
    }
    if (st != FT_OK) {
        ft_sorter_close(s);
        return st;
    }
    *out = s;
    return FT_OK;
}

/* Write all keys of a merge or, where that is NULL, of a chunk as a run. */
static ft_status write_run(ft_sorter *s, ft_sort_merge *merge, ft_sort_chunk *chunk,
                           ft_error *err)
{
    void *room = s->runs;
    ft_status st = ft_reserve(&room, &s->cap_runs, s->n_runs + 1, sizeof *s->runs, err);
    s->runs = room;
    if (st == FT_OK && !s->file)
        st = ft_sort_file_open(&s->file, s->folder, s->block_bytes, err);
    if (st != FT_OK)
        return st;
    ft_key key;
    ft_sort_file_begin(s->file, s->max_token);
    for (;;) {
        st = merge ? ft_sort_merge_next(merge, &key, err)
                   : ft_sort_chunk_next(chunk, &key, err);
        if (st != FT_OK || key.n == 0)
            break;
        if ((st = ft_sort_file_add(s->file, &key, err)) != FT_OK)
            break;
    }
    if (st == FT_OK)
        st = ft_sort_file_end(s->file, &s->runs[s->n_runs], err);
    if (st == FT_OK)
        s->n_runs++;
    return st;
}

static void note_bounds(ft_sorter *s, const ft_sort_chunk *c)
{
    s->longest = c->longest > s->longest ? c->longest : s->longest;
    s->max_token = c->max_token > s->max_token ? c->max_token : s->max_token;
}

static ft_status spill(ft_sorter *s, ft_sort_chunk *c, ft_error *err)
{
    note_bounds(s, c);
    const ft_status st = write_run(s, NULL, c, err);
    if (st == FT_OK)
        ft_sort_chunk_clear(c);
    return st;
}

static void *work(void *arg)
{
    ft_sorter *s = arg;
    ft_sort_chunk_sort(s->job);
    s->job_error.status = FT_OK;
    if (s->spill)
        spill(s, s->job, &s->job_error);
    return NULL;
}

static ft_status join(ft_sorter *s, ft_error *err)
{
    if (s->working)
        pthread_join(s->thread, NULL);
    s->working = false;
    if (s->job_error.status != FT_OK && err)
        *err = s->job_error;
    return s->job_error.status;
}

/* The chunk being filled is full: go on with the other one. */
static ft_status swap_chunks(ft_sorter *s, ft_error *err)
{
    ft_sort_chunk *full = s->filling;
    ft_sort_chunk *other = &s->chunks[full == &s->chunks[0]];
    ft_status st = join(s, err);
    if (st == FT_OK && other->n) /* the first that was sorted: they do not all fit */
        st = spill(s, other, err);
    if (st != FT_OK)
        return st;
    s->job = full;
    s->spill = s->n_runs != 0;
    s->working = pthread_create(&s->thread, NULL, work, s) == 0;
    if (!s->working) /* no thread is to be had */
        work(s);
    s->filling = other;
    return FT_OK;
}

ft_status ft_sorter_add(ft_sorter *s, const uint32_t *tokens, uint32_t n, ft_error *err)
{
    if (ft_sort_chunk_add(s->filling, tokens, n))
        return FT_OK;
    const ft_status st = swap_chunks(s, err);
    if (st != FT_OK)
        return st;
    if (!ft_sort_chunk_add(s->filling, tokens, n))
        return ft_fail(err, FT_ENOMEM, "sorting: a key of %u tokens does not fit", n);
    return FT_OK;
}

/* As many runs as can be merged at once. */
static uint64_t fan_in(const ft_sorter *s)
{
    const uint64_t each = s->block_bytes + sizeof(ft_sort_source) +
                          s->longest * (uint64_t)sizeof(uint32_t);
    const uint64_t n = (s->memory_bytes - file_memory(s)) / each;
    return n < 2 ? 2 : n > INT32_MAX ? INT32_MAX : n;
}

/* Start merging the n first runs. */
static ft_status open_merge(ft_sorter *s, uint64_t n, ft_error *err)
{
    ft_status st = ft_sort_merge_open(&s->merge, (uint32_t)n, err);
    for (uint64_t i = 0; i < n && st == FT_OK; i++)
        st = ft_sort_reader_open(&s->merge.sources[i].reader, s->file,
                                 &s->runs[s->first_run + i], s->longest, err);
    return st;
}

static ft_status close_merge(ft_sorter *s, ft_status st)
{
    s->n_merged_duplicates += s->merge.n_duplicates;
    ft_sort_merge_close(&s->merge);
    s->merge.n_duplicates = 0;
    return st;
}

/* Merge just as many of the oldest, shortest runs as it takes for the rest to be merged
 * at once. */
static ft_status merge_some(ft_sorter *s, uint64_t most, ft_error *err)
{
    const uint64_t too_many = s->n_runs - s->first_run - most + 1;
    const uint64_t n = too_many < most ? too_many : most;
    ft_status st = open_merge(s, n, err);
    if (st == FT_OK)
        st = write_run(s, &s->merge, NULL, err);
    st = close_merge(s, st);
    if (st != FT_OK)
        return st;
    for (uint64_t i = 0; i < n; i++)
        ft_sort_file_drop(s->file, &s->runs[s->first_run + i]);
    s->first_run += n;
    return FT_OK;
}

static ft_status finish_in_memory(ft_sorter *s, ft_error *err)
{
    ft_sort_chunk_sort(s->filling);
    const ft_status st = ft_sort_merge_open(&s->merge, 2, err);
    if (st == FT_OK)
        for (int i = 0; i < 2; i++)
            s->merge.sources[i].chunk = &s->chunks[i];
    return st;
}

ft_status ft_sorter_finish(ft_sorter *s, ft_error *err)
{
    ft_status st = join(s, err);
    if (st != FT_OK)
        return st;
    if (s->n_runs == 0)
        return finish_in_memory(s, err);
    ft_sort_chunk_sort(s->filling);
    st = spill(s, s->filling, err);
    for (int i = 0; i < 2; i++)
        ft_sort_chunk_close(&s->chunks[i]);
    const uint64_t most = fan_in(s);
    while (st == FT_OK && s->n_runs - s->first_run > most)
        st = merge_some(s, most, err);
    return st == FT_OK ? open_merge(s, s->n_runs - s->first_run, err) : st;
}

ft_status ft_sorter_next(ft_sorter *s, ft_key *key, ft_error *err)
{
    return ft_sort_merge_next(&s->merge, key, err);
}

uint64_t ft_sorter_n_duplicates(const ft_sorter *s)
{
    uint64_t n = s->n_merged_duplicates + s->merge.n_duplicates;
    for (int i = 0; i < 2; i++)
        if (!s->working || s->job != &s->chunks[i])
            n += s->chunks[i].n_duplicates;
    return n;
}

uint64_t ft_sorter_n_runs(const ft_sorter *s)
{
    return s->n_runs;
}

uint64_t ft_sorter_spilled_bytes(const ft_sorter *s)
{
    return s->file ? ft_sort_file_bytes(s->file) : 0;
}

void ft_sorter_close(ft_sorter *s)
{
    if (!s)
        return;
    join(s, NULL);
    for (int i = 0; i < 2; i++)
        ft_sort_chunk_close(&s->chunks[i]);
    ft_sort_merge_close(&s->merge);
    ft_sort_file_close(s->file);
    free(s->runs);
    free(s->folder);
    free(s);
}
