"""PublicFunction: the wrapper of a public function that turns a wrong call into a detailed error.

Only C code can catch a TypeError raised while arguments are bound, before the function's first line, without
slowing correct calls. A call through the wrapper costs 20 ns more. It costs 100 ns less if the function is
one op of its arguments and declares this (its attribute `quick`). diagnostics/explain.py writes the error of
a failed call.

A name may also have an older meaning. Then the wrapper has a `choice` (oneflow04/names.py), which selects the
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
cdef object translate = None         # translate(function, args, kwargs): (the answer,) of a call that did not fit, or None


cdef class PublicFunction:
    """`function` for users: the same signature, text and result. owner: the class it is a method of; name: what users call
    it, if not its own name; choice: between it and the older meaning of the name, or None."""

    cdef fe_vectorcall vectorcall
    cdef readonly object function
    cdef readonly object owner, name, choice
    cdef OpBase op                   # None, or the op that the function is, of `inputs` tensors of a code below `below`
    cdef int inputs, below, rank     # and of so many axes, or of any number (-1)
    cdef list attrs                  # its attributes, by the number of axes; None: the op's defaults
    cdef size_t most                 # with a choice: how many arguments the function takes,
    cdef tuple sure                  # and with a second of which types a call is its own; None: of any
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
        """As if the skin were not there: inside it is what the function itself wraps. (Of two, help() shows the older.)"""
        return self.choice.older if self.choice is not None else getattr(self.function, "__wrapped__", self.function)

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
    """f(function, args, kwargs, error) says what to raise instead of a TypeError or AttributeError; None: that error."""
    global explain
    explain = f


def register_translator(f) -> None:
    """f(function, args, kwargs): a tuple of what a call is answered that does not fit the function's signature; None: it is
    an error. None instead of f: every such call is (mock/translate.py has one for programs of another library)."""
    global translate
    translate = f


cdef object answer(PublicFunction self, PyObject **args):
    cdef tuple attrs = self.op.defaults if self.attrs is None else <tuple>self.attrs[(<TensorBase>args[0]).v.ndim]
    return self.op.call((<object>args[0],) if self.inputs == 1 else (<object>args[0], <object>args[1]), attrs)


cdef object chosen(PublicFunction self, PyObject **args, size_t n, PyObject *names):
    """The answer of the function that the call means."""
    given, keywords = told(args, n, names)
    return self.choice.choose(given, keywords)(*given, **keywords)


cdef tuple told(PyObject **args, size_t n, PyObject *names):
    """(args, kwargs) of a call."""
    given = tuple([<object>args[i] for i in range(n)])
    return given, {} if names == NULL else {name: <object>args[n + i] for i, name in enumerate(<tuple><object>names)}

ctypedef PyObject *(*c_function)(PublicFunction, PyObject **) noexcept      # as C sees it: NULL, and an error is set
ctypedef PyObject *(*c_chosen)(PublicFunction, PyObject **, size_t, PyObject *) noexcept


cdef PyObject *call(PyObject *callable, PyObject **args, size_t nargsf, PyObject *names) noexcept:
    cdef PublicFunction self = <PublicFunction>callable
    cdef size_t n = PyVectorcall_NARGS(nargsf)
    cdef PyObject *result
    if self.inputs and names == NULL and plain(self, args, n):
        result = (<c_function>answer)(self, args)
    elif self.choice is not None and (names != NULL or not newer(self, args, n)):
        result = (<c_chosen>chosen)(self, args, n, names)
    else:
        result = PyObject_Vectorcall(<PyObject *>self.function, args, nargsf, names)
    if result == NULL and (PyErr_ExceptionMatches(TypeError) or PyErr_ExceptionMatches(AttributeError)):
        result = reword(self, args, n, names)
    return result


cdef inline bint plain(PublicFunction self, PyObject **args, size_t n) noexcept:
    """Whether these are the tensors for which the function is its op."""
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
    """Whether a call of positional arguments can mean but the function itself, and not the older one."""
    if n == 0 or n > self.most or not isinstance(<object>args[0], TensorBase):
        return False
    return n == 1 or self.sure is None or type(<object>args[1]) in self.sure and no_odd_items(<object>args[1])


cdef inline bint no_odd_items(x) noexcept:
    """Whether x is no tuple or list, or one of ints."""
    if not isinstance(x, (tuple, list)):
        return True
    for y in x:
        if type(y) is not int:
            return False
    return len(x) > 0


cdef PyObject *reword(PublicFunction self, PyObject **args, size_t n, PyObject *names) noexcept:
    """Put what `explain` says in place of the error that is set; NULL. Or the answer, where the call can be translated."""
    cdef PyObject *kind
    cdef PyObject *error
    cdef PyObject *trace
    better = answered = None
    PyErr_Fetch(&kind, &error, &trace)
    PyErr_NormalizeException(&kind, &error, &trace)
    if trace != NULL:
        PyException_SetTraceback(error, trace)
    try:
        given, keywords = told(args, n, names)
        if translate is not None and isinstance(<object>error, TypeError):
            answered = translate(self, given, keywords)
        if answered is None:
            better = explain(self, list(given), keywords, <object>error)
    except Exception as worse:
        worse.__context__ = <object>error
        better = worse
    if better is None and answered is None:
        PyErr_Restore(kind, error, trace)
        return NULL
    Py_XDECREF(kind)
    Py_XDECREF(error)
    Py_XDECREF(trace)
    if better is not None:
        PyErr_SetObject(type(better), better)
        return NULL
    Py_INCREF(answered[0])
    return <PyObject *>answered[0]
