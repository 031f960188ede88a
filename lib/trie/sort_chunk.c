/* SPDX-License-Identifier: Apache-2.0
 *
 * A radix sort, most significant bits first and in place (McIlroy, Bostic, McIlroy,
 * "Engineering Radix Sort", 1993), on words of two tokens; keys that agree in a word go
 * on with the next two tokens.
 */
#include "trie/sort_chunk.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/score.h"

enum {
    WORD_TOKENS = 2,
    RECORD_TOKENS = sizeof(ft_sort_record) / sizeof(uint32_t),
    LENGTH_BITS = 16, /* of a record's place: FT_MAX_KEY_TOKENS fits */
    DIGIT_BITS = 8,
    N_DIGITS = 1 << DIGIT_BITS,
    SMALL = 24, /* records: sorted by insertion */
    AHEAD = 16  /* records whose tails are fetched before the walk gets there */
};

ft_status ft_sort_chunk_open(ft_sort_chunk *c, uint64_t bytes, ft_error *err)
{
    void *block = ft_alloc_aligned(bytes, 1, err);
    if (!block)
        return FT_ENOMEM;
    c->records = block;
    c->tails = block;
    c->cap_tokens = bytes / sizeof *c->tails;
    ft_sort_chunk_clear(c);
    return FT_OK;
}

void ft_sort_chunk_clear(ft_sort_chunk *c)
{
    c->n = c->at = c->group_end = 0;
    c->tails_begin = c->cap_tokens;
    c->last_word = 0; /* that of no key */
    c->n_key = 0;
}

void ft_sort_chunk_close(ft_sort_chunk *c)
{
    free(c->records);
    free(c->key);
    c->records = NULL;
    c->tails = NULL;
    c->key = NULL;
    c->n = c->cap_tokens = c->cap_key = 0;
}

/* Word of the `left` tokens that remain of a key: the order of words is that of tokens,
 * an end before any token. */
static inline uint64_t word_of(const uint32_t *tokens, uint32_t left)
{
    uint64_t word = 0;
    if (left > 0)
        word = (uint64_t)(tokens[0] + 1) << 32;
    if (left > 1)
        word |= tokens[1] + 1;
    return word;
}

/* Did the key end in this word? Then keys that share it are equal. */
static inline bool ends_key(uint64_t word)
{
    return (uint32_t)word == 0;
}

static inline uint32_t length_of(const ft_sort_record *r)
{
    return r->place & ft_low_mask(LENGTH_BITS);
}

static inline uint32_t *tail_of(const ft_sort_chunk *c, const ft_sort_record *r)
{
    return c->tails + (r->place >> LENGTH_BITS);
}

bool ft_sort_chunk_add(ft_sort_chunk *c, const uint32_t *tokens, uint32_t n)
{
    const uint32_t n_tail = n > WORD_TOKENS ? n - WORD_TOKENS : 0;
    if ((c->n + 1) * RECORD_TOKENS + n_tail > c->tails_begin)
        return false;
    c->tails_begin -= n_tail;
    c->records[c->n++] = (ft_sort_record){
        .word = word_of(tokens, n),
        .place = c->tails_begin << LENGTH_BITS | n,
    };
    uint32_t max = c->max_token;
    for (uint32_t i = 0; i < n && i < WORD_TOKENS; i++)
        max = tokens[i] > max ? tokens[i] : max;
    uint32_t *tail = c->tails + c->tails_begin;
    for (uint32_t i = 0; i < n_tail; i++) {
        const uint32_t token = tokens[WORD_TOKENS + i];
        tail[i] = token;
        max = token > max ? token : max;
    }
    c->max_token = max;
    c->longest = n > c->longest ? n : c->longest;
    return true;
}

static void insertion_sort(ft_sort_record *r, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        const ft_sort_record moving = r[i];
        uint64_t hole = i;
        for (; hole && r[hole - 1].word > moving.word; hole--)
            r[hole] = r[hole - 1];
        r[hole] = moving;
    }
}

/* The bits in which words differ; 0 where the records are in order already. */
static uint64_t differing_bits(const ft_sort_record *r, uint64_t n)
{
    uint64_t differ = 0;
    bool sorted = true;
    for (uint64_t i = 1; i < n; i++) {
        differ |= r[i].word ^ r[0].word;
        sorted &= r[i - 1].word <= r[i].word;
    }
    return sorted ? 0 : differ;
}

/* Move records to where their digit puts them: each that is out of place takes the
 * place of another, until one comes that belongs where the first was. */
static void permute(ft_sort_record *r, uint64_t *next, const uint64_t *end,
                    unsigned shift)
{
    for (unsigned d = 0; d < N_DIGITS; d++)
        while (next[d] < end[d]) {
            ft_sort_record moving = r[next[d]];
            unsigned to = moving.word >> shift & (N_DIGITS - 1);
            while (to != d) {
                ft_sort_record *place = &r[next[to]++];
                const ft_sort_record evicted = *place;
                *place = moving;
                moving = evicted;
                to = moving.word >> shift & (N_DIGITS - 1);
            }
            r[next[d]++] = moving;
        }
}

