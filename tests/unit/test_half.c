/* SPDX-License-Identifier: Apache-2.0
 *
 * binary16, as grids hold it: exact one way, rounded to nearest even the other.
 */
#include "io_util.h"

#include <math.h>

#include "io/grid.h"

/* What float.h and <math.h> say a binary16 is: an independent reading of the format. */
static float half_by_definition(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const float sign = h & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return exponent ? sign * ldexpf((float)(1024 + fraction), exponent - 25)
                    : sign * ldexpf((float)fraction, -24);
}

static void halves_widen_exactly(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        const float f = ft_half_to_float((uint16_t)h);
        const float want = half_by_definition((uint16_t)h);
        assert_true(isnan(want) ? isnan(f) : f == want);
        assert_int_equal(!!signbit(f), h >> 15);
        const uint16_t back = ft_float_to_half(f);
        assert_int_equal(back, isnan(want) ? (h | 0x200) : h);
    }
}

/* Between two neighbours the nearer one, at the middle the even one. */
static void halves_round_to_even(void **state)
{
    (void)state;
    for (uint16_t h = 0; h < 0x7BFF; h++) {
        const float a = ft_half_to_float(h), b = ft_half_to_float((uint16_t)(h + 1));
        const float middle = (a + b) / 2; /* exact: a bit more than a binary16 has */
        const uint16_t even = h & 1 ? (uint16_t)(h + 1) : h;
        assert_int_equal(ft_float_to_half(middle), even);
        assert_int_equal(ft_float_to_half(-middle), even | 0x8000);
        assert_int_equal(ft_float_to_half(nextafterf(middle, -1)), h);
        assert_int_equal(ft_float_to_half(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(ft_float_to_half(65519.996f), 0x7BFF);
    assert_int_equal(ft_float_to_half(65520.0f), 0x7C00);
    assert_int_equal(ft_float_to_half(-1e30f), 0xFC00);
    assert_int_equal(ft_float_to_half(1e-30f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_widen_exactly),
        cmocka_unit_test(halves_round_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
