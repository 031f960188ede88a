/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/keygen.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/mem.h"
#include "workload/token_dist.h"

enum { ROOT, BELOW, N_KINDS };

enum { FEW = 8, STRIDE_BITS = 15 };

/* A run of strata that takes `children` distinct tokens, and `extra` keys besides one
 * for each of them. */
typedef struct cell {
    uint32_t lo, width;
    uint64_t children, extra;
} cell;

/* A node whose children are being visited; gone once the last one is drawn. They are
 * never listed: what is left of them is a stack of cells, the next one on top. */
typedef struct frame {
    uint64_t random;  /* state: all that is random at and below the node comes of it */
    uint64_t context; /* says what likely follows: see context_of */
    uint64_t spare;   /* a child takes at most so many extra keys */
    uint64_t step, n_steps; /* place in the cell on top, if that is one stratum */
    uint32_t depth;         /* of the children */
    uint32_t stride; /* of few children: see next_of_few; 0 of many, which have cells */
    uint32_t n_cells;
    bool crowded;
    cell cells[FT_STRATA_BITS + 1];
} frame;

struct ft_keygen {
    ft_keygen_params p;
    uint64_t context_seed;
    uint64_t prefix_chance, fan_chance, few_chance; /* of 2^32 */
    uint64_t tail_chance, long_chance, long_tail_chance;
    uint32_t degree_power[N_KINDS]; /* 16 fraction bits */
    uint64_t degree_limit[N_KINDS];
    uint64_t *room; /* room[d]: keys that fit at and below a node of depth d */
    uint32_t few;   /* so many children have equal steps of the strata, an id in each */
    uint32_t stride[FEW + 1]; /* strata / n, STRIDE_BITS fraction bits */
    uint32_t part[FEW + 1];   /* 65536 / n */
    frame *frames;            /* of nodes on the current path */
    uint32_t n_frames;
    uint32_t *key;
    uint32_t lcp; /* tokens of the last key that key[] still starts with */
    ft_fix_tables fix;
    ft_token_dist dist;
};

static inline uint64_t sat_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return ft_mul_ok(a, b, &product) ? product : UINT64_MAX;
}

