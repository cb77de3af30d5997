# Means and variances for the norms: sums of squared differences, block by block, where Chan's formula in
# double merges two blocks. As exact as two passes over everything, but a block stays in cache between them.
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport real

cdef enum:
    BLOCK = 2048                 # elements summed in `real` before the sum goes into a double


cdef inline double squares(const real *x, int64_t n, real mean) noexcept nogil:
    cdef double total = 0
    cdef real s
    cdef int64_t i = 0, j, end
    while i < n:
        end = min(n, i + BLOCK)
        s = 0
        for j in range(i, end):
            s += (x[j] - mean) * (x[j] - mean)
        total += s
        i = end
    return total


cdef inline void merge(double *mean, double *m2, double before, const double *new_mean, const double *new_m2,
                       double n, int64_t cols) noexcept nogil:
    """Merge the moments of `before` elements with the moments of n more, for each column."""
    cdef int64_t k
    cdef double d, share = n / (before + n), both = before * n / (before + n)
    for k in range(cols):
        d = new_mean[k] - mean[k]
        mean[k] += d * share
        m2[k] += new_m2[k] + d * d * both
