// The threads and warps of the running block, and their waits.
#pragma once
#include <memory>
#include <vector>

#include "../include/machine.h"
#include "fibre.h"

namespace sim {

constexpr unsigned LANES = 32, MOST = 1024;             // threads per warp and per block

enum State : uint8_t { NEW, READY, AT_BARRIER, IN_WARP, DONE };     // of a thread; the middle two wait

// A call of a warp function by the lanes of one mask. Each brings a value, and waits for all others.
struct Meeting {
    unsigned mask, arrived = 0, generation = 0;
    unsigned present[2] = {0, 0};                       // lanes that brought a value, now and last time
    uint64_t value[2][LANES];
    const void* first = nullptr;                        // call site of the first lane
    uint32_t when = 0;                                  // time of the last completed call
};

struct Warp {
    unsigned first, lanes, live;                        // first thread; masks: all lanes, lanes not yet ended
    std::vector<std::unique_ptr<Meeting>> meetings;
    Meeting& meeting(unsigned mask);
};

struct alignas(64) Thread {                             // a cache line, as barriers visit all threads
    uint3 id;                                           // must be first: cudasim_here.thread points to it
    unsigned index;
    uint16_t lane, stack;
    Warp* warp;
    Context context;
    const void* waits_at;                               // call site of the function it waits in
    const char* waits_for;
    int patience;                                       // accesses and atomics until other threads run
};

struct Block {
    unsigned size = 0, live = 0, arrived = 0;           // threads: all, not yet ended, waiting at the barrier
    uint32_t number = 0;                                // unique over all launches
    const void* barrier_at = nullptr;                   // call site of the first waiting thread
    uint32_t barrier_when = 0;                          // time of the last completed barrier
    int votes[2], voted;                                // __syncthreads_count, _and, _or
    State state[MOST];
    unsigned order[MOST], turn = 0;
    Thread threads[MOST];
    Warp warps[MOST / LANES];
};

extern Block block;
extern Thread* here;                                    // the running thread
extern uint32_t now;                                    // time: counts barriers, meetings, fences, atomics

// Runs all blocks of a launch. Returns false after an error, with the fault in `fault`.
struct Launch;
bool run(Launch&);
void make_room(const void* at);                         // let other threads of the block run
void barrier(const void* at);                           // wait for all threads of the block
unsigned meet(Meeting& m, uint64_t value, const void* at, const char* what);        // wait for the lanes of a mask

constexpr int PATIENCE = 256;

}  // namespace sim
