// The memory of the simulated devices: one range of address space, with a part for each device and one for
// pinned memory. Checks keep marks for each byte.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <map>

namespace sim {

struct Allocation {
    size_t size, room;                                  // requested bytes; bytes with the gap
    int device;                                         // -1: pinned memory of the host
    size_t given;                                       // bytes requested from a pool: the accessible part
};

// Mark of a byte: unallocated, unwritten, written, freed; and the kind of memory.
enum Mark : uint8_t { NOTHING, FRESH, WRITTEN, FREED, STATE = 3, IN_SHARED = 4, IN_CONSTANT = 8 };

// An access to four bytes. `block` is the unique number of a block; 0: no access.
struct Touch {
    uint32_t block, at, when;                           // `at`: address in the image
    uint16_t thread, bytes;                             // mask of the bytes
};
struct Cell { Touch write, atomic, read, other_read; }; // the reads are by different threads

// A range of memory and its marks.
struct Region {
    uintptr_t begin = 0;
    size_t size = 0;
    Mark* marks = nullptr;
    Cell* cells = nullptr;
    bool holds(uintptr_t a) const { return a - begin < size; }
    Mark* mark(uintptr_t a) const { return marks + (a - begin); }
    Cell* cell(uintptr_t a) const { return cells + (a - begin) / 4; }
    bool watch();                                       // allocates marks and cells; false: no address space
};

extern Region memory;                                   // all devices; it starts with dynamic shared memory
extern uintptr_t dynamic_shared;
constexpr size_t MOST_SHARED = 227 << 10, DYNAMIC_ROOM = 1 << 20;
extern std::map<uintptr_t, Allocation> allocations;
extern std::map<uintptr_t, size_t> parts;               // arrays that share an allocation (an arena)
extern size_t used[];

bool open_memory();                                     // false: no address space
uintptr_t allocate(size_t size, int device);            // 0: out of memory
bool release(uintptr_t address, bool of_host);
void give(uintptr_t address, size_t size);              // a pool hands out a block for `size` requested bytes
void part_lives(uintptr_t address, size_t size, bool alive);    // an array in an arena starts or ends
const std::pair<const uintptr_t, Allocation>* allocation_at(uintptr_t a);       // the last that begins at or before `a`
int device_of(uintptr_t a);                             // device of an address; -1: pinned, -2: none
bool is_memory(uintptr_t a, size_t n);                  // true within one user's array, or one variable
void wrote(uintptr_t a, size_t n);                      // marks bytes that the host or a memset wrote
void copied(uintptr_t to, uintptr_t from, size_t n);
bool start_checking();                                  // false: no address space
void forget_writes();                                   // marks all as written, after a kernel without hooks

}  // namespace sim
