/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernels over the layout "wide".
 */
#include "launch.cuh"
#include "louds_view.cuh"

FT_GPU_KERNELS(ft_gpu_wide_layout, "wide", ft::louds_view<ft_wide>);
