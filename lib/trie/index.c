/* SPDX-License-Identifier: Apache-2.0 */
#include "trie/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trie/image.h"
#include "trie/tails.h"

static ft_status map_file(ft_index *ix, ft_error *err)
{
    struct stat st;
    ft_status status = FT_OK;
    const int fd = open(ix->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ft_fail_errno(err, FT_EIO, errno, "cannot open");
    if (fstat(fd, &st) != 0) {
        status = ft_fail_errno(err, FT_EIO, errno, "cannot read its size");
    } else if (!S_ISREG(st.st_mode)) {
        status = ft_fail(err, FT_EIO, "an index is mapped: give a regular file");
    } else if (st.st_size > 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) {
            status = ft_fail_errno(err, FT_EIO, errno, "cannot map");
        } else {
            ix->bytes = map;
            ix->n_bytes = (uint64_t)st.st_size;
            ix->mapped = true;
        }
    }
    close(fd);
    return status;
}

static ft_status open_trie(ft_index *ix, ft_error *err)
{
    const ft_index_header *h = &ix->front.header;
    ix->layout = ft_layout_by_id(h->layout);
    if (!ix->layout)
        return ft_fail(err, FT_EFORMAT,
                       "layout %u is not known: the index comes from another version",
                       h->layout);
    ix->trie = (ft_trie){
        .n_nodes = h->n_nodes,
        .n_numbered = h->n_nodes,
        .n_keys = h->n_keys,
        .depth = h->depth,
        .max_token = h->max_token,
        .level_order = h->flags & FT_INDEX_LEVEL_ORDER,
        .has_ids = h->flags & FT_INDEX_HAS_IDS,
    };
    const ft_sections sections = {h, ix->front.table, ix->data, h->n_sections};
    return ix->layout->open(&ix->trie, &sections, err);
}

/* Checksums come before decompression: a damaged frame is reported as damage. */
static ft_status open_bytes(ft_index *ix, ft_verify verify, ft_error *err)
{
    ft_status st = ft_image_check_front(ix, err);
    if (st == FT_OK && verify == FT_VERIFY_FULL)
        st = ft_image_check_sums(ix, err);
    if (st == FT_OK)
        st = ft_image_load(ix, err);
    if (st == FT_OK)
        st = open_trie(ix, err);
    if (st == FT_OK && verify != FT_VERIFY_NONE)
        st = ix->layout->verify(&ix->trie, ix->n_threads, err);
    return st;
}

static ft_index *new_index(const char *name, uint32_t n_threads, ft_error *err)
{
    ft_index *ix = ft_new(ft_index, err);
    if (!ix)
        return NULL;
    ix->n_threads = n_threads;
    ix->name = ft_strdup(name, err);
    if (!ix->name) {
        free(ix);
        return NULL;
    }
    return ix;
}

ft_status ft_index_open(ft_index **out, const char *path, ft_verify verify,
                        uint32_t n_threads, ft_error *err)
{
    ft_index *ix = new_index(path, n_threads, err);
    if (!ix)
        return FT_ENOMEM;
    ft_status st = map_file(ix, err);
    if (st == FT_OK)
        st = open_bytes(ix, verify, err);
    if (st != FT_OK) {
        ft_fail_prefix(err, "%s", path);
        ft_index_close(ix);
        return st;
    }
    *out = ix;
    return FT_OK;
}

ft_status ft_index_open_memory(ft_index **out, const void *data, uint64_t bytes,
                               const char *name, ft_verify verify, ft_error *err)
{
    ft_index *ix = new_index(name, 1, err);
    if (!ix)
        return FT_ENOMEM;
    ix->bytes = data;
    ix->n_bytes = bytes;
    const ft_status st = open_bytes(ix, verify, err);
    if (st != FT_OK) {
        ft_fail_prefix(err, "%s", name);
        ft_index_close(ix);
        return st;
    }
    *out = ix;
    return FT_OK;
}

void ft_index_close(ft_index *ix)
{
    if (!ix)
        return;
    for (uint32_t i = 0; i < FT_MAX_SECTIONS; i++)
        free(ix->owned[i]);
    if (ix->trie.layout && ix->layout->close)
        ix->layout->close(&ix->trie);
    free((void *)ix->trie.layout);
    if (ix->mapped)
        munmap((void *)ix->bytes, ix->n_bytes);
    free(ix->name);
    free(ix);
}

ft_status ft_index_is_index(ft_stream *in, bool *index, ft_error *err)
{
    const size_t want = strlen(FT_INDEX_MAGIC);
    const uint8_t *data;
    size_t avail;
    const ft_status st = ft_stream_peek(in, want, &data, &avail, err);
    if (st == FT_OK)
        *index = avail >= want && memcmp(data, FT_INDEX_MAGIC, want) == 0;
    return st;
}

const ft_trie *ft_index_trie(const ft_index *ix)
{
    return &ix->trie;
}

const char *ft_index_layout(const ft_index *ix)
{
    return ix->layout->name;
}

const char *ft_index_name(const ft_index *ix)
{
    return ix->name;
}

uint64_t ft_index_file_bytes(const ft_index *ix)
{
    return ix->n_bytes;
}

bool ft_index_tails(const ft_index *ix, ft_tail_summary *out)
{
    if (!ft_tails_form_of(ix->layout))
        return false;
    ft_tails_summarise(&ix->trie, out);
    return true;
}

uint32_t ft_index_n_sections(const ft_index *ix)
{
    return ix->front.header.n_sections;
}

ft_section_info ft_index_section(const ft_index *ix, uint32_t i)
{
    const ft_section_entry *e = &ix->front.table[i];
    return (ft_section_info){
        .name = ft_section_name(e->type),
        .type = e->type,
        .encoding = e->encoding,
        .offset = e->offset,
        .stored_bytes = e->stored_bytes,
        .raw_bytes = e->raw_bytes,
        .checksum = e->checksum,
        .data = ix->data[i],
    };
}
