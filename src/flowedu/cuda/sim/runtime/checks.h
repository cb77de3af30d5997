// The checks of kernels with hooks. Every function here may stop the launch.
#pragma once
#include <stdint.h>

#include "block.h"
#include "memory.h"

namespace sim {

void checks_begin_launch();
void checks_end_launch();
void checks_begin_block();
void checks_end_block();

void checks_barrier(const void* at);                    // called before a thread waits
void checks_barrier_missed();                           // called when a thread leaves while others wait
void checks_meeting(const Meeting& m, const void* at, const char* what);
void checks_meeting_missed(const Meeting& m);
void checks_atomic(uintptr_t address, unsigned size, bool reads, const void* at);
void checks_fence();

// Reports a race of an access with an earlier one to the same four bytes (races.cpp).
void check_race(const Region& region, uintptr_t address, unsigned size, bool write, bool atomic, bool shared,
                const void* at);
void races_begin_launch();
void races_fence();
void races_atomic();

void after_stop();                                      // called on the stack of the launch

}  // namespace sim
