// Interface of compiled kernels and the simulator: the position of a thread, and functions to call.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct uint3 { unsigned x, y, z; };
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

// One kernel of a module. `thunk` calls it, given the addresses of its arguments.
struct cudasim_kernel {
    void* function;
    void (*thunk)(void** arguments);
    const char *name, *parameters;          // "scale<float>"; "float* x\nint n"
    const unsigned* sizes;                  // size and alignment of each argument
    unsigned count;
};

enum cudasim_vote { CUDASIM_COUNT, CUDASIM_AND, CUDASIM_OR };

#pragma GCC visibility push(default)
extern "C" {
struct cudasim_place {
    const uint3* thread;                    // the first member of the simulator's Thread
    uint3 block;
    dim3 block_dim, grid_dim;
};
extern cudasim_place cudasim_here;          // of the running thread; only one runs at a time

// The same by value, for kernels with hooks, which check every read of memory. The compiler treats the
// results as constants, as each call of a kernel is one thread.
uint3 cudasim_thread_idx() __attribute__((const));
uint3 cudasim_block_idx() __attribute__((const));
uint3 cudasim_block_dim() __attribute__((const));
uint3 cudasim_grid_dim() __attribute__((const));

void cudasim_syncthreads();
int cudasim_syncthreads_vote(int predicate, int vote);
void cudasim_syncwarp(unsigned mask);
uint64_t cudasim_shuffle(unsigned mask, uint64_t value, int source);
unsigned cudasim_ballot(unsigned mask, int predicate);
unsigned cudasim_match_any(unsigned mask, uint64_t value);
unsigned cudasim_match_all(unsigned mask, uint64_t value, int* all);
int64_t cudasim_reduce(unsigned mask, int64_t value, int what);         // 0 +, 1 min, 2 max, 3 and, 4 or, 5 xor
unsigned cudasim_lane() __attribute__((const));

// Called before an atomic operation: checks it (in kernels with hooks). After many such calls other threads
// run, so that one of them can release a lock.
void cudasim_atomic(const volatile void* address, unsigned size, int reads);
void cudasim_fence();
void cudasim_trap(const char* why) __attribute__((noreturn));
char* cudasim_dynamic_shared();
long long cudasim_clock();
}
#pragma GCC visibility pop
