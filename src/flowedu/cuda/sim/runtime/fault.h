// A fault of a kernel: a few numbers. The message is composed after the launch was stopped.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <string>

namespace sim {

enum FaultKind { NONE, DIVERGED, OUTSIDE, MISALIGNED, UNWRITTEN, RACE, LANES_MISSING, CRASHED, DIVIDED, OVERFLOWED,
                 OVERDUE, TRAPPED, READ_ONLY, UNDEFINED };

struct Fault {
    FaultKind kind = NONE;
    const void* at = nullptr;                           // address in the kernel
    uintptr_t address = 0;
    unsigned size = 0;
    bool write = false;
    unsigned thread = 0, other_thread = 0;              // indices in the block
    uint32_t other_block = 0;
    uintptr_t other_at = 0;                             // the other place of a race or a barrier; 0: none
    bool other_write = false;
    unsigned mask = 0, lanes = 0;                       // of a warp function: its mask, the missing lanes
    std::string words;
};
extern Fault fault;

// Ends the running launch. A missing `f.thread` is filled in.
[[noreturn]] void stop(Fault f);

bool is_overdue();                                      // the launch has exceeded its time limit (launch.cpp)
[[noreturn]] void stop_overdue(const void* at);

// The report of `fault`, as "key\tvalue" lines and as text. Called after the end of the launch.
void compose_report();
const std::string& report_rows();
const std::string& report_text();
struct Image;
int line_of(const Image& image, const void* at);        // line of kernel.cu; 0: unknown

void forget_lines(const Image& image);

}  // namespace sim
