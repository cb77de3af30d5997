# The tables of rules defined by update.h, for the modules that have one.
from flowedu._kernels.core.abi cimport *

cdef extern from "update.h" nogil:
    ctypedef void (*fe_loop)(void **, int64_t, void *) noexcept
    ctypedef struct fe_rule:
        const fe_loop *norms
    ctypedef struct fe_update_entry:
        const char *name
        const fe_rule *rule
        fe_kernel kernel
        fe_work work


cdef inline dict listed(const fe_update_entry *entries, int n):
    """Return {kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}; the key is lr's
    dtype, the parameters' dtype is read at run time."""
    table = {}
    for i in range(n):
        entry = (<size_t><void *>entries[i].kernel, <size_t><void *>entries[i].work if entries[i].rule.norms
                 else 0)
        table[entries[i].name.decode()] = {FE_F32: entry, FE_F64: entry}
    return table
