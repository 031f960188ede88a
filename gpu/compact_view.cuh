/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of the layout "compact". The handle of a node of region 0 is its
 * number; that of another is its slot, behind those. All nodes of a step are of one
 * level, so of one region: its parameters are the same for every thread. What it reads
 * beside the layout is in tables: see compact_tables.cuh. The file is long because a
 * view is one struct.
 */
#ifndef FT_GPU_COMPACT_VIEW_CUH
#define FT_GPU_COMPACT_VIEW_CUH

#include <cuda_pipeline.h>

#include "views.cuh"

extern "C" {
#include "trie/compact.h"
}

namespace ft
{

/* A region as a step needs it: nodes of its levels, and the codes into them. */
struct region_view {
    uint64_t end; /* slot behind its last node */
    uint32_t level;
    uint32_t n_tokens;   /* of its set; the codes from there on are literal */
    uint32_t n_literals; /* tokens below this, outside the set, have such codes */
    uint32_t width[FT_CODE_CLASSES], base[FT_CODE_CLASSES];
    uint32_t low_more, high_more, both_more; /* bits of a code beyond width[0] */
    uint32_t widths;                         /* a byte each */
    const uint32_t *token_of;                /* by code */
    const uint32_t *codes;  /* by token; where ids are too many for that, by rank */
    const uint32_t *tokens; /* then: the tokens, ascending; else NULL */
};

enum : uint64_t {
    MAX_TABLE = 1 << 26, /* ids of a table over all ids */
    GROUPS_A_START = 16,
    NEAR_WORDS = 4, /* in which children are mostly found */
    LONG_SPAN = 256 /* slots of GROUPS_A_START groups, beyond which starts are listed */
};

/* Where GROUPS_A_START groups start. */
struct group_start {
    uint32_t slot; /* of the first */
    uint32_t list; /* all their starts and the next one's, in `lists`; NOT_LISTED */
};

enum : uint32_t { NOT_LISTED = ~0u };

/* Children of a node of region 0. */
struct child_slots {
    uint32_t first, count;
};

struct compact_view {
    region_view region[FT_COMPACT_REGIONS];
    uint32_t n_regions;
    uint32_t n_ids; /* of the tables by token */
    uint64_t n_top; /* nodes of region 0 */
    const ft_compact_root_block *root_blocks;
    const ft_compact_block *blocks;
    const uint64_t *siblings, *sibling_rank;
    uint64_t last_rank;   /* entry of sibling_rank */
    const uint32_t *bits; /* the codes */

    /* NULL where slots need more than 32 bits. */
    const group_start *starts; /* of every GROUPS_A_START-th group, and the end */
    const uint32_t *lists;
    const uint32_t *groups; /* before each block's first child */

    /* Children of each node of region 0; NULL where that is too much. */
    const child_slots *root_children;

    static ft_status make_tables(ft_device_index *d, ft_error *err);
    static ft_status make_starts(ft_device_index *d, ft_error *err);
    static compact_view of(const ft_device_index *d);

    /* Number of the region of a step's children; 0 is the root's and its children's. */
    __device__ uint32_t level(uint32_t step) const
    {
        uint32_t r = 0;
#pragma unroll
        for (uint32_t i = 1; i < FT_COMPACT_REGIONS; i++)
            r += i < n_regions && step + 1 >= region[i].level;
        return r;
    }

    /* Region of the nodes of a level. */
    __device__ const region_view &region_of(uint32_t of) const
    {
        return region[level(of - 1)];
    }

    /* Group number k from `slot` on, as slots, where it and the next one's start lie in
     * the first words: mostly so below the top, and a single access. */
    __device__ bool near_group(uint64_t slot, unsigned k, uint64_t end,
                               ft_range *r) const
    {
        uint64_t w[NEAR_WORDS];
        near_words(slot, w);
        return near_group(w, slot, k, end, r);
    }

    __device__ void near_words(uint64_t slot, uint64_t (&w)[NEAR_WORDS]) const
    {
        static_assert((int)NEAR_WORDS <= FT_SIBLING_END, "so many words are there");
#pragma unroll
        for (int i = 0; i < (int)NEAR_WORDS; i++)
            w[i] = siblings[slot / 64 + i];
    }

