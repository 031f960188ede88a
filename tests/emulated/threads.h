/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine and its race detector share: threads and clocks.
 *
 * Threads count their barriers in epochs. A barrier hands each warp's epoch to all that
 * pass it, so an access lies before a thread where the thread has heard of its epoch.
 * That holds for all lanes of a warp at once: only whole warps meet.
 */
#ifndef EMULATED_THREADS_H
#define EMULATED_THREADS_H

#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <vector>

#include "machine.h"

namespace emulated
{

struct clock {
    uint32_t of[MOST_WARPS]; /* the last epoch of each warp that lies before */
};

struct copy {
    void *to;
    const void *from;
    size_t n;
    void *code;
};

struct thread {
    jmp_buf at;
    ucontext_t beginning;
    bool begun, done;
    std::unique_ptr<char[]> stack; /* what is not used is not there */
    unsigned number, block, warp;  /* within the cluster */
    uint32_t epoch;
    clock before;
    unsigned cluster_phase, n_exchanges;
    std::vector<copy> copies;
};

extern thread *me;                  /* who runs; NULL between runs */
extern unsigned n_threads, n_warps; /* n_threads of a block, n_warps of all */
extern uint32_t first_epoch;        /* of this run: above all that were */
unsigned draw(unsigned n);          /* below n */

/* PEEK: a volatile read, which may meet atomics. */
enum access_kind { READ, WRITE, ATOMIC, PEEK };

void begin_checks(size_t n_bytes); /* of a block's memory */
void check(void *p, size_t n, access_kind kind, void *code);
void check_end(unsigned block, const clock &at_end); /* all its threads have ended */
unsigned n_faults_found();

} // namespace emulated

#endif
