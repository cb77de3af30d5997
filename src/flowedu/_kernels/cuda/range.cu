/* start, start + step, start + 2 * step, ... */
#include "view.h"

extern "C" __global__ void range(index_t n, index_t start, index_t step, T *y) {
    for (EACH(i, n)) y[i] = (T)(start + i * step);
}
