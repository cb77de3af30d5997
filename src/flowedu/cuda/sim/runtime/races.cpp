// Races: two threads access the same bytes, one of them writes, and no operation orders them.
//
// Accesses are ordered by a barrier of the block; by __syncwarp of both lanes; by the end of a launch; and
// between blocks, by an atomic operation of the writer's block after a fence, followed by one of the
// reader's block. Two atomic operations do not race.
#include "block.h"
#include "checks.h"
#include "fault.h"
#include "launch.h"

namespace sim {

namespace {

// Times of a block's last fence, of the last fence before an atomic operation (done) and of that operation
// (announced), and of its last atomic operation (observed).
struct Published { uint32_t fence = 0, done = 0, announced = 0, observed = 0; };
std::vector<Published> blocks;                          // of this launch, created on demand

Published& published(uint32_t number) {
    size_t i = number - launch->first_block;
    if (i >= blocks.size()) blocks.resize(i + 1);
    return blocks[i];
}

bool met_in_warp(const Touch& before, const Thread& me) {
    const Thread& other = block.threads[before.thread];
    if (other.warp != me.warp) return false;
    for (auto& m : me.warp->meetings)
        if (m->when > before.when && m->mask >> other.lane & 1 && m->mask >> me.lane & 1) return true;
    return false;
}

// True if the access `before` is ordered before the current one.
bool ordered(const Touch& before, bool shared) {
    if (before.block < launch->first_block) return true;
    if (before.block == block.number)
        return before.thread == here->index || before.when < block.barrier_when || met_in_warp(before, *here);
    if (shared) return true;                            // blocks run in sequence, and each has its own
    const Published &writer = published(before.block), &reader = published(block.number);
    return writer.done > before.when && writer.announced < reader.observed;
}

[[noreturn]] void race(const Touch& before, bool before_writes, uintptr_t a, unsigned size, bool write, const void* at) {
    Fault f;
    f.kind = RACE, f.at = at, f.address = a, f.size = size, f.write = write;
    f.other_thread = before.thread, f.other_block = before.block, f.other_write = before_writes;
    f.other_at = launch->image->begin + before.at;
    stop(f);
}

}  // namespace

void races_begin_launch() { blocks.clear(); }

void races_fence() { published(block.number).fence = ++now; }

void races_atomic() {
    Published& p = published(block.number);
    p.observed = ++now;
    if (p.fence) p.done = p.fence, p.announced = now;
}

void check_race(const Region& region, uintptr_t a, unsigned size, bool write, bool atomic, bool shared,
                const void* at) {
    for (uintptr_t word = a & ~(uintptr_t)3; word < a + size; word += 4) {
        unsigned bytes = 15;
        if (word < a) bytes &= 15u << (a - word);
        if (word + 4 > a + size) bytes &= 15u >> (word + 4 - a - size);
        Cell& c = *region.cell(word);
        auto not_after = [&](const Touch& t) { return t.bytes & bytes && !ordered(t, shared); };
        if (not_after(c.write)) race(c.write, true, a, size, write, at);
        if (!atomic && not_after(c.atomic)) race(c.atomic, true, a, size, write, at);
        if (write && not_after(c.read)) race(c.read, false, a, size, write, at);
        if (write && not_after(c.other_read)) race(c.other_read, false, a, size, write, at);
        Touch me = {block.number, uint32_t((uintptr_t)at - launch->image->begin), now, uint16_t(here->index),
                    uint16_t(bytes)};
        if (atomic)
            c.atomic = me;
        else if (write)
            c.write = me;
        else if ((c.read.block == block.number && c.read.thread == here->index) || ordered(c.read, shared))
            c.read = me;
        else
            c.other_read = me;
    }
}

}  // namespace sim