    static __device__ bool near_group(uint64_t (&w)[NEAR_WORDS], uint64_t slot,
                                      unsigned k, uint64_t end, ft_range *r)
    {
        enum { WORDS = NEAR_WORDS };
        const uint64_t first = slot / 64;
        w[0] &= ~ft_low_mask(slot % 64);
        uint64_t in = w[0], after = w[1]; /* the group's word, the next one */
        unsigned at = 0;
#pragma unroll
        for (int i = 0; i + 1 < WORDS; i++) {
            const unsigned n = __popcll(w[i]);
            if (at < (unsigned)i || k < n)
                continue;
            k -= n;
            at = i + 1;
            in = w[i + 1];
            after = i + 2 < WORDS ? w[i + 2] : 0;
        }
        if (k >= (unsigned)__popcll(in))
            return false;
        const unsigned bit = ft_select_in_word(in, k);
        const uint64_t rest = in & ~ft_low_mask(bit) & ~((uint64_t)1 << bit);
        if (!rest && !after)
            return false;
        const uint64_t start = (first + at) * 64 + bit;
        const uint64_t next = rest ? (first + at) * 64 + ft_lowest_bit(rest)
                                   : (first + at + 1) * 64 + ft_lowest_bit(after);
        *r = {start, (next < end ? next : end) - start};
        return true;
    }

    /* What children() reads first of a block's nodes. */
    __device__ void fetch_groups(const ft_compact_block &b, uint64_t block) const
    {
        const uint64_t *w = &siblings[ft_block_first_child(&b) / 64];
        fetch_far(w);
        fetch_far(w + NEAR_WORDS - 1);
        fetch_far(starts ? (const void *)&groups[block] : w);
    }

    /* Group number k of sibling groups from `slot` on, as slots; `end` is the region's.
     * Mostly near; else the ranks say where. */
    __device__ ft_range group(uint64_t slot, unsigned k, uint64_t end) const
    {
        uint64_t word = slot / 64;
        uint64_t w = siblings[word] & ~ft_low_mask(slot % 64);
        unsigned n = __popcll(w);
#pragma unroll 1
        for (int i = 0; n <= k && i < 16; i++) {
            k -= n;
            w = siblings[++word];
            n = __popcll(w);
        }
        if (n <= k)
            w = far(&word, &k, n);
        const unsigned bit = ft_select_in_word(w, k);
        const uint64_t first = word * 64 + bit;
        w &= ~ft_low_mask(bit) & ~((uint64_t)1 << bit);
        if (!w)
            w = siblings[++word];
#pragma unroll 1
        for (int i = 0; !w && i < 16; i++)
            w = siblings[++word];
        if (!w) {
            unsigned none = 0;
            w = far(&word, &none, 0);
        }
        const uint64_t next = word * 64 + ft_lowest_bit(w);
        return {first, (next < end ? next : end) - first};
    }

    /* The word with set bit number *k counted from word *word on, which has n <= *k. */
    __device__ uint64_t far(uint64_t *word, unsigned *k, unsigned n) const
    {
        uint64_t at = *word + 1, left = *k - n, w = 0;
#pragma unroll 1
        for (; at % FT_SIBLING_RANK; at++) {
            w = siblings[at];
            const unsigned here = __popcll(w);
            if (here > left)
                goto found;
            left -= here;
        }
        {
            uint64_t lo = at / FT_SIBLING_RANK, hi = last_rank;
            left += sibling_rank[lo];
#pragma unroll 1
            while (lo < hi) {
                const uint64_t mid = (lo + hi + 1) / 2;
                if (sibling_rank[mid] <= left)
                    lo = mid;
                else
                    hi = mid - 1;
            }
            left -= sibling_rank[lo];
#pragma unroll 1
            for (at = lo * FT_SIBLING_RANK;; at++) {
                w = siblings[at];
                const unsigned here = __popcll(w);
                if (here > left)
                    break;
                left -= here;
            }
        }
    found:
        *word = at;
        *k = (unsigned)left;
        return w;
    }

    __device__ ft_range children(uint64_t parent, uint32_t step) const
    {
        if (step == 0)
            return {1, n_top - 1};
        if (step == 1)
            return children_of_top(parent);
        const uint64_t end = region_of(step + 1).end;
        const uint64_t own = parent - n_top, block = own / FT_COMPACT_BLOCK;
        const ft_compact_block &b = blocks[block];
        const unsigned at = own % FT_COMPACT_BLOCK;
        if (!(b.child[at / 64] >> at % 64 & 1))
            return {0, 0};
        uint64_t slot = ft_block_first_child(&b);
        unsigned k = ft_bits_rank(b.child, ft_bits_before(at));
        ft_range r;
        if (near_group(slot, k, end, &r))
            return {n_top + r.first, r.count};
        if (starts) {
            const uint32_t g = groups[block] + k;
            const group_start s = starts[g / GROUPS_A_START];
            k = g % GROUPS_A_START;
            slot = s.slot;
            /* For those whose starts are listed and the others at the same time. */
            fetch_far(s.list != NOT_LISTED ? (const void *)&lists[s.list + k]
                                           : &siblings[slot / 64]);
            if (s.list != NOT_LISTED) {
                const uint64_t first = lists[s.list + k], next = lists[s.list + k + 1];
                return {n_top + first, (next < end ? next : end) - first};
            }
        }
        r = group(slot, k, end);
        return {n_top + r.first, r.count};
    }

