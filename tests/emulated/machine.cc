/* SPDX-License-Identifier: Apache-2.0
 *
 * Fibers, and the barriers at which they wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utility>

#include "threads.h"

namespace emulated
{

index thread_index, block_index, block_size, grid_size;
thread *me;
unsigned n_threads, n_warps;
uint32_t first_epoch = 1;

static uint64_t dice;

unsigned draw(unsigned n)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (unsigned)(dice >> 20) % n;
}

namespace
{

enum { STACK = 64 << 10, CANARY = 64 };

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
unsigned n_blocks, n_settlers;
emu_schedule schedule;
void (*body)();

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

/* ---- a run ---- */

void end_thread()
{
    block *b = &blocks[me->block];
    me->done = true;
    publish(&b->at_end);
    if (++b->n_done == n_threads)
        check_end(me->block, b->at_end);
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
        return thread >= n_settlers;
    case EMU_HOLD_SETTLERS:
        return thread < n_settlers;
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
    if (!t->stack)
        t->stack.reset(new char[STACK]);
    memset(t->stack.get(), 0x5a, CANARY);
    getcontext(&t->beginning);
    t->beginning.uc_stack.ss_sp = t->stack.get();
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

void prepare_all(size_t n_bytes)
{
    clock begin;
    for (uint32_t &epoch : begin.of)
        epoch = first_epoch - 1;
    begin_checks(n_bytes);
    memset(block_memory(0), 0xa5, (size_t)n_blocks * BLOCK_BYTES);
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

unsigned run(void (*body_)(), unsigned n_blocks_, const block_form &form,
             const emu_schedule &schedule_)
{
    body = body_;
    n_blocks = n_blocks_;
    n_threads = form.n_threads;
    n_settlers = form.n_settlers;
    n_warps = n_blocks * n_threads / 32;
    schedule = schedule_;
    dice = schedule.seed * 0x9E3779B97F4A7C15u + 88172645463325252u;
    block_size = {n_threads};
    grid_size = {n_blocks};
    prepare_all(form.n_bytes);
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
    return n_faults_found();
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
    /* They are made in no order. */
    for (size_t i = me->copies.size(); i > 1; i--)
        std::swap(me->copies[i - 1], me->copies[draw((unsigned)i)]);
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
