// Hooks that g++ calls before every access (-fsanitize=thread, without its library). They check that the
// memory is allocated and written, and that threads agree on barriers and warp functions. Races are in
// races.cpp.
#include "checks.h"

#include <string.h>
#include <sys/mman.h>

#include "count.h"
#include "fault.h"
#include "launch.h"

namespace sim {

namespace {

struct Watched { Image* image; Region region; };
std::vector<Watched> watched;                           // data of modules
Region module_data;                                             // data of the running module

void set_marks(const Region& r, uintptr_t a, size_t n, int m) { memset(r.mark(a), m, n); }

// Returns the marks of a module's variables, created when it first runs with checks.
Region& watch(Image& image) {
    for (auto& w : watched)
        if (w.image == &image) return w.region;
    Region r;
    uintptr_t begin = ~(uintptr_t)0, end = 0;
    for (auto& v : image.variables) {
        begin = std::min(begin, v.address & ~(uintptr_t)63);
        end = std::max(end, v.address + v.size);
    }
    if (begin < end) {
        r.begin = begin, r.size = end - begin;
        if (!r.watch()) r.size = 0;                     // accesses to its variables are then errors
        for (auto& v : image.variables)
            if (r.size)
            set_marks(r, v.address, v.size, v.where == Variable::SHARED ? (int)IN_SHARED | FRESH :
                      v.where == Variable::CONSTANT ? (int)IN_CONSTANT | WRITTEN : WRITTEN);
    }
    watched.push_back({&image, r});
    return watched.back().region;
}

[[noreturn]] void wrong(FaultKind kind, uintptr_t a, unsigned size, bool write, const void* at) {
    Fault f;
    f.kind = kind, f.at = at, f.address = a, f.size = size, f.write = write;
    stop(f);
}

// An access outside the device's memory and the running module's data: constants may be read, everything
// else is an error.
void elsewhere(uintptr_t a, unsigned size, bool write, const void* at) {
    if (a >= (uintptr_t)launch->image->begin && a + size <= launch->image->end && !write) return;
    const uintptr_t room = (uintptr_t)launch->room;     // a large struct that is passed by value
    if (a >= room && a + size <= room + ROOM && !write) return;
    for (auto& w : watched)
        if (w.region.holds(a) && !(*w.region.mark(a) & IN_SHARED) && (*w.region.mark(a) & STATE) == WRITTEN) return;
    wrong(OUTSIDE, a, size, write, at);
}

enum How { PLAIN, VOLATILE, RANGE, UNALIGNED };

// One access of the running thread. RANGE is a copy of a struct, which may have unwritten padding.
void access(uintptr_t a, unsigned size, bool write, How how, const void* at) {
    if (stacks.holds(a) || !launch || !launch->checking || !size) return;      // local variables
    if (--here->patience <= 0) make_room(at);
    if (how <= VOLATILE && a & (size - 1)) wrong(MISALIGNED, a, size, write, at);
    const Region& r = memory.holds(a) ? memory : module_data;
    if (!r.holds(a) || !r.holds(a + size - 1)) return elsewhere(a, size, write, at);
    Mark* m = r.mark(a);
    int where = m[0] & ~STATE;
    unsigned fresh = 0;
    for (unsigned i = 0; i < size; ++i) {
        int state = m[i] & STATE;
        if (state == NOTHING || state == FREED) wrong(OUTSIDE, a, size, write, at);
        fresh += state == FRESH;
    }
    if (write) {
        if (where & IN_CONSTANT) wrong(READ_ONLY, a, size, true, at);
        if (fresh) memset(m, where | WRITTEN, size);
    } else if (fresh && (how != RANGE || fresh == size)) {
        wrong(UNWRITTEN, a, size, false, at);
    }
    if (where & IN_CONSTANT) return;
    bool shared = where & IN_SHARED;
    check_race(r, a, size, write, how == VOLATILE && !shared, shared, at);
    if (launch->counting) count_access(a, size, write, shared, at);
}

}  // namespace

void unwatch(Image& image) {
    forget_lines(image);
    for (size_t i = 0; i < watched.size(); ++i)
        if (watched[i].image == &image) {
            Region& r = watched[i].region;
            if (r.marks) munmap(r.marks, r.size);
            if (r.cells) munmap(r.cells, (r.size + 3) / 4 * sizeof(Cell));
            watched.erase(watched.begin() + i);
            return;
        }
}

void checks_begin_launch() {
    module_data = watch(*launch->image);
    set_marks(memory, memory.begin, DYNAMIC_ROOM, NOTHING);
    races_begin_launch();
    if (launch->counting) counts_begin_launch();
}

void checks_end_launch() {
    if (launch->counting) counts_end_launch();
}

void checks_begin_block() {                             // this block's shared memory is unwritten
    for (auto& v : launch->image->variables)
        if (v.where == Variable::SHARED) set_marks(module_data, v.address, v.size, IN_SHARED | FRESH);
    set_marks(memory, dynamic_shared, launch->dynamic, IN_SHARED | FRESH);
    if (launch->counting) counts_begin_block();
}

void checks_end_block() {
    if (launch->counting) counts_end_block();
}

// ---- barriers and warp functions -------------------------------------------------------------------------------

namespace {

[[noreturn]] void diverged(const Thread& waits, const void* at, unsigned other, const void* other_at) {
    Fault f;
    f.kind = DIVERGED, f.at = at, f.thread = waits.index, f.other_thread = other, f.other_at = (uintptr_t)other_at;
    here = &block.threads[waits.index];
    stop(f);
}

unsigned first_in(State state) {
    unsigned i = 0;
    while (i + 1 < block.size && block.state[i] != state) ++i;
    return i;
}

}  // namespace

void checks_barrier(const void* at) {
    if (launch->counting && !block.arrived) count_barrier();
    if (block.live < block.size) diverged(*here, at, first_in(DONE), nullptr);
    if (block.arrived && block.barrier_at != at && line_of(*launch->image, block.barrier_at) != line_of(*launch->image, at))
        diverged(*here, at, first_in(AT_BARRIER), block.barrier_at);
}

void checks_barrier_missed() {
    Thread& waits = block.threads[first_in(AT_BARRIER)];
    diverged(waits, waits.waits_at, here->index, nullptr);
}

namespace {

[[noreturn]] void missing(const Meeting& m, const Thread& waits, const void* at, const char* what, unsigned lanes,
                          const void* other_at) {
    Fault f;
    f.kind = LANES_MISSING, f.at = at, f.thread = waits.index, f.mask = m.mask, f.lanes = lanes, f.words = what;
    f.other_thread = waits.warp->first + __builtin_ctz(lanes), f.other_at = (uintptr_t)other_at;
    here = &block.threads[waits.index];
    stop(f);
}

bool only_orders(const char* what) { return !strcmp(what, "__syncwarp()"); }

}  // namespace

// __syncwarp orders memory and returns nothing. It may be called at several places, and lanes may have
// left.
void checks_meeting(const Meeting& m, const void* at, const char* what) {
    if (only_orders(what)) return;
    const Warp& w = *here->warp;
    if (unsigned gone = m.mask & w.lanes & ~w.live) missing(m, *here, at, what, gone, nullptr);
    if (m.arrived && m.first != at && line_of(*launch->image, m.first) != line_of(*launch->image, at))
        missing(m, *here, at, what, m.arrived, m.first);
}

void checks_meeting_missed(const Meeting& m) {
    const Thread& waits = block.threads[here->warp->first + __builtin_ctz(m.arrived)];
    if (!only_orders(waits.waits_for)) missing(m, waits, waits.waits_at, waits.waits_for, 1u << here->lane, nullptr);
}

void checks_atomic(uintptr_t a, unsigned size, bool reads, const void* at) {
    if (stacks.holds(a)) return;
    if (a & (size - 1)) wrong(MISALIGNED, a, size, true, at);
    const Region& r = memory.holds(a) ? memory : module_data;
    if (!r.holds(a)) wrong(OUTSIDE, a, size, true, at);
    Mark* m = r.mark(a);
    int state = *m & STATE;
    if (state == NOTHING || state == FREED) wrong(OUTSIDE, a, size, true, at);
    if (*m & IN_CONSTANT) wrong(READ_ONLY, a, size, true, at);
    if (state == FRESH && reads) wrong(UNWRITTEN, a, size, false, at);
    memset(m, (*m & ~STATE) | WRITTEN, size);
    races_atomic();
    check_race(r, a, size, true, true, *m & IN_SHARED, at);
    if (launch->counting) count_atomic();
}

void checks_fence() { races_fence(); }

}  // namespace sim

