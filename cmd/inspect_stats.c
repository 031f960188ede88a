/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-inspect stats and verify.
 */
#include "inspect.h"
#include "inspect_entropy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_BUCKETS = 65, BAR_NAME = 12, BAR_WIDTH = 50, NUMBER_BYTES = 24 };

typedef struct level {
    uint64_t n_nodes, n_terminals, n_internal, n_children, max_degree;
} level;

/* Bucket b of the degrees holds 2^(b-1) .. 2^b - 1; bucket 0 is the leaves. */
typedef struct shape {
    level *levels;
    uint32_t n_levels;
    uint64_t degrees[N_BUCKETS];
    ft_entropy entropy;
} shape;

static unsigned bucket_of(uint64_t degree)
{
    unsigned b = 0;
    for (; degree; degree >>= 1)
        b++;
    return b;
}

/* Nodes in tails that are next on the level: each is the only child of the one before.
 */
typedef struct tail_nodes {
    uint64_t *nodes;
    uint64_t n, cap;
} tail_nodes;

static ft_status visit_node(shape *s, const ft_trie *t, uint64_t node, uint64_t *place,
                            ft_range *children, ft_error *err)
{
    level *l = &s->levels[s->n_levels - 1];
    const ft_visit visit = t->ops->visit(t, node, place);
    const uint64_t degree = visit.children.count;
    l->n_nodes++;
    l->n_terminals += visit.terminal;
    l->n_internal += degree != 0;
    l->n_children += degree;
    if (degree > l->max_degree)
        l->max_degree = degree;
    s->degrees[bucket_of(degree)]++;
    *children = visit.children;
    return ft_entropy_node(&s->entropy, t, &visit, err);
}

static ft_status visit_tails(shape *s, const ft_trie *t, tail_nodes *tails,
                             ft_error *err)
{
    uint64_t kept = 0, place = 0;
    ft_range r;
    for (uint64_t i = 0; i < tails->n; i++) {
        const ft_status st = visit_node(s, t, tails->nodes[i], &place, &r, err);
        if (st != FT_OK)
            return st;
        if (r.count)
            tails->nodes[kept++] = r.first;
    }
    tails->n = kept;
    return FT_OK;
}

static ft_status enter_tail(tail_nodes *tails, uint64_t node, ft_error *err)
{
    void *nodes = tails->nodes;
    const ft_status st =
        ft_reserve(&nodes, &tails->cap, tails->n + 1, sizeof *tails->nodes, err);
    tails->nodes = nodes;
    if (st == FT_OK)
        tails->nodes[tails->n++] = node;
    return st;
}

/* Nodes are numbered level by level, so that the nodes' children, counted, give where
 * the next level ends. */
static ft_status measure_levels(shape *s, const ft_trie *t, tail_nodes *tails,
                                ft_error *err)
{
    uint64_t node = 0, end = 1, place = t->ops->seek(t, 0);
    ft_status st = FT_OK;
    while (st == FT_OK && (node < end || tails->n) && s->n_levels <= t->depth) {
        uint64_t n_numbered = 0; /* children */
        ft_range r;
        s->n_levels++;
        st = visit_tails(s, t, tails, err);
        for (; st == FT_OK && node < end; node++) {
            st = visit_node(s, t, node, &place, &r, err);
            if (r.count && r.first >= t->n_numbered)
                st = st == FT_OK ? enter_tail(tails, r.first, err) : st;
            else
                n_numbered += r.count;
            if (node % 65536 == 0 && ft_progress_due())
                ft_progress("%.0f %% of the nodes",
                            100.0 * (double)node / (double)t->n_numbered);
        }
        ft_entropy_level(&s->entropy);
        end += n_numbered;
    }
    return st;
}

