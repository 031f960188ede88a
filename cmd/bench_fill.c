/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_fill.h"

#include <stdio.h>

#include "common.h"

enum { SHOWN = 32, LAST = 6 };

/* Sums over the queries. */
static ft_step_stats step_sums(const ft_stats *stats, uint32_t n_queries,
                               uint32_t n_steps, uint32_t step)
{
    ft_step_stats sum = {.beams = 0};
    for (uint32_t q = 0; q < n_queries; q++) {
        const ft_step_stats *s = &stats->steps[(uint64_t)q * n_steps + step];
        sum.beams += s->beams;
        sum.probes += s->probes;
    }
    return sum;
}

void ft_bench_say_fill(const ft_stats *stats, uint32_t n_queries, uint32_t n_steps,
                       uint32_t beam)
{
    char fills[SHOWN * 16 + 1] = "", probes[SHOWN * 24 + 1] = "";
    const char *more = n_steps > SHOWN ? " ..." : "";
    size_t n_fills = 0, n_probes = 0;
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t t = 0; t < n_steps; t++) {
        const ft_step_stats all = step_sums(stats, n_queries, n_steps, t);
        const double fill = 100.0 * (double)all.beams / beam / n_queries;
        if (t < SHOWN) {
            n_fills += (size_t)snprintf(fills + n_fills, sizeof fills - n_fills,
                                        " %.1f", fill);
            n_probes += (size_t)snprintf(probes + n_probes, sizeof probes - n_probes,
                                         " %.0f", (double)all.probes / n_queries);
        }
        if (t >= 1 && t <= LAST) {
            sum += fill;
            n++;
        }
    }
    ft_say(
        "beam of %u, %u queries, fill by step (%%):%s%s; mean of steps 1 to %u: %.1f",
        beam, n_queries, fills, more, n, n ? sum / n : 0.0);
    ft_say("probes by step:%s%s", probes, more);
}
