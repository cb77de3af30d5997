# cython: language_level=3
"""Kernels that update parameters in place: SGD, with and without momentum.

The engine is in update.h, and the rules are in update_sgd.h.
"""
from flowedu._kernels.ops.update cimport *

cdef extern from *:
    """
    #include "update.h"
    #include "update_sgd.h"
    FE_UPDATE_TABLE(FE_SGD_RULES)
    """
    const fe_update_entry *FE_UPDATES
    enum: FE_NUPDATES


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return listed(FE_UPDATES, FE_NUPDATES)
