/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes back to tokens. A search never needs that; who lists keys needs it for each
 * edge. A few are looked up in the index itself; once many have been asked for, a table
 * is made. Its room is part of the view's allocation and costs no memory before.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "trie/compact.h"

enum {
    TABLE_SHARE = 8,      /* made when an eighth as many labels have been asked for */
    MAX_TOKENS = 1 << 26, /* of all regions together */
};

struct ft_label_tables {
    pthread_mutex_t lock;
    _Atomic uint64_t n_asked;
    _Atomic bool ready;
    uint64_t n_tokens;
    uint64_t at[FT_COMPACT_REGIONS]; /* where a region's table starts */
    uint32_t tokens[];               /* by code */
};

uint64_t ft_label_tables_bytes(uint64_t n_tokens)
{
    return n_tokens > MAX_TOKENS
               ? 0
               : sizeof(ft_label_tables) + n_tokens * sizeof(uint32_t);
}

void ft_label_tables_init(ft_compact *l, void *room)
{
    ft_label_tables *t = room;
    for (uint32_t i = 0; i < l->n_regions; i++) {
        t->at[i] = t->n_tokens;
        t->n_tokens += l->region[i].set.n;
    }
    pthread_mutex_init(&t->lock, NULL);
    l->tables = t;
}

static void fill(const ft_region *r, bool top, uint32_t *tokens)
{
    const ft_token_classes *c = &r->classes;
    uint32_t next[FT_CODE_CLASSES];
    memcpy(next, c->base, sizeof next);
    for (uint32_t id = 0; id < r->set.n; id++) {
        const uint32_t token = ft_token_set_select(&r->set, id);
        if (top)
            tokens[id] = token;
        else
            tokens[next[ft_token_classes_class(c, id)]++] = token;
    }
}

/* Make the tables once. */
static void fill_all(const ft_compact *l)
{
    ft_label_tables *t = l->tables;
    pthread_mutex_lock(&t->lock);
    if (!atomic_load(&t->ready))
        for (uint32_t i = 0; i < l->n_regions; i++)
            fill(&l->region[i], i == 0, t->tokens + t->at[i]);
    atomic_store(&t->ready, true);
    pthread_mutex_unlock(&t->lock);
}

/* The table of a region, or NULL where it does not pay yet. */
static const uint32_t *table_of(const ft_compact *l, const ft_region *r, uint64_t count)
{
    ft_label_tables *t = l->tables;
    if (!t)
        return NULL;
    if (!atomic_load_explicit(&t->ready, memory_order_acquire)) {
        const uint64_t asked =
            atomic_fetch_add_explicit(&t->n_asked, count, memory_order_relaxed);
        if (asked < t->n_tokens / TABLE_SHARE)
            return NULL;
        fill_all(l);
    }
    return t->tokens + t->at[r - l->region];
}

static uint32_t token_of(const ft_region *r, uint32_t code)
{
    if (code >= r->set.n)
        return code - r->set.n; /* literal */
    return ft_token_set_select(
        &r->set, r->level == 0 ? code : ft_token_classes_id(&r->classes, code));
}

void ft_compact_labels(const ft_trie *trie, uint64_t first, uint64_t count,
                       uint32_t *out)
{
    const ft_compact *l = trie->layout;
    const ft_region *r =
        first <= l->n_root_children ? l->region : ft_compact_region_of(l, first);
    const uint32_t *table = table_of(l, r, count);
    ft_compact_edge_codes(trie, first, count, out);
    for (uint64_t i = 0; i < count; i++)
        out[i] = table && out[i] < r->set.n ? table[out[i]] : token_of(r, out[i]);
}
