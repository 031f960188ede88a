/* SPDX-License-Identifier: Apache-2.0 */
#include "baseline/baseline.h"

ft_status ft_baseline_register(ft_error *err)
{
    const ft_status st = ft_engine_register(&ft_engine_marisa_int, err);
    return st == FT_OK ? ft_engine_register(&ft_engine_marisa_opt, err) : st;
}
