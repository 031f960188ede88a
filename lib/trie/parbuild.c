/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys to level arrays on many threads. The input is cut into blocks at key borders;
 * each block, with the last key before it, is parsed, checked and turned into level
 * arrays of its own, and these are joined in order. What a block does not share with
 * the key before it is all that it adds, so the outcome is that of one pass, whatever
 * the blocks, and so are the messages: lines or records before a block are known.
 */
#include <stdlib.h>

#include "trie/builder.h"
#include "trie/keys_input.h"
#include "trie/pipeline.h"

enum { DEFAULT_BLOCK_BYTES = 4 << 20, KEYS_BETWEEN_TICKS = 4096 };

/* A slot of the pipeline. */
typedef struct part {
    ft_tokens_block block;
    ft_keys_input in; /* over the block */
    ft_levels levels;
} part;

typedef struct job {
    ft_builder *b;
    ft_keys *keys;
    ft_keys_input *in; /* the whole */
    part *parts;
    const ft_build_tick *tick;
} job;

static void tell(const job *j)
{
    if (j->tick && j->tick->fn)
        j->tick->fn(j->tick->arg, j->keys);
}

static ft_status take(void *arg, uint32_t slot, ft_taken *what, ft_error *err)
{
    const job *j = arg;
    ft_tokens_block *block = &j->parts[slot].block;
    const ft_status st = ft_tokens_cut(j->in->reader, block, j->b->block_bytes, err);
    *what = block->data.len ? FT_TAKEN : block->later ? FT_TAKE_LATER : FT_TAKEN_ALL;
    return st;
}

static ft_status open_part(const job *j, part *p, ft_error *err)
{
    if (p->in.reader)
        return FT_OK;
    p->levels.ids = j->b->levels.ids;
    return ft_tokens_open_blocks(&p->in.reader, j->in->reader, err);
}

/* Stand at the last key before the block. */
static ft_status read_previous(part *p, ft_error *err)
{
    ft_keys_input *in = &p->in;
    ft_status st = FT_OK;
    in->n = 0;
    if (p->block.previous.len) {
        ft_tokens_set_previous(in->reader, &p->block);
        st = ft_keys_input_next(in, err);
    }
    in->n_read = in->n_duplicates = 0;
    return st;
}

static ft_status work(void *arg, uint32_t slot, ft_error *err)
{
    const job *j = arg;
    part *p = &j->parts[slot];
    ft_keys_input *in = &p->in;
    ft_status st = open_part(j, p, err);
    if (st == FT_OK)
        st = read_previous(p, err);
    if (st == FT_OK)
        st = ft_levels_restart(&p->levels, in->n, err);
    if (st != FT_OK)
        return st;
    ft_tokens_set_block(in->reader, &p->block);
    while ((st = ft_keys_input_next(in, err)) == FT_OK && in->n) {
        st = ft_levels_add(&p->levels, in->tokens, in->n, in->lcp, err);
        if (st != FT_OK)
            break;
    }
    return st;
}

static ft_status put(void *arg, uint32_t slot, ft_error *err)
{
    job *j = arg;
    const part *p = &j->parts[slot];
    ft_levels *l = &j->b->levels;
    if (l->n_nodes + p->levels.n_nodes >= FT_MAX_NODES)
        return ft_builder_full(err);
    const ft_status st = ft_levels_join(l, &p->levels, err);
    if (st != FT_OK)
        return st;
    j->in->n_read += p->in.n_read;
    j->in->n_duplicates += p->in.n_duplicates;
    j->in->block_bytes = p->block.end;
    ft_tokens_add_skipped(j->in->reader, ft_tokens_n_skipped(p->in.reader));
    tell(j);
    return FT_OK;
}

/* Let the whole input stand where the blocks end. */
static ft_status resume(job *j, ft_error *err)
{
    part *p = &j->parts[0];
    ft_status st = ft_tokens_cut(j->in->reader, &p->block, 0, err);
    if (st == FT_OK)
        st = open_part(j, p, err);
    if (st == FT_OK)
        st = read_previous(p, err);
    if (st != FT_OK)
        return st;
    j->in->tokens = p->in.tokens;
    j->in->cap = p->in.cap;
    j->in->n = p->in.n;
    j->in->by_blocks = false;
    p->in.tokens = NULL;
    return FT_OK;
}

static ft_status add_blocks(job *j, ft_error *err)
{
    const ft_pipeline pipeline = {j, take, work, put};
    const uint32_t n_threads = ft_thread_count(j->b->n_threads);
    const uint32_t n_slots = ft_pipeline_slots(n_threads);
    j->parts = ft_calloc(n_slots, sizeof *j->parts, err);
    if (!j->parts)
        return FT_ENOMEM;
    j->in->by_blocks = true;
    j->in->block_bytes = ft_tokens_offset(j->in->reader);
    ft_status st = ft_pipeline_run(&pipeline, n_threads, err);
    if (st == FT_OK && ft_tokens_has_rest(j->in->reader))
        st = resume(j, err);
    for (uint32_t i = 0; i < n_slots; i++) {
        ft_tokens_block_free(&j->parts[i].block);
        ft_keys_input_close(&j->parts[i].in);
        ft_levels_free(&j->parts[i].levels);
    }
    free(j->parts);
    return st;
}

static ft_status add_one_by_one(const job *j, ft_error *err)
{
    for (bool more = true; more; tell(j)) {
        const ft_status st = ft_keys_gather(j->keys, &more, err);
        if (st != FT_OK)
            return st;
    }
    for (uint64_t i = 1;; i++) {
        ft_key key;
        ft_status st = ft_keys_next(j->keys, &key, err);
        if (st != FT_OK || key.n == 0)
            return st;
        st = ft_builder_add(j->b, key.tokens, key.n, key.lcp, err);
        if (st != FT_OK)
            return st;
        if (i % KEYS_BETWEEN_TICKS == 0)
            tell(j);
    }
}

ft_status ft_builder_add_keys(ft_builder *b, ft_keys *keys, const ft_build_tick *tick,
                              ft_error *err)
{
    job j = {.b = b, .keys = keys, .in = ft_keys_only_input(keys), .tick = tick};
    if (b->block_bytes == 0)
        b->block_bytes = DEFAULT_BLOCK_BYTES;
    if (j.in) {
        const ft_status st = add_blocks(&j, err);
        if (st != FT_OK || !ft_tokens_has_rest(j.in->reader))
            return st;
    }
    return add_one_by_one(&j, err);
}
