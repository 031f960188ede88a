/* SPDX-License-Identifier: Apache-2.0
 *
 * ft-bench size: what indexes take on disk.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench_commands.h"
#include "bench_report.h"
#include "common.h"

static ft_status add_row(ft_bench_report *r, const char *path, ft_error *err)
{
    ft_index *index = NULL;
    ft_bench_row row = {.n = 0};
    ft_bench_cell(&row, "%s", path);
    if (ft_bench_report_has(r, &row))
        return FT_OK;
    ft_status st = ft_index_open(&index, path, FT_VERIFY_FULL, 0, err);
    if (st != FT_OK)
        return st;
    const ft_trie *t = ft_index_trie(index);
    const double bytes = (double)ft_index_file_bytes(index);
    const double keys = t->n_keys ? (double)t->n_keys : 1;
    ft_bench_cell(&row, "%s", ft_index_layout(index));
    ft_bench_cell(&row, "%" PRIu64, t->n_keys);
    ft_bench_cell(&row, "%" PRIu64, t->n_nodes);
    ft_bench_cell(&row, "%" PRIu64, ft_index_file_bytes(index));
    ft_bench_cell(&row, "%.2f", 8 * bytes / (double)t->n_nodes);
    ft_bench_cell(&row, "%.3f", bytes / keys);
    ft_bench_cell(&row, "%.3f", (double)t->n_nodes / keys);
    ft_index_close(index);
    return ft_bench_report_row(r, &row, err);
}

int ft_bench_size(const ft_subcommand *self, int argc, char **argv)
{
    static const ft_bench_column columns[] = {{"index", FT_BENCH_TEXT, 24},
                                              {"layout", FT_BENCH_TEXT, 12},
                                              {"keys", FT_BENCH_NUMBER, 11},
                                              {"nodes", FT_BENCH_NUMBER, 11},
                                              {"bytes", FT_BENCH_NUMBER, 12},
                                              {"bits_per_node", FT_BENCH_NUMBER},
                                              {"bytes_per_key", FT_BENCH_NUMBER},
                                              {"nodes_per_key", FT_BENCH_NUMBER},
                                              {NULL}};
    ft_bench_output output = {.format = FT_BENCH_BY_OUTPUT};
    const ft_option rows[] = {FT_BENCH_OUTPUT_ROWS(&output), FT_OPTIONS_END};
    const ft_command c = {.program = "ft-bench",
                          .subcommand = self->name,
                          .summary = self->summary,
                          .operands = "INDEX...",
                          .options = rows,
                          .min_operands = 1,
                          .max_operands = FT_ANY_OPERANDS};
    ft_operands operands;
    ft_error err;
    int rc = ft_command_parse(&c, argc, argv, &operands);
    if (rc == FT_GO_ON)
        rc = ft_bench_output_check(&c, &output, &operands);
    if (rc == FT_GO_ON) {
        ft_bench_report *report = NULL;
        ft_status st =
            ft_bench_report_open(&report, &output, self->name, columns, 1, &err);
        if (st == FT_OK)
            st = ft_bench_report_begin(report, &err);
        for (uint32_t i = 0; i < operands.n && st == FT_OK; i++)
            st = add_row(report, operands.v[i], &err);
        rc = ft_finish(ft_bench_report_close(report, st, &err), &err);
    }
    free(output.notes.items);
    return rc;
}