static ft_status measure(shape *s, const ft_trie *t, ft_error *err)
{
    tail_nodes tails = {0};
    s->levels = ft_calloc((uint64_t)t->depth + 1, sizeof *s->levels, err);
    if (!s->levels)
        return FT_ENOMEM;
    const ft_status st = measure_levels(s, t, &tails, err);
    ft_entropy_end(&s->entropy);
    free(tails.nodes);
    return st;
}

/* Do tails pay? Paper Equation 1. */
static ft_status print_tails(ft_sink *out, const ft_index *ix, ft_error *err)
{
    ft_tail_summary t;
    if (!ft_index_tails(ix, &t))
        return FT_OK;
    return ft_sink_printf(
        out, err,
        "links        %llu\ntail         %llu tokens for %llu\n"
        "alpha        %.4f: Equation 1 (alpha < %.4f) says that tails %s\n",
        (unsigned long long)t.n_links, (unsigned long long)t.n_tail,
        (unsigned long long)t.n_folded, ft_tail_alpha(&t), ft_tail_limit(&t),
        ft_tails_pay(&t) ? "pay" : "do not pay");
}

static ft_status print_head(ft_sink *out, const ft_index *ix, ft_error *err)
{
    const ft_trie *t = ft_index_trie(ix);
    const uint64_t bytes = ft_index_file_bytes(ix);
    return ft_sink_printf(
        out, err,
        "layout       %s\nkeys         %llu\nkey numbers  %s\nnodes        %llu\n"
        "nodes/key    %.2f\ndepth        %u\nmax token    %u\nbytes        %llu\n"
        "bits/node    %.2f\n",
        ft_index_layout(ix), (unsigned long long)t->n_keys,
        t->has_ids ? "stored" : "not stored", (unsigned long long)t->n_nodes,
        t->n_keys ? (double)t->n_nodes / (double)t->n_keys : 0.0, t->depth,
        t->max_token, (unsigned long long)bytes,
        8.0 * (double)bytes / (double)t->n_nodes);
}

static ft_status print_section(ft_sink *out, const ft_index *ix, const char *name,
                               uint64_t stored, uint64_t raw, ft_error *err)
{
    const double bits = 8.0 * (double)stored;
    return ft_sink_printf(out, err, "%-16s %14llu %14llu %10.3f %7.2f\n", name,
                          (unsigned long long)stored, (unsigned long long)raw,
                          bits / (double)ft_index_trie(ix)->n_nodes,
                          12.5 * bits / (double)ft_index_file_bytes(ix));
}

static ft_status print_sections(ft_sink *out, const ft_index *ix, ft_error *err)
{
    uint64_t stored = 0, raw = 0, rest;
    ft_status st = ft_sink_printf(out, err, "\n%-16s %14s %14s %10s %7s\n", "section",
                                  "bytes", "in memory", "bits/node", "%");
    for (uint32_t i = 0; st == FT_OK && i < ft_index_n_sections(ix); i++) {
        const ft_section_info s = ft_index_section(ix, i);
        st = print_section(out, ix, s.name, s.stored_bytes, s.raw_bytes, err);
        stored += s.stored_bytes;
        raw += s.raw_bytes;
    }
    rest = ft_index_file_bytes(ix) - stored;
    if (st == FT_OK)
        st = print_section(out, ix, "header, padding", rest, rest, err);
    if (st == FT_OK)
        st = print_section(out, ix, "all", stored + rest, raw + rest, err);
    return st;
}

/* What a section is for. Ranks go with what they count. */
typedef enum part { PART_LABELS, PART_SHAPE, PART_NUMBERS, PART_OTHER, N_PARTS } part;

