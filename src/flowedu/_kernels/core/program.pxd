# Elementwise programs (tiles.h), for the kernels that run them and the module that makes them.
# This file is compiled into each of these modules.
from libc.stdint cimport int16_t, int32_t, int64_t

cdef extern from "tiles.h" nogil:
    enum: FE_MAX_SLOTS, FE_TILE_BYTES
    ctypedef void (*fe_tile)(int64_t, void *, const void *, const void *, const void *) noexcept
    ctypedef struct fe_instr:
        fe_tile fn
        int16_t out, a, b, c
    ctypedef struct fe_program:
        int32_t ninstr, nslots, nconst, nout
        fe_instr *instr
        int32_t *item
        int16_t *const_slot
        int16_t *out_slot
    char *FE_CONST(const fe_program *, int)


cdef inline void run(const fe_program *p, char **slot, int64_t n) noexcept nogil:
    """Run all instructions on one tile of n elements."""
    cdef int i
    cdef const fe_instr *q
    for i in range(p.ninstr):
        q = &p.instr[i]
        q.fn(n, slot[q.out], slot[q.a], slot[q.b] if q.b >= 0 else NULL,
             slot[q.c] if q.c >= 0 else NULL)
