/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for the paper's engines in a build without CUDA: they say so.
 */
#include "baseline/baseline.h"
#include "paper_rows.h"

static ft_status absent_open(ft_engine **out, const ft_index *index,
                             const ft_engine_options *options, ft_error *err)
{
    return ft_engine_cuda.open(out, index, options, err);
}

static ft_status absent_describe(uint32_t device, char *text, size_t bytes,
                                 ft_error *err)
{
    return ft_engine_cuda.describe(device, text, bytes, err);
}

#define ROW(i, name_, summary_)                                                        \
    {.name = (name_),                                                                  \
     .summary = summary_ " (not in this build)",                                       \
     .open = absent_open,                                                              \
     .describe = absent_describe},

ft_status ft_paper_register(ft_error *err)
{
    static const ft_engine_ops rows[] = {FT_PAPER_ROWS(ROW)};
    ft_status st = FT_OK;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows && st == FT_OK; i++)
        st = ft_engine_register(&rows[i], err);
    return st;
}
