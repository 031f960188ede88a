/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernels over the layout "narrow".
 */
#include "launch.cuh"
#include "louds_view.cuh"

FT_GPU_KERNELS(ft_gpu_narrow, "narrow", ft::louds_view<ft_narrow>);
