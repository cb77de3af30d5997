from libc.stdint cimport int64_t

cdef class Rule:                     # one gradient function and the sources of its arguments
    cdef readonly object f
    cdef int n
    cdef int[32] kind              # 0 gradient of an output, 1 saved, 2 attribute, 3 shape, 4 dtype
    cdef int[32] index
    cdef int64_t saves               # bit i: needs saved value i
    cpdef apply(self, list douts, tuple saved, tuple attrs, tuple shapes, tuple dtypes)

cdef class OpBase:
    cdef dict __dict__
    cdef dict entries         # of the engine: {key: Entry} of earlier calls (core/eager/entry.pxi)
    cdef list recent                 # of the engine: four recently used Entries
    cdef readonly tuple defaults, required
    cdef readonly dict attr_index
    cdef readonly bint elementwise
    cdef readonly dict rules         # {input or "*": Rule}
    cdef list by_input               # per input its Rule, or None
    cdef Rule star                   # the one Rule for all inputs, if the record has one
    cdef readonly object view
    cdef readonly bint any_rule, saved_inputs, variadic
    cdef readonly tuple saved, inputs, outputs
    cpdef call(self, tuple inputs, tuple attrs)

ctypedef object (*Dispatch)(OpBase op, tuple inputs, tuple attrs)

cdef int active                      # number of active interpreters in all threads
cdef void dispatch_by(Dispatch engine) noexcept
cpdef current_interpreter()
