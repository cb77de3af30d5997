// A stack of its own for each thread of a block that waits, and the change from one to another.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace sim {

constexpr size_t STACK = 128 << 10, GUARD = 4096;       // bytes for each; a page below it that nobody may touch

struct Stacks {
    char* base = nullptr;
    size_t size = 0;
    bool reserve();                                     // address space for all of them, once; false: there is none
    char* bottom(unsigned i) const { return base + i * (STACK + GUARD) + GUARD; }
    bool holds(uintptr_t a) const { return a - (uintptr_t)base < size; }
    bool guards(uintptr_t a) const { return holds(a) && (a - (uintptr_t)base) % (STACK + GUARD) < GUARD; }
};
extern Stacks stacks;

// What a switch needs to come back: on x86-64 the stack pointer, elsewhere a ucontext_t.
using Context = void*;
Context fresh(unsigned stack, void (*entry)());         // a context that starts `entry` on this stack
void forget_fibres();                                   // after a jump back to the stack of the launch
extern "C" void cudasim_switch(Context* save, Context load) __attribute__((visibility("hidden")));

}  // namespace sim
