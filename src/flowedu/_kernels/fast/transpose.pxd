# Transpose of a row-major matrix, in tiles that are transposed in registers (layout_tiles.h).
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from flowedu._kernels.core.abi cimport real

cdef extern from "layout_tiles.h" nogil:
    void fe_transpose_uint32_t(const void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t,
                               int64_t) noexcept
    void fe_transpose_uint64_t(const void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t,
                               int64_t) noexcept


cdef inline void transpose(const real *source, real *target, int64_t rows, int64_t columns,
                           int64_t apart) noexcept nogil:
    """Transpose (rows, columns) to (columns, rows). apart: elements from one row of the source to the
    next."""
    if columns == 1 and apart == 1 or rows == 1:
        memcpy(target, source, rows * columns * sizeof(real))
    elif real is float:
        fe_transpose_uint32_t(source, target, rows, apart, 1, columns, 1, rows)
    else:
        fe_transpose_uint64_t(source, target, rows, apart, 1, columns, 1, rows)
