/* SPDX-License-Identifier: Apache-2.0
 *
 * The compact layout's probe for processors with AVX-512 as of Ice Lake and Zen 4. 16
 * codes are decoded at a time, and most ruled out by a filter folded to 2048 bits,
 * which fits registers. The others of many runs are gathered and then sifted together
 * by the filter itself, whose words are loaded one by one: 16 take 14 cycles so, by the
 * processor's gather 42 (measured on Zen 5).
 */
#include "trie/compact_codes.h"

#ifdef __x86_64__

#include <immintrin.h>

#define TARGET                                                                         \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,avx512bitalg,"        \
                          "avx512vnni,bmi,bmi2,popcnt")))

enum {
    LANES = 16,
    BATCH = 512 /* codes gathered before they are sifted */
};

/* Codes that may be in the filter; some more behind them are written too. */
typedef struct batch {
    _Alignas(64) uint32_t codes[BATCH + LANES];
    _Alignas(64) uint32_t edges[BATCH + LANES];
    _Alignas(64) uint32_t found[BATCH + LANES]; /* words of the filter */
    _Alignas(64) uint16_t words[BATCH + LANES]; /* numbers of these, of 32 bits */
    uint8_t runs[BATCH + LANES];
} batch;

/* A filter's bits whose numbers agree mod 2048 are one here. */
typedef struct folded {
    __m512i w[4];
} folded;

/* 16 codes, of 28 bits at most where two of them fit FT_CODE_BITS, fit a vector. */
static_assert(LANES * (FT_CODE_BITS / 2) + 31 <= 512, "codes of a load");

/* What decoding needs of a region. */
typedef struct region_codes {
    uint64_t first, n; /* nodes */
    uint64_t shift;    /* slots less nodes */
    const ft_compact_block *blocks;
    const uint32_t *words; /* of the codes */
    uint64_t n_words;
    __m512i mask, base; /* of a class, lane number mod 4 */
    __m512i single;     /* bits more for a bit of low (low half) and of high */
    __m512i both;       /* for both, and for each code */
    uint32_t each_bits, low_bits, high_bits, both_bits; /* the same once more */
} region_codes;

TARGET static inline region_codes codes_of(const ft_compact *l, const ft_region *r)
{
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i width =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)r->width));
    return (region_codes){
        .first = r->node,
        .n = r->n_nodes,
        .shift = r->slot - r->node,
        .blocks = l->blocks,
        .words = (const uint32_t *)l->codes,
        .n_words = ft_words(l->n_code_bits) * 2,
        .mask = _mm512_sub_epi32(_mm512_sllv_epi32(one, width), one),
        .base = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)r->classes.base)),
        .single = _mm512_set1_epi32((int)(r->high_more << 16 | (r->low_more & 0xFFFF))),
        .both = _mm512_set1_epi32((int)(r->width[0] << 16 | (r->both_more & 0xFFFF))),
        .each_bits = r->width[0],
        .low_bits = r->low_more,
        .high_bits = r->high_more,
        .both_bits = r->both_more,
    };
}

/* Bits of n codes of such classes. */
static inline uint32_t bits_of(const region_codes *r, unsigned n, ft_class_counts c)
{
    return n * r->each_bits + c.low * r->low_bits + c.high * r->high_bits +
           c.both * r->both_bits;
}

/* Lanes 0 to 15. */
TARGET static inline __m512i lane_numbers(void)
{
    return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
}

TARGET static inline __m512i look_up4(__m512i table, __m512i low_bits)
{
    return _mm512_castps_si512(
        _mm512_permutevar_ps(_mm512_castsi512_ps(table), low_bits));
}

/* 512 bits from 32-bit word number `word` of the codes on; zeros behind their end. */
TARGET static inline __m512i load_bits(const region_codes *r, uint64_t word)
{
    const uint64_t left = r->n_words - word;
    if (left >= LANES)
        return _mm512_loadu_si512(r->words + word);
    return _mm512_maskz_loadu_epi32((__mmask16)((1U << left) - 1), r->words + word);
}