static part part_of(const char *section)
{
    static const struct {
        const char *section;
        part part;
    } rows[] = {
        {"labels", PART_LABELS},        {"labels-low", PART_LABELS},
        {"high-flags", PART_LABELS},    {"high-rank", PART_LABELS},
        {"high", PART_LABELS},          {"token-sets", PART_LABELS},
        {"token-classes", PART_LABELS}, {"codes", PART_LABELS},
        {"louds", PART_SHAPE},          {"louds-rank", PART_SHAPE},
        {"louds-select", PART_SHAPE},   {"terminal", PART_SHAPE},
        {"root-blocks", PART_SHAPE},    {"blocks", PART_SHAPE},
        {"siblings", PART_SHAPE},       {"sibling-rank", PART_SHAPE},
        {"ids", PART_NUMBERS},          {"tail", PART_LABELS},
        {"link-flags", PART_LABELS},    {"link-rank", PART_LABELS},
        {"link-high", PART_LABELS},     {"terminal-rank", PART_NUMBERS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(section, rows[i].section) == 0)
            return rows[i].part;
    return PART_OTHER;
}

/* Key numbers and what is left over are nothing that the keys would need. */
static ft_status print_floor(ft_sink *out, const ft_index *ix, const ft_entropy *e,
                             ft_error *err)
{
    static const char *const names[] = {"labels", "degrees, ends", "key numbers",
                                        "other"};
    const double n = (double)ft_index_trie(ix)->n_nodes;
    const double floor[N_PARTS] = {e->labels / n, (e->degrees + e->terminal) / n};
    const double all = 8.0 * (double)ft_index_file_bytes(ix) / n;
    double parts[N_PARTS] = {0}, rest = all;
    for (uint32_t i = 0; i < ft_index_n_sections(ix); i++) {
        const ft_section_info s = ft_index_section(ix, i);
        const double bits = 8.0 * (double)s.stored_bytes / n;
        /* Half of each block of layout compact are classes of codes. */
        const double classes = strcmp(s.name, "blocks") == 0 ? bits / 2 : 0;
        parts[part_of(s.name)] += bits - classes;
        parts[PART_LABELS] += classes;
        rest -= bits;
    }
    parts[PART_OTHER] += rest;
    ft_status st = ft_sink_printf(out, err, "\n%-16s %14s %14s %10s\n", "bits/node",
                                  "entropy", "index", "more");
    for (int i = 0; st == FT_OK && i < N_PARTS; i++)
        st = ft_sink_printf(out, err, "%-16s %14.3f %14.3f %10.3f\n", names[i],
                            floor[i], parts[i], parts[i] - floor[i]);
    if (st == FT_OK)
        st = ft_sink_printf(out, err, "%-16s %14.3f %14.3f %10.3f\n", "all",
                            floor[PART_LABELS] + floor[PART_SHAPE], all,
                            all - floor[PART_LABELS] - floor[PART_SHAPE]);
    if (st == FT_OK)
        st = ft_sink_printf(out, err, "%-16s %14.3f\n%-16s %14.3f\n", "sibling order",
                            e->order / n, "- in hubs", e->hubs / n);
    return st;
}

/* Anything at all shows. */
static ft_status print_bar(ft_sink *out, const char *name, uint64_t n, uint64_t most,
                           ft_error *err)
{
    static const char full[] = "##################################################";
    const double share = most ? (double)n / (double)most : 0.0;
    const unsigned width = n ? 1 + (unsigned)(share * (BAR_WIDTH - 1)) : 0;
    return ft_sink_printf(out, err, "%*s %12llu%s%s\n", BAR_NAME, name,
                          (unsigned long long)n, width ? " " : "",
                          full + BAR_WIDTH - width);
}

static ft_status print_levels(ft_sink *out, const shape *s, ft_error *err)
{
    uint64_t most = 0;
    ft_status st =
        ft_sink_printf(out, err, "\n%5s %12s %12s %12s %12s %12s\n", "level", "nodes",
                       "keys", "internal", "mean degree", "max degree");
    for (uint32_t d = 0; st == FT_OK && d < s->n_levels; d++) {
        const level *l = &s->levels[d];
        most = l->n_nodes > most ? l->n_nodes : most;
        st = ft_sink_printf(
            out, err, "%5u %12llu %12llu %12llu %12.2f %12llu\n", d,
            (unsigned long long)l->n_nodes, (unsigned long long)l->n_terminals,
            (unsigned long long)l->n_internal,
            l->n_internal ? (double)l->n_children / (double)l->n_internal : 0.0,
            (unsigned long long)l->max_degree);
    }
    if (st == FT_OK)
        st = ft_sink_printf(out, err, "\n%*s %12s\n", BAR_NAME, "level", "nodes");
    for (uint32_t d = 0; st == FT_OK && d < s->n_levels; d++) {
        char name[NUMBER_BYTES];
        snprintf(name, sizeof name, "%u", d);
        st = print_bar(out, name, s->levels[d].n_nodes, most, err);
    }
    return st;
}

static ft_status print_degrees(ft_sink *out, const shape *s, ft_error *err)
{
    uint64_t most = 0;
    unsigned n = 0;
    for (unsigned b = 0; b < N_BUCKETS; b++) {
        most = s->degrees[b] > most ? s->degrees[b] : most;
        n = s->degrees[b] ? b + 1 : n;
    }
    ft_status st =
        ft_sink_printf(out, err, "\n%*s %12s\n", BAR_NAME, "degree", "nodes");
    for (unsigned b = 0; st == FT_OK && b < n; b++) {
        const uint64_t low = b ? (uint64_t)1 << (b - 1) : 0;
        const uint64_t high = b ? low + (low - 1) : 0;
        char range[2 * NUMBER_BYTES];
        if (low == high)
            snprintf(range, sizeof range, "%llu", (unsigned long long)low);
        else
            snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)low,
                     (unsigned long long)high);
        st = print_bar(out, range, s->degrees[b], most, err);
    }
    return st;
}

