// Capturing: what is queued on a stream meanwhile is kept, not done. (streams.cpp)
#pragma once
#include <functional>

#include "api.h"

namespace sim {

extern thread_local int captures;                       // begun in this thread, and not ended yet

CUresult keep(CUstream s, std::function<CUresult()> work);
CUresult forbidden(const char* what, bool relaxed = false);    // an error while this thread captures; relaxed: unless in that mode

// Work on a stream (null: the default one): done at once, or kept while the stream is captured.
template <class Work> CUresult queue(CUstream s, Work work) { return captures ? keep(s, work) : work(); }
#define ON(stream, ...) queue(stream, [=] { return __VA_ARGS__; })

}  // namespace sim
