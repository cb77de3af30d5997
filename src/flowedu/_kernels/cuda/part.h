/* The axis that gather and related kernels read; a device may hold only part of it. */
#ifndef FLOWEDU_CUDA_PART_H
#define FLOWEDU_CUDA_PART_H
#include "view.h"

/* The axis size, and the local part [first, first + rows). Other elements read as 0. */
struct Part { index_t size, first, rows; };

__device__ __forceinline__ bool here(index_t k, const Part &p, Fault *fault) {
    return in_range(k, p.size, fault) && k >= p.first && k < p.first + p.rows;
}
#endif
