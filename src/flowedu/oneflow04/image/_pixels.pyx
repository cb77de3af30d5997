# cython: language_level=3
"""Pixel loops for images: `blend` (resizing by taps), `look_up` (a table), `unpack` (from Pillow).

`blend` and `look_up` perform the operations of the NumPy lines in resample.py and crop_mirror.py in the same
order, so the results are bitwise equal: setup.py forbids the compiler to reorder or fuse them here. The GIL
is released.
"""
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

cnp.import_array()

cdef extern from "pixel_rows.h":
    void fe_mix_two(const uint8_t *a, const uint8_t *b, float u, float v, Py_ssize_t n,
                    float *y) noexcept nogil
    void fe_mix_three(const uint8_t *a, const uint8_t *b, const uint8_t *c, float u, float v, float w,
                      Py_ssize_t n, float *y) noexcept nogil
    void fe_pack_three(const uint8_t *x, Py_ssize_t n, int backwards, uint8_t *y) noexcept nogil
    void fe_round(const float *x, Py_ssize_t n, uint8_t *y) noexcept nogil
    void fe_across_three(const float *x, const int32_t *index, const float *weight, Py_ssize_t taps,
                         Py_ssize_t count, int all, float *y) noexcept nogil

ctypedef fused pixel:
    uint8_t
    float

ctypedef fused result:
    uint8_t
    float

ctypedef fused real:
    float
    double


cdef class Axis:
    """The result of `resample.taps(source, ...)` for an axis. The taps of an output pixel are neighbors."""

    cdef Py_ssize_t source, count, n                  # input pixels, output pixels, taps per output pixel
    cdef const int32_t[:, ::1] indices                # (count, n)
    cdef const float[:, ::1] weights

    def __init__(self, Py_ssize_t source, index, weight):
        if index.shape != weight.shape or index.size == 0 or index.min() < 0 or index.max() >= source:
            raise ValueError("Axis: index does not fit")
        self.source, self.n, self.count = source, index.shape[0], index.shape[1]
        self.indices = np.ascontiguousarray(index.T, np.int32)
        self.weights = np.ascontiguousarray(weight.T, np.float32)


# Output i is the sum of n inputs index[i * n + k], each times weight[i * n + k].
cdef struct Taps:
    const int32_t *index
    const float *weight
    Py_ssize_t n, count


cdef inline Taps taps_of(Axis axis):
    cdef Taps t
    t.index, t.weight, t.n, t.count = &axis.indices[0, 0], &axis.weights[0, 0], axis.n, axis.count
    return t


cdef inline Py_ssize_t used(const float *weight, Py_ssize_t n, bint all) noexcept nogil:
    """Return the number of taps without trailing zero weights.

    With `all` these stay, so that 0 * infinity is NaN.
    """
    while not all and n > 1 and weight[n - 1] == 0:
        n -= 1
    return n


cdef inline void down(const pixel *x, Py_ssize_t width, const Taps *t, Py_ssize_t i,
                      float *mixed) noexcept nogil:
    """Write row i, resized vertically, to `mixed`. A row has `width` values."""
    cdef const int32_t *index = t.index + i * t.n
    cdef const float *weight = t.weight + i * t.n
    cdef Py_ssize_t j, k, n = used(weight, t.n, pixel is float)
    cdef const pixel *a = x + index[0] * width
    cdef const pixel *b
    cdef float u = weight[0], v
    if n == 1:
        for j in range(width):
            mixed[j] = <float>a[j] * u
        return
    b, v = x + index[1] * width, weight[1]
    if pixel is uint8_t:
        if n == 3:
            fe_mix_three(a, b, x + index[2] * width, u, v, weight[2], width, mixed)
            return
        fe_mix_two(a, b, u, v, width, mixed)
    else:
        for j in range(width):
            mixed[j] = <float>a[j] * u + <float>b[j] * v
    for k in range(2, n):
        a, u = x + index[k] * width, weight[k]
        for j in range(width):
            mixed[j] = mixed[j] + <float>a[j] * u


