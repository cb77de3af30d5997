# Rows of the kernels' tables: {dtype code: (kernel address, address of its scratch size or 0)}.
from flowedu._kernels.core.abi cimport *


cdef inline dict of_reals(void *of_float, void *of_double, void *work):
    return {FE_F32: (<size_t>of_float, <size_t>work), FE_F64: (<size_t>of_double, <size_t>work)}


cdef inline dict of_numbers(void *of_float, void *of_double, void *of_int32, void *of_int64,
                            void *work):
    return {**of_reals(of_float, of_double, work), FE_I32: (<size_t>of_int32, <size_t>work),
            FE_I64: (<size_t>of_int64, <size_t>work)}
