/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_numbers.h"

#include <stdlib.h>

bool ft_bench_numbers_parse(ft_bench_numbers *out, const char *text, uint32_t min,
                            uint32_t max)
{
    size_t most = 1;
    for (const char *p = text; *p; p++)
        most += *p == ',';
    ft_bench_numbers list = {malloc(most * sizeof *list.v), 0};
    for (const char *p = text; list.v; p++) {
        char *end;
        if (*p < '0' || *p > '9')
            break;
        const unsigned long v = strtoul(p, &end, 10);
        if (v < min || v > max || (*end && *end != ','))
            break;
        uint32_t at = 0;
        while (at < list.n && list.v[at] != v)
            at++;
        if (at == list.n)
            list.v[list.n++] = (uint32_t)v;
        if (!*end) {
            *out = list;
            return true;
        }
        p = end;
    }
    free(list.v);
    return false;
}
