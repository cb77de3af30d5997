// What went wrong in a kernel, as it is first known: a few numbers. The words are made when the launch has been stopped.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <string>

namespace sim {

enum FaultKind { NONE, DIVERGED, OUTSIDE, MISALIGNED, UNWRITTEN, RACE, LANES_MISSING, CRASHED, DIVIDED, OVERFLOWED,
                 OVERDUE, TRAPPED, READ_ONLY, UNDEFINED };

struct Fault {
    FaultKind kind = NONE;
    const void* at = nullptr;                           // where in the kernel
    uintptr_t address = 0;
    unsigned size = 0;
    bool write = false;
    unsigned thread = 0, other_thread = 0;              // indices in the block
    uint32_t other_block = 0;
    uintptr_t other_at = 0;                             // the other place of a race, or of a barrier; 0: none
    bool other_write = false;
    unsigned mask = 0, lanes = 0;                       // of a warp function: what it named, who is missing
    std::string words;
};
extern Fault fault;

// Ends the launch that runs; does not return. What `f` leaves open (thread) is filled in.
[[noreturn]] void stop(Fault f);

bool is_overdue();                                      // the launch has run for longer than it may (launch.cpp)
[[noreturn]] void stop_overdue(const void* at);

// The report of `fault` as "key\tvalue" lines, and as a text for people. To be called after the launch has ended.
void compose_report();
const std::string& report_rows();
const std::string& report_text();
struct Image;
int line_of(const Image& image, const void* at);        // of kernel.cu; 0: not known

void forget_lines(const Image& image);

}  // namespace sim
