// The words for a fault: kernel, block, thread, the line of the source, which array it was.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sstream>

#include "api.h"
#include "block.h"
#include "fault.h"
#include "launch.h"
#include "memory.h"
#include "setting.h"

namespace sim {

namespace {

std::string rows, text;
std::map<std::pair<const Image*, uintptr_t>, int> lines;        // asked for once

std::string write_image(const Image& image) {
    const char* t = getenv("TMPDIR");
    std::string path = std::string(t && *t ? t : "/tmp") + "/flowedu-cuda-XXXXXX";
    int fd = mkstemp(path.data());
    if (fd < 0) return "";
    bool good = write(fd, image.bytes.data(), image.bytes.size()) == (ssize_t)image.bytes.size();
    close(fd);
    return good ? path : "";
}

// Asks addr2line, which comes with every g++: innermost first, so the first line of kernel.cu is the one that is meant.
int ask_for_line(const Image& image, uintptr_t offset) {
    std::string path = write_image(image);
    if (path.empty()) return 0;
    char command[512], said[1024];
    snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%zx 2>/dev/null", path.c_str(), (size_t)offset);
    int line = 0;
    if (FILE* p = popen(command, "r")) {
        while (fgets(said, sizeof said, p)) {
            const char* at = strstr(said, "kernel.cu:");
            if (at && !line) line = atoi(at + 10);
        }
        pclose(p);
    }
    unlink(path.c_str());
    return line;
}

// The text of a line, where #line says anew how lines are counted.
std::string source_line(const Module& module, int wanted) {
    std::istringstream all(module.source);
    std::string line, found;
    for (int number = 1; std::getline(all, line); ++number) {
        if (line.rfind("#line ", 0) == 0) number = atoi(line.c_str() + 6) - 1;
        if (number == wanted) found = line;
    }
    size_t from = found.find_first_not_of(" \t"), to = found.find_last_not_of(" \t\r");
    return from == std::string::npos ? "" : found.substr(from, to - from + 1);
}

std::string place(int line) {
    if (!line) return "";
    std::string words = source_line(*launch->kernel->module, line);
    return "kernel.cu:" + std::to_string(line) + (words.empty() ? "" : ": " + words);
}

std::string told(uint3 v) {
    return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}
std::string bare(uint3 v) { return std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z); }
std::string count(size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

// "x" of "const float* x", for the argument that points into a piece of memory; "" when none does.
std::string argument_into(uintptr_t begin, size_t size) {
    std::istringstream all(launch->entry->parameters);
    std::string p;
    for (unsigned i = 0; std::getline(all, p) && i < launch->entry->count; ++i) {
        if (p.find('*') == std::string::npos || launch->entry->sizes[2 * i] != 8) continue;
        uintptr_t to = *(uintptr_t*)launch->arguments[i];
        if (to < begin || to > begin + size) continue;
        size_t e = p.find_last_of(" *&");
        return p.substr(e + 1);
    }
    return "";
}

struct Near { std::string name, whole; uintptr_t begin; size_t size; bool found = false; };

size_t distance(const Near& n, uintptr_t a) {
    return a < n.begin ? n.begin - a : a >= n.begin + n.size ? a - n.begin - n.size : 0;
}

// The array that an address was probably meant for: the nearest that an argument points into, else the nearest.
Near nearest(uintptr_t a) {
    Near best;
    auto offer = [&](Near n) {
        n.found = true;
        if (!best.found || distance(n, a) < distance(best, a)) best = n;
    };
    if (memory.holds(a) && a - memory.begin < DYNAMIC_ROOM) {
        offer({"dynamic shared memory", "dynamic shared memory", dynamic_shared, launch->dynamic});
    } else if (memory.holds(a)) {
        auto it = allocations.upper_bound(a);
        for (int step = 0; step < 2; ++step) {
            if (step == 0 ? it != allocations.end() : it != allocations.begin()) {
                auto& piece = step == 0 ? *it : *std::prev(it);
                std::string name = argument_into(piece.first, piece.second.size);
                offer({name, name.empty() ? "an array that no argument points into" : name, piece.first, piece.second.size});
            }
        }
    } else {
        for (auto& v : launch->image->variables)
            if (distance({v.name, v.name, v.address, v.size}, a) < 4096) offer({v.name, v.name, v.address, v.size});
    }
    return best;
}

std::string freed_or_not(uintptr_t a) {
    return memory.holds(a) && memory.marks && (*memory.mark(a) & STATE) == FREED ? "memory that has been given back" : "";
}

struct Words { std::string problem, expected, got, fix, parameter; const char* kind; };

std::string shared_or_global(uintptr_t a, const Near& n) {
    bool shared = (memory.holds(a) && a - memory.begin < DYNAMIC_ROOM);
    for (auto& v : launch->image->variables)
        if (v.where == Variable::SHARED && v.address == n.begin) shared = true;
    return shared ? "shared" : "global";
}

std::string doing(bool write) { return write ? "writes" : "reads"; }

void outside(Words& w, const std::string& who) {
    const Fault& f = fault;
    Near n = nearest(f.address);
    std::string freed = freed_or_not(f.address);
    w.kind = "outside";
    w.parameter = n.name;
    w.got = count(f.size, "byte") + " at 0x";
    char hex[20];
    snprintf(hex, sizeof hex, "%zx", (size_t)f.address);
    w.got += hex;
    if (!f.address || f.address < 4096) {
        w.problem = who + " " + doing(f.write) + " through a null pointer";
    } else if (!freed.empty()) {
        w.problem = who + " " + doing(f.write) + " " + freed;
    } else if (!n.found || distance(n, f.address) > (1ull << 32)) {
        w.problem = who + " " + doing(f.write) + " what is no memory of the device";
        w.fix = "is it a pointer of the host?";
    } else {
        bool before = f.address < n.begin;
        size_t by = before ? n.begin - f.address : f.address + f.size - n.begin - n.size;
        w.problem = who + " " + doing(f.write) + " " + count(by, "byte") + (before ? " before the beginning of " : " beyond the end of ") +
                    n.whole;
        w.expected = n.whole + " has " + count(n.size, "byte");
        w.got += before ? "" : ", which is byte " + std::to_string(f.address - n.begin) + " from its beginning";
    }
}

void race(Words& w, const std::string& who) {
    const Fault& f = fault;
    Near n = nearest(f.address);
    bool same = f.other_block == block.number;
    std::string other = "thread " + told(block.threads[f.other_thread].id) + (same ? " of the same block" : " of another block");
    w.kind = "race";
    w.parameter = n.name;
    w.problem = who + " " + doing(f.write) + " what " + other + " " + doing(f.other_write) + ", and nothing orders them: a race in " +
                shared_or_global(f.address, n) + " memory";
    if (n.found) w.got = "byte " + std::to_string(f.address - n.begin) + " of " + n.whole;
    w.expected = same ? "a barrier between the two" : "blocks that write to memory of their own, or atomic operations";
    w.fix = same ? "__syncthreads() between them (within a warp __syncwarp())" : "";
}

void lanes_missing(Words& w, const std::string& who) {
    const Fault& f = fault;
    char mask[16], lanes[16];
    snprintf(mask, sizeof mask, "0x%08x", f.mask);
    snprintf(lanes, sizeof lanes, "0x%08x", f.lanes);
    w.kind = "lanes missing";
    bool self = f.lanes == 1u << here->lane;
    w.problem = who + " calls " + f.words + (self ? " with a mask that does not name it" :
                std::string(" and lanes that its mask names do not") + (f.other_at ? ": they are elsewhere" : ": they have left the kernel"));
    w.expected = self ? "a mask with lane " + std::to_string(here->lane) : "every lane of the mask " + std::string(mask) + " in the same call";
    w.got = self ? std::string("the mask ") + mask : std::string("lanes ") + lanes + " missing";
    w.fix = "call it where all lanes of the mask come, or name those that come";
}

Words words() {
    const Fault& f = fault;
    std::string who = std::string(launch->entry->name) + ": thread " + told(here->id) + " of block " + told(cudasim_here.block);
    Near n = nearest(f.address);
    Words w;
    switch (f.kind) {
        case OUTSIDE: outside(w, who); break;
        case RACE: race(w, who); break;
        case LANES_MISSING: lanes_missing(w, who); break;
        case DIVERGED:
            w = {who + " waits at a barrier that thread " + told(block.threads[f.other_thread].id) +
                 (f.other_at ? " does not reach: it waits at another" : " never reaches: it has left the kernel"),
                 "__syncthreads() by all threads of the block, or by none", std::to_string(block.arrived) + " of " +
                 std::to_string(block.size) + " threads wait there", "take __syncthreads() out of the `if`; leave the kernel after the last", "", "diverged"};
            if (f.other_at) w.got.clear();
            break;
        case MISALIGNED:
            w = {who + " " + doing(f.write) + " " + count(f.size, "byte") + " at an address that is no multiple of " + std::to_string(f.size),
                 "", "", "a float4 begins at a multiple of 16 bytes", n.name, "misaligned"};
            if (n.found) w.got = "byte " + std::to_string(f.address - n.begin) + " of " + n.whole;
            break;
        case UNWRITTEN:
            w = {who + " reads what nobody has written", "", "", "", n.name, "unwritten"};
            if (n.found) w.got = "byte " + std::to_string(f.address - n.begin) + " of " + n.whole + ", in " + shared_or_global(f.address, n) + " memory";
            break;
        case READ_ONLY: w = {who + " writes to constant memory", "", "", "", n.name, "read only"}; break;
        case CRASHED:
            w = {who + " touches what is no memory of the device", "", "", "FLOWEDU_CUDA_CHECK=1 says which array it was", "", "crashed"};
            break;
        case DIVIDED: w = {who + " divides an integer by zero", "", "", "a GPU gives any number", "", "divided"}; break;
        case OVERFLOWED: w = {who + " has used up its stack", std::to_string(STACK >> 10) + " KiB of local variables", "", "", "", "overflowed"}; break;
        case OVERDUE:
            w = {std::string(launch->entry->name) + " has not ended after " + std::to_string((int)setting.timeout) + " seconds", "", "",
                 "does a loop wait for another block? They run one after the other. FLOWEDU_CUDA_TIMEOUT allows more", "", "overdue"};
            break;
        default: w = {who + ": " + f.words, "", "", "", "", "trapped"};
    }
    return w;
}

void row(const char* name, std::string value) {
    if (value.empty()) return;
    for (char& c : value)
        if (c == '\n' || c == '\t') c = ' ';
    rows += std::string(name) + "\t" + value + "\n";
}

}  // namespace

int line_of(const Image& image, const void* at) {
    if (!at || (uintptr_t)at < image.begin || (uintptr_t)at > image.end) return 0;
    auto [it, fresh] = lines.try_emplace({&image, (uintptr_t)at - image.begin - 1}, 0);
    if (fresh) it->second = ask_for_line(image, it->first.second);
    return it->second;
}

void forget_lines(const Image& image) {
    for (auto it = lines.begin(); it != lines.end();) it = it->first.first == &image ? lines.erase(it) : std::next(it);
}

// Called after the launch, with `launch`, `block` and `here` as they were.
void compose_report() {
    rows.clear();
    here = &block.threads[fault.thread];
    Words w = words();
    int line = line_of(*launch->image, fault.at), other = fault.other_at ? line_of(*launch->image, (const void*)fault.other_at) : 0;
    std::string where = place(line), also = other && other != line ? place(other) : "";
    bool pair = fault.kind == RACE || fault.kind == DIVERGED || (fault.kind == LANES_MISSING && fault.other_thread != fault.thread);
    row("kind", w.kind);
    row("kernel", launch->entry->name);
    row("problem", w.problem);
    row("at", where);
    row("line", line ? std::to_string(line) : "");
    row("source", line ? source_line(*launch->kernel->module, line) : "");
    row("block", bare(cudasim_here.block));
    row("thread", bare(here->id));
    if (pair) row("other_thread", bare(block.threads[fault.other_thread].id));
    row("other_line", other ? std::to_string(other) : "");
    row("parameter", w.parameter);
    row("expected", w.expected);
    row("got", w.got + (also.empty() ? "" : (w.got.empty() ? "" : "; ") + std::string("the other at ") + also));
    row("fix", w.fix);
    text = w.problem;
    for (auto& [name, value] : {std::pair<const char*, std::string>{"at", where}, {"other at", also}, {"expected", w.expected},
                                {"got", w.got}, {"fix", w.fix}})
        if (!value.empty()) text += std::string("\n  ") + name + ": " + value;
}

const std::string& report_rows() { return rows; }
const std::string& report_text() { return text; }

}  // namespace sim

extern "C" __attribute__((visibility("default"))) const char* cudasim_report() { return sim::report_rows().c_str(); }
extern "C" __attribute__((visibility("default"))) size_t cudasim_most_used(int device) { return sim::most_used[device]; }
