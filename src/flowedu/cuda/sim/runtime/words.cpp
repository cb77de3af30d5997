// Messages for each kind of fault: thread, array, expectation, and fix.
#include "words.h"

#include <stdio.h>

#include <sstream>

#include "block.h"
#include "fault.h"
#include "launch.h"
#include "memory.h"
#include "setting.h"

namespace sim {

std::string format(uint3 v) {
    return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

namespace {

std::string count(size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }
std::string hex(size_t n) {
    char s[24];
    snprintf(s, sizeof s, "0x%zx", n);
    return s;
}
std::string mask(unsigned m) {
    char s[16];
    snprintf(s, sizeof s, "0x%08x", m);
    return s;
}
std::string thread(unsigned index) { return "thread " + format(block.threads[index].id); }
std::string kernel() { return launch->entry->name; }
std::string who() { return kernel() + ": " + thread(here->index) + " of block " + format(cudasim_here.block) + " "; }
std::string does(bool write) { return write ? "writes " : "reads "; }

// Returns the name, such as "x" of "const float* x", of the argument that points into an allocation, or "".
std::string argument_into(uintptr_t begin, size_t size) {
    std::istringstream all(launch->entry->parameters);
    std::string p;
    for (unsigned i = 0; std::getline(all, p) && i < launch->entry->count; ++i) {
        if (p.find('*') == std::string::npos || launch->entry->sizes[2 * i] != sizeof(void*)) continue;
        uintptr_t to = *(uintptr_t*)launch->arguments[i];
        if (to >= begin && to <= begin + size) return p.substr(p.find_last_of(" *&") + 1);
    }
    return "";
}

// An array, with its name (if any) and its description in a sentence.
struct Array {
    std::string name, called;
    uintptr_t begin = 0;
    size_t size = 0;
    bool shared = false, known = false;

    size_t distance(uintptr_t a) const { return a < begin ? begin - a : a >= begin + size ? a - begin - size : 0; }
    std::string byte(uintptr_t a) const {
        if (!known) return "";
        std::string where = called.find("shared memory") != std::string::npos ? "" : shared ? " (shared)" : " (global)";
        return "byte " + std::to_string(a - begin) + " of " + called + where;
    }
};

void offer(Array& best, uintptr_t a, const Array& other) {
    if (best.known && best.distance(a) <= other.distance(a)) return;
    best = other;
    best.known = true;
    if (best.called.empty()) best.called = best.name.empty() ? "an array that no argument points into" : best.name;
}

// Returns the array nearest to an address.
Array array_near(uintptr_t a) {
    Array best;
    if (memory.holds(a) && a - memory.begin < DYNAMIC_ROOM) {
        offer(best, a, {"dynamic shared memory", "", dynamic_shared, launch->dynamic, true});
    } else if (memory.holds(a)) {
        auto after = allocations.upper_bound(a);
        auto offer_piece = [&](uintptr_t begin, size_t size) {
            offer(best, a, {argument_into(begin, size), "", begin, size});
        };
        auto offer_all = [&](uintptr_t begin, const Allocation& all) {
            auto from = parts.lower_bound(begin), to = parts.lower_bound(begin + all.size);
            if (from == to) offer_piece(begin, all.given);
            for (; from != to; ++from) offer_piece(from->first, from->second);
        };
        if (after != allocations.begin()) offer_all(std::prev(after)->first, std::prev(after)->second);
        if (after != allocations.end()) offer_all(after->first, after->second);
    } else {
        for (auto& v : launch->image->variables) {
            Array variable = {v.name, "", v.address, v.size, v.where == Variable::SHARED};
            if (variable.distance(a) < 4096) offer(best, a, variable);
        }
    }
    return best;
}

Words outside(const Array& n) {
    const Fault& f = fault;
    Words w = {"outside", who() + does(f.write), "", count(f.size, "byte") + " at " + hex(f.address), "", n.name};
    bool freed = memory.holds(f.address) && memory.marks && (*memory.mark(f.address) & STATE) == FREED;
    if (f.address < 4096) {
        w.problem += "through a null pointer";
    } else if (freed) {
        w.problem += "memory that has been given back";
    } else if (!n.known || n.distance(f.address) > (1ull << 32)) {
        w.problem += "what is no memory of the device";
        w.fix = "is it a pointer of the host?";
    } else {
        bool before = f.address < n.begin;
        size_t by = before ? n.begin - f.address : f.address + f.size - n.begin - n.size;
        w.problem += count(by, "byte") + (before ? " before the beginning of " : " beyond the end of ") + n.called;
        w.expected = n.called + " has " + count(n.size, "byte");
        if (!before) w.got += ", byte " + std::to_string(f.address - n.begin) + " from its beginning";
    }
    return w;
}

Words race(const Array& n) {
    const Fault& f = fault;
    bool same = f.other_block == block.number;
    Words w = {"race", who() + does(f.write) + "what " + thread(f.other_thread), "", n.byte(f.address), "", n.name};
    w.problem += std::string(same ? " of the same block " : " of another block ") + (f.other_write ? "writes" : "reads");
    w.problem += std::string(", and nothing orders them: a race in ") + (n.shared ? "shared" : "global") + " memory";
    w.expected = same ? "a barrier between the two" : "blocks that write to memory of their own, or atomic operations";
    w.fix = same ? "__syncthreads() between them (within a warp __syncwarp())" : "";
    return w;
}

Words lanes_missing() {
    const Fault& f = fault;
    std::string call = who() + "calls " + f.words;
    if (f.lanes == 1u << here->lane)
        return {"lanes missing", call + " with a mask that does not name it",
                "a mask with lane " + std::to_string(here->lane), "the mask " + mask(f.mask), "name the lanes that come",
                ""};
    std::string where = f.other_at ? "they are elsewhere" : "they have left the kernel";
    return {"lanes missing", call + ", and lanes that its mask names do not: " + where,
            "every lane of the mask " + mask(f.mask) + " in the same call", "lanes " + mask(f.lanes) + " missing",
            "call it where all lanes of the mask come, or name those that come", ""};
}

Words diverged() {
    const Fault& f = fault;
    std::string other = thread(f.other_thread);
    other += f.other_at ? " does not reach: it waits at another" : " never reaches: it has left the kernel";
    std::string waiting = f.other_at ? "" : std::to_string(block.arrived) + " of " + count(block.size, "thread") + " there";
    return {"diverged", who() + "waits at a barrier that " + other,
            "__syncthreads() by all threads of the block, or by none", waiting,
            "take __syncthreads() out of the `if`, and leave the kernel after the last", ""};
}

}  // namespace

// Called after the launch, with `launch`, `block` and `here` unchanged.
Words words_for_fault() {
    const Fault& f = fault;
    Array n = array_near(f.address);
    switch (f.kind) {
        case OUTSIDE: return outside(n);
        case RACE: return race(n);
        case LANES_MISSING: return lanes_missing();
        case DIVERGED: return diverged();
        case MISALIGNED:
            return {"misaligned", who() + does(f.write) + count(f.size, "byte") + " at no multiple of " +
                    std::to_string(f.size), "", n.byte(f.address), "a float4 begins at a multiple of 16 bytes", n.name};
        case UNWRITTEN: return {"unwritten", who() + "reads what nobody has written", "", n.byte(f.address), "", n.name};
        case READ_ONLY: return {"read only", who() + "writes to constant memory", "", "", "", n.name};
        case CRASHED:
            return {"crashed", who() + "touches what is no memory of the device", "", "",
                    "FLOWEDU_CUDA_CHECK=1 says which array it was", ""};
        case DIVIDED: return {"divided", who() + "divides an integer by zero", "", "", "a GPU gives any number", ""};
        case UNDEFINED:
            return {"undefined", who() + "reaches code that the compiler knows to be undefined", "",
                    "a division by a constant 0, or a function without its `return`", "a GPU gives any number", ""};
        case OVERFLOWED:
            return {"overflowed", who() + "has used up its stack", std::to_string(STACK >> 10) + " KiB of local variables",
                    "", "", ""};
        case OVERDUE:
            return {"overdue", who() + "has not ended after " + std::to_string((int)setting.timeout) + " seconds", "", "",
                    "does a loop wait for another block? Blocks run one after the other. FLOWEDU_CUDA_TIMEOUT allows more",
                    ""};
        default: return {"trapped", who() + "stops: " + f.words, "", "", "", ""};
    }
}

}  // namespace sim
