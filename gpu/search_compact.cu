/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernels over the layout "compact".
 */
#include "compact_tables.cuh"
#include "launch.cuh"

FT_GPU_KERNELS(ft_gpu_compact, "compact", ft::compact_view);
