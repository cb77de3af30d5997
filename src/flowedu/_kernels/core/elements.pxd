# Element types that kernels are compiled for.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused num:              # types for arithmetic
    float
    double
    int32_t
    int64_t

ctypedef fused item:             # types for copies, one of each size
    uint8_t
    uint16_t
    uint32_t
    uint64_t
