/* SPDX-License-Identifier: Apache-2.0
 *
 * A run is blocks: u32 compressed bytes, then a zstd frame with its checksum. A block
 * is keys, front-coded: a byte with the number of tokens shared with the key before it
 * and, in the high half, of those that follow; HALF_IN_U16 in a half: it is a u16 after
 * the byte, the shared one first; then the tokens, token_bytes each, little-endian. A
 * key's tokens may go on in the next block; no token and no head of a key is cut.
 */
#include "trie/sort_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "base/bits.h"
#include "base/score.h"

enum {
    HALF_BITS = 4,
    HALF_IN_U16 = (1 << HALF_BITS) - 1,
    MAX_HEAD_BYTES = 1 + 2 * sizeof(uint16_t),
    PADDING = sizeof(uint32_t), /* tokens are read and written four bytes at a time */
    LEVEL = 1
};

struct ft_sort_file {
    const char *folder;
    int fd;
    uint32_t block_bytes;
    size_t packed_cap;
    uint64_t end; /* of the file */
    uint8_t *raw; /* the block being filled */
    size_t n_raw;
    uint8_t *packed; /* a compressed block on its way, its length in front */
    ZSTD_CCtx *cctx;
    ZSTD_DCtx *dctx;
    ft_sort_run run; /* being written */
};

/* Where the file system has no files without a name, the name goes at once; no signal
 * comes in between. */
static int open_unnamed(const char *folder)
{
    char path[4096];
    sigset_t all, before;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    const int n = snprintf(path, sizeof path, "%s/ft-sort.XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return fd;
}

ft_status ft_sort_file_open(ft_sort_file **out, const char *folder,
                            uint32_t block_bytes, ft_error *err)
{
    ft_sort_file *f = ft_new(ft_sort_file, err);
    if (!f)
        return FT_ENOMEM;
    ft_status st = FT_OK;
    f->folder = folder;
    f->block_bytes = block_bytes;
    f->packed_cap = sizeof(uint32_t) + ZSTD_compressBound(block_bytes);
    f->raw = ft_alloc_aligned(block_bytes + PADDING, 1, err);
    f->packed = ft_alloc_aligned(f->packed_cap, 1, err);
    f->cctx = ZSTD_createCCtx();
    f->dctx = ZSTD_createDCtx();
    f->fd = open_unnamed(folder);
    if (!f->raw || !f->packed)
        st = FT_ENOMEM;
    else if (!f->cctx || !f->dctx)
        st = ft_fail(err, FT_ENOMEM, "out of memory (zstd)");
    else if (f->fd < 0)
        st = ft_fail_errno(err, FT_EIO, errno,
                           "%s: cannot create a temporary file (--tmpdir takes another "
                           "folder)",
                           folder);
    if (st != FT_OK) {
        ft_sort_file_close(f);
        return st;
    }
    ZSTD_CCtx_setParameter(f->cctx, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(f->cctx, ZSTD_c_checksumFlag, 1);
    *out = f;
    return FT_OK;
}

void ft_sort_file_close(ft_sort_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    ZSTD_freeCCtx(f->cctx);
    ZSTD_freeDCtx(f->dctx);
    free(f->raw);
    free(f->packed);
    free(f);
}

uint64_t ft_sort_file_bytes(const ft_sort_file *f)
{
    return f->end;
}

void ft_sort_file_drop(ft_sort_file *f, const ft_sort_run *run)
{
    if (run->begin < run->end)
        fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)run->begin,
                  (off_t)(run->end - run->begin));
}

static ft_status write_file(ft_sort_file *f, const uint8_t *data, size_t n,
                            ft_error *err)
{
    while (n) {
        const ssize_t done = pwrite(f->fd, data, n, (off_t)f->end);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return ft_fail_errno(
                err, FT_EIO, done ? errno : ENOSPC,
                "%s: cannot write the temporary file, %llu bytes so far (--tmpdir "
                "takes "
                "another folder, and with a larger --memory less is written)",
                f->folder, (unsigned long long)f->end);
        data += done;
        n -= (size_t)done;
        f->end += (uint64_t)done;
    }
    return FT_OK;
}

