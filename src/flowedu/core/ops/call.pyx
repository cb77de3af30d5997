"""Dispatch of op calls. `OpBase.call` passes a call to the top of this thread's stack of
interpreters or, if the stack is empty, to the engine of core/eager."""
from cpython.object cimport PyObject

from flowedu.core.values.storage cimport Array

from flowedu.core.values.blob import BlobDef
from flowedu.core.values.thread_state import register_fields, thread_state as _thread_state
from flowedu.errors import FlowError
from flowedu.errors import ops as errors

register_fields(interpreters=(), observer=None)     # the last interpreter runs op calls
cdef object thread_state = _thread_state
cdef int active = 0


# ---- interpreters
class interpreter:
    """Context manager in which `handler.run(op, inputs, attrs)` runs all calls of this thread."""

    def __init__(self, handler):
        self.handler = handler

    def __enter__(self):
        global active
        thread_state.interpreters = (*thread_state.interpreters, self.handler)
        active += 1
        return self.handler

    def __exit__(self, *exc):
        global active
        thread_state.interpreters = thread_state.interpreters[:-1]
        active -= 1


cpdef current_interpreter():
    """Return the current interpreter, or None in eager mode."""
    cdef tuple stack
    if active == 0:                      # no thread has one: the fast path
        return None
    stack = thread_state.interpreters
    return stack[len(stack) - 1] if stack else None


def call_below(op, inputs, attrs):
    """Pass a call from the current interpreter, which only observes it, to the one below."""
    stack = thread_state.interpreters
    thread_state.interpreters = stack[:-1]
    try:
        return op.call(inputs, attrs)
    finally:
        thread_state.interpreters = stack


class EngineParts:
    """Functions that create values, set by core/eager, promote.py, and ops/checks.py.

    number(value, dtype): a 0-dim value. array(ndarray): a value that shares its memory.
    operands(inputs): the inputs of an elementwise call, numbers converted to values.
    nonzero(name, divisor): an integer divisor, checked for zeros."""

    def missing(self, *args):
        raise errors.no_interpreter()

    number = array = operands = missing
    nonzero = staticmethod(lambda name, divisor: divisor)


engine = EngineParts()


cdef object run_by_stack(OpBase op, tuple inputs, tuple attrs):
    """Run a call without the engine."""
    top = current_interpreter()
    return top.run(op, inputs, attrs) if top is not None else engine.missing()


cdef Dispatch dispatch = run_by_stack


cdef void dispatch_by(Dispatch engine) noexcept:
    """Set the function that runs all calls; it has to check for a current interpreter itself."""
    global dispatch
    dispatch = engine


cdef extern from "Python.h":
    object PyObject_Vectorcall(object, PyObject **, size_t, PyObject *)


# ---- ops
cdef class Rule:
    """A gradient function and the sources of its arguments. `need`: a list of (kind, index)."""

    def __cinit__(self, f, need):
        if len(need) > 32:
            raise FlowError("define: a gradient has too many parameters", expected="at most 32",
                            got=str(len(need)))
        self.f, self.n = f, len(need)
        for i, (kind, index) in enumerate(need):
            self.kind[i] = ("grad", "saved", "attr", "shape", "dtype").index(kind)
            self.index[i] = index
            if kind == "saved":
                self.saves |= (<int64_t>1) << index

    cpdef apply(self, list douts, tuple saved, tuple attrs, tuple shapes, tuple dtypes):
        """Compute the gradient. All values are tensors, or all are symbolic values of a graph."""
        cdef PyObject *args[32]
        cdef int k, i
        for k in range(self.n):
            i = self.index[k]
            if self.kind[k] == 0:
                x = douts[i]
            elif self.kind[k] == 1:
                x = saved[i]
            elif self.kind[k] == 2:
                x = attrs[i]
            else:
                x = shapes[i] if self.kind[k] == 3 else dtypes[i]
            args[k] = <PyObject *>x                # a borrowed reference
        return PyObject_Vectorcall(self.f, args, self.n, NULL)


cdef class OpBase:
    """The fields of an op that every call reads. core/ops/define.py adds the others."""

    def __cinit__(self):
        self.entries, self.recent = {}, []

    def __init__(self, dict fields):
        """Remove the fields that C uses from `fields`, store them here, and clear the caches."""
        pop = fields.pop
        self.entries, self.recent = {}, []
        self.inputs, self.outputs, self.variadic = pop("inputs"), pop("outputs"), pop("variadic")
        self.defaults, self.required, self.view = pop("defaults"), pop("required"), pop("view")
        self.attr_index, self.elementwise = pop("attr_index"), pop("elementwise")
        self.rules, self.any_rule = pop("rules"), pop("any_rule")
        self.by_input, self.star = [self.rules.get(n) for n in self.inputs], self.rules.get("*")
        self.saved, self.saved_inputs = pop("saved"), pop("saved_inputs")

    def __call__(self, *inputs, **attrs):
        cdef bint plain = not attrs and not self.required
        cdef tuple values = self.defaults if plain else self.complete(attrs)
        for x in inputs:
            if not isinstance(x, Array):
                return self.call_mixed(inputs, values)
        return dispatch(self, inputs, values)

    def call_mixed(self, tuple inputs, tuple values):
        """Run a call that has blobs or numbers. A blob runs the call; numbers become values."""
        for x in inputs:
            if isinstance(x, BlobDef):
                return x.call_op(self, inputs, values)
        if self.elementwise and any([isinstance(x, (int, float)) for x in inputs]):
            inputs = engine.operands(inputs)
        return self.call(inputs, values)

    def complete(self, dict attrs):
        """Return the attribute values in declared order, with defaults."""
        cdef list values = list(self.defaults)
        for name, value in attrs.items():
            i = self.attr_index.get(name)
            if i is None:
                self.bad_attrs(attrs)
            values[i] = tuple(value) if type(value) is list else value
        for name in self.required:
            if name not in attrs:
                self.bad_attrs(attrs)
        return tuple(values)

    cpdef call(self, tuple inputs, tuple attrs):
        return dispatch(self, inputs, attrs)