    /* Children of a node of region 0, but the root. */
    __device__ ft_range children_of_top(uint64_t parent) const
    {
        if (root_children) {
            const child_slots c = root_children[parent];
            return {n_top + c.first, c.count};
        }
        const ft_compact_root_block b = root_blocks[parent / FT_COMPACT_ROOT_BLOCK];
        const unsigned at = parent % FT_COMPACT_ROOT_BLOCK;
        if (!(b.child >> at & 1))
            return {0, 0};
        const unsigned k = __popcll(b.child & ft_low_mask(at));
        const ft_range r = group(b.first_child, k, region_of(2).end);
        return {n_top + r.first, r.count};
    }

    /* A proposal of step 0 has this code: the node that it leads to is known. */
    __device__ void fetch_top(uint32_t code) const
    {
        const uint64_t child = 1 + (uint64_t)code;
        if (child >= n_top)
            return;
        fetch_far(&root_blocks[child / FT_COMPACT_ROOT_BLOCK]);
        fetch_children(child, 1);
    }

    /* The parent becomes a beam of the step to come. */
    __device__ void fetch_children(uint64_t parent, uint32_t step) const
    {
        if (step == 1 && root_children)
            fetch_far(&root_children[parent]);
    }

    __device__ uint32_t code(uint32_t token, uint32_t step) const
    {
        const region_view &r = region_of(step + 1);
        if (token < n_ids)
            return r.codes[token];
        if (!r.tokens)
            return FT_NO_TOKEN;
        uint32_t lo = 0, n = r.n_tokens;
#pragma unroll 1
        while (n > 1) {
            const uint32_t half = n / 2;
            lo += r.tokens[lo + half - 1] < token ? half : 0;
            n -= half;
        }
        if (r.n_tokens && r.tokens[lo] == token)
            return r.codes[lo];
        return token < r.n_literals ? r.n_tokens + token : FT_NO_TOKEN;
    }

    __device__ static uint32_t token(const region_view &r, uint32_t code)
    {
        return code < r.n_tokens ? r.token_of[code] : code - r.n_tokens;
    }

    __device__ void fetch_code(uint32_t token, uint32_t step, uint32_t *to) const
    {
        if (token < n_ids)
            __pipeline_memcpy_async(to, &region_of(step + 1).codes[token], 4);
    }

    __device__ uint32_t code(uint32_t token, uint32_t step, uint32_t fetched) const
    {
        return token < n_ids ? fetched : code(token, step);
    }

    /* The line of the first child's; of most nodes there is no other. */
    __device__ void fetch_edges(uint64_t first, uint32_t step) const
    {
        if (step == 0)
            return;
        fetch_far(&blocks[(first - n_top) / FT_COMPACT_BLOCK]);
    }

    /* The lines behind the first child's block, which is there: visit() reads them. */
    __device__ void fetch_visit(uint64_t first, uint32_t step) const
    {
        if (step == 0)
            return;
        const region_view &r = region_of(step + 1);
        const uint64_t slot = first - n_top;
        const unsigned at = slot % FT_COMPACT_BLOCK;
        const ft_compact_block &b = blocks[slot / FT_COMPACT_BLOCK];
        const uint64_t codes = ft_block_codes(&b);
        fetch_far(&bits[(codes + places_before(r, b, at)) / 32]);
        fetch_far(&bits[(codes - parents_from(b, at)) / 32]);
        const uint64_t *w = &siblings[ft_block_first_child(&b) / 64];
        fetch_far(w);
        fetch_far(w + NEAR_WORDS - 1);
    }

    /* What visit() has read of a node. */
    struct visited {
        uint32_t code;
        bool inner, ends;
        uint64_t slot; /* of the first child of its block's nodes */
        unsigned k;    /* its children are group number k from there on */
        uint64_t w[NEAR_WORDS];

        __device__ unsigned flags(const compact_view &v, uint64_t node,
                                  uint32_t step) const
        {
            if (step == 0)
                return v.flags(node, 0);
            return (inner ? FT_NODE_HAS_CHILDREN : 0) | (ends ? FT_NODE_TERMINAL : 0);
        }

