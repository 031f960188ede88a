/* SPDX-License-Identifier: Apache-2.0
 *
 * Fibers and their barriers; and the race detector, which answers the calls that the
 * compiler's -fsanitize=thread puts before each access of the kernel.
 *
 * Threads count their barriers in epochs. A barrier hands each warp's epoch to all that
 * pass it, so an access lies before a thread where the thread has heard of its epoch.
 * That holds for all lanes of a warp at once: only whole warps meet.
 */
#include "machine.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <set>
#include <utility>
#include <vector>

namespace emulated
{

index thread_index, block_index, block_size, grid_size;

namespace
{

enum { STACK = 64 << 10, CANARY = 64, MOST_TOLD = 8, DEVICE_BYTES = 1 << 20 };

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
    std::vector<char> stack;
    unsigned number, block, warp; /* within the cluster */
    uint32_t epoch;
    clock before;
    unsigned cluster_phase, n_exchanges;
    std::vector<copy> copies;
};

struct barrier {
    unsigned need, count;
    bool any, result;
    clock seen;
    std::vector<thread *> waiting;
};

struct warp_exchange {
    unsigned count;
    uint64_t all[2][32]; /* by turns: some still read the last one's */
    std::vector<thread *> waiting;
};

struct block {
    barrier all, second;
    unsigned n_done;
    clock at_end;
};

thread *me;
jmp_buf scheduler;
std::vector<thread> threads;
std::vector<thread *> ready;
block blocks[MOST_BLOCKS];
barrier warps[MOST_WARPS];
warp_exchange exchanges[MOST_WARPS];
struct {
    unsigned phase, count;
    clock seen[2]; /* by the phase's parity */
    std::vector<thread *> waiting;
} cluster;
unsigned n_blocks, n_threads, n_warps; /* n_threads of a block, n_warps of all */
emu_schedule schedule;
void (*body)();
uint64_t dice;
uint32_t first_epoch = 1; /* of this run: above all that were */
unsigned n_faults;

unsigned draw(unsigned n)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (unsigned)(dice >> 20) % n;
}

void wait_for_turn()
{
    if (!_setjmp(me->at))
        _longjmp(scheduler, 1);
}

void give_way()
{
    ready.push_back(me);
    wait_for_turn();
}

void wake(std::vector<thread *> *waiting)
{
    ready.insert(ready.end(), waiting->begin(), waiting->end());
    waiting->clear();
}

void join(clock *to, const clock &from)
{
    for (unsigned w = 0; w < n_warps; w++)
        to->of[w] = to->of[w] > from.of[w] ? to->of[w] : from.of[w];
}

/* What I did lies before those that pass the barrier. */
void publish(clock *seen)
{
    if (me->number % 32 == 0) {
        join(seen, me->before);
        seen->of[me->warp] = me->epoch;
    }
    me->epoch++;
}

bool meet(barrier *b, bool any)
{
    publish(&b->seen);
    b->any |= any;
    if (++b->count < b->need) {
        b->waiting.push_back(me);
        wait_for_turn();
        return b->result;
    }
    b->result = b->any;
    b->any = false;
    b->count = 0;
    for (thread *t : b->waiting)
        join(&t->before, b->seen);
    join(&me->before, b->seen);
    wake(&b->waiting);
    if (draw(4) == 0)
        give_way();
    return b->result;
}

/* ---- the race detector ---- */

enum access_kind { READ, WRITE, ATOMIC, PEEK }; /* PEEK: volatile, beside atomics */

struct access {
    uint32_t epoch, who : 30, kind : 2, code;
};

enum { GRAIN = 2, KEPT = 6, ARENA = MOST_BLOCKS * BLOCK_BYTES + DEVICE_BYTES };

struct cell { /* of GRAIN bytes */
    access last[KEPT];
};

alignas(4096) unsigned char arena[ARENA]; /* blocks' shared memory, and the device's */
cell cells[ARENA / GRAIN];
size_t device_used;
uint32_t last_visit[MOST_WARPS]
                   [MOST_BLOCKS]; /* epoch of the last access from outside */
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
    if (!met || blocks[of].n_done == n_threads)
        tell(at, "the block need not be there", code, 0);
    last_visit[me->warp][of] = me->epoch;
}

void check(void *p, size_t n, access_kind kind, void *code_)
{
    const size_t at = (size_t)((unsigned char *)p - arena);
    if (at >= ARENA || !me)
        return;
    const uint32_t code = (uint32_t)(uintptr_t)code_;
    const size_t of = at / BLOCK_BYTES;
    if (of < MOST_BLOCKS && of != me->block)
        visit(at, (unsigned)of, code);
    for (size_t i = at / GRAIN * GRAIN; i < at + n; i += GRAIN)
        look_at(i, kind, code);
}

/* ---- a run ---- */

void end_thread()
{
    block *b = &blocks[me->block];
    me->done = true;
    publish(&b->at_end);
    if (++b->n_done < n_threads)
        return;
    for (unsigned w = 0; w < n_warps; w++)
        if (w * 32 / n_threads != me->block &&
            last_visit[w][me->block] > b->at_end.of[w])
            tell((size_t)me->block * BLOCK_BYTES, "the block ends, but is used", w, 0);
}

void begin_thread()
{
    body();
    end_thread();
    _longjmp(scheduler, 1);
}

bool is_held(const thread *t)
{
    const unsigned thread = t->number % n_threads;
    switch (schedule.hold) {
    case EMU_HOLD_A_BLOCK:
        return t->block == (cluster.phase + schedule.seed) % n_blocks;
    case EMU_HOLD_A_WARP:
        return thread / 32 == schedule.seed % (n_threads / 32);
    case EMU_HOLD_FEEDERS:
        return thread >= 128;
    case EMU_HOLD_SETTLERS:
        return thread < 128;
    default:
        return false;
    }
}