static ft_status write_block(ft_sort_file *f, ft_error *err)
{
    const size_t n = ZSTD_compress2(f->cctx, f->packed + sizeof(uint32_t),
                                    f->packed_cap - sizeof(uint32_t), f->raw, f->n_raw);
    if (ZSTD_isError(n))
        return ft_fail(err, FT_ENOMEM, "%s: cannot compress the temporary file: %s",
                       f->folder, ZSTD_getErrorName(n));
    const uint32_t bytes = (uint32_t)n;
    memcpy(f->packed, &bytes, sizeof bytes);
    f->n_raw = 0;
    return write_file(f, f->packed, sizeof bytes + n, err);
}

void ft_sort_file_begin(ft_sort_file *f, uint32_t max_token)
{
    f->run.begin = f->end;
    f->run.token_bytes = (ft_bit_width(max_token | 1) + 7) / 8;
}

/* Write the head of a key, for which there is room. */
static void put_head(ft_sort_file *f, uint32_t shared, uint32_t rest)
{
    uint8_t *head = f->raw + f->n_raw, *p = head + 1;
    const uint32_t count[2] = {shared, rest};
    *head = 0;
    for (unsigned i = 0; i < 2; i++) {
        const uint16_t whole = (uint16_t)count[i];
        const bool fits = whole < HALF_IN_U16;
        *head |= (uint8_t)((fits ? whole : HALF_IN_U16) << i * HALF_BITS);
        memcpy(p, &whole, sizeof whole);
        p += fits ? 0 : sizeof whole;
    }
    f->n_raw = (size_t)(p - f->raw);
}

ft_status ft_sort_file_add(ft_sort_file *f, const ft_key *key, ft_error *err)
{
    const uint32_t width = f->run.token_bytes;
    const uint32_t *token = key->tokens + key->lcp, *end = key->tokens + key->n;
    ft_status st;
    if (f->block_bytes - f->n_raw < MAX_HEAD_BYTES &&
        (st = write_block(f, err)) != FT_OK)
        return st;
    put_head(f, key->lcp, key->n - key->lcp);
    while (token < end) {
        const size_t room = (f->block_bytes - f->n_raw) / width;
        const size_t left = (size_t)(end - token), n = left < room ? left : room;
        uint8_t *p = f->raw + f->n_raw;
        f->n_raw += n * width;
        for (size_t i = 0; i < n; i++, p += width)
            memcpy(p, token++, sizeof *token);
        if (token < end && (st = write_block(f, err)) != FT_OK)
            return st;
    }
    return FT_OK;
}

ft_status ft_sort_file_end(ft_sort_file *f, ft_sort_run *run, ft_error *err)
{
    ft_status st = FT_OK;
    if (f->n_raw)
        st = write_block(f, err);
    if (st != FT_OK)
        return st;
    f->run.end = f->end;
    *run = f->run;
    return FT_OK;
}

static ft_status fail_damaged(const ft_sort_file *f, ft_error *err)
{
    return ft_fail(err, FT_EIO, "%s: the temporary file does not read as written",
                   f->folder);
}