cdef inline void across(const float *mixed, Py_ssize_t channels, const Taps *t, float *y,
                        bint all) noexcept nogil:
    """Write the row, resized horizontally, to `y`.

    `channels` is a constant in each call, so that loops are unrolled.
    """
    cdef Py_ssize_t j, k, c, n
    cdef const int32_t *index = t.index
    cdef const float *weight = t.weight
    cdef const float *a
    cdef const float *b
    cdef float u, v
    for j in range(t.count):
        a, u = mixed + index[0] * channels, weight[0]
        if t.n == 1:
            for c in range(channels):
                y[c] = a[c] * u
        else:
            b, v = mixed + index[1] * channels, weight[1]
            for c in range(channels):
                y[c] = a[c] * u + b[c] * v
            n = t.n if t.n == 2 else used(weight, t.n, all)
            for k in range(2, n):
                a, u = mixed + index[k] * channels, weight[k]
                for c in range(channels):
                    y[c] = y[c] + a[c] * u
        y, index, weight = y + channels, index + t.n, weight + t.n


cdef inline float rounded(float v) noexcept nogil:
    """Round to 0..255, ties to even. A float near 2^23 has no bits for a fraction."""
    v = v if v > 0 else 0                             # NaN becomes 0
    v = v if v < 255 else 255
    return (v + <float>8388608.0) - <float>8388608.0


cdef void blend_image(const pixel *x, Py_ssize_t width, Py_ssize_t channels, const Taps *rows,
                      const Taps *cols, result *y, float *mixed) noexcept nogil:
    """Resize one image.

    `mixed` is a buffer for a row of the input and a row of the output, with one value after each.
    """
    cdef Py_ssize_t i, j, n = cols.count * channels
    cdef float *line = mixed + width * channels + 1
    mixed[width * channels] = 0                       # fe_across_three reads it, but does not use the result
    for i in range(rows.count):
        down(x, width * channels, rows, i, mixed)
        if channels == 1:
            across(mixed, 1, cols, line, pixel is float)
        elif channels == 3:
            fe_across_three(mixed, cols.index, cols.weight, cols.n, cols.count, pixel is float, line)
        else:
            across(mixed, channels, cols, line, pixel is float)
        if result is uint8_t:
            fe_round(line, n, y)
        elif pixel is uint8_t:
            for j in range(n):
                y[j] = <result>rounded(line[j])
        else:
            for j in range(n):
                y[j] = line[j] + 0                    # no -0, as with NumPy's sum, which starts at 0
        y += n


def blend(cnp.ndarray x not None, cnp.ndarray y not None, Axis rows not None, Axis cols not None):
    """Resize x (H, W, C) into y (height, width, C), each uint8 or float32 and C-contiguous.

    If one of them is uint8, values are rounded and clipped to 0..255.
    """
    cdef bint narrow_x = cnp.PyArray_TYPE(x) == cnp.NPY_UINT8, narrow_y = cnp.PyArray_TYPE(y) == cnp.NPY_UINT8
    cdef Taps vertical = taps_of(rows), horizontal = taps_of(cols)
    cdef Py_ssize_t width, channels
    cdef void *a
    cdef void *b
    cdef float *mixed
    for array, narrow in ((x, narrow_x), (y, narrow_y)):
        if array.ndim != 3 or not cnp.PyArray_ISCARRAY_RO(array) or not (
                narrow or cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT):
            raise ValueError("blend: not an image (H, W, C) of uint8 or float32")
    width, channels = x.shape[1], x.shape[2]
    if (x.shape[0], width) != (rows.source, cols.source) or (y.shape[0], y.shape[1], y.shape[2]) != (
            rows.count, cols.count, channels) or not cnp.PyArray_ISWRITEABLE(y):
        raise ValueError("blend: y does not fit")
    mixed = <float *>malloc(((width + cols.count) * channels + 2) * sizeof(float))
    if mixed == NULL:
        raise MemoryError
    a, b = cnp.PyArray_DATA(x), cnp.PyArray_DATA(y)
    with nogil:
        if narrow_x and narrow_y:
            blend_image(<const uint8_t *>a, width, channels, &vertical, &horizontal, <uint8_t *>b, mixed)
        elif narrow_x:
            blend_image(<const uint8_t *>a, width, channels, &vertical, &horizontal, <float *>b, mixed)
        elif narrow_y:
            blend_image(<const float *>a, width, channels, &vertical, &horizontal, <uint8_t *>b, mixed)
        else:
            blend_image(<const float *>a, width, channels, &vertical, &horizontal, <float *>b, mixed)
    free(mixed)


