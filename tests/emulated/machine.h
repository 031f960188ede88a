/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine like a GPU in one thread of the CPU. Each CUDA thread is a fiber, which
 * runs until it waits for others; what runs next is drawn, so a seed is a schedule.
 * Every access to the memory that the machine hands out is checked: two by different
 * threads, not both reads and not both atomic, need a barrier between them. Votes and
 * shuffles are no such barrier, as they are none in CUDA.
 */
#ifndef EMULATED_MACHINE_H
#define EMULATED_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "schedule.h"

namespace emulated
{

/* Of code that is the machine, not the kernel: its accesses are not looked at. */
#define FT_UNSEEN __attribute__((no_sanitize("thread"), noinline))

enum { MOST_BLOCKS = 16, BLOCK_BYTES = 1 << 18, MOST_WARPS = 16 * MOST_BLOCKS };

struct index {
    unsigned x;
};
extern index thread_index, block_index, block_size, grid_size; /* of the thread */

/* Memory whose accesses are checked, until free_memory(). */
void free_memory();
unsigned char *block_memory(unsigned block);
void *device_memory(size_t n);

/* n_bytes of shared memory; the first n_settlers of the threads are not feeders. */
struct block_form {
    unsigned n_threads, n_settlers;
    size_t n_bytes;
};

/* Run body() as a grid of one cluster; returns the number of faults, and prints them as
 * TAP's comments. A deadlock ends the program. */
unsigned run(void (*body)(), unsigned n_blocks, const block_form &form,
             const emu_schedule &schedule);

/* What the running thread asks for. */
unsigned block_rank();
unsigned cluster_size();
bool sync_block(bool any = false); /* whether any thread said so */
void sync_warp();
void sync_second(unsigned n_threads);
void arrive_cluster();
void wait_cluster();
const uint64_t *exchange(uint64_t mine); /* the warp's, by lane */
void copy_later(void *to, const void *from, size_t n);
void wait_copies();
void atomic_access(void *p, size_t n, void *code);

} // namespace emulated

#endif
