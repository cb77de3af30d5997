"""Kernels for the lines of SNAKE: one loop per line and type, as tiles.h makes them from formulas.h."""
from flowedu._kernels.core.abi cimport *

cdef extern from *:
    """
    #include "abi.h"
    #include "formulas.h"
    #line 1 "kernel.h"
    FORMULAS
    #line 10 "snake.pyx"
    #define LOOP(name, formula, T_, of)                                                              \\
        static int name##of(fe_call *call, const fe_team *team, void *tag) {                         \\
            typedef T_ T;                                                                            \\
            int64_t lo, hi;                                                                          \\
            fe_split(fe_numel(&call->args[0]), 64, team, &lo, &hi);                                  \\
            for (int64_t i = lo; i < hi; i++) {                                                      \\
                const T a = ((const T *)call->args[0].data)[i];                                      \\
                ((T *)call->args[1].data)[i] = (T)(formula);                                         \\
            }                                                                                        \\
            return FE_OK;                                                                            \\
        }
    #define IN_FLOAT(name, formula) LOOP(name, formula, float, _float)
    #define IN_DOUBLE(name, formula) LOOP(name, formula, double, _double)
    SNAKE(IN_FLOAT)
    SNAKE(IN_DOUBLE)
    IN_FLOAT(one_sine, FE_F(sinf, sin, a))
    """
    int snake_float(fe_call *, const fe_team *, void *) nogil
    int snake_double(fe_call *, const fe_team *, void *) nogil
    int one_sine_float(fe_call *, const fe_team *, void *) nogil
    int snake_slope_float(fe_call *, const fe_team *, void *) nogil
    int snake_slope_double(fe_call *, const fe_team *, void *) nogil


def table():
    return {"snake": {FE_F32: (<size_t><void *>snake_float, 0), FE_F64: (<size_t><void *>snake_double, 0)},
            "snake_slope": {FE_F32: (<size_t><void *>snake_slope_float, 0),
                            FE_F64: (<size_t><void *>snake_slope_double, 0)},
            "one_sine": {FE_F32: (<size_t><void *>one_sine_float, 0)}}
