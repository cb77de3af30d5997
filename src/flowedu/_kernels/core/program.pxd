# The C structs of elementwise programs (tiles.h), for the kernel that runs them and the module that makes them.
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
