/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect_tree.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>

typedef struct strokes {
    const char *bar, *blank, *branch, *corner, *dots;
} strokes;

static const strokes box = {"\u2502   ", "    ", "\u251c\u2500\u2500 ",
                            "\u2514\u2500\u2500 ", "\u2026"};
static const strokes ascii = {"|   ", "    ", "|-- ", "`-- ", "..."};

/* The children of a node on the path: those before `next` have been drawn. */
typedef struct frame {
    ft_range range;
    uint64_t next;
} frame;

typedef struct drawing {
    const ft_tree *tree;
    const strokes *strokes;
    frame *frames;
    uint64_t n_frames, cap_frames;
    uint64_t n_keys; /* drawn */
} drawing;

static ft_status push(drawing *d, uint64_t node, ft_error *err)
{
    const ft_trie *t = d->tree->trie;
    const ft_status st = ft_reserve((void **)&d->frames, &d->cap_frames,
                                    d->n_frames + 1, sizeof *d->frames, err);
    if (st == FT_OK)
        d->frames[d->n_frames++] = (frame){t->ops->children(t, node), 0};
    return st;
}

static ft_status put(const drawing *d, const char *text, ft_error *err)
{
    return ft_sink_write(d->tree->out, text, strlen(text), err);
}

static ft_status put_token(const drawing *d, uint32_t token, ft_error *err)
{
    const char *text = d->tree->vocab ? ft_vocab_text(d->tree->vocab, token) : NULL;
    return text ? ft_sink_printf(d->tree->out, err, "%u \"%s\"", token, text)
                : ft_sink_printf(d->tree->out, err, "%u", token);
}

/* Behind a token: its key's number, or a star where there are none; children that the
 * picture leaves out; the end of the line. */
static ft_status put_end(drawing *d, uint64_t node, ft_error *err)
{
    const ft_trie *t = d->tree->trie;
    const unsigned flags = t->ops->flags(t, node);
    ft_status st = FT_OK;
    if (flags & FT_NODE_TERMINAL) {
        d->n_keys++;
        st = t->has_ids
                 ? ft_sink_printf(d->tree->out, err, " [%llu]",
                                  (unsigned long long)ft_trie_key_number(t, node))
                 : put(d, " *", err);
    }
    if (st == FT_OK && d->tree->one_level && d->n_frames &&
        flags & FT_NODE_HAS_CHILDREN)
        st = ft_sink_printf(d->tree->out, err, " (+%llu)",
                            (unsigned long long)t->ops->children(t, node).count);
    return st == FT_OK ? put(d, "\n", err) : st;
}

static ft_status put_indent(const drawing *d, ft_error *err)
{
    ft_status st = FT_OK;
    for (uint64_t i = 0; st == FT_OK && i + 1 < d->n_frames; i++) {
        const bool more = d->frames[i].next < d->frames[i].range.count;
        st = put(d, more ? d->strokes->bar : d->strokes->blank, err);
    }
    return st;
}

static ft_status put_dots(const drawing *d, ft_error *err)
{
    ft_status st = put_indent(d, err);
    if (st == FT_OK)
        st = put(d, d->strokes->corner, err);
    if (st == FT_OK)
        st = put(d, d->strokes->dots, err);
    return st == FT_OK ? put(d, "\n", err) : st;
}

/* The next child of the last frame. */
static ft_status draw_child(drawing *d, ft_error *err)
{
    const ft_trie *t = d->tree->trie;
    frame *f = &d->frames[d->n_frames - 1];
    const uint64_t node = f->range.first + f->next++;
    const bool last = f->next == f->range.count;
    uint32_t token;
    ft_status st = put_indent(d, err);
    if (st == FT_OK)
        st = put(d, last ? d->strokes->corner : d->strokes->branch, err);
    t->ops->labels(t, node, 1, &token);
    if (st == FT_OK)
        st = put_token(d, token, err);
    if (st == FT_OK)
        st = put_end(d, node, err);
    return st == FT_OK && !d->tree->one_level ? push(d, node, err) : st;
}

static ft_status draw_below(drawing *d, uint64_t node, ft_error *err)
{
    ft_status st = push(d, node, err);
    while (st == FT_OK && d->n_frames) {
        const frame *f = &d->frames[d->n_frames - 1];
        if (f->next == f->range.count)
            d->n_frames--;
        else if (d->n_keys >= d->tree->limit)
            return put_dots(d, err);
        else
            st = draw_child(d, err);
    }
    return st;
}

ft_status ft_tree_draw(const ft_tree *t, const uint32_t *prefix, uint32_t n_prefix,
                       uint64_t node, ft_error *err)
{
    const bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    drawing d = {.tree = t, .strokes = utf8 && !t->ascii ? &box : &ascii};
    ft_status st = n_prefix ? FT_OK : put(&d, ".", err);
    for (uint32_t i = 0; st == FT_OK && i < n_prefix; i++) {
        st = i ? put(&d, " ", err) : FT_OK;
        if (st == FT_OK)
            st = put_token(&d, prefix[i], err);
    }
    if (st == FT_OK)
        st = put_end(&d, node, err);
    if (st == FT_OK)
        st = draw_below(&d, node, err);
    free(d.frames);
    return st;
}
