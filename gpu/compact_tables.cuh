/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of compact_view, made once an engine: from token to code and back, in
 * place of token sets and classes; and where every sixteenth sibling group starts, with
 * the groups before each block, since one thread that looks for a group word by word
 * keeps 31 waiting. Where sixteen groups span many words, all their starts are listed
 * (the sparse blocks of Okanohara and Sadakane's darray): under a bit a node together.
 * What a first token leads to is a table as well, where first tokens are not too many.
 */
#ifndef FT_GPU_COMPACT_TABLES_CUH
#define FT_GPU_COMPACT_TABLES_CUH

#include "compact_view.cuh"

namespace ft
{

/* Groups that start before a slot. */
static __device__ uint64_t groups_before(const compact_view &v, uint64_t slot)
{
    uint64_t word = slot / 64 / FT_SIBLING_RANK * FT_SIBLING_RANK;
    uint64_t n = v.sibling_rank[word / FT_SIBLING_RANK];
    for (; word < slot / 64; word++)
        n += __popcll(v.siblings[word]);
    return n + __popcll(v.siblings[word] & ft_low_mask(slot % 64));
}

/* Fill the slots of the view's starts (a thread an entry of the ranks) and groups. */
static __global__ void fill_starts(const __grid_constant__ compact_view v,
                                   uint64_t n_words, uint64_t n_slots,
                                   uint64_t n_starts, group_start *starts,
                                   uint64_t n_blocks, uint32_t *groups)
{
    const uint64_t thread = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    const uint64_t n_threads = gridDim.x * (uint64_t)blockDim.x;
    for (uint64_t i = thread; i <= v.last_rank; i += n_threads) {
        uint64_t group = v.sibling_rank[i];
        for (uint64_t word = i * FT_SIBLING_RANK;
             word < (i + 1) * FT_SIBLING_RANK && word < n_words; word++)
            for (uint64_t w = v.siblings[word]; w; w &= w - 1, group++)
                if (group % GROUPS_A_START == 0)
                    starts[group / GROUPS_A_START].slot =
                        (uint32_t)(word * 64 + ft_lowest_bit(w));
    }
    if (thread == 0)
        starts[n_starts].slot = (uint32_t)n_slots;
    for (uint64_t i = thread; i < n_blocks; i += n_threads)
        groups[i] = (uint32_t)groups_before(v, ft_block_first_child(&v.blocks[i]));
}

/* `v` is without the table. */
static __global__ void fill_root_children(const __grid_constant__ compact_view v,
                                          child_slots *to)
{
    const uint64_t n_threads = gridDim.x * (uint64_t)blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < v.n_top;
         i += n_threads) {
        const ft_range r = i ? v.children_of_top(i) : ft_range{v.n_top, 0};
        to[i] = {r.count ? (uint32_t)(r.first - v.n_top) : 0, (uint32_t)r.count};
    }
}

/* List the starts that are far apart, and count them; lists NULL: only count. */
static __global__ void fill_lists(const __grid_constant__ compact_view v,
                                  uint64_t n_starts, group_start *starts,
                                  uint32_t *lists, uint32_t *n_lists)
{
    const uint64_t n_threads = gridDim.x * (uint64_t)blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n_starts;
         i += n_threads) {
        const uint64_t from = starts[i].slot, to = starts[i + 1].slot;
        starts[i].list = NOT_LISTED;
        if (to - from <= LONG_SPAN)
            continue;
        const uint32_t at = atomicAdd(n_lists, 1u) * (GROUPS_A_START + 1);
        if (!lists)
            continue;
        starts[i].list = at;
        uint32_t n = 0;
        for (uint64_t word = from / 64; word * 64 < to; word++)
            for (uint64_t w = v.siblings[word]; w; w &= w - 1) {
                const uint64_t slot = word * 64 + ft_lowest_bit(w);
                if (slot >= from && slot < to)
                    lists[at + n++] = (uint32_t)slot;
            }
        for (; n <= GROUPS_A_START; n++)
            lists[at + n] = (uint32_t)to;
    }
}

/* Words of sibling bits that hold slots. */
static uint64_t n_slot_words(const ft_compact *l)
{
    return l->n_blocks * (FT_COMPACT_BLOCK / 64);
}

static bool has_starts(const ft_compact *l)
{
    return l->n_blocks > 0 && l->n_blocks * FT_COMPACT_BLOCK < UINT32_MAX;
}

/* Entries of the starts, less the end. */
static uint64_t n_starts(const ft_compact *l)
{
    uint64_t word = ft_compact_n_ranks(l->n_blocks) - 1;
    uint64_t n_groups = l->sibling_rank[word];
    for (word *= FT_SIBLING_RANK; word < n_slot_words(l); word++)
        n_groups += ft_popcount(l->siblings[word]);
    return (n_groups + GROUPS_A_START - 1) / GROUPS_A_START;
}

/* Entries of root_children. */
static uint64_t n_root_table(const ft_compact *l)
{
    return l->n_root_children < MAX_TABLE ? l->n_root_children + 1 : 0;
}

/* Where a region's tables lie in the device's one allocation, in u32. */
struct table_places {
    uint64_t token_of, codes, tokens, end;
};

static table_places places_of(const ft_region *r, uint32_t n_ids, uint64_t from)
{
    table_places p;
    p.token_of = from;
    p.codes = p.token_of + r->set.n;
    p.tokens = p.codes + (n_ids ? n_ids : r->set.n);
    p.end = p.tokens + (n_ids ? 0 : r->set.n);
    return p;
}

static uint32_t n_table_ids(const ft_device_index *d)
{
    return d->trie->max_token < MAX_TABLE ? d->trie->max_token + 1 : 0;
}