/* 16 codes from `bit` on, of the classes that 16 bits each of low and high say. */
TARGET static inline __m512i decode(const region_codes *r, uint64_t bit, uint32_t low,
                                    uint32_t high)
{
    const __m512i lane = lane_numbers(), one = _mm512_set1_epi32(1);
    const __m512i ones = _mm512_set1_epi32(0x10001);
    const __m512i before = _mm512_sub_epi32(_mm512_sllv_epi32(ones, lane), ones);
    const __m512i single = _mm512_set1_epi32((int)(low | high << 16));
    const __m512i both = _mm512_set1_epi32((int)((low & high) | 0xFFFF0000));

    /* Where each starts, from the first's word on: what the class bits before it stand
     * for, and the number of codes. */
    __m512i at = _mm512_set1_epi32((int)(bit % 32));
    at = _mm512_dpwssd_epi32(at, _mm512_popcnt_epi16(_mm512_and_si512(single, before)),
                             r->single);
    at = _mm512_dpwssd_epi32(at, _mm512_popcnt_epi16(_mm512_and_si512(both, before)),
                             r->both);

    const __m512i bits = load_bits(r, bit / 32), word = _mm512_srli_epi32(at, 5);
    const __m512i code = _mm512_shrdv_epi32(
        _mm512_permutexvar_epi32(word, bits),
        _mm512_permutexvar_epi32(_mm512_add_epi32(word, one), bits), at);
    const __m512i class = _mm512_ternarylogic_epi32(
        one, _mm512_srlv_epi32(single, lane),
        _mm512_srlv_epi32(single, _mm512_add_epi32(lane, _mm512_set1_epi32(15))), 0xCA);
    return _mm512_add_epi32(_mm512_and_si512(code, look_up4(r->mask, class)),
                            look_up4(r->base, class));
}

TARGET static inline folded fold(const uint64_t *filter)
{
    const __m512i none = _mm512_setzero_si512();
    folded f = {{none, none, none, none}};
    for (unsigned i = 0; i < FT_FILTER_WORDS; i += 32) {
        f.w[0] = _mm512_or_si512(f.w[0], _mm512_loadu_si512(filter + i));
        f.w[1] = _mm512_or_si512(f.w[1], _mm512_loadu_si512(filter + i + 8));
        f.w[2] = _mm512_or_si512(f.w[2], _mm512_loadu_si512(filter + i + 16));
        f.w[3] = _mm512_or_si512(f.w[3], _mm512_loadu_si512(filter + i + 24));
    }
    return f;
}

/* Which of the first n of 16 codes the folded filter has. */
TARGET static inline __mmask16 in_fold(const folded *f, __m512i codes, uint32_t n)
{
    const __m512i word = _mm512_srli_epi32(codes, 5);
    const __mmask16 upper = _mm512_test_epi32_mask(codes, _mm512_set1_epi32(1 << 10));
    const __m512i found = _mm512_mask_blend_epi32(
        upper, _mm512_permutex2var_epi32(f->w[0], word, f->w[1]),
        _mm512_permutex2var_epi32(f->w[2], word, f->w[3]));
    return _mm512_mask_test_epi32_mask((__mmask16)_bzhi_u32(0xFFFF, n),
                                       _mm512_rorv_epi32(found, codes),
                                       _mm512_set1_epi32(1));
}

/* Append to the hits those of the batch's n codes. */
TARGET static void sift(batch *b, uint32_t n, const uint64_t *filter, ft_hits *hits)
{
    const uint32_t *words = (const uint32_t *)filter;
    uint32_t n_hits = hits->n;
    for (uint32_t i = 0; i < n; i += LANES) {
        const __m512i codes = _mm512_load_si512(b->codes + i);
        const __m512i word = _mm512_srli_epi32(_mm512_slli_epi32(codes, 16), 21);
        _mm256_store_si256((void *)(b->words + i), _mm512_cvtepi32_epi16(word));
    }
    for (uint32_t i = 0; i < n; i += LANES)
#pragma GCC unroll 16
        for (unsigned j = 0; j < LANES; j++) {
            uint32_t word = words[b->words[i + j]];
            __asm__("" : "+r"(word)); /* no compiler's gather */
            b->found[i + j] = word;
        }
    for (uint32_t i = 0; i < n; i += LANES) {
        const uint32_t left = n - i;
        const __mmask16 valid = (__mmask16)(left < LANES ? (1U << left) - 1 : 0xFFFF);
        const __m512i codes = _mm512_load_si512(b->codes + i);
        const __m512i word = _mm512_load_si512(b->found + i);
        const __m512i edges = _mm512_load_si512(b->edges + i);
        const __m128i runs = _mm_loadu_si128((const void *)(b->runs + i));
        const __mmask16 in = _mm512_mask_test_epi32_mask(
            valid, _mm512_rorv_epi32(word, codes), _mm512_set1_epi32(1));
        _mm512_storeu_si512(hits->codes + n_hits,
                            _mm512_maskz_compress_epi32(in, codes));
        _mm512_storeu_si512(hits->edges + n_hits,
                            _mm512_maskz_compress_epi32(in, edges));
        _mm_storeu_si128((void *)(hits->runs + n_hits),
                         _mm_maskz_compress_epi8(in, runs));
        n_hits += ft_popcount(in);
    }
    hits->n = n_hits;
}

