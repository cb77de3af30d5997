// Counters of the operations of kernels, by warp.
#pragma once
#include <stdint.h>

namespace sim {

bool counting();                                        // true between cudasim_profile_start and _stop
void counts_begin_launch();
void counts_end_launch();
void counts_begin_block();
void counts_end_block();
void count_access(uintptr_t address, unsigned size, bool write, bool shared, const void* at);
void count_atomic();
void count_barrier();
void count_step(const void* at);                        // the thread enters a basic block

}  // namespace sim
