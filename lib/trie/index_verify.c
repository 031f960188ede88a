/* SPDX-License-Identifier: Apache-2.0
 *
 * What an index must be beyond being safe to walk.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "trie/image.h"
#include "trie/parallel.h"

enum { PIECE_NODES = 1 << 16 };

typedef struct survey {
    const ft_trie *trie;
    _Atomic uint32_t max_token;
} survey;

static void raise_max(survey *s, uint32_t token)
{
    uint32_t max = atomic_load(&s->max_token);
    while (token > max && !atomic_compare_exchange_weak(&s->max_token, &max, token))
        ;
}

/* Children of one node: ascending labels. */
static ft_status check_siblings(survey *s, uint64_t node, ft_range r, ft_buf *room,
                                ft_error *err)
{
    room->len = 0;
    if (ft_buf_reserve(room, r.count * sizeof(uint32_t), err) != FT_OK)
        return FT_ENOMEM;
    uint32_t *labels = (uint32_t *)room->data;
    s->trie->ops->labels(s->trie, r.first, r.count, labels);
    for (uint64_t i = 1; i < r.count; i++)
        if (labels[i] <= labels[i - 1])
            return ft_fail(err, FT_EFORMAT, "node %llu: child token %u comes after %u",
                           (unsigned long long)node, labels[i], labels[i - 1]);
    raise_max(s, labels[r.count - 1]);
    return FT_OK;
}

/* From a node in a tail down to the end of its key: one child each. */
static void check_tail(survey *s, ft_range r)
{
    const ft_trie *t = s->trie;
    for (; r.count && r.first >= t->n_numbered; r = t->ops->children(t, r.first)) {
        uint32_t token;
        t->ops->labels(t, r.first, 1, &token);
        raise_max(s, token);
    }
}

static ft_status check_nodes(void *arg, uint64_t begin, uint64_t end, ft_error *err)
{
    survey *s = arg;
    const ft_trie *t = s->trie;
    ft_buf room = {0};
    ft_status st = FT_OK;
    uint64_t place = t->ops->seek(t, begin);
    for (uint64_t node = begin; node < end && st == FT_OK; node++) {
        const ft_visit v = t->ops->visit(t, node, &place);
        if (v.children.count && v.children.first >= t->n_numbered)
            check_tail(s, v.children);
        else if (v.children.count)
            st = check_siblings(s, node, v.children, &room, err);
        else if (!v.terminal && node != 0)
            st = ft_fail(err, FT_EFORMAT, "node %llu: a leaf that ends no key",
                         (unsigned long long)node);
    }
    ft_buf_free(&room);
    return st;
}

static ft_status check_numbers(const ft_trie *t, ft_error *err)
{
    ft_cursor *c;
    const uint32_t *tokens;
    uint32_t n;
    uint64_t node, expected = 0;
    ft_status st = ft_cursor_open(&c, t, NULL, 0, err);
    if (st != FT_OK)
        return st;
    while ((st = ft_cursor_next(c, &tokens, &n, &node, err)) == FT_OK && n) {
        const uint64_t number = ft_trie_key_number(t, node);
        if (number != expected) {
            st =
                ft_fail(err, FT_EFORMAT,
                        "section ids: node %llu has key number %llu, its place is %llu",
                        (unsigned long long)node, (unsigned long long)number,
                        (unsigned long long)expected);
            break;
        }
        expected++;
    }
    ft_cursor_close(c);
    return st;
}

static ft_status verify(const ft_index *ix, ft_error *err)
{
    const ft_trie *t = &ix->trie;
    survey s = {.trie = t};
    ft_status st = ft_image_check_sums(ix, err);
    if (st == FT_OK)
        st = ix->layout->verify(t, ix->n_threads, err);
    if (st == FT_OK)
        st = ft_parallel(t->n_numbered, PIECE_NODES, ix->n_threads, check_nodes, &s,
                         err);
    if (st == FT_OK && s.max_token != t->max_token)
        st = ft_fail(err, FT_EFORMAT, "header: largest token %u, it is %u",
                     t->max_token, s.max_token);
    if (st == FT_OK && t->has_ids)
        st = check_numbers(t, err);
    return st;
}

ft_status ft_index_verify(const ft_index *ix, ft_error *err)
{
    const ft_status st = verify(ix, err);
    return st == FT_OK ? st : ft_fail_prefix(err, "%s", ix->name);
}
