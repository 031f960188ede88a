/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "workload/driver_version.h"

/* What stands behind "NAME : " in the first such line of /proc/cpuinfo. */
static void processor_field(const char *name, char *text, size_t bytes)
{
    char line[512];
    FILE *in = fopen("/proc/cpuinfo", "re");
    snprintf(text, bytes, "unknown");
    while (in && fgets(line, sizeof line, in)) {
        char *value = strchr(line, ':');
        if (strncmp(line, name, strlen(name)) != 0 || !value)
            continue;
        value += 1 + strspn(value + 1, " ");
        value[strcspn(value, "\n")] = '\0';
        snprintf(text, bytes, "%s", value);
        break;
    }
    if (in)
        fclose(in);
}

/* As `taskset` leaves them. */
uint32_t ft_machine_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0
               ? (uint32_t)CPU_COUNT(&set)
               : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

static void machine(uint32_t device, char *text, size_t bytes)
{
    (void)device;
    char model[256];
    processor_field("model name", model, sizeof model);
    const double memory =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    snprintf(text, bytes, "%s, %u cores, %.0f GiB", model, ft_machine_processors(),
             memory / 0x1p30);
}

static void gpu(uint32_t device, char *text, size_t bytes)
{
    ft_error err;
    if (ft_engine_describe("cuda", device, text, bytes, &err) != FT_OK)
        snprintf(text, bytes, "none: %s", err.message);
}

/* The engine knows no more than the CUDA that the driver is for. */
static void driver(uint32_t device, char *text, size_t bytes)
{
    (void)device;
    if (!ft_driver_version(FT_DRIVER_FILE, text, bytes))
        snprintf(text, bytes, "unknown: no version in %s", FT_DRIVER_FILE);
}

/* The Makefile says the compiler's command line. */
static void build(uint32_t device, char *text, size_t bytes)
{
    (void)device;
    snprintf(text, bytes, "%s; %s", __VERSION__, FT_BUILD_COMMAND);
}

static void now(uint32_t device, char *text, size_t bytes)
{
    (void)device;
    char date[32] = "", clock[32];
    const time_t t = time(NULL);
    struct tm utc;
    double load = 0;
    if (gmtime_r(&t, &utc))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (getloadavg(&load, 1) != 1)
        load = -1;
    processor_field("cpu MHz", clock, sizeof clock);
    snprintf(text, bytes, "%s, load %.2f, processor at %s MHz", date, load, clock);
}

const ft_machine_fact ft_machine_facts[] = {{"machine", machine}, {"gpu", gpu},
                                            {"driver", driver},   {"build", build},
                                            {"now", now},         {NULL, NULL}};
