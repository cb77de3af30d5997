# Rows of the kernels' tables: {dtype code: (kernel address, address of its scratch size or 0)}.
from flowedu._kernels.core.abi cimport *


cdef inline dict of_reals(void *of_float, void *of_double, void *work):
    return {FE_F32: (<size_t>of_float, <size_t>work), FE_F64: (<size_t>of_double, <size_t>work)}
