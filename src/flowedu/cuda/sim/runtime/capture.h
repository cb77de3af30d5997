// Capture of streams: queued work is recorded instead of run (streams.cpp).
#pragma once
#include <functional>

#include "api.h"

namespace sim {

extern thread_local int captures;                       // number of open captures of this thread

CUresult keep(CUstream s, std::function<CUresult()> work);
// Returns an error while this thread captures (relaxed: unless in relaxed mode).
CUresult forbidden(const char* what, bool relaxed = false);

// Runs work on a stream (null: the default one) at once, or records it during a capture.
template <class Work> CUresult queue(CUstream s, Work work) { return captures ? keep(s, work) : work(); }
#define ON(stream, ...) queue(stream, [=] { return __VA_ARGS__; })

}  // namespace sim
