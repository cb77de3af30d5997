# cython: language_level=3
"""Kernels that update parameters in place: Adam and its relatives. The rules are in update_adaptive.h."""
from flowedu._kernels.ops.update cimport *

cdef extern from *:
    """
    #include "update.h"
    #include "update_adaptive.h"
    FE_UPDATE_TABLE(FE_ADAPTIVE_RULES)
    """
    const fe_update_entry *FE_UPDATES
    enum: FE_NUPDATES


def table():
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}"""
    return listed(FE_UPDATES, FE_NUPDATES)
