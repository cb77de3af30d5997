// The threads of the block that runs, its warps, and what they wait for.
#pragma once
#include <memory>
#include <vector>

#include "../include/machine.h"
#include "fibre.h"

namespace sim {

constexpr unsigned LANES = 32, MOST = 1024;             // threads of a warp, of a block

enum State : uint8_t { NEW, READY, AT_BARRIER, IN_WARP, DONE };     // of a thread; the middle two wait

// A warp function of the lanes that one mask names: each brings a value, none goes on before all have come.
struct Meeting {
    unsigned mask, arrived = 0, generation = 0;
    unsigned present[2] = {0, 0};                       // who brought a value, this time and the time before
    uint64_t value[2][LANES];
    const void* first = nullptr;                        // where the first of them called it
    uint32_t when = 0;                                  // when they last met
};

struct Warp {
    unsigned first, lanes, live;                        // index of its first thread; masks: there at all, not yet ended
    std::vector<std::unique_ptr<Meeting>> meetings;
    Meeting& meeting(unsigned mask);
};

struct alignas(64) Thread {                             // one line of the cache: barriers go through all of them
    uint3 id;                                           // first: cudasim_here.thread points at it
    unsigned index;
    uint16_t lane, stack;
    Warp* warp;
    Context context;
    const void* waits_at;                               // where it called what it waits in
    const char* waits_for;
    int patience;                                       // accesses and atomics until others get a turn
};

struct Block {
    unsigned size = 0, live = 0, arrived = 0;           // threads; not yet ended; waiting at the barrier
    uint32_t number = 0;                                // never the same twice, over all launches
    const void* barrier_at = nullptr;                   // where the first of them waits
    uint32_t barrier_when = 0;                          // when all were last there
    int votes[2], voted;                                // __syncthreads_count, _and, _or
    State state[MOST];
    unsigned order[MOST], turn = 0;
    Thread threads[MOST];
    Warp warps[MOST / LANES];
};

extern Block block;
extern Thread* here;                                    // the thread that runs
extern uint32_t now;                                    // counts barriers, meetings, fences and atomics of a launch

// Runs all blocks of a launch. Returns false when one of them went wrong; the fault is in `fault` then.
struct Launch;
bool run(Launch&);
void make_room(const void* at);                         // let other threads of the block run
void barrier(const void* at);                           // wait for all threads of the block
unsigned meet(Meeting& m, uint64_t value, const void* at, const char* what);        // wait for the lanes of a mask

constexpr int PATIENCE = 256;

}  // namespace sim