static inline uint64_t clamp(uint64_t v, uint64_t lo, uint64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* v (below 2^41) times share / 65536, give or take about the square root of v; at most
 * v. */
static uint64_t take_share(uint64_t v, uint64_t share, uint64_t random)
{
    const unsigned octaves = ft_bit_width(v) / 2;
    const uint64_t x = v * share + ((random & 0xFFFF) << octaves);
    const uint64_t centre = (((uint64_t)1 << octaves) - 1) << 15;
    const uint64_t part = x < centre ? 0 : (x - centre) >> 16;
    return part < v ? part : v;
}

/* What follows a token is the same set, with the same favourites, whatever the path to
 * it: so tails repeat as they do in language. */
static inline uint64_t context_of(const ft_keygen *g, uint32_t token)
{
    return g->context_seed + token * UINT64_C(0xD6E8FEB86659FD93);
}

/* One token of the strata lo .. lo + width - 1: three times of four one of the few
 * favourites there. */
static inline uint32_t likely_token(const ft_keygen *g, uint64_t context, uint32_t lo,
                                    uint32_t width, uint64_t random)
{
    const unsigned octave = (unsigned)__builtin_ctzll(random >> 2 | 1 << 10);
    const uint64_t low = ((uint64_t)1 << octave) + (random >> 32 & ft_low_mask(octave));
    const uint64_t often = -(uint64_t)((random & 3) != 0); /* all bits, or none */
    const uint64_t rank = (low & often) | (random & ~often);
    const uint64_t place = (uint64_t)lo << 32 | width;
    return ft_token_draw(&g->dist, lo, lo + width, ft_mix(context + rank, place));
}

/* A child of a cell that is one stratum: its ids in as many equal steps as there are
 * children, one drawn in each. Returns the token. */
static uint32_t next_step(const ft_keygen *g, frame *f, cell *c, uint64_t *extra)
{
    const uint64_t first = g->dist.edge[c->lo], n_ids = g->dist.edge[c->lo + 1] - first;
    const uint64_t from = f->step * n_ids / f->n_steps;
    const uint64_t to = (f->step + 1) * n_ids / f->n_steps;
    const uint64_t random = ft_random(&f->random), left = c->children - 1;
    const uint64_t others = sat_mul(left, f->spare);
    const uint64_t wish =
        left ? ft_scale(c->extra / c->children * 2 + 1, random) : c->extra;
    *extra = clamp(wish, c->extra > others ? c->extra - others : 0,
                   c->extra < f->spare ? c->extra : f->spare);
    c->extra -= *extra;
    c->children = left;
    f->step++;
    f->n_cells -= left == 0;
    return ft_token_among((uint32_t)(first + from), (uint32_t)(to - from), random);
}

/* A child of a node that has few: each has an equal step of the strata, so there is no
 * cell to split and no branch to guess. Of the extra keys, the next of n takes all but
 * x with chance 1 / n, else an nth of x: some children are crowded, most are not. */
static inline uint32_t next_of_few(const ft_keygen *g, frame *f, uint64_t *extra)
{
    cell *c = &f->cells[0];
    const uint64_t random = ft_random(&f->random), part = g->part[c->children];
    const uint64_t x = random >> 48; /* x / 65536 of the extra keys */
    const uint64_t most = -(uint64_t)((random >> 16 & 0xFFFF) < part);
    const uint64_t share = ((65536 - x) & most) | ((x * part >> 16) & ~most);
    const uint64_t take = (c->extra * share + (random >> 32 & 0xFFFF)) >> 16;
    const uint32_t lo = c->lo >> STRIDE_BITS;
    *extra = c->children == 1 || take > c->extra ? c->extra : take;
    c->extra -= *extra;
    c->children--;
    c->lo += f->stride;
    f->n_cells = c->children != 0;
    return likely_token(g, f->context, lo, (c->lo >> STRIDE_BITS) - lo, random);
}

/* Halve a cell: its upper half stays in *c, the lower half is returned. The halves have
 * the same mass, but what precedes prefers one of them. */
static cell split_cell(const ft_keygen *g, cell *c, frame *f)
{
    const uint32_t *edge = g->dist.edge, half = c->width / 2, mid = c->lo + half;
    const uint64_t ids_low = edge[mid] - edge[c->lo];
    const uint64_t ids_high = edge[c->lo + c->width] - edge[mid];
    const uint64_t taste = ft_mix(f->context, (uint64_t)c->lo << 32 | c->width);
    const uint64_t share = 8192 + (taste & 0xFFFF) * 3 / 4;
    const uint64_t random = ft_random(&f->random);
    cell low = {c->lo, half, take_share(c->children, share, random), 0};
    low.children = clamp(low.children,
                         c->children > ids_high ? c->children - ids_high : 0, ids_low);
    const uint64_t n_high = c->children - low.children;
    if (low.children && c->extra) {
        /* Keys crowd below fewer tokens than there are: most children are leaves, some
         * have many keys. */
        uint64_t crowd = share;
        for (int i = 0; f->crowded && i < 2; i++)
            crowd = (crowd * crowd >> 16) * (3 * 65536 - 2 * crowd) >> 16;
        const uint64_t others = sat_mul(n_high, f->spare);
        low.extra = clamp(take_share(c->extra, crowd, random >> 16),
                          c->extra > others ? c->extra - others : 0,
                          sat_mul(low.children, f->spare));
    }
    *c = (cell){mid, c->width - half, n_high, c->extra - low.extra};
    return low;
}

/* The next child, in the order of tokens; the frame has one. *extra: its keys but one.
 */
static inline uint32_t next_child(const ft_keygen *g, frame *f, uint64_t *extra)
{
    if (f->stride)
        return next_of_few(g, f, extra);
    for (;;) {
        cell *c = &f->cells[f->n_cells - 1];
        if (c->children == 1 && f->step == 0) {
            f->n_cells--;
            *extra = c->extra;
            return likely_token(g, f->context, c->lo, c->width, ft_random(&f->random));
        }
        if (c->width == 1) {
            f->n_steps = f->step ? f->n_steps : c->children;
            const uint32_t token = next_step(g, f, c, extra);
            f->step = c->children ? f->step : 0;
            return token;
        }
        const cell low = split_cell(g, c, f);
        f->n_cells -= c->children == 0;
        if (low.children)
            f->cells[f->n_cells++] = low;
    }
}

/* How many children share `keys` keys: all part at once, or a power of their number
 * does, give or take an octave, bent at the limit. */
static uint64_t choose_degree(const ft_keygen *g, uint32_t depth, uint64_t keys,
                              uint64_t random)
{
    const int kind = depth ? BELOW : ROOT;
    const uint64_t limit = g->degree_limit[kind];
    const uint64_t most = keys < g->p.vocab ? keys : g->p.vocab;
    if (depth && keys <= most && keys <= limit / 16 &&
        random >> 32 < (keys < 8 ? g->few_chance : g->fan_chance))
        return keys;
    uint64_t x = (uint64_t)ft_fix_log2_q16(&g->fix, keys) * g->degree_power[kind] >> 16;
    if (depth)
        x += (random & 0xFFFF) + (random >> 16 & 0xFFFF);
    uint64_t n = ft_fix_exp2_q16(&g->fix, (uint32_t)x) >> kind; /* the noise's mean */
    n = (n + (random >> 24 & 0xFFFF)) >> 16;
    if (n > limit / 64) /* below that, the bend cannot be felt */
        n = ft_scale(limit, UINT64_MAX / (n + limit) * n) + 1;
    const uint64_t room = g->room[depth + 1];
    return clamp(n, keys <= room ? 1 : (keys - 1) / room + 1, most);
}

/* Open the node of the path key[0 .. depth), which has at least two keys at and below
 * it (or is the root). Is it a key itself? */
static bool open_node(ft_keygen *g, uint32_t depth, uint64_t hash, uint64_t keys)
{
    frame *f = &g->frames[g->n_frames++];
    const uint64_t room = g->room[depth + 1];
    const bool is_key = depth && ((hash & 0xFFFFFFFF) < g->prefix_chance ||
                                  keys > sat_mul(room, g->p.vocab));
    keys -= is_key;
    f->random = hash;
    const uint64_t degree = choose_degree(g, depth, keys, ft_random(&f->random));
    f->context = depth ? context_of(g, g->key[depth - 1]) : hash;
    f->spare = room - 1;
    /* In equal steps only where one child has room for all. */
    f->stride = degree <= g->few && keys <= room ? g->stride[degree] : 0;
    f->step = 0;
    f->crowded = depth > 0;
    f->n_cells = 1;
    f->depth = depth + 1;
    f->cells[0] = (cell){0, FT_STRATA, degree, keys - degree};
    return is_key;
}

/* The key has parted from all others: it ends here or goes on alone. Returns its
 * length. */
static uint32_t add_tail(ft_keygen *g, uint32_t n, uint64_t hash)
{
    const uint64_t chance =
        hash >> 32 < g->long_chance ? g->long_tail_chance : g->tail_chance;
    for (; n < g->p.max_length && (hash & 0xFFFFFFFF) < chance; n++) {
        const uint64_t random = ft_random(&hash);
        g->key[n] = likely_token(g, context_of(g, g->key[n - 1]), 0, FT_STRATA, random);
        hash ^= random;
    }
    return n;
}

bool ft_keygen_next(ft_keygen *g, const uint32_t **tokens, uint32_t *n, uint32_t *lcp)
{
    while (g->n_frames) {
        frame *f = &g->frames[g->n_frames - 1];
        const uint32_t depth = f->depth;
        uint64_t extra;
        const uint32_t token = next_child(g, f, &extra);
        const uint64_t hash = ft_random(&f->random);
        g->n_frames -= f->n_cells == 0;
        g->key[depth - 1] = token;
        g->lcp = g->lcp < depth - 1 ? g->lcp : depth - 1;
        if (extra && !open_node(g, depth, hash, 1 + extra))
            continue;
        *tokens = g->key;
        *n = extra ? depth : add_tail(g, depth, hash);
        *lcp = g->lcp;
        g->lcp = *n;
        return true;
    }
    return false;
}

static uint64_t chance(double p)
{
    return (uint64_t)(p * 4294967296.0);
}

/* Among how many children the strata can be parted: each part must start an id, so it
 * is longer than the longest run of strata that a frequent id fills. */
static void set_up_steps(ft_keygen *g)
{
    const uint32_t *edge = g->dist.edge;
    uint32_t run = 1, longest = 1;
    for (uint32_t i = 1; i <= FT_STRATA; i++) {
        run = edge[i] == edge[i - 1] ? run + 1 : 1;
        longest = run > longest ? run : longest;
    }
    for (uint32_t n = 1; n <= FEW && FT_STRATA / n > longest; n++) {
        g->part[n] = 65536 / n;
        g->stride[n] = (uint32_t)((((uint64_t)FT_STRATA << STRIDE_BITS) + n - 1) / n);
        g->few = n;
    }
}

static void set_up(ft_keygen *g)
{
    const ft_keygen_params *p = &g->p;
    g->context_seed = ft_mix(p->seed, UINT64_C(0x636F6E74657874));
    g->prefix_chance = chance(p->prefix_keys);
    g->fan_chance = chance(p->fans);
    g->few_chance = chance(0.5 + p->fans / 2.0);
    g->tail_chance = chance(p->tail / (1.0 + p->tail));
    g->long_tail_chance = chance(10.0 * p->tail / (1.0 + 10.0 * p->tail));
    g->long_chance = chance(p->long_tails);
    g->degree_power[ROOT] = (uint32_t)(0.8 * 65536.0);
    g->degree_power[BELOW] = (uint32_t)((1.0 - p->sharing) * 65536.0);
    g->degree_limit[ROOT] = p->vocab;
    g->degree_limit[BELOW] = p->vocab / 32 + 64;
    g->room[p->max_length] = 1;
    for (uint32_t d = p->max_length; d-- > 0;)
        if (!ft_mul_ok(g->room[d + 1], p->vocab, &g->room[d]) ||
            !ft_add_ok(g->room[d], d > 0, &g->room[d])) /* the root is no key */
            g->room[d] = UINT64_MAX;
    ft_fix_tables_init(&g->fix);
    const ft_token_law law = {p->vocab, p->skew, p->id_noise,
                              ft_mix(p->seed, UINT64_C(0x746F6B656E73))};
    ft_token_dist_init(&g->dist, &law);
    set_up_steps(g);
}

ft_status ft_keygen_open(ft_keygen **out, const ft_keygen_params *p, ft_error *err)
{
    ft_status st = ft_keygen_check(p, err);
    if (st != FT_OK)
        return st;
    ft_keygen *g = ft_new(ft_keygen, err);
    if (!g)
        return FT_ENOMEM;
    g->p = *p;
    g->room = ft_calloc(p->max_length + 1u, sizeof *g->room, err);
    g->frames = ft_calloc(p->max_length, sizeof *g->frames, err);
    g->key = ft_calloc(p->max_length + FT_KEYGEN_READABLE, sizeof *g->key, err);
    st = FT_ENOMEM;
    if (!g->room || !g->frames || !g->key)
        goto fail;
    set_up(g);
    if (p->n_keys > g->room[0]) {
        st = ft_fail(err, FT_EINVAL, "%u tokens make only %llu keys of up to %u tokens",
                     p->vocab, (unsigned long long)g->room[0], p->max_length);
        goto fail;
    }
    open_node(g, 0, ft_mix(p->seed, p->n_keys), p->n_keys);
    *out = g;
    return FT_OK;
fail:
    ft_keygen_close(g);
    return st;
}

void ft_keygen_close(ft_keygen *g)
{
    if (!g)
        return;
    free(g->room);
    free(g->frames);
    free(g->key);
    free(g);
}
