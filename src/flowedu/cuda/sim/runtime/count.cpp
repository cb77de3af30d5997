// Counts the operations of warps as a GPU would. Lanes run in sequence here, so the k-th executions of one
// place by all lanes count as simultaneous.
#include "count.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "block.h"
#include "launch.h"

namespace sim {

namespace {

struct Counts {
    uint64_t launches, global_loads, global_stores, shared_loads, shared_stores, global_bytes, shared_bytes, sectors,
        conflicts, barriers, atomics, divergent;
};
std::map<std::string, Counts> totals;
Counts* counts = nullptr;                               // of the running kernel
bool active = false;

enum Kind : uint8_t { GLOBAL_LOAD, GLOBAL_STORE, SHARED_LOAD, SHARED_STORE, STEP };

// The operations of a warp's lanes at one place, in the k-th execution by each.
struct Together {
    unsigned lanes = 0, size = 0;
    bool parted = false;                                // for a step: the lanes continued at different places
    uintptr_t value[LANES];                             // an address, or the place after the step
};
struct Place {
    Kind kind;
    unsigned done[LANES] = {};                          // executions by each lane
    unsigned first = 0;                                 // number of the first execution in `open`
    std::deque<Together> open;                          // executions that some lanes have not reached
};
struct Log {
    std::unordered_map<uintptr_t, Place> places;
    uintptr_t step[LANES];                              // the current basic block of each lane
};
Log logs[MOST / LANES];

// 32 banks of 4 bytes: different words of a bank take turns. Words of 8 bytes: half a warp at a time.
unsigned turns_for_banks(const Together& t) {
    unsigned words = std::max(1u, t.size / 4), group = LANES / words, more = 0;
    for (unsigned from = 0; from < LANES; from += group) {
        std::vector<uintptr_t> touched;
        for (unsigned lane = from; lane < from + group; ++lane)
            for (unsigned w = 0; t.lanes >> lane & 1 && w < words; ++w) touched.push_back(t.value[lane] / 4 + w);
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        unsigned per_bank[32] = {}, most = 1;
        for (uintptr_t w : touched) most = std::max(most, ++per_bank[w % 32]);
        more += most - 1;
    }
    return more;
}

unsigned sectors(const Together& t) {
    std::vector<uintptr_t> touched;
    for (unsigned lane = 0; lane < LANES; ++lane) {
        if (!(t.lanes >> lane & 1)) continue;
        for (uintptr_t s = t.value[lane] / 32; s <= (t.value[lane] + t.size - 1) / 32; ++s) touched.push_back(s);
    }
    std::sort(touched.begin(), touched.end());
    return std::unique(touched.begin(), touched.end()) - touched.begin();
}

void close(Kind kind, const Together& t) {
    unsigned bytes = __builtin_popcount(t.lanes) * t.size;
    switch (kind) {
        case STEP: counts->divergent += t.parted; return;
        case GLOBAL_LOAD:
        case GLOBAL_STORE:
            ++(kind == GLOBAL_LOAD ? counts->global_loads : counts->global_stores);
            counts->global_bytes += bytes;
            counts->sectors += sectors(t);
            return;
        default:
            ++(kind == SHARED_LOAD ? counts->shared_loads : counts->shared_stores);
            counts->shared_bytes += bytes;
            counts->conflicts += turns_for_banks(t);
    }
}

// The running lane is at a place of this kind. Executions that all lanes have finished are counted and
// removed.
void log(uintptr_t at, Kind kind, uintptr_t value, unsigned size) {
    unsigned lane = here->lane;
    Place& p = logs[here->index / LANES].places.try_emplace(at * 8 + kind, Place{kind}).first->second;
    unsigned k = p.done[lane]++;
    if (k < p.first) return;                            // this lane is thousands of executions late
    while (k - p.first >= p.open.size()) p.open.emplace_back();
    Together& t = p.open[k - p.first];
    if (kind == STEP && t.lanes && t.value[__builtin_ctz(t.lanes)] != value) t.parted = true;
    t.lanes |= 1u << lane;
    t.value[lane] = value;
    t.size = size;
    while (!p.open.empty() && (p.open.front().lanes == here->warp->lanes || p.open.size() > 8192)) {
        close(kind, p.open.front());
        p.open.pop_front();
        ++p.first;
    }
}

}  // namespace

bool counting() { return active; }

void counts_begin_launch() {
    counts = &totals[launch->entry->name];
    ++counts->launches;
}
void counts_end_launch() { counts = nullptr; }

void counts_begin_block() {
    for (unsigned w = 0; w * LANES < block.size; ++w) {
        logs[w].places.clear();
        std::fill_n(logs[w].step, LANES, 0);
    }
}

void counts_end_block() {
    for (unsigned w = 0; w * LANES < block.size; ++w)
        for (auto& [at, p] : logs[w].places)
            for (auto& t : p.open) close(p.kind, t);
}

void count_access(uintptr_t a, unsigned size, bool write, bool shared, const void* at) {
    log((uintptr_t)at, shared ? (write ? SHARED_STORE : SHARED_LOAD) : (write ? GLOBAL_STORE : GLOBAL_LOAD), a, size);
}
void count_atomic() { ++counts->atomics; }
void count_barrier() { ++counts->barriers; }

void count_step(const void* at) {
    uintptr_t& before = logs[here->index / LANES].step[here->lane];
    if (before) log(before, STEP, (uintptr_t)at, 0);
    before = (uintptr_t)at;
}

}  // namespace sim

using namespace sim;

extern "C" __attribute__((visibility("default"))) void cudasim_profile_start() {
    totals.clear();
    active = true;
}

// A line for each kernel: its name and name=count pairs, separated by tabs.
extern "C" __attribute__((visibility("default"))) const char* cudasim_profile_stop() {
    static std::string text;
    text.clear();
    active = false;
    for (auto& [name, c] : totals) {
        const std::pair<const char*, uint64_t> named[] = {
            {"launches", c.launches}, {"global_loads", c.global_loads}, {"global_stores", c.global_stores},
            {"shared_loads", c.shared_loads}, {"shared_stores", c.shared_stores}, {"global_bytes", c.global_bytes},
            {"shared_bytes", c.shared_bytes}, {"sectors", c.sectors}, {"conflicts", c.conflicts}, {"barriers", c.barriers},
            {"atomics", c.atomics}, {"divergent", c.divergent}};
        text += name;
        for (auto& [what, n] : named) text += std::string("\t") + what + "=" + std::to_string(n);
        text += "\n";
    }
    return text.c_str();
}
