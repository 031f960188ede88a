/* SPDX-License-Identifier: Apache-2.0
 *
 * Proposal grids out, and binary16.
 */
#include "io/grid_reader.h"

#include <math.h>
#include <string.h>

#include "io/formats.h"

/* Integer work only, so that no flush-to-zero mode of the caller can change it. A
 * binary16 subnormal is a normal binary32. */
float ft_half_to_float(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31;
    uint32_t fraction = h & 0x3FF, bits;
    if (exponent == 31) {
        bits = 0x7F800000 | fraction << 13;
    } else if (exponent) {
        bits = (exponent + 112) << 23 | fraction << 13;
    } else if (fraction) {
        const unsigned shift = (unsigned)__builtin_clz(fraction) - 21;
        bits = (113 - shift) << 23 | (fraction << shift & 0x3FF) << 13;
    } else {
        bits = 0;
    }
    bits |= sign;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

uint16_t ft_float_to_half(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000) /* NaN stays one, quiet */
        return sign | 0x7E00 | (uint16_t)(bits >> 13 & 0x3FF);
    if (bits >= 0x477FF000) /* 65520 and more round to infinity */
        return sign | 0x7C00;
    if (bits < 0x33000000) /* below half of the smallest subnormal */
        return sign;
    const uint32_t exponent = bits >> 23;
    unsigned drop = 13;
    uint32_t value = bits - (UINT32_C(112) << 23);
    if (exponent < 113) { /* subnormal: 2^-24 is its unit */
        drop = 126 - exponent;
        value = (bits & 0x7FFFFF) | 0x800000;
    }
    const uint32_t kept = value >> drop, rest = value & ((UINT32_C(1) << drop) - 1);
    const uint32_t half = UINT32_C(1) << (drop - 1);
    return sign | (uint16_t)(kept + (rest > half || (rest == half && (kept & 1))));
}

ft_status ft_grid_write_header(ft_sink *out, const ft_grid_shape *shape, ft_error *err)
{
    uint64_t n_values;
    const ft_status st = ft_grid_check_shape(shape, "grid to write", &n_values, err);
    if (st != FT_OK)
        return st;
    ft_grid_header h = {.n_steps = shape->n_steps,
                        .n_proposals = shape->n_proposals,
                        .flags = (shape->has_ids ? FT_GRID_FLAG_IDS : 0u) |
                                 (shape->half ? FT_GRID_FLAG_HALF : 0u),
                        .vocab = shape->vocab,
                        .n_queries = shape->n_queries};
    memcpy(h.magic, FT_GRID_MAGIC, sizeof h.magic);
    return ft_sink_write(out, &h, sizeof h, err);
}

static ft_status write_halves(ft_sink *out, const float *logp, uint64_t n,
                              ft_error *err)
{
    uint16_t halves[1024];
    ft_status st = FT_OK;
    while (st == FT_OK && n) {
        size_t k = 0;
        for (; k < n && k < sizeof halves / sizeof *halves; k++)
            halves[k] = ft_float_to_half(logp[k]);
        st = ft_sink_write(out, halves, k * sizeof *halves, err);
        logp += k;
        n -= k;
    }
    return st;
}

ft_status ft_grid_write(ft_sink *out, const ft_grid_shape *shape, uint64_t id,
                        const uint32_t *tokens, const float *logp, ft_error *err)
{
    const uint64_t n = (uint64_t)shape->n_steps * shape->n_proposals;
    ft_status st = FT_OK;
    if (shape->has_ids)
        st = ft_sink_write(out, &id, sizeof id, err);
    if (st == FT_OK)
        st = ft_sink_write(out, tokens, n * sizeof *tokens, err);
    if (st == FT_OK)
        st = shape->half ? write_halves(out, logp, n, err)
                         : ft_sink_write(out, logp, n * sizeof *logp, err);
    return st;
}
