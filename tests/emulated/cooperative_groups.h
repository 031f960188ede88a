/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for CUDA's: a cluster, and a grid, which is one cluster.
 */
#ifndef EMULATED_COOPERATIVE_GROUPS_H
#define EMULATED_COOPERATIVE_GROUPS_H

#include "machine.h"

namespace cooperative_groups
{

struct cluster_group {
    unsigned block_rank() const
    {
        return emulated::block_rank();
    }

    unsigned num_blocks() const
    {
        return emulated::cluster_size();
    }

    void barrier_arrive() const
    {
        emulated::arrive_cluster();
    }

    void barrier_wait() const
    {
        emulated::wait_cluster();
    }
};

static inline cluster_group this_cluster()
{
    return {};
}

struct grid_group {
    void sync() const
    {
        emulated::arrive_cluster();
        emulated::wait_cluster();
    }
};

static inline grid_group this_grid()
{
    return {};
}

} // namespace cooperative_groups

#endif
