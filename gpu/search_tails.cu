/* SPDX-License-Identifier: Apache-2.0
 *
 * The search kernels over the layouts with tails whose trees are LOUDS.
 */
#include "launch.cuh"
#include "louds_view.cuh"
#include "tails_view.cuh"

FT_GPU_KERNELS(ft_gpu_narrow_tails, "narrow-tails",
               ft::tails_view<ft::louds_view<ft_narrow>>);
FT_GPU_KERNELS(ft_gpu_wide_tails, "wide-tails",
               ft::tails_view<ft::louds_view<ft_wide>>);
