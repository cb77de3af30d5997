"""The operators of Tensor without a look-up: `x + y` goes straight to the C function of the class that Tensor inherits.

Python gives a class that is written in Python C slots which look methods up by name, also where it inherits them. Here
Tensor and Parameter get those of TensorBase. Where an operator is assigned later, or in a subclass, Python exchanges its slot.
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
    """Whether x.name(y) and y.__rname__(x) are TensorBase's."""
    return all([getattr(kind, n) is getattr(TensorBase, n) for n in (f"__{name}__", f"__r{name}__")])


cdef int take_slots(kind) except -1:
    """kind, a subclass of TensorBase, gets the C slots of the operators that it inherits."""
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
