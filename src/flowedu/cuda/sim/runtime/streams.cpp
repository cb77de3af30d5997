// Streams, events, and graphs. Work runs at once and in order, unless its stream is captured. A capture
// records the work as a list, the graph, and a launch of the graph runs it. A stream that waits for an
// event of a captured stream is captured with it.
#include <time.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "api.h"
#include "capture.h"
#include "memory.h"

namespace sim {

thread_local int captures = 0;

namespace {

struct Works {
    std::vector<std::function<CUresult()>> all;
    size_t notes = 0;                                   // number of entries for the simulator only
};

struct Capture {
    CUstream origin;
    CUstreamCaptureMode mode;
    Works works;
    std::vector<CUstream> streams;                      // captured streams, including the origin
    bool broken = false;
};
struct Stream { unsigned flags; };
struct Event { timespec at{0, 0}; Capture* capture = nullptr; };

std::vector<std::unique_ptr<Capture>>& open() {         // open captures of this thread
    static thread_local std::vector<std::unique_ptr<Capture>> captures_of_thread;
    return captures_of_thread;
}

Capture* capture_of(CUstream s) {
    for (auto& c : open())
        if (std::count(c->streams.begin(), c->streams.end(), s)) return c.get();
    return nullptr;
}

bool is_open(Capture* c) {
    return std::any_of(open().begin(), open().end(), [=](auto& o) { return o.get() == c; });
}

bool is_default(CUstream s) { return !s || s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD; }

CUresult broken(Capture& c, CUresult code, const std::string& words) {
    c.broken = true;
    return error(code, words + ": this thread captures a stream; the capture is lost");
}

}  // namespace

CUresult keep(CUstream s, std::function<CUresult()> work) {
    if (Capture* c = capture_of(s)) {
        if (c->broken) return error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture of this stream is lost");
        return c->works.all.push_back(std::move(work)), CUDA_SUCCESS;
    }
    for (auto& c : open())                              // a capture that conflicts with the default stream
        if (is_default(s) && !(((Stream*)c->origin)->flags & CU_STREAM_NON_BLOCKING))
            return broken(*c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "work on the default stream");
    return work();
}

// Runs or records a notification to the simulator, in the order of the stream's work.
template <class Work> void note(CUstream s, Work work) {
    ONE_AT_A_TIME;
    Capture* c = captures ? capture_of(s) : nullptr;
    if (!c) return (void)work();
    c->works.all.push_back(work);
    ++c->works.notes;
}

CUresult forbidden(const char* what, bool relaxed) {
    if (!captures || (relaxed && open().back()->mode == CU_STREAM_CAPTURE_MODE_RELAXED)) return CUDA_SUCCESS;
    return broken(*open().back(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, what);
}

}  // namespace sim

using namespace sim;

API cuStreamCreate(CUstream* s, unsigned flags) { return *s = (CUstream) new Stream{flags}, CUDA_SUCCESS; }
API cuStreamCreateWithPriority(CUstream* s, unsigned flags, int) { return cuStreamCreate(s, flags); }
API cuStreamDestroy(CUstream s) { return delete (Stream*)s, CUDA_SUCCESS; }
API cuStreamAttachMemAsync(CUstream, CUdeviceptr, size_t, unsigned) { return CUDA_SUCCESS; }

API cuStreamQuery(CUstream s) {
    if (Capture* c = captures ? capture_of(s) : nullptr)
        return broken(*c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "asking a captured stream");
    return CUDA_SUCCESS;
}
API cuStreamSynchronize(CUstream s) {
    if (Capture* c = captures ? capture_of(s) : nullptr)
        return broken(*c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "waiting for a captured stream");
    return is_default(s) ? forbidden("waiting for the default stream") : CUDA_SUCCESS;
}
API cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
    Capture* from = captures ? ((Event*)e)->capture : nullptr;
    if (from && is_open(from) && capture_of(s) != from) {
        if (is_default(s)) return broken(*from, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "waiting on the default stream");
        from->streams.push_back(s);
    }
    return CUDA_SUCCESS;
}

