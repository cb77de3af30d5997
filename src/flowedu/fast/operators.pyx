"""Direct C slots for Tensor's operators: `x + y` calls TensorBase's C function without a method lookup.

The C slots of a class written in Python look methods up by name, also inherited ones. This module copies the
slots of TensorBase to Tensor and Parameter. If an operator is assigned later or in a subclass, Python updates
its slot.
"""
from flowedu.core.eager.dispatch cimport TensorBase

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.parameter import Parameter

cdef extern from "Python.h":
    ctypedef struct PyNumberMethods:
        void *nb_add
        void *nb_subtract
        void *nb_multiply
        void *nb_true_divide
        void *nb_matrix_multiply
    ctypedef struct PyTypeObject:
        PyNumberMethods *tp_as_number


cdef bint inherits(kind, str name):
    """Return True if `kind` inherits __name__ and __rname__ from TensorBase."""
    return all([getattr(kind, n) is getattr(TensorBase, n) for n in (f"__{name}__", f"__r{name}__")])


cdef int take_slots(kind) except -1:
    """Copy the C slots of the inherited operators to `kind`, a subclass of TensorBase."""
    cdef PyNumberMethods *own = (<PyTypeObject *>kind).tp_as_number
    cdef PyNumberMethods *base = (<PyTypeObject *>TensorBase).tp_as_number
    if inherits(kind, "add"):
        own.nb_add = base.nb_add
    if inherits(kind, "sub"):
        own.nb_subtract = base.nb_subtract
    if inherits(kind, "mul"):
        own.nb_multiply = base.nb_multiply
    if inherits(kind, "truediv"):
        own.nb_true_divide = base.nb_true_divide
    if inherits(kind, "matmul"):
        own.nb_matrix_multiply = base.nb_matrix_multiply
    return 0


take_slots(Tensor)
take_slots(Parameter)
