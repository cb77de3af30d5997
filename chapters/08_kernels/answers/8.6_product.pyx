from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *

cdef enum:
    ROWS = 4
    COLS = 32


cdef void tile(const float *a, const float *b, float *y, int64_t k, int64_t n, int64_t rows,
               int64_t cols) noexcept nogil:
    """y[0:rows, 0:cols] = a b: the sums stay in registers while s goes over all of k."""
    cdef float sum0[COLS]
    cdef float sum1[COLS]
    cdef float sum2[COLS]
    cdef float sum3[COLS]
    cdef float *sums[ROWS]
    cdef int64_t s, i, j
    cdef float a0, a1, a2, a3
    for j in range(COLS):
        sum0[j] = sum1[j] = sum2[j] = sum3[j] = 0
    if rows == ROWS and cols == COLS:
        for s in range(k):
            a0, a1, a2, a3 = a[s], a[k + s], a[2 * k + s], a[3 * k + s]
            for j in range(COLS):
                sum0[j] += a0 * b[s * n + j]
                sum1[j] += a1 * b[s * n + j]
                sum2[j] += a2 * b[s * n + j]
                sum3[j] += a3 * b[s * n + j]
        for j in range(COLS):
            y[j] = sum0[j]
            y[n + j] = sum1[j]
            y[2 * n + j] = sum2[j]
            y[3 * n + j] = sum3[j]
        return
    for i in range(rows):                                           # the rest, at the edges
        for j in range(cols):
            sum0[j] = 0
        for s in range(k):
            for j in range(cols):
                sum0[j] += a[i * k + s] * b[s * n + j]
        for j in range(cols):
            y[i * n + j] = sum0[j]


cdef int matmul(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef const float *a = <const float *>call.args[0].data
    cdef const float *b = <const float *>call.args[1].data
    cdef float *y = <float *>call.args[2].data
    cdef int64_t m = call.args[0].shape[0], k = call.args[0].shape[1], n = call.args[1].shape[1], i, j, lo, hi
    fe_split(m, ROWS, team, &lo, &hi)
    for i in range(lo, hi, 4):
        for j in range(0, n, 32):
            tile(a + i * k, b + j, y + i * n + j, k, n, min(ROWS, hi - i), min(COLS, n - j))
    return FE_OK


def table():
    return {"matmul": {FE_F32: (<size_t><void *>matmul, 0)}}