cdef void replace(const char *x, const cnp.npy_intp *xs, const real *table, char *y, const cnp.npy_intp *ys,
                  const cnp.npy_intp *shape) noexcept nogil:
    cdef Py_ssize_t i, j, c, sx = xs[1], sy = ys[1]
    cdef const char *a
    cdef char *b
    for c in range(shape[2]):
        for i in range(shape[0]):
            a, b = x + i * xs[0] + c * xs[2], y + i * ys[0] + c * ys[2]
            for j in range(shape[1]):
                (<real *>b)[0] = table[c * 256 + (<const uint8_t *>a)[0]]
                a, b = a + sx, b + sy


def look_up(cnp.ndarray x not None, cnp.ndarray table not None, cnp.ndarray y not None):
    """Compute y[i, j, c] = table[c, x[i, j, c]].

    x is uint8 (H, W, C); table (C, 256) and y (H, W, C) are float32 or float64. x and y may have any strides.
    """
    cdef int type = cnp.PyArray_TYPE(y)
    if x.ndim != 3 or y.ndim != 3 or table.ndim != 2 or (x.shape[0], x.shape[1], x.shape[2]) != (
            y.shape[0], y.shape[1], y.shape[2]) or (table.shape[0], table.shape[1]) != (x.shape[2], 256):
        raise ValueError("look_up: the shapes do not fit")
    if type not in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE) or cnp.PyArray_TYPE(table) != type or cnp.PyArray_TYPE(
            x) != cnp.NPY_UINT8 or not cnp.PyArray_ISCARRAY_RO(table) or not cnp.PyArray_ISBEHAVED(y):
        raise ValueError("look_up: the types do not fit")
    cdef const char *a = <const char *>cnp.PyArray_DATA(x)
    cdef char *b = <char *>cnp.PyArray_DATA(y)
    cdef void *t = cnp.PyArray_DATA(table)
    cdef cnp.npy_intp *xs = cnp.PyArray_STRIDES(x)
    cdef cnp.npy_intp *ys = cnp.PyArray_STRIDES(y)
    cdef cnp.npy_intp *shape = cnp.PyArray_DIMS(y)
    with nogil:
        if type == cnp.NPY_FLOAT:
            replace(a, xs, <const float *>t, b, ys, shape)
        else:
            replace(a, xs, <const double *>t, b, ys, shape)


cdef struct Arrow:                 # `struct ArrowArray` of Arrow's C data interface
    int64_t length, null_count, offset, n_buffers, n_children
    const void **buffers
    Arrow **children


def unpack(capsule, cnp.ndarray y not None, bint backwards):
    """Copy the pixels of a Pillow image of 1 or 3 channels into y, uint8 (H, W, C).

    The capsule is from `__arrow_c_array__`, with one or four bytes per pixel; anything else raises
    ValueError. `backwards` reverses the order of the channels.
    """
    cdef const Arrow *a = <const Arrow *>PyCapsule_GetPointer(capsule, "arrow_array")
    cdef const Arrow *numbers
    cdef Py_ssize_t n
    if (cnp.PyArray_TYPE(y) != cnp.NPY_UINT8 or y.ndim != 3 or y.shape[2] not in (1, 3)
        or not cnp.PyArray_ISCARRAY(y)):
        raise ValueError("unpack: y does not fit")
    n = y.shape[0] * y.shape[1]
    cdef bint grey = y.shape[2] == 1
    numbers = a if grey else NULL
    if not grey and a.n_children == 1 and a.length == n and a.offset == 0:
        numbers = a.children[0]
    if numbers == NULL or numbers.n_children or numbers.n_buffers != 2 or numbers.offset \
            or numbers.length != (n if grey else 4 * n) or numbers.buffers[1] == NULL:
        raise ValueError("unpack: these are not so many pixels")
    cdef const uint8_t *x = <const uint8_t *>numbers.buffers[1]
    cdef uint8_t *out = <uint8_t *>cnp.PyArray_DATA(y)
    with nogil:
        if grey:
            memcpy(out, x, n)
        else:
            fe_pack_three(x, n, backwards, out)
