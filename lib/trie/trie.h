/* SPDX-License-Identifier: Apache-2.0
 *
 * The trie view that engines and commands walk, whatever the layout. Nodes are numbered
 * level by level, siblings by token; the root is 0; the children of a node are a run of
 * numbers. Where tails are shared (trie/tails.h), this is so for nodes 0 to
 * n_numbered - 1; those in tails have larger numbers, with gaps, and each is an only
 * child. A view is read-only and shared by any number of threads. A view comes out of
 * an index that has been verified (trie/index.h): its accessors trust it.
 */
#ifndef FT_TRIE_TRIE_H
#define FT_TRIE_TRIE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ft_trie ft_trie;

typedef struct ft_range {
    uint64_t first; /* node number of the first child */
    uint64_t count; /* number of children; 0: a leaf */
} ft_range;

typedef struct ft_hits ft_hits; /* trie/probe.h */

typedef struct ft_visit {
    ft_range children;
    bool terminal;
} ft_visit;

enum {
    FT_NODE_TERMINAL = 1,
    FT_NODE_HAS_CHILDREN = 2,
    FT_MAX_CODE_SETS = 8,
    FT_MANY = 256 /* nodes asked about together, at most */
};

/* Access of one layout. */
typedef struct ft_trie_ops {
    ft_range (*children)(const ft_trie *t, uint64_t node);

    /* Tokens on the edges into nodes first .. first + count - 1, which are siblings (a
     * run of the children of `parent`). */
    void (*labels)(const ft_trie *t, uint64_t first, uint64_t count, uint32_t *out);

    /* The child in `range` (the children of one node) reached by `token`, or
     * UINT64_MAX. */
    uint64_t (*find)(const ft_trie *t, ft_range range, uint32_t token);

    /* FT_NODE_TERMINAL | FT_NODE_HAS_CHILDREN */
    unsigned (*flags)(const ft_trie *t, uint64_t node);

    /* The same of n <= FT_MANY nodes, whose cache misses overlap; flags not of the
     * root. The memory is asked for what `fetch` reads of their children. */
    void (*children_many)(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                          ft_range *out);
    void (*flags_many)(const ft_trie *t, const uint64_t *nodes, uint32_t n,
                       uint8_t *out);

    /* Number of terminal nodes before `node`: the index of a terminal node among key
     * numbers. Only where key numbers are stored. */
    uint64_t (*terminal_rank)(const ft_trie *t, uint64_t node);

    /* Walks in the order of node numbers, without a search for each node: the place of
     * `node`, then the children and flags of the node at *place, which moves to the
     * node after it. Where there are no children, children.first is that of the next
     * node that has some, or n_numbered. A depth-first walk meets the nodes of each
     * level in that order too. Nodes in tails leave the place as it is. */
    uint64_t (*seek)(const ft_trie *t, uint64_t node);
    ft_visit (*visit)(const ft_trie *t, uint64_t node, uint64_t *place);

    /* What is stored for edges, where a search compares many: codes are the tokens
     * themselves, or numbers that stand for them on all edges into nodes of a level.
     * `codes` is for runs of siblings, as `labels`. `code` gives the code of a token on
     * edges into nodes of `level` (1: the root's children), or FT_NO_TOKEN where none
     * has it; NULL: a token is its own code. */
    void (*codes)(const ft_trie *t, uint64_t first, uint64_t count, uint32_t *out);
    uint32_t (*code)(const ft_trie *t, uint32_t token, uint32_t level);

    /* Those edges of n <= FT_MANY runs of siblings, of at most FT_PROBE_EDGES together,
     * whose codes are in the filter (trie/probe.h). */
    void (*probe)(const ft_trie *t, const ft_range *runs, uint32_t n,
                  const uint64_t *filter, ft_hits *hits);

    /* Levels with the same number have the same codes; below FT_MAX_CODE_SETS. NULL
     * where `code` is. */
    uint32_t (*code_set)(const ft_trie *t, uint32_t level);

    /* Of two different nodes with as many tokens each, is `a` the lexicographically
     * smaller sequence? Only where the trie has no level order. */
    bool (*before)(const ft_trie *t, uint64_t a, uint64_t b);

    /* Ask the memory for what a probe of n <= FT_MANY runs reads, which searches do
     * early, right after children_many. Leaves' ranges of no children are
     * allowed. */
    void (*fetch)(const ft_trie *t, const ft_range *runs, uint32_t n);
} ft_trie_ops;

struct ft_trie {
    const ft_trie_ops *ops;
    const void *layout;  /* the layout's own arrays */
    uint64_t n_nodes;    /* the root included */
    uint64_t n_numbered; /* see above; n_nodes where there are no tails */
    uint64_t n_keys;
    uint32_t depth;      /* tokens of the longest key */
    uint32_t max_token;  /* the largest token of any key */
    bool level_order;    /* the smaller node goes first among ties (base/score.h) */
    bool has_ids;        /* key numbers are stored */
    unsigned id_bits;    /* bits a key number */
    const uint64_t *ids; /* packed, by terminal rank */
};

/* Follow tokens[0..n) from the root. UINT64_MAX: no such path. */
uint64_t ft_trie_walk(const ft_trie *t, const uint32_t *tokens, uint32_t n);

/* Key number of a terminal node; UINT64_MAX where numbers are not stored. */
uint64_t ft_trie_key_number(const ft_trie *t, uint64_t node);

/* Walk of all keys below a node, in order, without recursion. Peak memory: the labels
 * of the groups on the path. */
typedef struct ft_cursor ft_cursor;
ft_status ft_cursor_open(ft_cursor **out, const ft_trie *t, const uint32_t *prefix,
                         uint32_t n_prefix, ft_error *err);

/* The same of the keys below some of the root's children: number `first` of them, from
 * 0, and the n - 1 behind it. */
ft_status ft_cursor_open_run(ft_cursor **out, const ft_trie *t, uint64_t first,
                             uint64_t n, ft_error *err);

/* The next key, prefix included: *tokens stay valid until the next call; *n = 0 at the
 * end. *node is its node. */
ft_status ft_cursor_next(ft_cursor *c, const uint32_t **tokens, uint32_t *n,
                         uint64_t *node, ft_error *err);
void ft_cursor_close(ft_cursor *c);

#endif