        __device__ ft_range children(const compact_view &v, uint64_t node,
                                     uint32_t step) const
        {
            if (step > 0) {
                uint64_t words[NEAR_WORDS];
                memcpy(words, w, sizeof w);
                ft_range r;
                if (near_group(words, slot, k, v.region_of(step + 2).end, &r))
                    return {v.n_top + r.first, r.count};
            }
            return v.children(node, step + 1);
        }
    };

    /* All of a node, whether it is wanted or not: the accesses overlap. */
    __device__ visited visit(uint64_t child, uint32_t step) const
    {
        visited s = {};
        s.code = (uint32_t)(child - 1);
        if (step == 0)
            return s;
        const region_view &r = region_of(step + 1);
        const uint64_t slot = child - n_top;
        const unsigned at = slot % FT_COMPACT_BLOCK;
        const ft_compact_block &b = blocks[slot / FT_COMPACT_BLOCK];
        const unsigned cls = bit_of(b.low, at) + 2 * bit_of(b.high, at);
        const uint64_t codes = ft_block_codes(&b);
        const uint64_t place = codes + places_before(r, b, at);
        const uint32_t *w = bits + place / 32;
        const uint64_t end_bit = codes - parents_from(b, at);
        const uint32_t low = w[0], high = w[1], ends = bits[end_bit / 32];
        s.slot = ft_block_first_child(&b);
        near_words(s.slot, s.w);
        s.k = ft_bits_rank(b.child, ft_bits_before(at));
        s.inner = bit_of(b.child, at);
        s.ends = !s.inner || (ends >> end_bit % 32 & 1); /* a leaf ends a key */
        s.code = r.base[cls] + low_bits(__funnelshift_r(low, high, place % 32),
                                        r.widths >> 8 * cls & 0xff);
        return s;
    }

    __device__ uint32_t code_of(uint64_t child, uint32_t step) const
    {
        unsigned hint;
        return edge(child, step, 0, &hint);
    }

    /* ASK_FLAGS: for all of them, while the code is on its way. */
    __device__ uint32_t edge(uint64_t child, uint32_t step, unsigned asks,
                             unsigned *hint) const
    {
        const bool flags = asks & ASK_FLAGS;
        *hint = EDGE_UNKNOWN;
        if (step == 0)
            return (uint32_t)(child - 1);
        const region_view &r = region_of(step + 1);
        const uint64_t slot = child - n_top, block = slot / FT_COMPACT_BLOCK;
        const unsigned at = slot % FT_COMPACT_BLOCK, bit = at % 64;
        const bool second = at >= 64;
        const ft_compact_block &b = blocks[block];
        const ulonglong2 lows = *(const ulonglong2 *)b.low; /* one access, not two */
        const ulonglong2 highs = *(const ulonglong2 *)b.high;
        const uint64_t low = second ? lows.y : lows.x;
        const uint64_t high = second ? highs.y : highs.x;
        unsigned n_low = 0, n_high = 0, n_both = 0;
        if (second) {
            n_low = __popcll(lows.x);
            n_high = __popcll(highs.x);
            n_both = __popcll(lows.x & highs.x);
        }
        const uint64_t before = ft_low_mask(bit);
        n_low += __popcll(low & before);
        n_high += __popcll(high & before);
        n_both += __popcll(low & high & before);
        const unsigned cls = (unsigned)(low >> bit & 1) | (unsigned)(high >> bit & 1)
                                                              << 1;
        const bool inner = b.child[second] >> bit & 1;
        if (asks & ASK_AHEAD) /* the leaves too, which spares a branch */
            fetch_groups(b, block);
        const uint32_t places = (at - n_low - n_high + n_both) * r.width[0] +
                                (n_low - n_both) * r.width[1] +
                                (n_high - n_both) * r.width[2] + n_both * r.width[3];
        const unsigned width = r.width[cls];
        const uint64_t codes = ft_block_codes(&b), place = codes + places;
        const uint32_t *w = bits + place / 32;
        /* In any case: a branch about it took more time, since loads wait apart then.
         */
        const uint64_t end_bit = codes - parents_from(b, at);
        const uint32_t ends = flags && inner ? bits[end_bit / 32] : 0;
        const uint32_t v = __funnelshift_r(w[0], w[1], place % 32);
        *hint = !inner                     ? EDGE_LEAF
                : !flags                   ? EDGE_INNER
                : ends >> end_bit % 32 & 1 ? EDGE_INNER_END
                                           : EDGE_INNER_NO_END;
        return r.base[cls] + (width == 32 ? v : v & ((1u << width) - 1));
    }

