// Settings from the environment: FLOWEDU_CUDA_SEED, _CHECK, _DEVICES, _MEMORY (MiB of each), and _TIMEOUT
// (seconds).
#pragma once
#include <stddef.h>
#include <stdlib.h>

namespace sim {

struct Setting {
    unsigned seed;
    bool check;
    int devices;
    size_t memory;
    double timeout;
};

inline double number_of(const char* name, double otherwise) {
    const char* s = getenv(name);
    return s && *s ? atof(s) : otherwise;
}

inline Setting setting = {(unsigned)number_of("FLOWEDU_CUDA_SEED", 0), number_of("FLOWEDU_CUDA_CHECK", 0) != 0,
                          (int)number_of("FLOWEDU_CUDA_DEVICES", 1), (size_t)number_of("FLOWEDU_CUDA_MEMORY", 4096) << 20,
                          number_of("FLOWEDU_CUDA_TIMEOUT", 60)};

}  // namespace sim
