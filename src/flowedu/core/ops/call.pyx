"""The one place that all calls of ops pass through: `OpBase.call` hands a call to the interpreter in charge, the one on top
of this thread's stack. With an empty stack that is the engine of core/eager, once it is there."""
from cpython.object cimport PyObject

from flowedu.core.values.storage cimport Array

from flowedu.core.values.blob import BlobDef
from flowedu.core.values.thread_state import register_fields, thread_state as _thread_state
from flowedu.errors import FlowError

register_fields(interpreters=())        # they answer calls of ops; the last is in charge; none: the engine does
cdef object thread_state = _thread_state     # thread_state.interpreters: none in this thread, and the engine answers
cdef int active = 0


# ---- interpreters
class interpreter:
    """Context manager: inside it, `run(op, inputs, attrs)` of the given interpreter answers every op call of this thread."""

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
    """The interpreter in charge; None: eager."""
    cdef tuple stack
    if active == 0:                      # in any thread: the usual case costs nothing
        return None
    stack = thread_state.interpreters
    return stack[len(stack) - 1] if stack else None


def call_below(op, inputs, attrs):
    """Hand a call to the interpreter under the one in charge (for interpreters that watch and pass on)."""
    stack = thread_state.interpreters
    thread_state.interpreters = stack[:-1]
    try:
        return op.call(inputs, attrs)
    finally:
        thread_state.interpreters = stack


class EngineParts:
    """Functions that make values of numbers and arrays; core/eager and promote.py put theirs here: number(value, dtype), a
    0-dim one; array(ndarray), over its memory; operands(inputs), those of an elementwise call, numbers made values. And
    ops/checks.py: nonzero(name, divisor), a divisor of whole numbers, which have no infinity, with a check for zeros."""

    def missing(self, *args):
        raise FlowError("ops: nobody answers calls", expected="an interpreter in charge, or the engine", got="an empty stack",
                        fix="import flowedu.core.eager, or: with interpreter(Plain()): ...")

    number = array = operands = missing
    nonzero = staticmethod(lambda name, divisor: divisor)


engine = EngineParts()


cdef object by_stack(OpBase op, tuple inputs, tuple attrs):
    """The answer as long as there is no engine."""
    in_charge = current_interpreter()
    return in_charge.run(op, inputs, attrs) if in_charge is not None else engine.missing()


cdef Dispatch dispatch = by_stack


cdef void dispatch_by(Dispatch engine) noexcept:
    """From now on `engine` answers calls, and asks the interpreter in charge itself."""
    global dispatch
    dispatch = engine


cdef extern from "Python.h":
    object PyObject_Vectorcall(object, PyObject **, size_t, PyObject *)


# ---- ops
cdef class Rule:
    """A gradient function with its argument list worked out: `need` is a list of (kind, index)."""

    def __cinit__(self, f, need):
        if len(need) > 32:
            raise FlowError("define: a gradient has too many parameters", expected="at most 32", got=str(len(need)))
        self.f, self.n = f, len(need)
        for i, (kind, index) in enumerate(need):
            self.kind[i], self.index[i] = ("grad", "saved", "attr", "shape", "dtype").index(kind), index
            if kind == "saved":
                self.saves |= (<int64_t>1) << index

    cpdef apply(self, list douts, tuple saved, tuple attrs, tuple shapes, tuple dtypes):
        """The gradient, of what the call saved: of values, or of what stands for them in a graph."""
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
            args[k] = <PyObject *>x                # borrowed from those that hold it
        return PyObject_Vectorcall(self.f, args, self.n, NULL)


cdef class OpBase:
    """The part of an op record that every call touches. core/ops/define.py adds the rest."""

    def __cinit__(self):
        self.entries, self.recent = {}, []

    def __init__(self, dict fields):
        """Takes out of `fields` those that C reads; Python keeps the others. (Made anew, a record forgets its Entries.)"""
        take = fields.pop
        self.entries, self.recent = {}, []
        self.inputs, self.outputs, self.variadic = take("inputs"), take("outputs"), take("variadic")
        self.defaults, self.required, self.attr_index = take("defaults"), take("required"), take("attr_index")
        self.view, self.elementwise = take("view"), take("elementwise")
        self.rules = take("rules")
        self.by_input, self.star = [self.rules.get(n) for n in self.inputs], self.rules.get("*")
        self.any_rule, self.saved, self.saved_inputs = take("any_rule"), take("saved"), take("saved_inputs")

    def __call__(self, *inputs, **attrs):
        cdef tuple values = self.defaults if not attrs and not self.required else self.complete(attrs)
        for x in inputs:
            if not isinstance(x, Array):
                return self.call_mixed(inputs, values)
        return dispatch(self, inputs, values)

    def call_mixed(self, tuple inputs, tuple values):
        """A call whose inputs are not all tensors: numbers become constants, blobs answer for themselves."""
        for x in inputs:
            if isinstance(x, BlobDef):
                return x.call_op(self, inputs, values)
        if self.elementwise and any([isinstance(x, (int, float)) for x in inputs]):
            inputs = engine.operands(inputs)
        return self.call(inputs, values)

    def complete(self, dict attrs):
        """The attribute values in declared order, defaults filled in; a key of the signature cache."""
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
