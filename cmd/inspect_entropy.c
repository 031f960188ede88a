/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect_entropy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 256, RUN = 1024, NEAR_BITS = 12 };

typedef struct ft_tally_slot {
    uint64_t count; /* 0: empty */
    uint32_t number;
} slot;

/* Numbers that are near each other stay so, for the cache: frequent tokens often have
 * small ids, and siblings come in order. */
static uint64_t place_of(uint32_t number, uint64_t n_slots)
{
    const uint64_t far = (uint64_t)(number >> NEAR_BITS) * 0x9e3779b1u;
    return (far + (number & ((1u << NEAR_BITS) - 1))) & (n_slots - 1);
}

static slot *find(slot *slots, uint64_t n_slots, uint32_t number)
{
    uint64_t at = place_of(number, n_slots);
    while (slots[at].count && slots[at].number != number)
        at = (at + 1) & (n_slots - 1);
    return &slots[at];
}

static ft_status grow(ft_tally *t, ft_error *err)
{
    const uint64_t n_slots = t->n_slots ? 2 * t->n_slots : FIRST_SLOTS;
    slot *slots = ft_calloc(n_slots, sizeof *slots, err);
    if (!slots)
        return FT_ENOMEM;
    for (uint64_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].count)
            *find(slots, n_slots, t->slots[i].number) = t->slots[i];
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    return FT_OK;
}

static inline ft_status count(ft_tally *t, uint32_t number, ft_error *err)
{
    slot *s;
    if (2 * t->n_used >= t->n_slots) {
        const ft_status st = grow(t, err);
        if (st != FT_OK)
            return st;
    }
    s = find(t->slots, t->n_slots, number);
    t->n_used += s->count == 0;
    s->number = number;
    s->count++;
    t->n_counted++;
    return FT_OK;
}

/* n times the entropy of n numbers of which each occurs as often as here. */
static double bits_of(const ft_tally *t)
{
    double bits = 0.0;
    for (uint64_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].count)
            bits += (double)t->slots[i].count *
                    log2((double)t->n_counted / (double)t->slots[i].count);
    return bits;
}

/* Small levels follow large ones in deep tries: a table much too large is given back.
 */
static void clear(ft_tally *t)
{
    if (t->n_slots > FIRST_SLOTS && t->n_used < t->n_slots / 8) {
        free(t->slots);
        *t = (ft_tally){0};
        return;
    }
    if (t->n_slots)
        memset(t->slots, 0, t->n_slots * sizeof *t->slots);
    t->n_used = t->n_counted = 0;
}

static ft_status count_labels(ft_tally *tally, const ft_trie *t, ft_range children,
                              ft_error *err)
{
    uint32_t labels[RUN];
    for (uint64_t at = 0; at < children.count; at += RUN) {
        const uint64_t left = children.count - at, n = left < RUN ? left : RUN;
        t->ops->labels(t, children.first + at, n, labels);
        for (uint64_t i = 0; i < n; i++) {
            const ft_status st = count(tally, labels[i], err);
            if (st != FT_OK)
                return st;
        }
    }
    return FT_OK;
}

ft_status ft_entropy_node(ft_entropy *e, const ft_trie *t, const ft_visit *visit,
                          ft_error *err)
{
    ft_status st = count(&e->level_degrees, (uint32_t)visit->children.count, err);
    if (st == FT_OK)
        st = count_labels(&e->level_labels, t, visit->children, err);
    if (visit->children.count) {
        e->n_internal++;
        e->n_internal_terminal += visit->terminal;
    }
    return st;
}

/* A set of n labels takes log2(n!) bits less than a sequence of them; so much do sets
 * of at least so many save. */
static double order_bits(const ft_tally *degrees, uint32_t least)
{
    double bits = 0.0;
    for (uint64_t i = 0; i < degrees->n_slots; i++)
        if (degrees->slots[i].count && degrees->slots[i].number >= least)
            bits += (double)degrees->slots[i].count *
                    lgamma((double)degrees->slots[i].number + 1.0) / log(2.0);
    return bits;
}

void ft_entropy_level(ft_entropy *e)
{
    e->labels += bits_of(&e->level_labels);
    e->degrees += bits_of(&e->level_degrees);
    e->order += order_bits(&e->level_degrees, 0);
    if (e->n_levels++ > 0)
        e->hubs += order_bits(&e->level_degrees, FT_HUB);
    clear(&e->level_labels);
    clear(&e->level_degrees);
}

void ft_entropy_end(ft_entropy *e)
{
    const double n = (double)e->n_internal, yes = (double)e->n_internal_terminal;
    if (yes > 0 && yes < n)
        e->terminal = yes * log2(n / yes) + (n - yes) * log2(n / (n - yes));
    free(e->level_labels.slots);
    free(e->level_degrees.slots);
    e->level_labels = e->level_degrees = (ft_tally){0};
}
