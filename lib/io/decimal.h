/* SPDX-License-Identifier: Apache-2.0
 *
 * Decimal numbers, out and in: the inner loops of the text forms.
 */
#ifndef FT_IO_DECIMAL_H
#define FT_IO_DECIMAL_H

#include <stdint.h>
#include <string.h>

enum { FT_DECIMAL_BYTES = 20 }; /* of UINT64_MAX */

/* Write v at `to`, which has room for FT_DECIMAL_BYTES; the end of it. */
static inline char *ft_decimal_put(char *to, uint64_t v)
{
    char digits[FT_DECIMAL_BYTES], *p = digits + sizeof digits;
    do
        *--p = (char)('0' + v % 10);
    while (v /= 10);
    const size_t n = (size_t)(digits + sizeof digits - p);
    memcpy(to, p, n);
    return to + n;
}

/* How many of the 8 bytes at p are digits, from the first on, and their value. Little-
 * endian: the first byte is the lowest, so digits are shifted to the top and zeros
 * (worth nothing) come before them. */
static inline unsigned ft_decimal_get8(const uint8_t *p, uint64_t *value)
{
    uint64_t w;
    memcpy(&w, p, 8);
    w ^= UINT64_C(0x3030303030303030); /* digits become 0 .. 9 */
    const uint64_t over = ((w + UINT64_C(0x7676767676767676)) | w) &
                          UINT64_C(0x8080808080808080); /* first set: first non-digit */
    const unsigned n = over ? (unsigned)__builtin_ctzll(over) / 8 : 8;
    if (n == 0)
        return 0;
    w <<= 64 - 8 * n;
    w = (w * 10 + (w >> 8)) & UINT64_C(0x00FF00FF00FF00FF);
    w = (w * 100 + (w >> 16)) & UINT64_C(0x0000FFFF0000FFFF);
    *value = (w * 10000 + (w >> 32)) & UINT64_C(0xFFFFFFFF);
    return n;
}

#endif
