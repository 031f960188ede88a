/* SPDX-License-Identifier: Apache-2.0
 *
 * Call every accessor of an opened index with everything that a caller may give it,
 * under a budget: what must neither read out of bounds nor go on without end.
 */
#ifndef TESTS_FUZZ_WALK_INDEX_H
#define TESTS_FUZZ_WALK_INDEX_H

#include <stdlib.h>
#include <string.h>

#include "trie/index.h"
#include "trie/probe.h"

/* What a search asks of the children in r: their codes, against filters that have every
 * one and one in three of them. */
static inline uint64_t walk_codes(const ft_trie *t, ft_range r)
{
    uint64_t sum = 0;
    uint32_t *codes = malloc((r.count + 1) * sizeof *codes);
    ft_hits *hits = malloc(sizeof *hits);
    uint64_t filter[FT_FILTER_WORDS];
    t->ops->fetch(t, &r, 1);
    t->ops->codes(t, r.first, r.count, codes);
    const uint64_t n = r.count < FT_PROBE_EDGES ? r.count : FT_PROBE_EDGES;
    const ft_range runs[] = {{r.first, n / 2}, {r.first + n / 2, n - n / 2}};
    for (unsigned every = 1; every <= 3; every += 2) {
        memset(filter, every == 1 ? 0xff : 0, sizeof filter);
        for (uint64_t i = 0; i < n; i += every)
            filter[codes[i] / 64 % FT_FILTER_WORDS] |= (uint64_t)1 << codes[i] % 64;
        t->ops->probe(t, runs, 2, filter, hits);
        if (hits->n < (n + every - 1) / every || hits->n > n)
            abort();
        for (uint32_t i = 0; i < hits->n; i++) {
            const uint32_t edge = hits->edges[i], code = hits->codes[i];
            if (edge >= n || (i && edge <= hits->edges[i - 1]) || code != codes[edge] ||
                hits->runs[i] != (edge >= n / 2) || !ft_filter_has(filter, code))
                abort();
            sum += code;
        }
    }
    free(hits);
    free(codes);
    return sum;
}

/* Nodes asked about together: what each says alone. */
static inline void walk_many(const ft_trie *t, ft_range r)
{
    uint64_t nodes[FT_MANY] = {0};
    ft_range children[FT_MANY];
    uint8_t flags[FT_MANY];
    const uint32_t n = r.count < FT_MANY ? (uint32_t)r.count : FT_MANY;
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = r.first + i;
    t->ops->children_many(t, nodes, n, children);
    t->ops->flags_many(t, nodes, n, flags);
    for (uint32_t i = 0; i < n; i++) {
        const ft_range one = t->ops->children(t, nodes[i]);
        if (children[i].count != one.count ||
            (one.count && children[i].first != one.first) ||
            flags[i] != t->ops->flags(t, nodes[i]))
            abort();
    }
}

/* Codes of tokens that may be on no edge. */
static inline uint64_t walk_tokens(const ft_trie *t)
{
    static const uint32_t tokens[] = {0, 1, 65535, 65536, 0xFFFFFFFE, 0xFFFFFFFF};
    uint64_t sum = 0;
    for (uint32_t level = 1; t->ops->code && level <= t->depth; level++) {
        sum += t->ops->code_set(t, level);
        for (unsigned i = 0; i < sizeof tokens / sizeof *tokens; i++)
            sum += t->ops->code(t, tokens[i], level);
        sum += t->ops->code(t, t->max_token, level);
    }
    return sum;
}

/* Labels and searches among the children in r, whose level counts where edges have
 * codes: those of their tokens. */
static inline uint64_t walk_children(const ft_trie *t, ft_range r, uint32_t level)
{
    uint64_t sum = 0;
    uint32_t *labels = malloc(r.count * sizeof *labels + 1);
    t->ops->labels(t, r.first, r.count, labels);
    for (uint64_t i = 0; i < r.count; i++) {
        sum += t->ops->find(t, r, labels[i]);
        if (labels[i] > t->max_token)
            abort();
        uint32_t code;
        t->ops->codes(t, r.first + i, 1, &code);
        if (t->ops->code && t->ops->code(t, labels[i], level) != code)
            abort();
    }
    if (r.count > 1) {
        const uint64_t from = r.count / 3, n = r.count - from;
        t->ops->labels(t, r.first + from, n, labels);
    }
    static const uint32_t tokens[] = {0, 65535, 65536, 0xFFFFFFFE};
    for (unsigned i = 0; i < 4; i++)
        sum += t->ops->find(t, r, tokens[i]);
    free(labels);
    walk_many(t, r);
    return sum + walk_codes(t, r);
}

