/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of tails share: the layouts, and a small set of keys that share all
 * that tails can.
 */
#ifndef TESTS_UNIT_TAILS_SET_H
#define TESTS_UNIT_TAILS_SET_H

#include "index_forms.h"

#include "trie/tails.h"

/* Inner layouts, and those with tails over them. Links keep their labels over the last.
 */
enum { WIDE = 1, COMPACT = 2, N_INNER = 3 };
static const char *const inner[N_INNER] = {"narrow", "wide", "compact"};
static const char *const tailed[N_INNER] = {"narrow-tails", "wide-tails",
                                            "compact-tails"};

/* Chains of 3, 3, 2 and 4 tokens: 3 4 5 twice, 4 5 at its end, 8 3 4 5 around it. */
static inline keyset shared_set(void)
{
    keyset s = {0};
    KEY(&s, 1);
    KEY(&s, 1, 2, 7);
    KEY(&s, 1, 2, 9);
    KEY(&s, 1, 3, 4, 5);
    KEY(&s, 2, 3, 4, 5);
    KEY(&s, 2, 4, 5);
    KEY(&s, 8, 3, 4, 5);
    keyset_settle(&s);
    return s;
}

#endif
