// Functions that kernels call: barriers, warp functions, votes. block.cpp implements the waits.
#include <time.h>

#include "block.h"
#include "checks.h"
#include "fault.h"
#include "launch.h"
#include "memory.h"

using namespace sim;

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

namespace {

struct Brought {                                        // values of the lanes of a mask
    unsigned present;
    const uint64_t* value;
};

Brought exchange(unsigned mask, uint64_t value, const void* at, const char* what) {
    Meeting& m = here->warp->meeting(mask);
    unsigned g = meet(m, value, at, what) & 1;
    return {m.present[g], m.value[g]};
}

}  // namespace

extern "C" {

uint3 cudasim_thread_idx() { return *cudasim_here.thread; }
uint3 cudasim_block_idx() { return cudasim_here.block; }
uint3 cudasim_block_dim() { return cudasim_here.block_dim; }
uint3 cudasim_grid_dim() { return cudasim_here.grid_dim; }
unsigned cudasim_lane() { return here->lane; }
char* cudasim_dynamic_shared() { return (char*)dynamic_shared; }

void cudasim_syncthreads() { barrier(CALLER); }

int cudasim_syncthreads_vote(int predicate, int vote) {
    const void* at = CALLER;
    if (!block.voted++) block.votes[0] = block.votes[1] = 0;
    block.votes[0] += predicate != 0;
    block.votes[1] += 1;
    barrier(at);
    int yes = block.votes[0], all = block.votes[1];
    block.voted = 0;                                    // new votes wait until all have read: the barrier
    barrier(at);
    return vote == CUDASIM_COUNT ? yes : vote == CUDASIM_AND ? yes == all : yes > 0;
}

void cudasim_syncwarp(unsigned mask) { exchange(mask, 0, CALLER, "__syncwarp()"); }

// The value of a missing lane is undefined on a GPU. Here it is all ones, which is NaN for floats.
uint64_t cudasim_shuffle(unsigned mask, uint64_t value, int source) {
    Brought b = exchange(mask, value, CALLER, "__shfl_sync()");
    return b.present >> source & 1 ? b.value[source] : ~0ull;
}

unsigned cudasim_ballot(unsigned mask, int predicate) {
    Brought b = exchange(mask, predicate != 0, CALLER, "__ballot_sync()");
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < LANES; ++lane)
        if (b.present >> lane & 1 && b.value[lane]) ballot |= 1u << lane;
    return ballot;
}

unsigned cudasim_match_any(unsigned mask, uint64_t value) {
    Brought b = exchange(mask, value, CALLER, "__match_any_sync()");
    unsigned same = 0;
    for (unsigned lane = 0; lane < LANES; ++lane)
        if (b.present >> lane & 1 && b.value[lane] == value) same |= 1u << lane;
    return same;
}

unsigned cudasim_match_all(unsigned mask, uint64_t value, int* all) {
    Brought b = exchange(mask, value, CALLER, "__match_all_sync()");
    *all = 1;
    for (unsigned lane = 0; lane < LANES; ++lane)
        if (b.present >> lane & 1 && b.value[lane] != value) *all = 0;
    return *all ? b.present : 0;
}

int64_t cudasim_reduce(unsigned mask, int64_t value, int what) {
    Brought b = exchange(mask, value, CALLER, "__reduce_sync()");
    int64_t r = value;
    bool skip_own = true;                               // r starts with this lane's value, so skip it once
    for (unsigned lane = 0; lane < LANES; ++lane) {
        if (!(b.present >> lane & 1) || (skip_own && lane == here->lane && !(skip_own = false))) continue;
        int64_t v = b.value[lane];
        r = what == 0 ? r + v : what == 1 ? (v < r ? v : r) : what == 2 ? (v > r ? v : r) : what == 3 ? (r & v)
            : what == 4 ? (r | v) : r ^ v;
    }
    return r;
}

void cudasim_atomic(const volatile void* address, unsigned size, int reads) {
    const void* at = CALLER;
    if (launch->checking) checks_atomic((uintptr_t)address, size, reads, at);
    if (--here->patience <= 0) make_room(at);
}

long long cudasim_clock() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void cudasim_fence() {
    if (launch->checking) checks_fence();
}

void cudasim_trap(const char* why) {
    Fault f;
    f.kind = TRAPPED;
    f.at = CALLER;
    f.words = why;
    stop(f);
}

}
