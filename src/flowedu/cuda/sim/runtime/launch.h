// Kernels, modules, and launches.
#pragma once
#include <stdint.h>

#include <map>
#include <string>
#include <vector>

#include "../include/machine.h"

namespace sim {

struct Variable {                                       // a symbol of a module's data
    std::string name, owner;                            // owner: a function with shared memory, "4tile"
    uintptr_t address;
    size_t size;
    enum Where { GLOBAL, CONSTANT, SHARED } where;
};

// Shared objects compiled by g++ from a CUDA source: `plain` is optimized, and `checked` has hooks. The
// second is compiled on first use.
struct Image {
    void* handle = nullptr;
    std::string bytes;                                  // contents of the file, for the lines of faults
    uintptr_t begin = 0, end = 0;                       // address range in memory
    uintptr_t stubs = ~(uintptr_t)0, stubs_end = 0;     // jumps to other libraries, without source lines
    std::vector<Variable> variables;
    std::map<uintptr_t, std::string> functions;
    bool checked = false;
};

struct Module;
struct Kernel {
    Module* module;
    std::string symbol;
    const cudasim_kernel *plain = nullptr, *checked = nullptr;
    int most_dynamic = 48 << 10;
    const cudasim_kernel& entry() const { return plain ? *plain : *checked; }
    size_t static_shared() const;                       // bytes of its own __shared__ arrays
};

struct Module {
    Image plain, checked;
    std::map<std::string, Kernel> kernels;
    std::string source, options;
    Image& any() { return plain.handle ? plain : checked; }
};

enum { ROOM = 4096 + 64 };                              // bytes of arguments

struct Launch {
    Kernel* kernel;
    Image* image;
    const cudasim_kernel* entry;
    void** arguments;
    const char* room;                                   // buffer of the arguments
    dim3 grid, block;
    size_t dynamic;
    int device;
    bool checking, counting;
    uint32_t first_block;
};
extern Launch* launch;                                  // the current launch; null between launches
extern bool running;                                    // true while its blocks run

// Modules (module.cpp)
bool load(Image& image, std::string bytes, std::string& problem);
Image* image_at(uintptr_t address);                     // the image that contains an address, or null
bool make_checked(Module& module, std::string& problem);
void carry_globals(const Image& from, const Image& to); // copies __device__ and __constant__ variables
void unwatch(Image& image);                             // frees the marks of its data (checks.cpp)


}  // namespace sim
