/* SPDX-License-Identifier: Apache-2.0
 *
 * Proposal grids in: headers, then queries into batches. Memory grows as data arrives,
 * never by what a header claims.
 */
#include "io/grid_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/formats.h"

enum {
    CHUNK_VALUES = 1 << 16, /* read at once */
    MAX_STEPS = FT_MAX_KEY_TOKENS,
    MAX_PROPOSALS = 1 << 24,
    MAX_VALUES = 1 << 30 /* 8 GiB a query in memory */
};

void ft_batch_free(ft_batch *b)
{
    free(b->ids);
    free(b->tokens);
    free(b->logp);
    *b = (ft_batch){0};
}

ft_status ft_grid_check_shape(const ft_grid_shape *shape, const char *name,
                              uint64_t *n_values, ft_error *err)
{
    const uint32_t t = shape->n_steps, k = shape->n_proposals;
    uint64_t n;
    if (t == 0 || k == 0)
        return ft_fail(err, FT_EFORMAT,
                       "%s: grid of %u steps of %u proposals: at least 1", name, t, k);
    if (t > MAX_STEPS || k > MAX_PROPOSALS || !ft_mul_ok(t, k, &n) || n > MAX_VALUES)
        return ft_fail(
            err, FT_EFORMAT,
            "%s: grid of %u steps of %u proposals: at most %d, %d and %d in all", name,
            t, k, MAX_STEPS, MAX_PROPOSALS, MAX_VALUES);
    *n_values = n;
    return FT_OK;
}

static ft_status check_magic(const char *name, const uint8_t *data, size_t bytes,
                             ft_error *err)
{
    const char *kind = ft_formats_kind(data, bytes);
    const size_t n = bytes < FT_MAGIC_BYTES ? bytes : FT_MAGIC_BYTES;
    if (n == 0)
        return ft_fail(err, FT_EFORMAT, "%s: empty: not a proposal grid", name);
    if (memcmp(data, FT_GRID_MAGIC, n) == 0)
        return FT_OK;
    if (kind)
        return ft_fail(err, FT_EFORMAT, "%s: is %s, not a proposal grid", name, kind);
    return ft_fail(err, FT_EFORMAT, "%s: not a proposal grid, ft-grid(5)", name);
}

static ft_status read_header(ft_grid *g, ft_error *err)
{
    static const uint8_t zero[sizeof(((ft_grid_header *)0)->reserved)];
    const char *name = ft_stream_name(g->in);
    ft_grid_header h;
    const uint8_t *data;
    size_t avail;
    ft_status st = ft_stream_peek(g->in, sizeof h, &data, &avail, err);
    if (st == FT_OK)
        st = check_magic(name, data, avail, err);
    if (st != FT_OK)
        return st;
    if (avail < sizeof h)
        return ft_fail(err, FT_EFORMAT, "%s: grid header cut short (%zu of %zu bytes)",
                       name, avail, sizeof h);
    memcpy(&h, data, sizeof h);
    ft_stream_skip(g->in, sizeof h);
    if (h.flags & ~(uint32_t)FT_GRID_FLAGS)
        return ft_fail(err, FT_EFORMAT, "%s: grid header: unknown flags 0x%x", name,
                       h.flags & ~(uint32_t)FT_GRID_FLAGS);
    if (memcmp(h.reserved, zero, sizeof zero) != 0)
        return ft_fail(err, FT_EFORMAT, "%s: grid header: reserved bytes are not zero",
                       name);
    g->shape = (ft_grid_shape){.n_steps = h.n_steps,
                               .n_proposals = h.n_proposals,
                               .vocab = h.vocab,
                               .has_ids = h.flags & FT_GRID_FLAG_IDS,
                               .half = h.flags & FT_GRID_FLAG_HALF,
                               .n_queries = h.n_queries};
    return ft_grid_check_shape(&g->shape, name, &g->n_values, err);
}

static ft_status open_grid(ft_grid **out, ft_stream *in, ft_stream *logp, ft_error *err)
{
    ft_status st = FT_ENOMEM;
    ft_grid *g = ft_new(ft_grid, err);
    if (!g) {
        ft_stream_close(in);
        ft_stream_close(logp);
        return FT_ENOMEM;
    }
    g->in = in;
    g->logp_in = logp;
    g->scratch = ft_calloc(CHUNK_VALUES, sizeof(uint64_t), err);
    if (g->scratch)
        st = logp ? ft_grid_read_npy_headers(g, err) : read_header(g, err);
    if (st == FT_OK)
        *out = g;
    else
        ft_grid_close(g);
    return st;
}

ft_status ft_grid_open(ft_grid **out, ft_stream *in, ft_error *err)
{
    return open_grid(out, in, NULL, err);
}

ft_status ft_grid_open_npy(ft_grid **out, ft_stream *tokens, ft_stream *logp,
                           ft_error *err)
{
    return open_grid(out, tokens, logp, err);
}