    /* The same with fewer instructions and more accesses, which cost little where many
     * warps wait at a time: for throughput. A query of its own takes longer by it. */
    __device__ uint32_t lean_edge(uint64_t child, uint32_t level, unsigned *hint) const
    {
        *hint = EDGE_UNKNOWN;
        if (level == 0)
            return (uint32_t)(child - 1);
        const region_view &r = region[level];
        const uint64_t slot = child - n_top;
        const unsigned at = slot % FT_COMPACT_BLOCK;
        const ft_compact_block &b = blocks[slot / FT_COMPACT_BLOCK];
        const unsigned cls = bit_of(b.low, at) + 2 * bit_of(b.high, at);
        *hint = bit_of(b.child, at) ? EDGE_INNER : EDGE_LEAF;
        const uint64_t place = ft_block_codes(&b) + places_before(r, b, at);
        const uint32_t *w = bits + place / 32;
        const uint32_t v = __funnelshift_r(w[0], w[1], place % 32);
        return r.base[cls] + low_bits(v, r.widths >> 8 * cls & 0xff);
    }

    /* Bits of the codes of a block's nodes before number `at`. */
    static __device__ uint32_t places_before(const region_view &r,
                                             const ft_compact_block &b, unsigned at)
    {
        const uint4 low = *(const uint4 *)b.low, high = *(const uint4 *)b.high;
        unsigned n_low = 0, n_high = 0, n_both = 0;
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const unsigned before = ~ones_from(at, i);
            const unsigned l = word_of(low, i) & before, h = word_of(high, i) & before;
            n_low += __popc(l);
            n_high += __popc(h);
            n_both += __popc(l & h);
        }
        return at * r.width[0] + n_low * r.low_more + n_high * r.high_more +
               n_both * r.both_more;
    }

    static __device__ unsigned word_of(uint4 v, unsigned i)
    {
        return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
    }

    static __device__ unsigned bit_of(const uint64_t *of_block, unsigned at)
    {
        return ((const uint32_t *)of_block)[at / 32] >> at % 32 & 1;
    }

    __device__ unsigned flags(uint64_t child, uint32_t step) const
    {
        return flags(child, step, EDGE_UNKNOWN);
    }

    __device__ unsigned flags(uint64_t child, uint32_t step, unsigned hint) const
    {
        if (step == 0) {
            const ft_compact_root_block b = root_blocks[child / FT_COMPACT_ROOT_BLOCK];
            const unsigned at = child % FT_COMPACT_ROOT_BLOCK;
            return (b.terminal >> at & 1 ? FT_NODE_TERMINAL : 0) |
                   (b.child >> at & 1 ? FT_NODE_HAS_CHILDREN : 0);
        }
        if (hint == EDGE_LEAF)
            return FT_NODE_TERMINAL; /* a leaf ends a key */
        if (hint == EDGE_INNER_END)
            return FT_NODE_HAS_CHILDREN | FT_NODE_TERMINAL;
        if (hint == EDGE_INNER_NO_END)
            return FT_NODE_HAS_CHILDREN;
        const uint64_t slot = child - n_top, block = slot / FT_COMPACT_BLOCK;
        const unsigned at = slot % FT_COMPACT_BLOCK;
        const ft_compact_block &b = blocks[block];
        if (!(b.child[at / 64] >> at % 64 & 1))
            return FT_NODE_TERMINAL;
        const uint64_t bit = ft_block_codes(&b) - parents_from(b, at);
        return FT_NODE_HAS_CHILDREN |
               (bits[bit / 32] >> bit % 32 & 1 ? FT_NODE_TERMINAL : 0);
    }

    /* A block's nodes with children from `at` on: a bit for each of its nodes with
     * children, whether it ends a key, lies right before the block's codes. */
    static __device__ unsigned parents_from(const ft_compact_block &b, unsigned at)
    {
        return __popcll(b.child[0]) + __popcll(b.child[1]) -
               ft_bits_rank(b.child, ft_bits_before(at));
    }

    __device__ uint64_t find(ft_range range, uint32_t wanted, uint32_t step) const
    {
        if (step == 0) {
            const uint32_t rank = code(wanted, 0);
            return rank == FT_NO_TOKEN ? UINT64_MAX : 1 + (uint64_t)rank;
        }
        const region_view &r = region_of(step + 1);
        uint64_t lo = range.first, n = range.count;
#pragma unroll 1
        while (n > 1) {
            const uint64_t half = n / 2;
            lo += token(r, code_of(lo + half - 1, step)) < wanted ? half : 0;
            n -= half;
        }
        return n && token(r, code_of(lo, step)) == wanted ? lo : UINT64_MAX;
    }
};

} // namespace ft

#endif
