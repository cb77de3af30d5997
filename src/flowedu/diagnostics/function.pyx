"""PublicFunction: the wrapper of a public function that turns a wrong call into a detailed error.

Only C code can catch a TypeError that is raised while arguments are bound, before the function's first
line, without slowing correct calls. The wrapper adds 20 ns to a call. It saves 100 ns if the function is
one op of its arguments and declares this in its attribute `quick`. diagnostics/explain.py creates the error
of a failed call.

If a name also has an older meaning, the wrapper has a `choice` (oneflow04/names.py) that selects the
function of a call. The wrapper skips the choice if the first argument is a tensor and the others are
ordinary.
"""
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from flowedu.core.eager.dispatch cimport TensorBase
from flowedu.core.ops.call cimport OpBase

cdef extern from "Python.h":
    """
    typedef PyObject *(*fe_vectorcall)(PyObject *, PyObject **, size_t, PyObject *);
    #define FE_OFFSET offsetof(struct __pyx_obj_7flowedu_11diagnostics_8function_PublicFunction, vectorcall)
    static void fe_callable(PyTypeObject *type, size_t offset) {     /* no Cython syntax for this */
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        PyType_Modified(type);
    }
    """
    ctypedef PyObject *(*fe_vectorcall)(PyObject *, PyObject **, size_t, PyObject *) noexcept
    size_t FE_OFFSET
    void fe_callable(PyTypeObject *, size_t)
    PyObject *PyObject_Vectorcall(PyObject *, PyObject **, size_t, PyObject *) noexcept
    size_t PyVectorcall_NARGS(size_t) noexcept
    object PyMethod_New(object, object)
    int PyErr_ExceptionMatches(object) noexcept
    void PyErr_Fetch(PyObject **, PyObject **, PyObject **) noexcept
    void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **) noexcept
    void PyErr_Restore(PyObject *, PyObject *, PyObject *) noexcept
    void PyErr_SetObject(object, object) noexcept
    int PyException_SetTraceback(PyObject *, PyObject *) noexcept

cdef object explain = None           # explain(function, args, kwargs, error) -> a better error, or None
cdef object translate = None         # translate(function, args, kwargs) -> (result,), or None


cdef class PublicFunction:
    """A public function with the signature, docstring, and result of `function`.

    Args:
        function: the wrapped function.
        owner: the class of a method, or None.
        name: the public name; default: the function's name.
        choice: the choice between the function and an older meaning of the name, or None.
    """

    cdef fe_vectorcall vectorcall
    cdef readonly object function
    cdef readonly object owner, name, choice
    cdef OpBase op                   # op for `inputs` tensors with dtype codes < `below`, or None
    cdef int inputs, below, rank     # rank: required number of axes, or -1
    cdef list attrs                  # the op's attributes, indexed by rank; None: defaults
    cdef size_t most                 # with a choice: maximum number of arguments
    cdef tuple sure                  # with a choice: second-argument types that exclude the older meaning
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self, function, owner=None, name=None, choice=None):
        self.function, self.owner, self.choice, self.vectorcall = function, owner, choice, call
        self.name, self.rank = name or function.__name__, -1
        quick = getattr(function, "quick", None)
        if quick is not None:
            self.op, self.below = quick[:2]
            self.inputs = len(self.op.inputs)
            if len(quick) > 2:
                self.rank = quick[2]
            if len(quick) > 3:
                self.attrs = quick[3]
        if choice is not None:
            self.most, self.sure = choice.most, choice.sure

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __getattr__(self, name):
        return getattr(self.function, name)

    @property
    def __wrapped__(self):
        """Return the innermost function, or with a choice the older function, which help() shows."""
        return (self.choice.older if self.choice is not None else getattr(self.function, "__wrapped__",
                                                                          self.function))

    @property
    def __doc__(self):
        return self.function.__doc__ if self.choice is None else self.choice.text

    def __repr__(self):
        return repr(self.function)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return PublicFunction, (self.function, self.owner, self.name, self.choice)


fe_callable(<PyTypeObject *>PublicFunction, FE_OFFSET)


def register_explainer(f) -> None:
    """Register f(function, args, kwargs, error), which returns a better error than `error` or None.

    `error` is the TypeError or AttributeError of a call.
    """
    global explain
    explain = f


def register_translator(f) -> None:
    """Register f(function, args, kwargs) for calls that do not fit the function's signature, or None.

    f returns (result,), or None to raise the error. mock/translate.py registers one for other libraries'
    programs.
    """
    global translate
    translate = f


