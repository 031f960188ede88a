/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench: workloads and measurements. See ft-bench(1).
 */
#include "bench_gen.h"
#include "bench_latency.h"
#include "common.h"
#include "options.h"

int main(int argc, char **argv)
{
    static const ft_subcommand rows[] = {
        {"gen-keys", "make a synthetic library, in order", ft_bench_gen_keys},
        {"gen-grid", "draw proposal grids from an index", ft_bench_gen_grid},
        {"latency", "time single queries, systems side by side", ft_bench_latency},
        {NULL, NULL, NULL}};
    if (!ft_start("ft-bench"))
        return FT_EXIT_FAILED;
    return ft_subcommands_run("ft-bench", "make workloads and measure", rows, argc,
                              argv);
}
