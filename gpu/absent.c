/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for the CUDA engine in a build without CUDA: it says so, and nothing else.
 */
#include "engine/engine.h"

static ft_status absent_open(ft_engine **out, const ft_index *index,
                             const ft_engine_options *options, ft_error *err)
{
    (void)out;
    (void)index;
    (void)options;
    return ft_fail(err, FT_EUNAVAILABLE, "this build has no CUDA engine");
}

static ft_status absent_describe(uint32_t device, char *text, size_t bytes,
                                 ft_error *err)
{
    (void)device;
    (void)text;
    (void)bytes;
    return ft_fail(err, FT_EUNAVAILABLE, "this build has no CUDA engine");
}

const ft_engine_ops ft_engine_cuda = {
    .name = "cuda",
    .summary = "NVIDIA GPU (not in this build)",
    .open = absent_open,
    .describe = absent_describe,
};
