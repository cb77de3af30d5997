// Stacks for the waiting threads of a block, and switches between them.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace sim {

constexpr size_t STACK = 128 << 10, GUARD = 4096;       // bytes of each, and of the protected page below it

struct Stacks {
    char* base = nullptr;
    size_t size = 0;
    bool reserve();                                     // reserves address space; false: none is available
    char* bottom(unsigned i) const { return base + i * (STACK + GUARD) + GUARD; }
    bool holds(uintptr_t a) const { return a - (uintptr_t)base < size; }
    bool guards(uintptr_t a) const { return holds(a) && (a - (uintptr_t)base) % (STACK + GUARD) < GUARD; }
};
extern Stacks stacks;

// The state of a suspended context: on x86-64 the stack pointer, elsewhere a ucontext_t.
using Context = void*;
Context fresh(unsigned stack, void (*entry)());         // context that starts `entry` on this stack
void forget_fibres();                                   // after a jump back to the stack of the launch
extern "C" void cudasim_switch(Context* save, Context load) __attribute__((visibility("hidden")));

}  // namespace sim
