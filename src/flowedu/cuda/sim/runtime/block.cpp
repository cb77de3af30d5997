// Runs the blocks of a launch in sequence: the order of threads, barriers, warp functions.
//
// A thread that never waits needs no stack of its own. A worker runs thread after thread on one stack. If a
// thread waits, it keeps the stack, and the next worker starts on another.
#include "block.h"

#include <setjmp.h>
#include <string.h>

#include "checks.h"
#include "fault.h"
#include "launch.h"
#include "setting.h"

extern "C" {
cudasim_place cudasim_here;
}

namespace sim {

Block block;
Thread* here = nullptr;
uint32_t now = 0;
Launch* launch = nullptr;
bool running = false;
Fault fault;

namespace {

Context outside;                                        // stack of the caller of the launch
jmp_buf stopped;
std::vector<unsigned> free_stacks;
uint64_t blocks_left, block_turn, block_step, block_mask;
uint32_t numbers = 0, seed_state = 0;

uint32_t random_bits() {                                // upper bits of a linear congruential generator
    seed_state = seed_state * 1664525u + 1013904223u;
    return seed_state >> 8;
}

uint64_t power_above(uint64_t n) {
    uint64_t p = 1;
    while (p < n) p *= 2;
    return p;
}

// The sequence turn * odd + start, modulo a power of two, is a permutation. Numbers too large are skipped.
void shuffle_threads() {
    unsigned mask = power_above(block.size) - 1, step = random_bits() | 1, at = random_bits(), n = 0;
    for (unsigned i = 0; i <= mask; ++i, at += step)
        if ((at & mask) < block.size) block.order[n++] = at & mask;
}

void lay_out_threads(const dim3& d) {
    block.size = d.x * d.y * d.z;
    for (unsigned i = 0; i < block.size; ++i) {
        Thread& t = block.threads[i];
        t.id = {i % d.x, i / d.x % d.y, i / d.x / d.y};
        t.index = block.order[i] = i;
        t.lane = uint16_t(i % LANES);
        t.warp = &block.warps[i / LANES];
        t.warp->first = i - t.lane;
        t.warp->lanes = t.lane == 31 ? ~0u : (2u << t.lane) - 1;
    }
}

// Prepares the next block of the grid. Returns false after the last one.
bool next_block() {
    if (block.number && launch->checking) checks_end_block();
    if (!blocks_left) return false;
    --blocks_left;
    uint64_t count = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z, b;
    do {
        b = block_turn & block_mask;
        block_turn += block_step;
    } while (b >= count);
    dim3 g = launch->grid;
    cudasim_here.block = {unsigned(b % g.x), unsigned(b / g.x % g.y), unsigned(b / g.x / g.y)};
    block.live = block.size;
    block.arrived = block.voted = block.turn = 0;
    block.number = ++numbers;
    block.barrier_when = ++now;
    memset(block.state, NEW, block.size);
    for (unsigned w = 0; w * LANES < block.size; ++w) {
        block.warps[w].live = block.warps[w].lanes;
        block.warps[w].meetings.clear();
    }
    if (setting.seed) shuffle_threads();
    if (launch->checking) checks_begin_block();
    return true;
}

// Returns the next thread that can run, or null if all have ended or wait.
Thread* next_thread() {
    for (unsigned tried = 0; tried < block.size; ++tried) {
        unsigned i = block.order[block.turn];
        if (++block.turn == block.size) block.turn = 0;
        if (block.state[i] <= READY) return &block.threads[i];
    }
    return nullptr;
}

[[noreturn]] void not_named(const Meeting& m, const void* at, const char* what) {
    Fault f;
    f.kind = LANES_MISSING;
    f.at = at;
    f.mask = m.mask;
    f.lanes = 1u << here->lane;
    f.words = what;
    stop(f);
}

// No thread can run. A barrier releases all remaining threads, so some thread waits in a warp function, for
// lanes that are elsewhere.
[[noreturn]] void stuck() {
    Fault f;
    f.kind = LANES_MISSING;
    for (unsigned i = 0; i < block.size; ++i) {
        if (block.state[i] != IN_WARP) continue;
        here = &block.threads[i];
        f.at = here->waits_at;
        f.words = here->waits_for;
        for (auto& m : here->warp->meetings)
            if (m->arrived >> here->lane & 1) f.mask = m->mask, f.lanes = m->mask & here->warp->live & ~m->arrived;
        if (!f.lanes) continue;
        f.other_thread = here->warp->first + __builtin_ctz(f.lanes);
        f.other_at = (uintptr_t)block.threads[f.other_thread].waits_at;
        break;
    }
    stop(f);
}

void worker();

void begin(Thread* t, unsigned stack) {
    block.state[t->index] = READY;
    t->stack = stack;
    t->patience = PATIENCE;
    here = t;
    cudasim_here.thread = &t->id;
}

// Switches to thread `t`. `save` receives the context of the current thread.
void change_to(Thread* t, Context* save) {
    if (block.state[t->index] == NEW) {
        unsigned stack = free_stacks.back();
        free_stacks.pop_back();
        begin(t, stack);
        cudasim_switch(save, fresh(stack, worker));
    } else {
        here = t;
        cudasim_here.thread = &t->id;
        cudasim_switch(save, t->context);
    }
}

void release(Meeting& m, Warp& w) {
    for (unsigned lane = 0; lane < LANES; ++lane)
        if (m.arrived >> lane & 1) block.state[w.first + lane] = READY;
    m.present[m.generation & 1] = m.arrived;
    m.arrived = 0;
    ++m.generation;
    m.when = ++now;
}

void release_barrier() {
    for (unsigned i = 0; i < block.size; ++i)
        if (block.state[i] == AT_BARRIER) block.state[i] = READY;
    block.arrived = 0;
    block.barrier_when = ++now;
}

// The running thread has left the kernel. Threads that wait for all remaining ones no longer wait for it.
void end_thread() {
    block.state[here->index] = DONE;
    --block.live;
    Warp& w = *here->warp;
    w.live &= ~(1u << here->lane);
    if (block.arrived) {
        if (launch->checking) checks_barrier_missed();
        if (block.arrived == block.live) release_barrier();
    }
    for (auto& m : w.meetings)
        if (m->arrived && m->mask >> here->lane & 1) {
            if (launch->checking) checks_meeting_missed(*m);
            if (m->arrived == (m->mask & w.live)) release(*m, w);
        }
}

void worker() {
    for (;;) {
        launch->entry->thunk(launch->arguments);
        end_thread();
        unsigned stack = here->stack;
        Thread* t = next_thread();
        if (!t) {
            if (block.live) stuck();
            if (!next_block()) break;
            t = next_thread();
        }
        if (block.state[t->index] == NEW) {
            begin(t, stack);
        } else {
            free_stacks.push_back(stack);
            Context nobody;
            change_to(t, &nobody);
        }
    }
    Context nobody;
    cudasim_switch(&nobody, outside);
}

// The running thread waits until another sets its state to READY.
void wait(State state, const void* at, const char* what) {
    block.state[here->index] = state;
    here->waits_at = at;
    here->waits_for = what;
    Thread* self = here;
    Thread* t = next_thread();
    if (!t) stuck();
    change_to(t, &self->context);
}

}  // namespace

void stop_overdue(const void* at) {
    Fault f;
    f.kind = OVERDUE, f.at = at;
    stop(f);
}

void make_room(const void* at) {
    here->patience = PATIENCE;
    if (is_overdue()) stop_overdue(at);
    Thread *self = here, *t = next_thread();
    if (t && t != self) change_to(t, &self->context);
}

void barrier(const void* at) {
    if (is_overdue()) stop_overdue(at);
    if (launch->checking) checks_barrier(at);
    if (!block.arrived) block.barrier_at = at;
    if (++block.arrived == block.live) {
        release_barrier();
        block.turn = 0;
        if (launch->checking) make_room(at);              // so that reports are about the first thread
    } else {
        wait(AT_BARRIER, at, "__syncthreads()");
    }
}

Meeting& Warp::meeting(unsigned mask) {
    for (auto& m : meetings)
        if (m->mask == mask) return *m;
    meetings.push_back(std::make_unique<Meeting>());
    meetings.back()->mask = mask;
    return *meetings.back();
}

// Exchanges a value with the lanes of the mask, after waiting for them. Their values are m.value[result & 1].
unsigned meet(Meeting& m, uint64_t value, const void* at, const char* what) {
    if (!(m.mask >> here->lane & 1)) not_named(m, at, what);
    if (launch->checking) checks_meeting(m, at, what);
    unsigned g = m.generation;
    Warp& w = *here->warp;
    m.value[g & 1][here->lane] = value;
    if (!m.arrived) m.first = at;
    m.arrived |= 1u << here->lane;
    if (m.arrived == ((m.mask & w.live) | 1u << here->lane))
        release(m, w);
    else
        wait(IN_WARP, at, what);
    return g;
}

void stop(Fault f) {
    if (!f.thread && here) f.thread = here->index;
    fault = std::move(f);
    longjmp(stopped, 1);
}

bool run(Launch& l) {
    launch = &l;
    free_stacks.clear();
    for (unsigned i = 0; i <= MOST; ++i) free_stacks.push_back(MOST - i);
    fault = Fault();
    seed_state = setting.seed;
    blocks_left = (uint64_t)l.grid.x * l.grid.y * l.grid.z;
    block_mask = power_above(blocks_left) - 1;
    block_step = setting.seed ? random_bits() | 1 : 1;
    block_turn = setting.seed ? random_bits() : 0;
    if (block.size != l.block.x * l.block.y * l.block.z || cudasim_here.block_dim.x != l.block.x ||
        cudasim_here.block_dim.y != l.block.y || setting.seed)
        lay_out_threads(l.block);
    cudasim_here.block_dim = l.block;
    cudasim_here.grid_dim = l.grid;
    block.number = 0;
    now = 1;
    l.first_block = numbers + 1;
    running = true;
    if (!setjmp(stopped)) {
        next_block();
        Thread* t = next_thread();
        unsigned stack = free_stacks.back();
        free_stacks.pop_back();
        begin(t, stack);
        cudasim_switch(&outside, fresh(stack, worker));
    } else {
        after_stop();
    }
    running = false;
    launch = nullptr;
    return fault.kind == NONE;
}

}  // namespace sim

// Sets another order of threads and blocks, like FLOWEDU_CUDA_SEED.
extern "C" __attribute__((visibility("default"))) void cudasim_seed(unsigned seed) {
    sim::setting.seed = seed;
    sim::block.size = 0;                                    // lay out the threads again in the next launch
}