/* Each level of recursion settles DIGIT_BITS bits: there are at most eight. */
static void sort_words(ft_sort_record *r, uint64_t n)
{
    if (n <= SMALL) {
        insertion_sort(r, n);
        return;
    }
    const unsigned width = ft_bit_width(differing_bits(r, n));
    if (width == 0)
        return;
    const unsigned shift = width > DIGIT_BITS ? width - DIGIT_BITS : 0;
    uint64_t next[N_DIGITS] = {0}, end[N_DIGITS], sum = 0;
    for (uint64_t i = 0; i < n; i++)
        next[r[i].word >> shift & (N_DIGITS - 1)]++;
    for (unsigned d = 0; d < N_DIGITS; d++) {
        const uint64_t count = next[d];
        next[d] = sum;
        end[d] = sum += count;
    }
    permute(r, next, end, shift);
    for (unsigned d = 0; shift && d < N_DIGITS; d++) {
        const uint64_t begin = d ? end[d - 1] : 0;
        if (end[d] - begin > 1)
            sort_words(r + begin, end[d] - begin);
    }
}

static uint64_t end_of_group(const ft_sort_record *r, uint64_t i, uint64_t n)
{
    uint64_t j = i + 1;
    while (j < n && r[j].word == r[i].word)
        j++;
    return j;
}

/* Sort keys that share their first `depth` tokens, an even number. Their words are
 * overwritten. The largest group that is still undecided is gone on with in a loop and
 * the others have at most half the keys, so that recursion is shallow however long the
 * keys are. */
static void sort_tails(ft_sort_chunk *c, ft_sort_record *r, uint64_t n, uint32_t depth)
{
    while (n > 1) {
        for (uint64_t i = 0; i < n; i++) {
            const uint32_t length = length_of(&r[i]);
            r[i].word =
                length > depth
                    ? word_of(tail_of(c, &r[i]) + depth - WORD_TOKENS, length - depth)
                    : 0;
        }
        sort_words(r, n);
        ft_sort_record *largest = r;
        uint64_t n_largest = 0;
        depth += WORD_TOKENS;
        for (uint64_t i = 0, j; i < n; i = j) {
            j = end_of_group(r, i, n);
            if (j - i == 1 || ends_key(r[i].word))
                continue;
            if (j - i > n_largest) {
                sort_tails(c, largest, n_largest, depth);
                largest = r + i;
                n_largest = j - i;
            } else {
                sort_tails(c, r + i, j - i, depth);
            }
        }
        r = largest;
        n = n_largest;
    }
}

void ft_sort_chunk_sort(ft_sort_chunk *c)
{
    sort_words(c->records, c->n);
}

/* The walk stands before records that share their word: put them in order. */
static void enter_group(ft_sort_chunk *c)
{
    ft_sort_record *r = c->records + c->at;
    const uint64_t word = r->word;
    c->group_end = end_of_group(c->records, c->at, c->n);
    if (c->group_end - c->at == 1 || ends_key(word))
        return;
    sort_tails(c, r, c->group_end - c->at, WORD_TOKENS);
    for (; r < c->records + c->group_end; r++)
        r->word = word;
}

/* Tokens that record r shares with the key before it. */
static uint32_t shared_tokens(const ft_sort_chunk *c, const ft_sort_record *r)
{
    const uint32_t length = length_of(r), *tail = tail_of(c, r);
    if (r->word != c->last_word)
        return r->word >> 32 == c->last_word >> 32;
    const uint32_t n = length < c->n_key ? length : c->n_key;
    uint32_t i = n < WORD_TOKENS ? n : WORD_TOKENS;
    while (i < n && tail[i - WORD_TOKENS] == c->key[i])
        i++;
    return i;
}

ft_status ft_sort_chunk_next(ft_sort_chunk *c, ft_key *key, ft_error *err)
{
    void *room = c->key;
    const ft_status st =
        ft_reserve(&room, &c->cap_key, c->longest, sizeof *c->key, err);
    c->key = room;
    if (st != FT_OK)
        return st;
    for (; c->at < c->n; c->at++) {
        if (c->at == c->group_end)
            enter_group(c);
        const ft_sort_record *r = &c->records[c->at];
        if (c->n - c->at > AHEAD)
            __builtin_prefetch(tail_of(c, r + AHEAD));
        const uint32_t n = length_of(r), lcp = shared_tokens(c, r);
        if (lcp == n) { /* its equals come after its prefixes */
            c->n_duplicates++;
            continue;
        }
        c->key[0] = (uint32_t)(r->word >> 32) - 1;
        if (n > 1)
            c->key[1] = (uint32_t)r->word - 1;
        for (uint32_t i = lcp > WORD_TOKENS ? lcp : WORD_TOKENS; i < n; i++)
            c->key[i] = tail_of(c, r)[i - WORD_TOKENS];
        c->last_word = r->word;
        c->n_key = n;
        c->at++;
        *key = (ft_key){c->key, n, lcp};
        return FT_OK;
    }
    *key = (ft_key){0};
    return FT_OK;
}
