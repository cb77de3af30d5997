# The tables of rules that update.h makes, for the modules that hold one.
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
    """{kernel name: {dtype code: (kernel address, address of its scratch size or 0)}}; the key is lr's dtype, the
    parameters' is looked up."""
    table = {}
    for i in range(n):
        entry = <size_t><void *>entries[i].kernel, <size_t><void *>entries[i].work if entries[i].rule.norms else 0
        table[entries[i].name.decode()] = {FE_F32: entry, FE_F64: entry}
    return table