inline ft_status compact_view::make_tables(ft_device_index *d, ft_error *err)
{
    const ft_compact *l = (const ft_compact *)d->trie->layout;
    const uint32_t n_ids = n_table_ids(d);
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n_regions; i++)
        n = places_of(&l->region[i], n_ids, n).end;
    uint32_t *tables = (uint32_t *)ft_calloc(n, 4, err);
    if (!tables)
        return FT_ENOMEM;
    uint64_t from = 0;
    for (uint32_t i = 0; i < l->n_regions; i++) {
        const ft_region *r = &l->region[i];
        const table_places p = places_of(r, n_ids, from);
        from = p.end;
        for (uint32_t id = 0; id < n_ids; id++)
            tables[p.codes + id] = r->literal ? r->set.n + id : FT_NO_TOKEN;
        for (uint32_t k = 0; k < r->set.n; k++) {
            const uint32_t token = ft_token_set_select(&r->set, k);
            const uint32_t code =
                i == 0 ? k : ft_token_classes_place(&r->classes, k).code;
            tables[p.token_of + code] = token;
            tables[p.codes + (n_ids ? token : k)] = code;
            if (!n_ids)
                tables[p.tokens + k] = token;
        }
    }
    ft_status st = FT_CUDA(err, cudaMalloc(&d->tables, n * 4 + 4));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMemcpy(d->tables, tables, n * 4, cudaMemcpyHostToDevice));
    free(tables);
    return st == FT_OK && has_starts(l) ? make_starts(d, err) : st;
}

/* d->starts: group_start[n_starts + 1], child_slots[n_top], groups; d->lists. */
inline ft_status compact_view::make_starts(ft_device_index *d, ft_error *err)
{
    enum { BLOCKS = 1056, THREADS = 256 };
    const ft_compact *l = (const ft_compact *)d->trie->layout;
    const uint64_t n = n_starts(l);
    uint32_t *counter = NULL, n_lists = 0;
    ft_status st = FT_CUDA(err, cudaMalloc(&d->starts, 8 * (n + 1) + 4 * l->n_blocks +
                                                           8 * n_root_table(l)));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMalloc(&counter, 4));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMemset(counter, 0, 4));
    if (st != FT_OK) {
        cudaFree(counter);
        return st;
    }
    compact_view v = of(d);
    child_slots *root = (child_slots *)v.root_children;
    v.root_children = NULL;
    group_start *starts = (group_start *)v.starts;
    FT_LAUNCH(fill_starts, BLOCKS, THREADS, v, n_slot_words(l),
              l->n_blocks * FT_COMPACT_BLOCK, n, starts, l->n_blocks,
              (uint32_t *)v.groups);
    if (root)
        FT_LAUNCH(fill_root_children, BLOCKS, THREADS, v, root);
    FT_LAUNCH(fill_lists, BLOCKS, THREADS, v, n, starts, NULL, counter);
    st = FT_CUDA(err, cudaGetLastError());
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMemcpy(&n_lists, counter, 4, cudaMemcpyDeviceToHost));
    if (st == FT_OK)
        st = FT_CUDA(err,
                     cudaMalloc(&d->lists, 4ull * (GROUPS_A_START + 1) * n_lists + 4));
    if (st == FT_OK)
        st = FT_CUDA(err, cudaMemset(counter, 0, 4));
    if (st == FT_OK) {
        FT_LAUNCH(fill_lists, BLOCKS, THREADS, v, n, starts, d->lists, counter);
        st = FT_CUDA(err, cudaGetLastError());
    }
    if (st == FT_OK)
        st = FT_CUDA(err, cudaDeviceSynchronize());
    cudaFree(counter);
    return st;
}

inline compact_view compact_view::of(const ft_device_index *d)
{
    const ft_compact *l = (const ft_compact *)d->trie->layout;
    compact_view v = {};
    v.n_regions = l->n_regions;
    v.n_ids = n_table_ids(d);
    v.n_top = l->n_root_children + 1;
    uint64_t from = 0;
    for (uint32_t i = 0; i < l->n_regions; i++) {
        const ft_region *r = &l->region[i];
        region_view *to = &v.region[i];
        const table_places p = places_of(r, v.n_ids, from);
        from = p.end;
        to->end = r->slot + r->n_nodes;
        to->level = r->level;
        to->n_tokens = r->set.n;
        to->n_literals = r->literal ? (uint32_t)r->set.n_ids : 0;
        for (int c = 0; c < FT_CODE_CLASSES; c++) {
            to->width[c] = r->width[c];
            to->widths |= r->width[c] << 8 * c;
            to->base[c] = i ? r->classes.base[c] : 0;
        }
        to->low_more = r->low_more;
        to->high_more = r->high_more;
        to->both_more = r->both_more;
        to->token_of = d->tables + p.token_of;
        to->codes = d->tables + p.codes;
        to->tokens = v.n_ids ? NULL : d->tables + p.tokens;
    }
    v.root_blocks = l->root_blocks;
    v.blocks = l->blocks;
    v.siblings = l->siblings;
    v.sibling_rank = l->sibling_rank;
    v.last_rank = ft_compact_n_ranks(l->n_blocks) - 1;
    v.bits = (const uint32_t *)l->codes;
    if (has_starts(l)) {
        v.starts = (const group_start *)d->starts;
        v.root_children = (const child_slots *)(v.starts + n_starts(l) + 1);
        v.groups = (const uint32_t *)(v.root_children + n_root_table(l));
        if (!n_root_table(l))
            v.root_children = NULL;
        v.lists = d->lists;
    }
    ft_on_device(d, &v.root_blocks);
    ft_on_device(d, &v.blocks);
    ft_on_device(d, &v.siblings);
    ft_on_device(d, &v.sibling_rank);
    ft_on_device(d, &v.bits);
    return v;
}

} // namespace ft

#endif
