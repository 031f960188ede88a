/* SPDX-License-Identifier: Apache-2.0 */
#include "base/score.h"

#include <math.h>

void ft_norm_table(double alpha, uint32_t max_length, double *norm)
{
    for (uint32_t d = 0; d <= max_length; d++)
        norm[d] = pow(6.0 / (5.0 + d), alpha);
}
