"""Lane: exchange of small arrays between two ranks of one machine through shared memory.

Each rank writes into its own boxes and reads the other's. There are two boxes per direction, used
alternately. A rank reuses a box only after the other rank has answered its last message, and the other rank
answers after it has read the box. So no rank waits for a free box.
"""
import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memcpy
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__x86_64__) || defined(__i386__)
    #define lane_pause() __builtin_ia32_pause()
    #elif defined(__aarch64__)
    #define lane_pause() __asm__ volatile("yield")
    #else
    #define lane_pause() ((void)0)
    #endif
    static inline void lane_release(int64_t *p, int64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
    static inline int64_t lane_acquire(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
    """
    void lane_pause() noexcept nogil
    void lane_release(int64_t *p, int64_t v) noexcept nogil
    int64_t lane_acquire(const int64_t *p) noexcept nogil

HEAD = 64                           # bytes of a box before the data: its turn and its tag
cdef enum:
    _HEAD = 64
    PAUSES = 200


cdef class Lane:
    """This rank's end of a lane.

    Args:
        out: an array of 2 * (HEAD + capacity) zero bytes, which this rank writes and the other reads.
        back: an array of the same size, which the other rank writes.
    """

    cdef char *out
    cdef const char *back
    cdef int64_t turn, box
    cdef object keep
    cdef readonly int64_t capacity

    def __init__(self, out, back):
        cdef Py_buffer b
        self.keep = (out, back)
        PyObject_GetBuffer(out, &b, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        self.out, self.box = <char *>b.buf, b.len // 2
        PyBuffer_Release(&b)
        PyObject_GetBuffer(back, &b, PyBUF_C_CONTIGUOUS)
        self.back = <const char *>b.buf
        PyBuffer_Release(&b)
        self.capacity = self.box - _HEAD

    def arrays(self, shape: tuple, dtype) -> tuple:
        """Return the data from the other rank as arrays, one for each box."""
        n = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        return tuple(self.keep[1][at:at + n].view(dtype).reshape(shape) for at in (_HEAD, self.box + _HEAD))

    @property
    def side(self) -> int:
        """The index of the box with the latest data."""
        return self.turn & 1

    def put(self, a, int64_t tag) -> None:
        """Send the bytes of an array to the other rank."""
        cdef Py_buffer b
        cdef char *box
        try:
            PyObject_GetBuffer(a, &b, PyBUF_C_CONTIGUOUS)
        except ValueError:
            PyObject_GetBuffer(a.copy(), &b, PyBUF_C_CONTIGUOUS)
        try:
            if b.len > self.capacity:
                raise ValueError(f"lane: {b.len} bytes, where {self.capacity} fit")
            self.turn += 1
            box = self.out + (self.turn & 1) * self.box
            memcpy(box + _HEAD, b.buf, b.len)
        finally:
            PyBuffer_Release(&b)
        (<int64_t *>box)[1] = tag
        lane_release(<int64_t *>box, self.turn)

    def here(self, int64_t tag, bint soon=False) -> bool:
        """Return True if the other rank has called `put` with the same tag; `soon` waits some microseconds.

        Call it after `put`."""
        cdef int pauses = PAUSES if soon else 0
        cdef const int64_t *box = <const int64_t *>(self.back + (self.turn & 1) * self.box)
        while lane_acquire(box) != self.turn:
            if pauses <= 0:
                return False
            lane_pause()
            pauses -= 1
        return box[1] == tag

    def swap(self, a, int64_t tag) -> bool:
        """Call `put`, and return True if the data of the other rank arrives within some microseconds."""
        self.put(a, tag)
        return self.here(tag, True)
