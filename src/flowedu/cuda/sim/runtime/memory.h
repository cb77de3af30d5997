// The memory of the simulated devices: one stretch of address space, cut into a part for each device and one for pinned
// memory of the host; and what is known of each byte of it, once somebody checks.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <map>

namespace sim {

struct Allocation {
    size_t size, room;                                  // bytes asked for; taken, with the gap behind them
    int device;                                         // -1: pinned memory of the host
    size_t given;                                       // of `size`, what a pool's user asked it for: all one may touch
};

// Of a byte: no memory, never written, written, given back; and with which memory it is.
enum Mark : uint8_t { NOTHING, FRESH, WRITTEN, FREED, STATE = 3, IN_SHARED = 4, IN_CONSTANT = 8 };

// Who touched four bytes, and when. `block` is the number of a block of any launch; 0: nobody.
struct Touch {
    uint32_t block, at, when;                           // `at`: address in the image
    uint16_t thread, bytes;                             // which of the four
};
struct Cell { Touch write, atomic, read, other_read; }; // the readers are two different threads

// A stretch of memory and what is known of it.
struct Region {
    uintptr_t begin = 0;
    size_t size = 0;
    Mark* marks = nullptr;
    Cell* cells = nullptr;
    bool holds(uintptr_t a) const { return a - begin < size; }
    Mark* mark(uintptr_t a) const { return marks + (a - begin); }
    Cell* cell(uintptr_t a) const { return cells + (a - begin) / 4; }
    bool watch();                                       // make room for marks and cells; false: there is no address space
};

extern Region memory;                                   // of all devices; its beginning holds dynamic shared memory
extern uintptr_t dynamic_shared;
constexpr size_t MOST_SHARED = 227 << 10, DYNAMIC_ROOM = 1 << 20;
extern std::map<uintptr_t, Allocation> allocations;
extern std::map<uintptr_t, size_t> parts;               // arrays in an allocation of which others lie, too: an arena
extern size_t used[];

bool open_memory();                                     // false: there is no address space
uintptr_t allocate(size_t size, int device);            // 0: no room
bool release(uintptr_t address, bool of_host);
void give(uintptr_t address, size_t size);              // a pool gives what begins there to a user, who asked for so many bytes
void part_lives(uintptr_t address, size_t size, bool alive);  // an array in an arena begins to live, or lives no longer
const std::pair<const uintptr_t, Allocation>* allocation_at(uintptr_t a);       // the last that begins at or before `a`
int device_of(uintptr_t a);                             // whose part of the memory; -1: the host's, -2: nobody's
bool is_memory(uintptr_t a, size_t n);                  // all of it in what one user was given, or one variable of a module
void wrote(uintptr_t a, size_t n);                      // by a copy from the host, a memset
void copied(uintptr_t to, uintptr_t from, size_t n);
bool start_checking();                                  // false: there is no address space for it
void forget_writes();                                   // a kernel without hooks has run: everything counts as written

}  // namespace sim