ft_status ft_grid_is_npy(ft_stream *in, bool *npy, ft_error *err)
{
    const uint8_t *data;
    size_t avail;
    const ft_status st = ft_stream_peek(in, FT_NPY_MAGIC_BYTES, &data, &avail, err);
    if (st == FT_OK)
        *npy = avail >= FT_NPY_MAGIC_BYTES &&
               memcmp(data, FT_NPY_MAGIC, FT_NPY_MAGIC_BYTES) == 0;
    return st;
}

const ft_grid_shape *ft_grid_shape_of(const ft_grid *g)
{
    return &g->shape;
}

void ft_grid_close(ft_grid *g)
{
    if (!g)
        return;
    ft_stream_close(g->in);
    ft_stream_close(g->logp_in);
    free(g->scratch);
    free(g);
}

/* The bytes of one query in one stream. */
typedef struct part {
    ft_stream *in;
    uint64_t done, bytes;
} part;

/* The stream names itself; say in which query it failed. */
static ft_status fail_stream(ft_grid *g, ft_status st)
{
    const ft_error e = g->failure;
    return ft_fail(&g->failure, st, "%s (in query %llu)", e.message,
                   (unsigned long long)g->n_read);
}

static ft_status fail_short(ft_grid *g, const part *p)
{
    return ft_fail(&g->failure, FT_EFORMAT,
                   "%s: query %llu: grid cut short (%llu of %llu bytes)",
                   ft_stream_name(p->in), (unsigned long long)g->n_read,
                   (unsigned long long)p->done, (unsigned long long)p->bytes);
}

static ft_status fail_slot(ft_grid *g, const ft_stream *in, uint64_t slot,
                           const char *what)
{
    const uint32_t k = g->shape.n_proposals;
    return ft_fail(&g->failure, FT_EFORMAT,
                   "%s: query %llu, position %llu, rank %llu: %s", ft_stream_name(in),
                   (unsigned long long)g->n_read, (unsigned long long)(slot / k),
                   (unsigned long long)(slot % k), what);
}

static ft_status fetch(ft_grid *g, part *p, void *to, size_t bytes)
{
    size_t got;
    const ft_status st = ft_stream_read(p->in, to, bytes, &got, &g->failure);
    if (st != FT_OK)
        return fail_stream(g, st);
    p->done += got;
    return got < bytes ? fail_short(g, p) : FT_OK;
}

static ft_status reserve_values(ft_grid *g, ft_batch *b, uint64_t need)
{
    if (need <= b->cap_values)
        return FT_OK;
    uint64_t cap = b->cap_values + b->cap_values / 2;
    if (cap < need)
        cap = need;
    uint32_t *tokens = ft_realloc(b->tokens, cap, sizeof *tokens, &g->failure);
    if (!tokens)
        return FT_ENOMEM;
    b->tokens = tokens;
    float *logp = ft_realloc(b->logp, cap, sizeof *logp, &g->failure);
    if (!logp)
        return FT_ENOMEM;
    b->logp = logp;
    b->cap_values = cap;
    return FT_OK;
}

/* Fetch n tokens to `to`; the first is slot number `slot` of the query. */
static ft_status fetch_tokens(ft_grid *g, part *p, uint64_t slot, uint32_t *to,
                              size_t n)
{
    static const char out_of_range[] =
        "token out of range (0 to 4294967294, or -1 for an empty slot)";
    if (g->token_type != TOKEN_I64) {
        const ft_status st = fetch(g, p, to, n * sizeof *to);
        if (st != FT_OK || g->token_type == TOKEN_U32)
            return st;
        for (size_t i = 0; i < n; i++)
            if (to[i] > INT32_MAX && to[i] != FT_NO_TOKEN)
                return fail_slot(g, p->in, slot + i, out_of_range);
        return FT_OK;
    }
    const int64_t *from = g->scratch;
    const ft_status st = fetch(g, p, g->scratch, n * sizeof *from);
    if (st != FT_OK)
        return st;
    for (size_t i = 0; i < n; i++) {
        if (from[i] < -1 || from[i] > UINT32_MAX)
            return fail_slot(g, p->in, slot + i, out_of_range);
        to[i] = (uint32_t)from[i];
    }
    return FT_OK;
}

/* Fetch n log-probs to place `at` of the batch. */
static ft_status fetch_logp(ft_grid *g, part *p, ft_batch *b, uint64_t at, size_t n)
{
    if (!g->shape.half)
        return fetch(g, p, b->logp + at, n * sizeof *b->logp);
    if (b->half)
        return fetch(g, p, (uint16_t *)(void *)b->logp + at, n * sizeof(uint16_t));
    const uint16_t *from = g->scratch;
    const ft_status st = fetch(g, p, g->scratch, n * sizeof *from);
    for (size_t i = 0; st == FT_OK && i < n; i++)
        b->logp[at + i] = ft_half_to_float(from[i]);
    return st;
}

static float logp_at(const ft_batch *b, uint64_t i)
{
    return b->half ? ft_half_to_float(ft_batch_logp16(b)[i]) : b->logp[i];
}

