// How the driver's functions are written: exported, one at a time, with words for what went wrong.
#pragma once
#include <cuda.h>

#include <mutex>
#include <string>

#define API extern "C" __attribute__((visibility("default"))) CUresult
#define ONE_AT_A_TIME std::lock_guard<std::recursive_mutex> one_at_a_time(sim::everything)

namespace sim {

extern std::recursive_mutex everything;

struct Context_ { int device; };                        // what a CUcontext points at
Context_* current();                                    // of this thread; null: none

// The error, with words that cuGetErrorString will give for it until the next one.
CUresult error(CUresult code, std::string words);

}  // namespace sim
