/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's memory and its race detector, which answers the calls that the
 * compiler's -fsanitize=thread puts before each access of the kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <set>
#include <utility>

#include "threads.h"

namespace emulated
{

namespace
{

struct access {
    uint32_t epoch, who : 30, kind : 2, code;
};

enum {
    MOST_TOLD = 8,
    DEVICE_BYTES = 1 << 20,
    GRAIN = 2,
    KEPT = 6,
    ARENA = MOST_BLOCKS * BLOCK_BYTES + DEVICE_BYTES
};

struct cell { /* of GRAIN bytes */
    access last[KEPT];
};

alignas(4096) unsigned char arena[ARENA]; /* blocks' shared memory, and the device's */
cell cells[ARENA / GRAIN];
size_t device_used, block_bytes;
uint32_t last_visit[MOST_WARPS][MOST_BLOCKS]; /* epoch of the warp's last access */
bool has_ended[MOST_BLOCKS];
unsigned n_faults;
std::set<std::pair<uint32_t, uint32_t>> told;

void tell(size_t at, const char *what, uint32_t code, uint32_t earlier)
{
    if (!told.insert({code, earlier}).second)
        return;
    if (++n_faults > MOST_TOLD)
        return;
    const size_t of = at / BLOCK_BYTES;
    if (of < MOST_BLOCKS)
        printf("# shared memory of block %zu, byte %zu: ", of, at % BLOCK_BYTES);
    else
        printf("# device memory, byte %zu: ", at - (size_t)MOST_BLOCKS * BLOCK_BYTES);
    printf("%s; block %u, thread %u; code at %#x %#x\n", what, me->block,
           thread_index.x, code, earlier);
}

void tell_race(size_t at, access_kind kind, uint32_t code, const access &a)
{
    static const char *const names[] = {"read", "write", "atomic", "volatile read"};
    char what[80];
    snprintf(what, sizeof what, "%s with no barrier behind the %s of %s", names[kind],
             names[a.kind],
             a.who / 32 == me->warp           ? "the same warp"
             : a.who / n_threads == me->block ? "another warp"
                                              : "another block");
    tell(at, what, code, a.code);
}

bool conflict(unsigned a, unsigned b)
{
    if (a == WRITE || b == WRITE)
        return true;
    return a != b && a != PEEK && b != PEEK;
}

void look_at(size_t at, access_kind kind, uint32_t code)
{
    access *to = nullptr;
    for (access &a : cells[at / GRAIN].last) {
        if (a.who == me->number && a.kind == kind && a.epoch == me->epoch)
            return;
        const bool before = a.who == me->number || me->before.of[a.who / 32] >= a.epoch;
        if (!before && conflict(a.kind, kind))
            tell_race(at, kind, code, a);
        /* What lies before a write, or before the same again, is no longer needed. */
        if (a.epoch < first_epoch || (before && (kind == WRITE || a.kind == kind))) {
            a.epoch = 0;
            to = &a;
        }
    }
    if (!to)
        to = &cells[at / GRAIN].last[draw(KEPT)];
    *to = {me->epoch, me->number, kind, code};
}

/* The block must have begun, as far as the warp knows, and not have ended. */
void visit(size_t at, unsigned of, uint32_t code)
{
    const unsigned first = of * n_threads / 32;
    bool met = false;
    for (unsigned w = first; w < first + n_threads / 32; w++)
        met |= me->before.of[w] >= first_epoch;
    if (!met || has_ended[of])
        tell(at, "the block need not be there", code, 0);
    last_visit[me->warp][of] = me->epoch;
}

} // namespace

void begin_checks(size_t n_bytes)
{
    block_bytes = n_bytes;
    memset(last_visit, 0, sizeof last_visit);
    memset(has_ended, 0, sizeof has_ended);
    told.clear();
    n_faults = 0;
}

void check(void *p, size_t n, access_kind kind, void *code_)
{
    const size_t at = (size_t)((unsigned char *)p - arena);
    if (at >= ARENA || !me)
        return;
    const uint32_t code = (uint32_t)(uintptr_t)code_;
    const size_t of = at / BLOCK_BYTES;
    if (of < MOST_BLOCKS && at % BLOCK_BYTES + n > block_bytes)
        tell(at, "beyond the block's memory", code, 0);
    if (of < MOST_BLOCKS && of != me->block)
        visit(at, (unsigned)of, code);
    for (size_t i = at / GRAIN * GRAIN; i < at + n; i += GRAIN)
        look_at(i, kind, code);
}

void check_end(unsigned block, const clock &at_end)
{
    has_ended[block] = true;
    for (unsigned w = 0; w < n_warps; w++)
        if (w * 32 / n_threads != block && last_visit[w][block] > at_end.of[w])
            tell((size_t)block * BLOCK_BYTES, "the block ends, but is used", w, 0);
}

unsigned n_faults_found()
{
    return n_faults;
}

unsigned char *block_memory(unsigned block)
{
    return arena + (size_t)block * BLOCK_BYTES;
}

void *device_memory(size_t n)
{
    void *p = arena + (size_t)MOST_BLOCKS * BLOCK_BYTES + device_used;
    device_used += (n + 15) / 16 * 16;
    if (device_used > DEVICE_BYTES) {
        printf("Bail out! a case for more than %d bytes\n", DEVICE_BYTES);
        exit(1);
    }
    memset(p, 0, n);
    return p;
}

void free_memory()
{
    device_used = 0;
}

} // namespace emulated

/* What -fsanitize=thread calls. */
#define CALL(name, kind, n)                                                            \
    extern "C" void __tsan_##name(void *p)                                             \
    {                                                                                  \
        emulated::check(p, n, emulated::kind, __builtin_return_address(0));            \
    }
#define CALLS(n)                                                                       \
    CALL(read##n, READ, n)                                                             \
    CALL(write##n, WRITE, n)                                                           \
    CALL(unaligned_read##n, READ, n)                                                   \
    CALL(unaligned_write##n, WRITE, n)                                                 \
    CALL(volatile_read##n, PEEK, n)                                                    \
    CALL(volatile_write##n, WRITE, n)
CALLS(1)
CALLS(2)
CALLS(4)
CALLS(8)
CALLS(16)

extern "C" void __tsan_read_range(void *p, size_t n)
{
    emulated::check(p, n, emulated::READ, __builtin_return_address(0));
}

extern "C" void __tsan_write_range(void *p, size_t n)
{
    emulated::check(p, n, emulated::WRITE, __builtin_return_address(0));
}

extern "C" void __tsan_init()
{
}

extern "C" void __tsan_func_entry(void *)
{
}

extern "C" void __tsan_func_exit(void *)
{
}