// ---- the hooks -------------------------------------------------------------------------------------------------

using namespace sim;

#define HOOK extern "C" __attribute__((visibility("default")))
#define AT __builtin_extract_return_addr(__builtin_return_address(0))
#define HOOKS(N)                                                                                                     \
    HOOK void __tsan_read##N(void* a) { access((uintptr_t)a, N, false, PLAIN, AT); }                                 \
    HOOK void __tsan_write##N(void* a) { access((uintptr_t)a, N, true, PLAIN, AT); }                                 \
    HOOK void __tsan_volatile_read##N(void* a) { access((uintptr_t)a, N, false, VOLATILE, AT); }                     \
    HOOK void __tsan_volatile_write##N(void* a) { access((uintptr_t)a, N, true, VOLATILE, AT); }                     \
    HOOK void __tsan_unaligned_read##N(void* a) { access((uintptr_t)a, N, false, UNALIGNED, AT); }                   \
    HOOK void __tsan_unaligned_write##N(void* a) { access((uintptr_t)a, N, true, UNALIGNED, AT); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
HOOK void __tsan_read_range(void* a, size_t n) { access((uintptr_t)a, n, false, RANGE, AT); }
HOOK void __tsan_write_range(void* a, size_t n) { access((uintptr_t)a, n, true, RANGE, AT); }
HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(void*) {}
HOOK void __tsan_func_exit() {}
HOOK void __tsan_vptr_update(void**, void*) {}
HOOK void __tsan_vptr_read(void**) {}

// Atomic loads and stores come from atomics.h, and cudasim_atomic has checked them.
#define RAW(BITS, T)                                                                                                 \
    HOOK T __tsan_atomic##BITS##_load(const volatile T* a, int) { return *a; }                                       \
    HOOK void __tsan_atomic##BITS##_store(volatile T* a, T v, int) { *a = v; }
RAW(16, uint16_t)
RAW(32, uint32_t)
RAW(64, uint64_t)

HOOK void* __wrap_memcpy(void* to, const void* from, size_t n) {
    access((uintptr_t)from, n, false, RANGE, AT);
    access((uintptr_t)to, n, true, RANGE, AT);
    return memcpy(to, from, n);
}
HOOK void* __wrap_memmove(void* to, const void* from, size_t n) {
    access((uintptr_t)from, n, false, RANGE, AT);
    access((uintptr_t)to, n, true, RANGE, AT);
    return memmove(to, from, n);
}
HOOK void* __wrap_memset(void* to, int value, size_t n) {
    access((uintptr_t)to, n, true, RANGE, AT);
    return memset(to, value, n);
}

HOOK void __sanitizer_cov_trace_pc() {
    if (!launch || !launch->checking) return;
    if (--here->patience <= 0) make_room(AT);
    if (launch->counting) count_step(AT);
}
