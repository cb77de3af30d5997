/* one_hot: `on` at the index, `off` elsewhere; T is the result's type. */
#include "view.h"

/* An index outside [0, depth) gives a row of `off`. */
extern "C" __global__ void one_hot(index_t n, index_t depth, double on, double off, View index, T *y) {
    for (EACH(i, n)) y[i] = index_at(index, i / depth) == i % depth ? (T)on : (T)off;
}