cdef object call_op(PublicFunction self, PyObject **args):
    cdef tuple attrs = self.op.defaults if self.attrs is None else \
        <tuple>self.attrs[(<TensorBase>args[0]).v.ndim]
    return self.op.call((<object>args[0],) if self.inputs == 1 else (<object>args[0], <object>args[1]), attrs)


cdef object call_choice(PublicFunction self, PyObject **args, size_t n, PyObject *names):
    """Call the function or its older meaning, as `choice` selects."""
    positional, keywords = call_arguments(args, n, names)
    return self.choice.choose(positional, keywords)(*positional, **keywords)


cdef tuple call_arguments(PyObject **args, size_t n, PyObject *names):
    """Return (args, kwargs) of a call."""
    positional = tuple([<object>args[i] for i in range(n)])
    if names == NULL:
        return positional, {}
    return positional, {name: <object>args[n + i] for i, name in enumerate(<tuple><object>names)}


ctypedef PyObject *(*c_function)(PublicFunction, PyObject **) noexcept      # returns NULL if an error is set
ctypedef PyObject *(*c_call_choice)(PublicFunction, PyObject **, size_t, PyObject *) noexcept


cdef PyObject *call(PyObject *callable, PyObject **args, size_t nargsf, PyObject *names) noexcept:
    cdef PublicFunction self = <PublicFunction>callable
    cdef size_t n = PyVectorcall_NARGS(nargsf)
    cdef PyObject *result
    if self.inputs and names == NULL and plain(self, args, n):
        result = (<c_function>call_op)(self, args)
    elif self.choice is not None and (names != NULL or not newer(self, args, n)):
        result = (<c_call_choice>call_choice)(self, args, n, names)
    else:
        result = PyObject_Vectorcall(<PyObject *>self.function, args, nargsf, names)
    if result == NULL and (PyErr_ExceptionMatches(TypeError) or PyErr_ExceptionMatches(AttributeError)):
        result = reword(self, args, n, names)
    return result


cdef inline bint plain(PublicFunction self, PyObject **args, size_t n) noexcept:
    """Return True if the arguments are tensors for which the function only calls its op."""
    cdef int i
    if n != <size_t>self.inputs:
        return False
    for i in range(self.inputs):
        if not isinstance(<object>args[i], TensorBase) or (<TensorBase>args[i]).v.dtype >= self.below \
                or (<TensorBase>args[i]).v.dtype != (<TensorBase>args[0]).v.dtype \
                or self.rank >= 0 and (<TensorBase>args[i]).v.ndim != self.rank:
            return False
    return True


cdef inline bint newer(PublicFunction self, PyObject **args, size_t n) noexcept:
    """Return True if a call with positional arguments cannot have the older meaning."""
    if n == 0 or n > self.most or not isinstance(<object>args[0], TensorBase):
        return False
    if n == 1 or self.sure is None:
        return True
    return type(<object>args[1]) in self.sure and has_only_ints(<object>args[1])


cdef inline bint has_only_ints(x) noexcept:
    """Return True if x is a nonempty tuple or list of ints, or any other type."""
    if not isinstance(x, (tuple, list)):
        return True
    for y in x:
        if type(y) is not int:
            return False
    return len(x) > 0


cdef PyObject *reword(PublicFunction self, PyObject **args, size_t n, PyObject *names) noexcept:
    """Return the result of a translated call, or replace the error by that of `explain` and return NULL."""
    cdef PyObject *kind
    cdef PyObject *error
    cdef PyObject *trace
    better = translated = None
    PyErr_Fetch(&kind, &error, &trace)
    PyErr_NormalizeException(&kind, &error, &trace)
    if trace != NULL:
        PyException_SetTraceback(error, trace)
    try:
        positional, keywords = call_arguments(args, n, names)
        if translate is not None and isinstance(<object>error, TypeError):
            translated = translate(self, positional, keywords)
        if translated is None:
            better = explain(self, list(positional), keywords, <object>error)
    except Exception as worse:
        worse.__context__ = <object>error
        better = worse
    if better is None and translated is None:
        PyErr_Restore(kind, error, trace)
        return NULL
    Py_XDECREF(kind)
    Py_XDECREF(error)
    Py_XDECREF(trace)
    if better is not None:
        PyErr_SetObject(type(better), better)
        return NULL
    Py_INCREF(translated[0])
    return <PyObject *>translated[0]
