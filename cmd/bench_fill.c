/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_fill.h"

#include <stdio.h>

#include "common.h"

static double fill_of(const ft_stats *stats, uint32_t n_queries, uint32_t n_steps,
                      uint32_t step, uint32_t beam)
{
    uint64_t beams = 0;
    for (uint32_t q = 0; q < n_queries; q++)
        beams += stats->steps[(uint64_t)q * n_steps + step].beams;
    return 100.0 * (double)beams / beam / n_queries;
}

void ft_bench_say_fill(const ft_stats *stats, uint32_t n_queries, uint32_t n_steps,
                       uint32_t beam)
{
    enum { SHOWN = 32, LAST = 6 };
    char text[SHOWN * 8 + 1] = "";
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t t = 0, used = 0; t < n_steps; t++) {
        const double fill = fill_of(stats, n_queries, n_steps, t, beam);
        if (t < SHOWN)
            used += (uint32_t)snprintf(text + used, sizeof text - used, " %.1f", fill);
        if (t >= 1 && t <= LAST) {
            sum += fill;
            n++;
        }
    }
    ft_say(
        "beam of %u, %u queries, fill by step (%%):%s%s; mean of steps 1 to %u: %.1f",
        beam, n_queries, text, n_steps > SHOWN ? " ..." : "", n, n ? sum / n : 0.0);
}
