/* SPDX-License-Identifier: Apache-2.0
 *
 * What a measurement was made on.
 */
#ifndef FT_CMD_BENCH_MACHINE_H
#define FT_CMD_BENCH_MACHINE_H

#include <stddef.h>
#include <stdint.h>

typedef struct ft_machine_fact {
    const char *name;
    /* In words, "unknown" at worst. */
    void (*describe)(uint32_t device, char *text, size_t bytes);
} ft_machine_fact;

/* machine, gpu, driver, build, and "now": date, load and clocks, which differ between
 * runs on one machine. A NULL name ends them. */
extern const ft_machine_fact ft_machine_facts[];

/* Processors that this process may run on. */
uint32_t ft_machine_processors(void);

#endif