int ft_inspect_stats(const ft_subcommand *self, int argc, char **argv)
{
    const ft_command c = {"ft-inspect", self->name, self->summary, "INDEX", NULL, 1, 1};
    ft_operands operands;
    ft_inspect in = {0};
    shape s = {0};
    ft_error err;
    ft_status st;
    const int rc = ft_command_parse(&c, argc, argv, &operands);
    if (rc != FT_GO_ON)
        return rc;
    st = ft_inspect_open(&in, FT_OUTPUT_TEXT, operands.v[0], NULL, &err);
    if (st == FT_OK)
        st = measure(&s, ft_index_trie(in.index), &err);
    ft_progress_end();
    if (st == FT_OK)
        st = print_head(in.out, in.index, &err);
    if (st == FT_OK)
        st = print_tails(in.out, in.index, &err);
    if (st == FT_OK)
        st = print_sections(in.out, in.index, &err);
    if (st == FT_OK)
        st = print_floor(in.out, in.index, &s.entropy, &err);
    if (st == FT_OK)
        st = print_levels(in.out, &s, &err);
    if (st == FT_OK)
        st = print_degrees(in.out, &s, &err);
    free(s.levels);
    return ft_inspect_close(&in, st, &err);
}

int ft_inspect_verify(const ft_subcommand *self, int argc, char **argv)
{
    const ft_command c = {"ft-inspect", self->name, self->summary, "INDEX", NULL, 1, 1};
    ft_operands operands;
    ft_inspect in = {0};
    ft_error err;
    ft_status st;
    const int rc = ft_command_parse(&c, argc, argv, &operands);
    if (rc != FT_GO_ON)
        return rc;
    st = ft_inspect_open(&in, FT_OUTPUT_TEXT, operands.v[0], NULL, &err);
    if (st == FT_OK)
        st = ft_index_verify(in.index, &err);
    if (st == FT_OK)
        st = ft_sink_printf(in.out, &err, "%s: valid: %llu keys, %llu nodes\n",
                            operands.v[0],
                            (unsigned long long)ft_index_trie(in.index)->n_keys,
                            (unsigned long long)ft_index_trie(in.index)->n_nodes);
    return ft_inspect_close(&in, st, &err);
}
