"""PublicFunction: the skin of a function that users call, so that a wrong call gets an error that says what is wrong.

Only C sees a TypeError that is raised while arguments are bound, before the function's first line, without slowing the
calls that are right: a call through the skin costs 20 ns more, and 100 ns less where the function is one op of its
arguments and says so (its attribute `quick`). What is said about a failed call is calls/explain.py's.
"""
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_XDECREF

from flowedu.ops.core cimport OpBase, TensorBase

cdef extern from "Python.h":
    """
    typedef PyObject *(*fe_vectorcall)(PyObject *, PyObject **, size_t, PyObject *);
    #define FE_OFFSET offsetof(struct __pyx_obj_7flowedu_3ops_8function_PublicFunction, vectorcall)
    static void fe_callable(PyTypeObject *type, size_t offset) {     /* Cython has no word for this */
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

cdef object explain = None           # explain(function, args, kwargs, error): what to raise instead, or None


cdef class PublicFunction:
    """`function` for users: the same signature, text and result. owner: the class it is a method of; name: what users call
    it, if not its own name."""

    cdef fe_vectorcall vectorcall
    cdef readonly object function
    cdef readonly object owner, name
    cdef OpBase op                   # None, or the op that the function is, of `inputs` tensors of a code below `below`
    cdef int inputs, below
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self, function, owner=None, name=None):
        self.function, self.owner, self.vectorcall = function, owner, call
        self.name = name or function.__name__
        quick = getattr(function, "quick", None)
        if quick is not None:
            self.op, self.below = quick
            self.inputs = len(self.op.inputs)

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __getattr__(self, name):
        return getattr(self.function, name)

    @property
    def __wrapped__(self):
        """As if the skin were not there: inside it is what the function itself wraps."""
        return getattr(self.function, "__wrapped__", self.function)

    @property
    def __doc__(self):
        return self.function.__doc__

    def __repr__(self):
        return repr(self.function)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return PublicFunction, (self.function, self.owner, self.name)


fe_callable(<PyTypeObject *>PublicFunction, FE_OFFSET)


def register_explainer(f) -> None:
    """f(function, args, kwargs, error) says what to raise instead of a TypeError or AttributeError; None: that error."""
    global explain
    explain = f


cdef object answer(PublicFunction self, PyObject **args):
    return self.op.call((<object>args[0],) if self.inputs == 1 else (<object>args[0], <object>args[1]), ())

ctypedef PyObject *(*c_function)(PublicFunction, PyObject **) noexcept      # as C sees it: NULL, and an error is set


cdef PyObject *call(PyObject *callable, PyObject **args, size_t nargsf, PyObject *names) noexcept:
    cdef PublicFunction self = <PublicFunction>callable
    cdef size_t n = PyVectorcall_NARGS(nargsf)
    cdef PyObject *result
    if self.inputs and names == NULL and plain(self, args, n):
        result = (<c_function>answer)(self, args)
    else:
        result = PyObject_Vectorcall(<PyObject *>self.function, args, nargsf, names)
    if result == NULL and (PyErr_ExceptionMatches(TypeError) or PyErr_ExceptionMatches(AttributeError)):
        reword(self, args, n, names)
    return result


cdef inline bint plain(PublicFunction self, PyObject **args, size_t n) noexcept:
    """Whether these are the tensors for which the function is its op."""
    cdef int i
    if n != <size_t>self.inputs:
        return False
    for i in range(self.inputs):
        if not isinstance(<object>args[i], TensorBase) or (<TensorBase>args[i]).v.dtype >= self.below \
                or (<TensorBase>args[i]).v.dtype != (<TensorBase>args[0]).v.dtype:
            return False
    return True


cdef void reword(PublicFunction self, PyObject **args, size_t n, PyObject *names) noexcept:
    """Put what `explain` says in place of the error that is set."""
    cdef PyObject *kind
    cdef PyObject *error
    cdef PyObject *trace
    better = None
    PyErr_Fetch(&kind, &error, &trace)
    PyErr_NormalizeException(&kind, &error, &trace)
    if trace != NULL:
        PyException_SetTraceback(error, trace)
    try:
        given = [<object>args[i] for i in range(n)]
        keywords = {} if names == NULL else {name: <object>args[n + i] for i, name in enumerate(<tuple><object>names)}
        better = explain(self, given, keywords, <object>error)
    except Exception as worse:
        worse.__context__ = <object>error
        better = worse
    if better is None:
        PyErr_Restore(kind, error, trace)
    else:
        PyErr_SetObject(type(better), better)
        Py_XDECREF(kind)
        Py_XDECREF(error)
        Py_XDECREF(trace)