/* From a child of a node in a tail, or of its head, to the end of the key. */
static inline uint64_t walk_tail(const ft_trie *t, ft_range r, uint64_t *budget)
{
    uint64_t sum = 0;
    for (; r.count && *budget; --*budget) {
        const uint64_t node = r.first;
        uint64_t place = t->ops->seek(t, node);
        const ft_visit v = t->ops->visit(t, node, &place);
        const unsigned flags = t->ops->flags(t, node);
        const ft_range next = t->ops->children(t, node);
        if (r.count != 1 || next.count != v.children.count ||
            next.first != v.children.first || next.count + v.terminal != 1 ||
            flags != (v.terminal ? FT_NODE_TERMINAL : FT_NODE_HAS_CHILDREN))
            abort();
        sum += walk_children(t, r, 0) + t->ops->before(t, node, node);
        if (t->has_ids)
            sum += t->ops->terminal_rank(t, node) + ft_trie_key_number(t, node);
        r = next;
    }
    return sum;
}

static inline uint64_t walk_nodes(const ft_trie *t, uint64_t budget)
{
    uint64_t sum = 0, place = t->ops->seek(t, 0), level_end = 1;
    uint32_t level = 1; /* of the node's children */
    for (uint64_t node = 0; node < t->n_numbered && budget; node++) {
        if (node == level_end) {
            level_end = t->ops->seek(t, node);
            level++;
        }
        const ft_range r = t->ops->children(t, node);
        const ft_visit v = t->ops->visit(t, node, &place);
        const unsigned flags = t->ops->flags(t, node);
        /* A leaf that ends no key, which opening an index does not look for, may pass
         * for a parent. */
        const bool parent = r.count != 0 || (!v.terminal && node != 0);
        if (v.children.count != r.count || v.terminal != !!(flags & FT_NODE_TERMINAL) ||
            (r.count != 0 && !(flags & FT_NODE_HAS_CHILDREN)) ||
            (!parent && (flags & FT_NODE_HAS_CHILDREN)))
            abort();
        if (r.count && r.first >= t->n_numbered) {
            sum += walk_tail(t, r, &budget);
            continue;
        }
        if (r.count && (v.children.first != r.first || r.first <= node ||
                        r.first >= t->n_numbered || r.count > t->n_numbered - r.first))
            abort();
        sum += r.count ? walk_children(t, r, level) : t->ops->find(t, r, 0);
        if (t->has_ids)
            sum += t->ops->terminal_rank(t, node) + ft_trie_key_number(t, node);
        budget -= r.count < budget ? r.count : budget;
        budget -= budget != 0;
    }
    return sum;
}

static inline uint64_t walk_keys(const ft_trie *t, const uint32_t *prefix,
                                 uint32_t n_prefix, uint64_t budget)
{
    ft_cursor *c;
    const uint32_t *tokens;
    uint32_t n = 1;
    uint64_t node, sum = 0;
    if (ft_cursor_open(&c, t, prefix, n_prefix, NULL) != FT_OK)
        return 0;
    while (budget && n && ft_cursor_next(c, &tokens, &n, &node, NULL) == FT_OK) {
        if (n > t->depth || (t->level_order && node >= t->n_nodes))
            abort();
        for (uint32_t i = 0; i < n; i++)
            sum += tokens[i];
        sum += node;
        budget -= n < budget ? n : budget;
    }
    ft_cursor_close(c);
    return sum;
}

static inline uint64_t walk_index(const ft_index *ix, uint64_t budget)
{
    const ft_trie *t = ft_index_trie(ix);
    uint64_t sum = walk_nodes(t, budget) + walk_tokens(t);
    sum += walk_keys(t, NULL, 0, budget);
    if (t->depth) {
        uint32_t label;
        t->ops->labels(t, 1, 1, &label);
        sum += walk_keys(t, &label, 1, budget);
    }
    for (uint32_t i = 0; i < ft_index_n_sections(ix); i++) {
        const ft_section_info s = ft_index_section(ix, i);
        for (uint64_t j = 0; j < s.raw_bytes && j < budget; j += 97)
            sum += ((const uint8_t *)s.data)[j];
    }
    ft_index_verify(ix, NULL);
    return sum;
}

#endif
