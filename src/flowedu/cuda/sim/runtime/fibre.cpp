// Fibres: assembly on x86-64 (about 4 ns per switch), ucontext elsewhere (slower).
#include "fibre.h"

#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__) || defined(CUDASIM_UCONTEXT)
#include <ucontext.h>
#endif

namespace sim {

Stacks stacks;
constexpr unsigned COUNT = 1024 + 1;                    // threads of a block, and one that has just ended

bool Stacks::reserve() {
    if (base) return true;
    size = COUNT * (STACK + GUARD);
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    base = (char*)p;
    for (unsigned i = 0; i < COUNT; ++i) mprotect(bottom(i) - GUARD, GUARD, PROT_NONE);
    return true;
}

#if defined(__x86_64__) && !defined(CUDASIM_UCONTEXT)

// Saves the callee-saved registers, switches the stack, and restores those of the other context.
asm(R"(
.text
.globl cudasim_switch
.hidden cudasim_switch
.type cudasim_switch, @function
cudasim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cudasim_switch, .-cudasim_switch
)");

// Stacks are a multiple of a page apart. Starting each at another cache line avoids conflicts in the cache.
Context fresh(unsigned stack, void (*entry)()) {
    void** top = (void**)(stacks.bottom(stack) + STACK - 64 * (stack % 61));
    *--top = nullptr;                                   // return address of `entry`, which never returns
    *--top = (void*)entry;
    return top - 6;
}

void forget_fibres() {}

#else

namespace {
ucontext_t* running = nullptr;
}

void forget_fibres() { running = nullptr; }

Context fresh(unsigned stack, void (*entry)()) {
    auto* c = (ucontext_t*)stacks.bottom(stack);        // stored at the far end of the stack
    getcontext(c);
    c->uc_stack.ss_sp = stacks.bottom(stack) + sizeof(ucontext_t);
    c->uc_stack.ss_size = STACK - sizeof(ucontext_t);
    makecontext(c, entry, 0);
    return c;
}

extern "C" void cudasim_switch(Context* save, Context load) {
    static ucontext_t first;                            // the stack of the launch
    ucontext_t* here = running ? running : &first;
    *save = here;
    running = load == &first ? nullptr : (ucontext_t*)load;
    swapcontext(here, (ucontext_t*)load);
}

#endif

}  // namespace sim