/* Refuse NaN and +inf, empty the slots beyond the vocabulary. */
static ft_status check_query(ft_grid *g, const ft_stream *in, const ft_batch *b,
                             uint64_t base)
{
    const uint32_t limit = g->shape.vocab ? g->shape.vocab : FT_NO_TOKEN;
    uint32_t *tokens = b->tokens + base;
    for (uint64_t i = 0; i < g->n_values; i++) {
        if (tokens[i] == FT_NO_TOKEN)
            continue;
        const float logp = logp_at(b, base + i);
        if (!(logp < INFINITY))
            return fail_slot(g, in, i,
                             isnan(logp) ? "log-probability is NaN"
                                         : "log-probability is +infinity");
        if (tokens[i] >= limit)
            tokens[i] = FT_NO_TOKEN;
    }
    return FT_OK;
}

static ft_status fetch_query(ft_grid *g, ft_batch *b, uint64_t *id)
{
    const uint64_t base = b->n_queries * g->n_values;
    const uint32_t token_bytes = g->token_type == TOKEN_I64 ? 8 : 4;
    const uint32_t logp_bytes = g->shape.half ? 2 : 4;
    part first = {.in = g->in, .bytes = g->n_values * token_bytes};
    part second = {.in = g->logp_in, .bytes = g->n_values * logp_bytes};
    part *const logp = g->logp_in ? &second : &first;
    ft_status st = FT_OK;
    if (!g->logp_in)
        first.bytes += second.bytes + (g->shape.has_ids ? sizeof *id : 0);
    if (g->shape.has_ids)
        st = fetch(g, &first, id, sizeof *id);
    for (uint64_t i = 0, n; st == FT_OK && i < g->n_values; i += n) {
        n = g->n_values - i < CHUNK_VALUES ? g->n_values - i : CHUNK_VALUES;
        st = reserve_values(g, b, base + i + n);
        if (st == FT_OK)
            st = fetch_tokens(g, &first, i, b->tokens + base + i, n);
    }
    for (uint64_t i = 0, n; st == FT_OK && i < g->n_values; i += n) {
        n = g->n_values - i < CHUNK_VALUES ? g->n_values - i : CHUNK_VALUES;
        st = fetch_logp(g, logp, b, base + i, n);
    }
    return st == FT_OK ? check_query(g, logp->in, b, base) : st;
}

/* Is there another query? A known number of them is believed: what is missing then is
 * a query cut short. */
static ft_status at_query(ft_grid *g, bool *more)
{
    const uint8_t *data;
    size_t avail;
    const ft_status st = ft_stream_peek(g->in, 1, &data, &avail, &g->failure);
    if (st != FT_OK)
        return fail_stream(g, st);
    *more = avail > 0 || g->shape.n_queries != FT_GRID_UNTIL_END;
    return FT_OK;
}

/* The last query has been handed out: nothing may follow. */
static ft_status check_end(ft_grid *g, ft_stream *in)
{
    const uint8_t *data;
    size_t avail;
    if (!in)
        return FT_OK;
    const ft_status st = ft_stream_peek(in, 1, &data, &avail, &g->failure);
    if (st != FT_OK || avail == 0)
        return st;
    return ft_fail(&g->failure, FT_EFORMAT,
                   "%s: data after the last of %llu queries, at byte %llu",
                   ft_stream_name(in), (unsigned long long)g->shape.n_queries,
                   (unsigned long long)ft_stream_offset(in));
}

static bool ready(ft_grid *g)
{
    return ft_stream_ready(g->in) && (!g->logp_in || ft_stream_ready(g->logp_in));
}

static ft_status read_query(ft_grid *g, ft_batch *b, uint64_t first_id, bool *more)
{
    if (g->n_read == g->shape.n_queries) {
        /* Looking for what must not be there may wait: not before the last batch. */
        *more = false;
        if (b->n_queries)
            return FT_OK;
        const ft_status st = check_end(g, g->in);
        return st == FT_OK ? check_end(g, g->logp_in) : st;
    }
    ft_status st = at_query(g, more);
    if (st != FT_OK || !*more)
        return st;
    uint64_t id = first_id + g->n_read;
    void *ids = b->ids;
    st = fetch_query(g, b, &id);
    if (st == FT_OK)
        st = ft_reserve(&ids, &b->cap_queries, (uint64_t)b->n_queries + 1, sizeof id,
                        &g->failure);
    b->ids = ids;
    if (st != FT_OK)
        return st;
    b->ids[b->n_queries++] = id;
    g->n_read++;
    return FT_OK;
}

ft_status ft_grid_read(ft_grid *g, ft_batch *b, uint32_t max, bool eager,
                       uint64_t first_id, ft_error *err)
{
    ft_status st = g->failure.status;
    bool more = true;
    b->n_queries = 0;
    b->n_steps = g->shape.n_steps;
    b->n_proposals = g->shape.n_proposals;
    b->half = g->shape.half && b->keep_half;
    while (st == FT_OK && more && b->n_queries < max) {
        if (eager && b->n_queries && !ready(g))
            break;
        st = read_query(g, b, first_id, &more);
    }
    if (st != FT_OK && err)
        *err = g->failure;
    return st;
}