static ft_status read_file(ft_sort_reader *r, uint8_t *to, size_t n, ft_error *err)
{
    if (n > r->end - r->at)
        return fail_damaged(r->file, err);
    while (n) {
        const ssize_t got = pread(r->file->fd, to, n, (off_t)r->at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ft_fail_errno(err, FT_EIO, errno,
                                 "%s: cannot read the temporary file", r->file->folder);
        if (got == 0)
            return fail_damaged(r->file, err);
        to += got;
        n -= (size_t)got;
        r->at += (uint64_t)got;
    }
    return FT_OK;
}

static ft_status read_block(ft_sort_reader *r, ft_error *err)
{
    ft_sort_file *f = r->file;
    uint32_t bytes;
    ft_status st = read_file(r, (uint8_t *)&bytes, sizeof bytes, err);
    if (st == FT_OK && bytes > f->packed_cap)
        st = fail_damaged(f, err);
    if (st == FT_OK)
        st = read_file(r, f->packed, bytes, err);
    if (st != FT_OK)
        return st;
    const size_t n =
        ZSTD_decompressDCtx(f->dctx, r->block, f->block_bytes, f->packed, bytes);
    if (ZSTD_isError(n) || n == 0)
        return fail_damaged(f, err);
    r->p = r->block;
    r->block_end = r->block + n;
    if (r->at < r->end) /* the next block, likely in time: a hint that may fail */
        posix_fadvise(f->fd, (off_t)r->at, (off_t)bytes, POSIX_FADV_WILLNEED);
    return FT_OK;
}

ft_status ft_sort_reader_open(ft_sort_reader *r, ft_sort_file *f,
                              const ft_sort_run *run, uint32_t longest, ft_error *err)
{
    r->file = f;
    r->at = run->begin;
    r->end = run->end;
    r->token_bytes = run->token_bytes;
    r->longest = longest;
    r->block = ft_alloc_aligned(f->block_bytes + PADDING, 1, err);
    r->tokens = ft_calloc(longest, sizeof *r->tokens, err);
    r->p = r->block_end = r->block;
    return r->block && r->tokens ? FT_OK : FT_ENOMEM;
}

void ft_sort_reader_close(ft_sort_reader *r)
{
    free(r->block);
    free(r->tokens);
    *r = (ft_sort_reader){0};
}

/* A half of a head: as it is, or from the u16 at *p. */
static uint32_t take_half(uint32_t half, const uint8_t **p)
{
    uint16_t whole;
    half &= HALF_IN_U16;
    if (half < HALF_IN_U16)
        return half;
    memcpy(&whole, *p, sizeof whole);
    *p += sizeof whole;
    return whole;
}

static ft_status read_tokens(ft_sort_reader *r, uint32_t *to, uint32_t left,
                             ft_error *err)
{
    const uint32_t width = r->token_bytes, mask = (uint32_t)ft_low_mask(8 * width);
    for (;;) {
        const size_t have = (size_t)(r->block_end - r->p) / width;
        const uint32_t n = left < have ? left : (uint32_t)have;
        const uint8_t *p = r->p;
        for (uint32_t i = 0; i < n; i++, p += width) {
            uint32_t token;
            memcpy(&token, p, sizeof token);
            *to++ = token & mask;
        }
        r->p = p;
        left -= n;
        if (left == 0)
            return FT_OK;
        const ft_status st = read_block(r, err);
        if (st != FT_OK)
            return st;
    }
}

ft_status ft_sort_reader_next(ft_sort_reader *r, ft_key *key, ft_error *err)
{
    ft_status st;
    if (r->p == r->block_end) {
        if (r->at == r->end) {
            *key = (ft_key){0};
            return FT_OK;
        }
        if ((st = read_block(r, err)) != FT_OK)
            return st;
    }
    uint8_t head[MAX_HEAD_BYTES] = {0};
    const size_t left = (size_t)(r->block_end - r->p);
    memcpy(head, r->p, left < sizeof head ? left : sizeof head);
    const uint8_t *p = head + 1;
    const uint32_t shared = take_half(head[0], &p);
    const uint32_t rest = take_half(head[0] >> HALF_BITS, &p);
    if ((size_t)(p - head) > left || shared > r->n || rest == 0 ||
        rest > r->longest - shared)
        return fail_damaged(r->file, err);
    r->p += p - head;
    if ((st = read_tokens(r, r->tokens + shared, rest, err)) != FT_OK)
        return st;
    r->n = shared + rest;
    *key = (ft_key){r->tokens, r->n, shared};
    return FT_OK;
}
