// Definition of the driver's functions: exported, serialized, with messages for errors.
#pragma once
#include <cuda.h>

#include <mutex>
#include <string>

#define API extern "C" __attribute__((visibility("default"))) CUresult
#define ONE_AT_A_TIME std::lock_guard<std::recursive_mutex> one_at_a_time(sim::everything)

namespace sim {

extern std::recursive_mutex everything;

struct Context_ { int device; };                        // target of a CUcontext
Context_* current();                                    // this thread's context, or null

// Returns `code`. cuGetErrorString returns `words` for it until the next error.
CUresult error(CUresult code, std::string words);

}  // namespace sim
