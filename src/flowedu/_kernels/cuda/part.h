/* An axis that gather and its kin read, of which a device may have a part only. */
#ifndef FLOWEDU_CUDA_PART_H
#define FLOWEDU_CUDA_PART_H
#include "view.h"

/* Its size, and the part of it that is here, [first, first + rows). What lies elsewhere is 0. */
struct Part { index_t size, first, rows; };

__device__ __forceinline__ bool here(index_t k, const Part &p, Fault *fault) {
    return in_range(k, p.size, fault) && k >= p.first && k < p.first + p.rows;
}
#endif
