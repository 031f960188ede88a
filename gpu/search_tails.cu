/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernels over the layouts with tails whose trees are LOUDS.
 */
#include "launch.cuh"
#include "narrow_view.cuh"
#include "tails_view.cuh"
#include "wide_view.cuh"

FT_GPU_KERNELS(ft_gpu_narrow_tails, "narrow-tails", ft::tails_view<ft::narrow_view>);
FT_GPU_KERNELS(ft_gpu_wide_tails, "wide-tails", ft::tails_view<ft::wide_view>);
