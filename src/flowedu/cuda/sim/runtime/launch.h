// A kernel, its module, and a launch of it.
#pragma once
#include <stdint.h>

#include <map>
#include <string>
#include <vector>

#include "../include/machine.h"

namespace sim {

struct Variable {                                       // a symbol of a module's data
    std::string name, owner;                            // of shared memory: the function, "4tile" or "5scaleIfEvPf"
    uintptr_t address;
    size_t size;
    enum Where { GLOBAL, CONSTANT, SHARED } where;
};

// Shared objects that g++ made of a CUDA source: `plain` as fast as can be, `checked` with hooks. The second is made when
// it is first asked for.
struct Image {
    void* handle = nullptr;
    std::string bytes;                                  // of the file: the lines of a fault are found in it
    uintptr_t begin = 0, end = 0;                       // where it lies in memory
    uintptr_t stubs = ~(uintptr_t)0, stubs_end = 0;     // jumps to other libraries, which belong to no line
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
    const char* room;                                   // where these lie
    dim3 grid, block;
    size_t dynamic;
    int device;
    bool checking, counting;
    uint32_t first_block;
};
extern Launch* launch;                                  // the last one; null between launches
extern bool running;                                    // its blocks run now

// Modules (module.cpp)
bool load(Image& image, std::string bytes, std::string& problem);
Image* image_at(uintptr_t address);                     // the one that an address lies in
bool make_checked(Module& module, std::string& problem);
void carry_globals(const Image& from, const Image& to); // what __device__ and __constant__ variables hold
void unwatch(Image& image);                             // give back what is known of its data (checks.cpp)


}  // namespace sim