/* Decode a run, whose first edge is number `edge`. What may be in the filter goes into
 * the batch behind its first n codes; it is sifted whenever it is full. Returns how
 * many it has then. */
TARGET static inline uint32_t add_run(batch *b, uint32_t n, const folded *f,
                                      const region_codes *r, ft_range run,
                                      uint32_t number, uint32_t edge,
                                      const uint64_t *filter, ft_hits *hits)
{
    const uint64_t slot = run.first + r->shift;
    const ft_compact_block *block = &r->blocks[slot / FT_COMPACT_BLOCK];
    const __m128i numbers = _mm_set1_epi8((char)number);
    __m512i edges = _mm512_add_epi32(_mm512_set1_epi32((int)edge), lane_numbers());
    unsigned at = slot % FT_COMPACT_BLOCK;
    uint64_t bit = ft_block_codes(block) + bits_of(r, at, ft_classes_before(block, at));
    for (uint64_t left = run.count;;) { /* words of class bits */
        uint64_t low = block->low[at / 64] >> at % 64;
        uint64_t high = block->high[at / 64] >> at % 64;
        const uint32_t room = 64 - at % 64;
        const uint32_t n_here = left < room ? (uint32_t)left : room;
        if (n > BATCH - 64) {
            sift(b, n, filter, hits);
            n = 0;
        }
        for (uint32_t todo = n_here;;) {
            const uint32_t low16 = low & 0xFFFF, high16 = high & 0xFFFF;
            const __m512i codes = decode(r, bit, low16, high16);
            const __mmask16 in = in_fold(f, codes, todo);
            _mm512_storeu_si512(b->codes + n, _mm512_maskz_compress_epi32(in, codes));
            _mm512_storeu_si512(b->edges + n, _mm512_maskz_compress_epi32(in, edges));
            _mm_storeu_si128((void *)(b->runs + n), numbers);
            n += ft_popcount(in);
            if (todo <= LANES)
                break;
            const ft_class_counts classes = {ft_popcount(low16), ft_popcount(high16),
                                             ft_popcount(low16 & high16)};
            bit += bits_of(r, LANES, classes);
            edges = _mm512_add_epi32(edges, _mm512_set1_epi32(LANES));
            low >>= LANES;
            high >>= LANES;
            todo -= LANES;
        }
        left -= n_here;
        if (left == 0)
            return n;
        edge += n_here;
        edges = _mm512_add_epi32(_mm512_set1_epi32((int)edge), lane_numbers());
        at = at < 64 ? 64 : 0;
        block += at == 0;
        bit = ft_block_codes(block);
        if (at)
            bit += bits_of(r, at, ft_classes_before(block, at));
    }
}

TARGET void ft_compact_probe_avx512(const ft_trie *t, const ft_range *runs, uint32_t n,
                                    const uint64_t *filter, ft_hits *hits)
{
    const ft_compact *l = t->layout;
    const folded f = fold(filter);
    region_codes r = {.n = 0};
    uint32_t n_codes = 0, edge = 0;
    batch b;
    hits->n = 0;
    for (uint32_t run = 0; run < n; edge += (uint32_t)runs[run++].count) {
        const uint64_t first = runs[run].first;
        if (first - r.first >= r.n) {
            const ft_region *at = ft_compact_region_of(l, first);
            if (first <= l->n_root_children || !at->paired) {
                sift(&b, n_codes, filter, hits);
                n_codes = 0;
                ft_hits_add(hits,
                            ft_compact_probe_run(t, runs[run], edge, filter,
                                                 hits->edges + hits->n,
                                                 hits->codes + hits->n),
                            run);
                continue;
            }
            r = codes_of(l, at);
        }
        n_codes = add_run(&b, n_codes, &f, &r, runs[run], run, edge, filter, hits);
    }
    sift(&b, n_codes, filter, hits);
}

bool ft_compact_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("avx512bitalg") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}

#else

void ft_compact_probe_avx512(const ft_trie *t, const ft_range *runs, uint32_t n,
                             const uint64_t *filter, ft_hits *hits)
{
    ft_compact_probe_portable(t, runs, n, filter, hits);
}

bool ft_compact_has_avx512(void)
{
    return false;
}

#endif
