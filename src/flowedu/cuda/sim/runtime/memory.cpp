// Allocator: first fit, with a gap after each piece, so that an access beyond it does not reach another.
#include "memory.h"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "launch.h"
#include "setting.h"

namespace sim {

Region memory;
uintptr_t dynamic_shared = 0;
std::map<uintptr_t, Allocation> allocations;
std::map<uintptr_t, size_t> parts;
size_t used[65];                                        // the last is for pinned memory

namespace {

constexpr size_t LINE = 256, PAGE = 4096, GIB = 1ull << 30;
constexpr size_t LEAST = 16 << 20;                      // least useful address space of a device
constexpr size_t FILLED = 64 << 20;                     // larger pieces stay zero, as a fill is slow
size_t part, front;                                     // address space of each device, and before them
std::map<uintptr_t, size_t> holes;
bool checked = false;

size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

void* space(size_t size) {
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
}

void set_marks(uintptr_t a, size_t n, Mark m) {
    if (checked && memory.holds(a)) memset(memory.mark(a), m, n);
}

void forget_parts(uintptr_t a, size_t n) { parts.erase(parts.lower_bound(a), parts.lower_bound(a + n)); }

}  // namespace

bool Region::watch() {
    if (marks) return true;
    size_t bytes = (size + 3) / 4 * sizeof(Cell);
    marks = (Mark*)space(size);
    cells = (Cell*)space(bytes);
    if (marks && cells) return true;
    if (marks) munmap(marks, size);
    if (cells) munmap(cells, bytes);
    marks = nullptr, cells = nullptr;
    return false;
}

// If address space is limited (ulimit -v), devices get less memory, so that half of the rest remains for
// the process.
bool open_memory() {
    if (memory.begin) return true;
    const size_t times = 2 * (setting.check ? 2 + sizeof(Cell) / 4 : 1);
    for (part = up(std::max<size_t>(4 * setting.memory, GIB), GIB); part >= LEAST; part /= 2) {
        front = std::min(part, GIB);
        memory.size = part * (setting.devices + 1) + front;
        void* all = space(times * memory.size);
        if (!all) continue;
        munmap(all, times * memory.size);
        memory.begin = (uintptr_t)space(memory.size);
        if (memory.begin) break;
    }
    if (!memory.begin) return false;
    setting.memory = std::min(setting.memory, part / 2);
    dynamic_shared = memory.begin + DYNAMIC_ROOM / 2;
    for (int d = 0; d <= setting.devices; ++d) holes[memory.begin + front + d * part] = part;
    return !setting.check || start_checking();
}

int device_of(uintptr_t a) {
    if (!memory.holds(a) || a - memory.begin < front) return -2;
    int d = (a - memory.begin - front) / part;
    return d == setting.devices ? -1 : d;
}

// The gap is as large as the piece, so that a wrong index rarely reaches another array.
uintptr_t allocate(size_t size, int device) {
    if (!open_memory()) return 0;
    int owner = device < 0 ? 64 : device;
    if (used[owner] + size > setting.memory) return 0;
    size_t gap = checked ? std::clamp<size_t>(size, PAGE, GIB / 4) : LINE, room = up(size, LINE) + up(gap, LINE);
    for (auto h = holes.begin(); h != holes.end(); ++h) {
        if (h->second < room || device_of(h->first) != device) continue;
        auto [a, length] = *h;
        holes.erase(h);
        if (length > room) holes[a + room] = length - room;
        allocations[a] = {size, room, device, size};
        used[owner] += size;
        if (size <= FILLED) memset((void*)a, 0xff, size);  // NaN for floats, so that reads are noticed
        set_marks(a, room, NOTHING);
        set_marks(a, size, device < 0 ? WRITTEN : FRESH);       // writes by the host are not observed
        return a;
    }
    return 0;
}

bool release(uintptr_t address, bool of_host) {
    auto it = allocations.find(address);
    if (it == allocations.end() || (it->second.device < 0) != of_host) return false;
    Allocation old = it->second;
    allocations.erase(it);
    forget_parts(address, old.size);
    used[old.device < 0 ? 64 : old.device] -= old.size;
    uintptr_t begin = up(address, PAGE), end = (address + old.room) / PAGE * PAGE;
    if (end > begin + 64 * PAGE) madvise((void*)begin, end - begin, MADV_DONTNEED);
    set_marks(address, old.size, FREED);
    auto h = holes.emplace(address, old.room).first;
    auto after = std::next(h);                          // merge adjacent holes of the same device
    if (after != holes.end() && h->first + h->second == after->first && device_of(after->first) == old.device) {
        h->second += after->second;
        holes.erase(after);
    }
    if (h != holes.begin()) {
        auto before = std::prev(h);
        if (before->first + before->second == h->first && device_of(before->first) == old.device) {
            before->second += h->second;
            holes.erase(h);
        }
    }
    return true;
}

// Pools round sizes up and reuse blocks. Each time the array has another end, and is unwritten.
void give(uintptr_t address, size_t size) {
    auto it = allocations.find(address);
    if (it == allocations.end() || size > it->second.size) return;
    it->second.given = size;
    forget_parts(address, it->second.size);
    set_marks(address, it->second.size, NOTHING);
    set_marks(address, size, it->second.device < 0 ? WRITTEN : FRESH);
}

void part_lives(uintptr_t address, size_t size, bool alive) {
    if (alive) parts[address] = size;
    else forget_parts(address, size);
    set_marks(address, size, alive ? FRESH : NOTHING);
}

const std::pair<const uintptr_t, Allocation>* allocation_at(uintptr_t a) {
    auto it = allocations.upper_bound(a);
    return it == allocations.begin() ? nullptr : &*std::prev(it);
}

bool is_memory(uintptr_t a, size_t n) {
    if (memory.holds(a)) {
        auto* piece = allocation_at(a);
        return piece && a + n <= piece->first + piece->second.given;
    }
    if (Image* image = image_at(a))
        for (auto& v : image->variables)
            if (a >= v.address && a + n <= v.address + v.size) return true;
    return false;
}

void wrote(uintptr_t a, size_t n) { set_marks(a, n, WRITTEN); }

void copied(uintptr_t to, uintptr_t from, size_t n) {
    if (checked && memory.holds(to) && memory.holds(from) && n) memmove(memory.mark(to), memory.mark(from), n);
    else set_marks(to, n, WRITTEN);
}

bool start_checking() {
    if (checked) return true;
    if (!open_memory() || !memory.watch()) return false;
    checked = true;
    forget_writes();
    return true;
}

void forget_writes() {
    if (!checked) return;
    for (auto& [a, piece] : allocations) memset(memory.mark(a), WRITTEN, piece.given);
}

}  // namespace sim
