/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench: workloads and measurements. See ft-bench(1).
 */
#include "baseline/baseline.h"
#include "bench_commands.h"
#include "bench_gen.h"
#include "bench_systems.h"
#include "common.h"
#include "options.h"

int main(int argc, char **argv)
{
    static const ft_subcommand rows[] = {
        {"systems", "list what can be measured", ft_bench_list_systems},
        {"gen-keys", "make a synthetic library, in order", ft_bench_gen_keys},
        {"gen-grid", "draw proposal grids from an index", ft_bench_gen_grid},
        {"build", "time, memory and size of layouts", ft_bench_build},
        {"size", "compare the sizes of indexes", ft_bench_size},
        {"latency", "time single queries, systems side by side", ft_bench_latency},
        {"throughput", "queries a second, by the size of batches", ft_bench_throughput},
        {"breakdown", "where a query's time goes", ft_bench_breakdown},
        {"ablation", "time and work of a system's variants", ft_bench_ablation},
        {"quality", "what a beam finds, by its width", ft_bench_quality},
        {NULL, NULL, NULL}};
    ft_error err;
    if (!ft_start("ft-bench"))
        return FT_EXIT_FAILED;
    ft_status st = ft_baseline_register(&err);
    if (st == FT_OK)
        st = ft_paper_register(&err);
    return st == FT_OK ? ft_subcommands_run("ft-bench", "make workloads and measure",
                                            rows, argc, argv)
                       : ft_finish(st, &err);
}
