/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers of NumPy's .npy files, format 1.0 to 3.0: magic, version, length, then a
 * Python dictionary of exactly descr, fortran_order and shape.
 */
#include "io/grid_reader.h"

#include <stdio.h>
#include <string.h>

#include "io/formats.h"

enum {
    MAX_HEADER = 65535, /* of any version: ours take 128 bytes */
    MAX_DIMENSIONS = 3
};

typedef enum npy_type { NPY_I4, NPY_U4, NPY_I8, NPY_F2, NPY_F4, NPY_NONE } npy_type;
static const char *const type_names[] = {"<i4", "<u4", "<i8", "<f2", "<f4"};

typedef struct npy {
    char descr[32];
    npy_type type;
    uint32_t n_dimensions;
    uint64_t dimension[MAX_DIMENSIONS];
} npy;

typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip_blanks(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n'))
        c->p++;
}

/* Move behind `text`, if it is next. */
static bool take(cursor *c, const char *text)
{
    const size_t n = strlen(text);
    skip_blanks(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, text, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* A short string without escapes, in either kind of quotes. */
static bool take_string(cursor *c, char to[32])
{
    skip_blanks(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return false;
    const char quote = *c->p++;
    size_t n = 0;
    while (c->p < c->end && *c->p != quote) {
        if (n == 31 || *c->p == '\\' || *c->p < ' ' || *c->p > '~')
            return false;
        to[n++] = *c->p++;
    }
    to[n] = '\0';
    return take(c, (char[]){quote, '\0'});
}

static bool take_number(cursor *c, uint64_t *v)
{
    skip_blanks(c);
    const char *start = c->p;
    *v = 0;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (!ft_mul_ok(*v, 10, v) || !ft_add_ok(*v, (uint64_t)(*c->p - '0'), v) ||
            *v > INT64_MAX)
            return false;
    return c->p > start;
}

/* A tuple of up to three numbers; a single one has its comma. */
static bool take_shape(cursor *c, npy *h)
{
    bool comma = true;
    if (!take(c, "("))
        return false;
    while (!take(c, ")")) {
        if (!comma || h->n_dimensions == MAX_DIMENSIONS ||
            !take_number(c, &h->dimension[h->n_dimensions]))
            return false;
        h->n_dimensions++;
        comma = take(c, ",");
    }
    return h->n_dimensions != 1 || comma;
}

/* What is wrong with the dictionary; NULL: nothing. */
static const char *parse_dictionary(cursor *c, npy *h)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    char key[32];
    unsigned seen = 0;
    bool comma = true;
    if (!take(c, "{"))
        return "is no dictionary";
    while (!take(c, "}")) {
        if (!comma || !take_string(c, key) || !take(c, ":"))
            return "is no dictionary";
        const unsigned which = strcmp(key, "descr") == 0           ? DESCR
                               : strcmp(key, "fortran_order") == 0 ? ORDER
                               : strcmp(key, "shape") == 0         ? SHAPE
                                                                   : 0;
        if (!which || seen & which)
            return "has an unknown key, or one twice";
        seen |= which;
        if (which == DESCR && !take_string(c, h->descr))
            return "has a descr that is not one plain type";
        if (which == ORDER && take(c, "True"))
            return "says Fortran order: save numpy.ascontiguousarray(a)";
        if (which == ORDER && !take(c, "False"))
            return "has a fortran_order that is neither True nor False";
        if (which == SHAPE && !take_shape(c, h))
            return "has a shape that is not (queries, steps, proposals) or (steps, "
                   "proposals)";
        comma = take(c, ",");
    }
    skip_blanks(c);
    if (c->p != c->end)
        return "goes on behind the dictionary";
    return seen == (DESCR | ORDER | SHAPE) ? NULL
                                           : "lacks descr, fortran_order or shape";
}

/* Length of the header behind `*prefix` bytes of magic, version and length. */
static ft_status read_prefix(ft_stream *in, size_t *prefix, size_t *length,
                             ft_error *err)
{
    const char *name = ft_stream_name(in);
    const uint8_t *data;
    size_t avail;
    ft_status st = ft_stream_peek(in, 12, &data, &avail, err);
    if (st != FT_OK)
        return st;
    if (avail < FT_NPY_MAGIC_BYTES ||
        memcmp(data, FT_NPY_MAGIC, FT_NPY_MAGIC_BYTES) != 0)
        return ft_fail(err, FT_EFORMAT, "%s: not a NumPy array (.npy)", name);
    if (avail < 12)
        return ft_fail(err, FT_EFORMAT, "%s: NumPy header cut short", name);
    if (data[6] < 1 || data[6] > 3 || data[7] != 0)
        return ft_fail(err, FT_EFORMAT,
                       "%s: NumPy format %u.%u is unknown (1.0 to 3.0)", name, data[6],
                       data[7]);
    *prefix = data[6] == 1 ? 10 : 12;
    uint64_t n = data[8] | (uint64_t)data[9] << 8;
    if (data[6] > 1)
        n |= (uint64_t)data[10] << 16 | (uint64_t)data[11] << 24;
    if (n > MAX_HEADER)
        return ft_fail(err, FT_EFORMAT, "%s: NumPy header of %llu bytes (at most %d)",
                       name, (unsigned long long)n, MAX_HEADER);
    *length = n;
    return FT_OK;
}

static ft_status read_header(ft_stream *in, npy *h, ft_error *err)
{
    const char *name = ft_stream_name(in);
    const uint8_t *data;
    size_t prefix = 0, length = 0, avail;
    ft_status st = read_prefix(in, &prefix, &length, err);
    if (st == FT_OK)
        st = ft_stream_peek(in, prefix + length, &data, &avail, err);
    if (st != FT_OK)
        return st;
    if (avail < prefix + length)
        return ft_fail(err, FT_EFORMAT, "%s: NumPy header cut short (%zu of %zu bytes)",
                       name, avail, prefix + length);
    const char *text = (const char *)data + prefix;
    cursor c = {text, text + length};
    *h = (npy){.type = NPY_NONE};
    const char *wrong = parse_dictionary(&c, h);
    if (wrong)
        return ft_fail(err, FT_EFORMAT, "%s: NumPy header %s", name, wrong);
    for (int i = 0; i < NPY_NONE; i++)
        if (strcmp(h->descr, type_names[i]) == 0)
            h->type = (npy_type)i;
    ft_stream_skip(in, prefix + length);
    return FT_OK;
}

static bool holds_tokens(const npy *h)
{
    return h->type == NPY_I4 || h->type == NPY_U4 || h->type == NPY_I8;
}

static bool holds_logp(const npy *h)
{
    return h->type == NPY_F2 || h->type == NPY_F4;
}

static ft_status check_types(const ft_grid *g, const npy *tokens, const npy *logp,
                             ft_error *err)
{
    const char *names[2] = {ft_stream_name(g->in), ft_stream_name(g->logp_in)};
    if (holds_logp(tokens) && holds_tokens(logp))
        return ft_fail(
            err, FT_EFORMAT,
            "%s: holds log-probabilities and %s tokens: give the tokens first",
            names[0], names[1]);
    if (!holds_tokens(tokens))
        return ft_fail(err, FT_EFORMAT,
                       "%s: tokens of type '%s': save them as '<i4', '<u4' or '<i8'",
                       names[0], tokens->descr);
    if (!holds_logp(logp))
        return ft_fail(
            err, FT_EFORMAT,
            "%s: log-probabilities of type '%s': save them as '<f2' or '<f4'", names[1],
            logp->descr);
    return FT_OK;
}

static const char *shape_text(const npy *h, char text[80])
{
    int n = 0;
    for (uint32_t i = 0; i < h->n_dimensions; i++)
        n += snprintf(text + n, 80 - (size_t)n, "%s%llu", i ? ", " : "(",
                      (unsigned long long)h->dimension[i]);
    snprintf(text + n, 80 - (size_t)n, h->n_dimensions == 1 ? ",)" : n ? ")" : "()");
    return text;
}

static ft_status check_shapes(const ft_grid *g, const npy *tokens, const npy *logp,
                              ft_error *err)
{
    char a[80], b[80];
    const char *names[2] = {ft_stream_name(g->in), ft_stream_name(g->logp_in)};
    if (tokens->n_dimensions != logp->n_dimensions ||
        memcmp(tokens->dimension, logp->dimension, sizeof logp->dimension) != 0)
        return ft_fail(err, FT_EFORMAT, "%s: has shape %s, but %s has %s", names[0],
                       shape_text(tokens, a), names[1], shape_text(logp, b));
    const uint64_t *last = tokens->dimension + tokens->n_dimensions;
    if (tokens->n_dimensions < 2 || last[-2] > UINT32_MAX || last[-1] > UINT32_MAX)
        return ft_fail(
            err, FT_EFORMAT,
            "%s: shape %s is not (queries, steps, proposals) or (steps, proposals)",
            names[0], shape_text(tokens, a));
    return FT_OK;
}

ft_status ft_grid_read_npy_headers(ft_grid *g, ft_error *err)
{
    npy tokens, logp;
    ft_status st = read_header(g->in, &tokens, err);
    if (st == FT_OK)
        st = read_header(g->logp_in, &logp, err);
    if (st == FT_OK)
        st = check_types(g, &tokens, &logp, err);
    if (st == FT_OK)
        st = check_shapes(g, &tokens, &logp, err);
    if (st != FT_OK)
        return st;
    const uint64_t *last = tokens.dimension + tokens.n_dimensions;
    g->shape = (ft_grid_shape){.n_steps = (uint32_t)last[-2],
                               .n_proposals = (uint32_t)last[-1],
                               .half = logp.type == NPY_F2,
                               .n_queries = tokens.n_dimensions == 3 ? last[-3] : 1};
    g->token_type = tokens.type == NPY_I8   ? TOKEN_I64
                    : tokens.type == NPY_I4 ? TOKEN_I32
                                            : TOKEN_U32;
    return ft_grid_check_shape(&g->shape, ft_stream_name(g->in), &g->n_values, err);
}
