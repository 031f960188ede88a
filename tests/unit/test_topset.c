/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounded sets of candidates: one, and several that share what bounds them.
 */
#include "io_util.h"

#include <math.h>

#include "engine/topset.h"

enum { N_SETS = 3 };

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* Few scores, so that there are ties. */
static ft_candidate candidate(uint64_t *seed, uint64_t node)
{
    return (ft_candidate){.score = -(double)(draw(seed) % 300) / 7, .node = node};
}

static int best_first(const void *x, const void *y)
{
    const ft_candidate *a = x, *b = y;
    return ft_result_better(a->score, a->node, b->score, b->node) ? -1 : 1;
}

static void take_over(ft_topset *sets)
{
    double least = INFINITY;
    for (unsigned i = 0; i < N_SETS; i++)
        least = fmin(least, sets[i].part_bound);
    for (unsigned i = 0; i < N_SETS; i++)
        ft_topset_raise(&sets[i], least);
}

/* Candidates go to the sets in turn, or nearly all to one; what they keep together are
 * the best, and they have learnt to keep the others out. */
static void check_sets(uint64_t n, uint64_t want, unsigned lucky)
{
    ft_candidate *all = calloc(n, sizeof *all);
    ft_topset sets[N_SETS] = {{0}};
    ft_error err = {0};
    uint64_t seed = n + want;
    for (unsigned i = 0; i < N_SETS; i++)
        ft_topset_reset_one(&sets[i], want, N_SETS);
    for (uint64_t i = 0; i < n; i++) {
        all[i] = candidate(&seed, i);
        const unsigned at = draw(&seed) % 100 < lucky ? 0 : (unsigned)(i % N_SETS);
        assert_ok(ft_topset_push(&sets[at], &all[i], &err), err);
        if (i % 64 == 0)
            take_over(sets);
    }
    if (lucky == 0 && n > 20 * (want + FT_TOPSET_ROOM))
        for (unsigned i = 0; i < N_SETS; i++)
            assert_true(sets[i].bound > -INFINITY);
    for (unsigned i = 1; i < N_SETS; i++)
        assert_ok(ft_topset_merge(&sets[0], &sets[i], &err), err);
    assert_ok(ft_topset_trim(&sets[0], &err), err);
    assert_ok(ft_topset_sort(&sets[0], &err), err);
    qsort(all, n, sizeof *all, best_first);
    assert_int_equal(sets[0].n, n < want ? n : want);
    for (uint64_t i = 0; i < sets[0].n; i++)
        assert_int_equal(sets[0].items[i].node, all[i].node);
    for (unsigned i = 0; i < N_SETS; i++)
        ft_topset_free(&sets[i]);
    free(all);
}

static void test_several(void **state)
{
    static const uint64_t wants[] = {1, 2, 3, 100, 1000, 3000};
    static const unsigned lucky[] = {0, 97, 100};
    (void)state;
    for (unsigned i = 0; i < sizeof wants / sizeof *wants; i++)
        for (unsigned j = 0; j < sizeof lucky / sizeof *lucky; j++) {
            check_sets(50, wants[i], lucky[j]);
            check_sets(2500, wants[i], lucky[j]);
            check_sets(100000, wants[i], lucky[j]);
        }
}

/* A part's bound is reached by as many candidates as the part has. */
static void test_part(void **state)
{
    ft_topset s = {0};
    ft_error err = {0};
    uint64_t seed = 5, n = 0;
    (void)state;
    ft_topset_reset_one(&s, 500, 2);
    for (uint64_t i = 0; i < 1200; i++) {
        const ft_candidate c = candidate(&seed, i);
        assert_ok(ft_topset_push(&s, &c, &err), err);
    }
    assert_true(s.part_bound > s.bound);
    for (uint64_t i = 0; i < s.n; i++)
        n += s.items[i].score >= s.part_bound;
    assert_true(n >= 250);
    ft_topset_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