thread *next_thread()
{
    size_t i = 0;
    if (schedule.hold != EMU_HOLD_LATE)
        for (int tries = 0; tries < 64; tries++) {
            i = draw((unsigned)ready.size());
            if (!is_held(ready[i]))
                break;
        }
    std::swap(ready[i], ready.back());
    thread *t = ready.back();
    ready.pop_back();
    return t;
}

void resume(thread *t)
{
    me = t;
    thread_index = {t->number % n_threads};
    block_index = {t->block};
    if (_setjmp(scheduler))
        return;
    if (t->begun)
        _longjmp(t->at, 1);
    t->begun = true;
    setcontext(&t->beginning);
}

void prepare(thread *t, unsigned number, const clock &begin)
{
    t->stack.resize(STACK);
    memset(t->stack.data(), 0x5a, CANARY);
    getcontext(&t->beginning);
    t->beginning.uc_stack.ss_sp = t->stack.data();
    t->beginning.uc_stack.ss_size = STACK;
    makecontext(&t->beginning, begin_thread, 0);
    t->begun = t->done = false;
    t->number = number;
    t->block = number / n_threads;
    t->warp = number / 32;
    t->epoch = first_epoch;
    t->before = begin;
    t->n_exchanges = 0;
    t->copies.clear();
    ready.push_back(t);
}

void prepare_all()
{
    clock begin;
    for (uint32_t &epoch : begin.of)
        epoch = first_epoch - 1;
    memset(last_visit, 0, sizeof last_visit);
    memset(arena, 0xa5, (size_t)n_blocks * BLOCK_BYTES);
    told.clear();
    ready.clear();
    for (block &b : blocks)
        b = {{n_threads, 0, false, false, begin, {}},
             {0, 0, false, false, begin, {}},
             0,
             begin};
    for (barrier &w : warps)
        w = {32, 0, false, false, begin, {}};
    for (warp_exchange &x : exchanges)
        x = {};
    cluster = {0, 0, {begin, begin}, {}};
    threads.resize((size_t)n_blocks * n_threads);
    for (unsigned i = 0; i < threads.size(); i++)
        prepare(&threads[i], i, begin);
}

} // namespace

unsigned run(void (*body_)(), unsigned n_blocks_, unsigned n_threads_,
             const emu_schedule &schedule_)
{
    body = body_;
    n_blocks = n_blocks_;
    n_threads = n_threads_;
    n_warps = n_blocks * n_threads / 32;
    schedule = schedule_;
    dice = schedule.seed * 0x9E3779B97F4A7C15u + 88172645463325252u;
    block_size = {n_threads};
    grid_size = {n_blocks};
    n_faults = 0;
    prepare_all();
    while (!ready.empty())
        resume(next_thread());
    me = nullptr;
    for (const thread &t : threads) {
        if (!t.done || t.stack[0] != 0x5a || t.stack[CANARY - 1] != 0x5a) {
            printf("Bail out! block %u, thread %u %s\n", t.block, t.number % n_threads,
                   t.done ? "has used up its stack" : "waits for ever");
            exit(1);
        }
        if (t.epoch > first_epoch)
            first_epoch = t.epoch;
    }
    first_epoch++;
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

unsigned block_rank()
{
    return me->block;
}

unsigned cluster_size()
{
    return n_blocks;
}

bool sync_block(bool any)
{
    return meet(&blocks[me->block].all, any);
}

void sync_warp()
{
    if (schedule.planted != EMU_NO_WARP_BARRIER)
        meet(&warps[me->warp], false);
}

void sync_second(unsigned of)
{
    barrier *b = &blocks[me->block].second;
    b->need = of;
    if (schedule.planted != EMU_NO_SECOND_BARRIER)
        meet(b, false);
}

void arrive_cluster()
{
    me->cluster_phase = cluster.phase;
    publish(&cluster.seen[cluster.phase % 2]);
    if (++cluster.count == threads.size()) {
        cluster.count = 0;
        cluster.phase++;
        wake(&cluster.waiting);
    } else if (draw(8) == 0) {
        give_way();
    }
}

void wait_cluster()
{
    while (cluster.phase == me->cluster_phase) {
        cluster.waiting.push_back(me);
        wait_for_turn();
    }
    join(&me->before, cluster.seen[me->cluster_phase % 2]);
}

const uint64_t *exchange(uint64_t mine)
{
    warp_exchange *x = &exchanges[me->warp];
    uint64_t *all = x->all[me->n_exchanges++ % 2];
    all[me->number % 32] = mine;
    if (++x->count < 32) {
        x->waiting.push_back(me);
        wait_for_turn();
        return all;
    }
    x->count = 0;
    wake(&x->waiting);
    if (draw(4) == 0)
        give_way();
    return all;
}

/* A write now and a write at the end: it may be made at either. */
void copy_later(void *to, const void *from, size_t n)
{
    check(to, n, WRITE, __builtin_return_address(0));
    if (draw(2))
        memcpy(to, from, n);
    me->copies.push_back({to, from, n, __builtin_return_address(0)});
}

void wait_copies()
{
    for (const copy &c : me->copies) {
        check(c.to, c.n, WRITE, c.code);
        memcpy(c.to, c.from, c.n);
    }
    me->copies.clear();
}

void atomic_access(void *p, size_t n, void *code)
{
    check(p, n, ATOMIC, code);
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
