# Types of elements that kernels are compiled for.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused num:              # what is computed with
    float
    double
    int32_t
    int64_t

ctypedef fused item:             # what is only moved: one of each size
    uint8_t
    uint16_t
    uint32_t
    uint64_t
