/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_systems.h"

#include <stdlib.h>
#include <string.h>

#include "bench_marisa.h"
#include "bench_report.h"
#include "common.h"

#define PAPER_LAYOUTS "narrow-tails narrow"

const ft_bench_system ft_bench_systems[] = {
    {"flashtrie-cuda", "cuda", "compact", "this project, on a GPU", .on_device = true},
    {"flashtrie-cpu", "cpu", "compact", "this project, on the host"},
    {"marisa-int", "marisa-int", "wide-tails wide",
     "Appendix B.1: each candidate walked from the root", .one_thread = true},
    {"marisa-opt", "marisa-opt", "wide",
     "Appendix B.2: state carried, two-pointer merge, shared heap"},
    {"paper", "paper", PAPER_LAYOUTS, "Algorithms 1 to 5: FlashTrie as published",
     .ablation = true, .on_device = true},
    {"paper-linear", "paper-linear", PAPER_LAYOUTS,
     "Appendix J: a linear probe a proposal", .ablation = true, .on_device = true},
    {"paper-two-pointer", "paper-two-pointer", PAPER_LAYOUTS,
     "Appendix J: a thread merges children and proposals", .ablation = true,
     .on_device = true},
    {"paper-per-child", "paper-per-child", PAPER_LAYOUTS,
     "Appendix J: a scan of the proposals a child", .ablation = true,
     .on_device = true},
    {"ppt", "ppt", PAPER_LAYOUTS,
     "Appendix I: token sets a position, so that more than keys comes out",
     .superset = true, .ablation = true, .on_device = true},
    {"marisa", NULL, "marisa marisa-n1",
     "the outside reference, stock MARISA: not searched, measured by build"},
    {NULL}};

static const ft_engine_ops *engine_row(const char *name)
{
    const ft_engine_ops *ops;
    for (uint32_t i = 0; (ops = ft_engine_row(i)); i++)
        if (strcmp(ops->name, name) == 0)
            return ops;
    return NULL;
}

ft_status ft_bench_system_find(ft_bench_system *out, const char *name, ft_error *err)
{
    for (const ft_bench_system *s = ft_bench_systems; s->name; s++)
        if (strcmp(s->name, name) == 0) {
            if (!s->engine)
                return ft_fail(err, FT_EINVAL,
                               "%s is not searched: ft-bench build measures it", name);
            *out = *s;
            return FT_OK;
        }
    const ft_engine_ops *ops = engine_row(name);
    if (!ops)
        return ft_fail(err, FT_EINVAL,
                       "no system is called '%s': ft-bench systems lists them", name);
    *out = (ft_bench_system){ops->name, ops->name, NULL, ops->summary,
                             .on_device = ops->describe != NULL};
    return FT_OK;
}

bool ft_bench_system_wants(const ft_bench_system *s, const char *layout)
{
    const size_t n = strlen(layout);
    for (const char *p = s->layouts; p && *p; p += strcspn(p, " ")) {
        p += *p == ' ';
        if (strncmp(p, layout, n) == 0 && (p[n] == ' ' || p[n] == '\0'))
            return true;
    }
    return !s->layouts;
}

/* Layouts are listed as "narrow-tails|narrow". */
static void add_row(ft_bench_row *row, const ft_bench_system *s)
{
    char text[FT_BENCH_FACT_BYTES];
    ft_error err;
    ft_bench_cell(row, "%s", s->name);
    ft_bench_cell(row, "%s", s->engine ? s->engine : "-");
    ft_bench_cell(row, "%s", s->layouts);
    for (char *p = row->cells[row->n - 1]; *p; p++)
        *p = *p == ' ' ? '|' : *p;
    ft_bench_cell(row, "%s", s->what);
    if (!s->engine)
        ft_bench_cell(row, ft_bench_has_marisa() ? "installed: for build alone"
                                                 : FT_BENCH_NO_MARISA);
    else if (!engine_row(s->engine))
        ft_bench_cell(row, "unavailable: not in this build");
    else if (ft_engine_describe(s->engine, 0, text, sizeof text, &err) != FT_OK)
        ft_bench_cell(row, "unavailable: %s", err.message);
    else
        ft_bench_cell(row, "ok");
}

int ft_bench_list_systems(const ft_subcommand *self, int argc, char **argv)
{
    static const ft_bench_column columns[] = {
        {"system", FT_BENCH_TEXT, 17},  {"engine", FT_BENCH_TEXT, 17},
        {"layouts", FT_BENCH_TEXT, 19}, {"what", FT_BENCH_TEXT, 67},
        {"status", FT_BENCH_TEXT, 0},   {NULL}};
    ft_bench_output output = {.format = FT_BENCH_BY_OUTPUT};
    const ft_option rows[] = {FT_BENCH_OUTPUT_ROWS(&output), FT_OPTIONS_END};
    const ft_command c = {.program = "ft-bench",
                          .subcommand = self->name,
                          .summary = self->summary,
                          .operands = "",
                          .options = rows};
    ft_operands none;
    ft_error err;
    int rc = ft_command_parse(&c, argc, argv, &none);
    if (rc == FT_GO_ON)
        rc = ft_bench_output_check(&c, &output, &none);
    if (rc == FT_GO_ON) {
        ft_bench_report *report = NULL;
        ft_status st =
            ft_bench_report_open(&report, &output, self->name, columns, 1, &err);
        if (st == FT_OK)
            st = ft_bench_report_begin(report, &err);
        for (uint32_t i = 0; ft_bench_systems[i].name && st == FT_OK; i++) {
            ft_bench_row row = {.n = 0};
            add_row(&row, &ft_bench_systems[i]);
            if (!ft_bench_report_has(report, &row))
                st = ft_bench_report_row(report, &row, &err);
        }
        st = ft_bench_report_close(report, st, &err);
        rc = ft_finish(st, &err);
    }
    free(output.notes.items);
    return rc;
}
