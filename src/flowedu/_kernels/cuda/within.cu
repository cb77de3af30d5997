/* within: compares every value with two bounds, and reports a value outside them with the number of the
 * check. */
#include "view.h"

/* Floats are compared with low and high, integers with least and most. nan: NaN counts as inside. */
extern "C" __global__ void within(index_t n, const T *x, double low, double high, index_t least, index_t most, index_t nan,
                                  index_t check, Fault *fault) {
    const bool whole = (Wide)0.5 == (Wide)0;
    const Wide bottom = whole ? (Wide)least : (Wide)(T)low, top = whole ? (Wide)most : (Wide)(T)high;
    for (EACH(i, n)) {
        const Wide v = (Wide)x[i];
        if (v < bottom || v > top || (!nan && v != v)) out_of_bounds(fault, check, (double)v);
    }
}