API cuEventCreate(CUevent* e, unsigned) { return *e = (CUevent) new Event, CUDA_SUCCESS; }
API cuEventDestroy(CUevent e) { return delete (Event*)e, CUDA_SUCCESS; }
API cuEventRecord(CUevent e, CUstream s) {
    auto* event = (Event*)e;
    event->capture = captures ? capture_of(s) : nullptr;
    if (captures && !event->capture && is_default(s)) return forbidden("an event on the default stream");
    return clock_gettime(CLOCK_MONOTONIC, &event->at), CUDA_SUCCESS;
}
API cuEventQuery(CUevent e) {
    auto* c = captures ? ((Event*)e)->capture : nullptr;
    return c && is_open(c) ? broken(*c, CUDA_ERROR_CAPTURED_EVENT, "asking an event of a captured stream") : CUDA_SUCCESS;
}
API cuEventSynchronize(CUevent e) {
    auto* c = captures ? ((Event*)e)->capture : nullptr;
    return c && is_open(c) ? broken(*c, CUDA_ERROR_CAPTURED_EVENT, "waiting for an event of a captured stream")
                           : CUDA_SUCCESS;
}
API cuEventElapsedTime_v2(float* ms, CUevent a, CUevent b) {
    auto &from = ((Event*)a)->at, &to = ((Event*)b)->at;
    if (!from.tv_sec || !to.tv_sec) return error(CUDA_ERROR_INVALID_HANDLE, "an event of the two was never recorded");
    return *ms = (to.tv_sec - from.tv_sec) * 1e3f + (to.tv_nsec - from.tv_nsec) * 1e-6f, CUDA_SUCCESS;
}

// Captures and graphs
API cuStreamBeginCapture(CUstream s, CUstreamCaptureMode mode) {
    if (is_default(s)) return error(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the default stream cannot be captured");
    if (capture_of(s)) return error(CUDA_ERROR_ILLEGAL_STATE, "this stream is being captured already");
    auto c = std::make_unique<Capture>();
    c->origin = s, c->mode = mode, c->streams = {s};
    open().push_back(std::move(c));
    return ++captures, CUDA_SUCCESS;
}
API cuStreamEndCapture(CUstream s, CUgraph* graph) {
    *graph = nullptr;
    auto& all = open();
    auto at = std::find_if(all.begin(), all.end(), [=](auto& c) { return c->origin == s; });
    if (at == all.end()) {
        if (capture_of(s)) return error(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began on another stream");
        return error(CUDA_ERROR_ILLEGAL_STATE, "this stream is not being captured, or by another thread");
    }
    std::unique_ptr<Capture> c = std::move(*at);
    all.erase(at);
    --captures;
    if (c->broken) return error(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture was lost by what it does not allow");
    return *graph = (CUgraph) new Works(std::move(c->works)), CUDA_SUCCESS;
}
API cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus* status) {
    Capture* c = captures ? capture_of(s) : nullptr;
    *status = !c ? CU_STREAM_CAPTURE_STATUS_NONE : c->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}
API cuGraphGetNodes(CUgraph graph, CUgraphNode*, size_t* count) {
    auto* works = (Works*)graph;
    return *count = works->all.size() - works->notes, CUDA_SUCCESS;
}
API cuGraphDestroy(CUgraph graph) { return delete (Works*)graph, CUDA_SUCCESS; }
API cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
    return *exec = (CUgraphExec) new Works(*(Works*)graph), CUDA_SUCCESS;
}
API cuGraphExecDestroy(CUgraphExec exec) { return delete (Works*)exec, CUDA_SUCCESS; }
API cuGraphLaunch(CUgraphExec exec, CUstream s) {
    return queue(s, [works = (Works*)exec] {
        for (auto& work : works->all)
            if (CUresult r = work()) return r;
        return CUDA_SUCCESS;
    });
}

// Called by pools: the block at this address now has an array of `size` bytes. In a graph one block has
// several arrays, in every replay.
extern "C" __attribute__((visibility("default"))) void cudasim_give(uintptr_t address, size_t size, CUstream s) {
    note(s, [=] { return give(address, size), CUDA_SUCCESS; });
}
// Called for arenas: the lifetime of an array starts or ends.
extern "C" __attribute__((visibility("default"))) void cudasim_part(uintptr_t address, size_t size, bool alive, CUstream s) {
    note(s, [=] { return part_lives(address, size, alive), CUDA_SUCCESS; });
}
