/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/fixmath.h"

#include <string.h>

double ft_fix_log2(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7FF) - 1023;
    bits = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    /* ln m = 2 artanh z; z <= 1/3, so eleven odd powers leave less than 1e-11. */
    const double z = (m - 1.0) / (m + 1.0), zz = z * z;
    double sum = 0.0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * zz + 1.0 / k;
    return exponent + sum * z * 2.0 * 1.4426950408889634;
}

double ft_fix_exp2(double x)
{
    int64_t whole = (int64_t)x;
    if ((double)whole > x)
        whole--;
    const double t = (x - (double)whole) * 0.6931471805599453;
    double sum = 1.0;
    for (int k = 14; k >= 1; k--)
        sum = 1.0 + sum * t / k;
    const uint64_t bits = (uint64_t)(whole + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

void ft_fix_tables_init(ft_fix_tables *t)
{
    for (int i = 0; i <= 256; i++) {
        t->log2[i] = (uint32_t)(ft_fix_log2(1.0 + i / 256.0) * 65536.0 + 0.5);
        t->exp2[i] = (uint32_t)(ft_fix_exp2(i / 256.0) * 65536.0 + 0.5);
    }
}
