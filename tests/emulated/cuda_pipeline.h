/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for CUDA's: copies that land at any time until they are waited for. The
 * kernels wait for all of them.
 */
#ifndef EMULATED_CUDA_PIPELINE_H
#define EMULATED_CUDA_PIPELINE_H

#include <assert.h>

#include "machine.h"

static inline void __pipeline_memcpy_async(void *to, const void *from, size_t n)
{
    emulated::copy_later(to, from, n);
}

static inline void __pipeline_commit()
{
}

static inline void __pipeline_wait_prior(int groups)
{
    assert(groups == 0);
    (void)groups;
    emulated::wait_copies();
}

#endif
