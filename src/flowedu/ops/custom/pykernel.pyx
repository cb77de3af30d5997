# cython: language_level=3
"""Python kernels: ops whose kernel is the record's `ref`, a function of NumPy arrays.

A plan contains such a call like any other. Its kernel is `python_kernel` below, and `extra` points to a
PyCall, which holds the function. On thread 0 the kernel takes the GIL, wraps the inputs in ndarrays (strided,
read-only, without a copy), calls the function, checks the shapes and dtypes of the results, and copies them
into the outputs. An exception of the function is stored in `call.detail` with status FE_PYTHON, and raised
again in the thread that started the run.

`call.work` of such a call refers to the object that owns the inputs' memory. The arrays hold a reference to
it, so an array that outlives the call (in the frame of a traceback) never points to freed memory.
"""
from libc.stdint cimport int64_t
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
cimport numpy as cnp

import gc
from types import FrameType

import numpy as np

from flowedu._kernels.core.abi cimport *

from flowedu.core.values.dtype import BY_CODE
from flowedu.errors import DTypeError, FlowError, KernelError, OutOfMemoryError, ShapeError

cnp.import_array()

cdef extern from "Python.h":
    PyObject *PyList_GET_ITEM(PyObject *, Py_ssize_t)          # borrowed: asking must not change the count

cdef extern from "numpy/arrayobject.h":
    object PyArray_New(PyTypeObject *, int, cnp.npy_intp *, int, cnp.npy_intp *, void *, int, int, PyObject *)
    PyTypeObject PyArray_Type

# bfloat16 is passed as its bits, NPY_UINT16.
cdef int *NUMPY_CODE = [cnp.NPY_FLOAT32, cnp.NPY_FLOAT64, cnp.NPY_INT32, cnp.NPY_INT64, cnp.NPY_INT8,
                        cnp.NPY_UINT8, cnp.NPY_BOOL, cnp.NPY_FLOAT16, cnp.NPY_UINT16, cnp.NPY_INT16]


cdef cnp.ndarray over(fe_view *v, object owner, bint writable):
    """Return an ndarray over the memory of `v` (the bits of bfloat16). It keeps `owner` alive."""
    cdef cnp.npy_intp dims[8]
    cdef cnp.npy_intp strides[8]
    cdef int item = BY_CODE[v.dtype].bytes, d
    cdef cnp.ndarray a
    for d in range(v.ndim):
        dims[d] = v.shape[d]
        strides[d] = v.stride[d] * item
    a = PyArray_New(&PyArray_Type, v.ndim, dims, NUMPY_CODE[v.dtype], strides, v.data, item,
                    cnp.NPY_ARRAY_ALIGNED | (cnp.NPY_ARRAY_WRITEABLE if writable else 0), NULL)
    if owner is not None:
        cnp.set_array_base(a, owner)
    return a


cdef cnp.ndarray read(fe_view *v, object owner):
    """Return an input as an ndarray. bfloat16 is converted to float32, because NumPy has no bfloat16."""
    cdef cnp.ndarray a = over(v, owner, False)
    return (a.astype(np.uint32) << 16).view(np.float32) if v.dtype == FE_BF16 else a


def rounded(y):
    """Round a float32 array to bfloat16 (to nearest, ties to even) and return the bits."""
    bits = np.ascontiguousarray(y).view(np.uint32)
    nearest = np.where(np.isnan(y).reshape(bits.shape), np.uint32(0x7FC0),
                       (bits + (0x7FFF + (bits >> 16 & 1))) >> 16)
    return nearest.astype(np.uint16).reshape(y.shape)


cdef class PyCall:
    """One call of a record's `ref`: the function, and the source of each of its arguments.

    Args:
        op: the record. Its `role` names the function in messages ("cube: backward"); default "<name>: ref".
            If it is `trusted`, the function may pass its inputs to other threads, which must have finished
            when it returns.
        attrs: attribute values, in declared order.
    """
    cdef object f
    cdef readonly str role
    cdef list arguments          # per parameter: (True, value) of an attribute, (False, number) of an input
    cdef bint variadic, trusted
    cdef tuple inputs, outputs

    def __cinit__(self, op, tuple attrs):
        self.f, self.variadic, self.inputs, self.outputs = (op.ref, op.variadic, tuple(op.inputs),
                                                            tuple(op.outputs))
        self.trusted, self.role = op.trusted, op.role or f"{op.name}: ref"
        self.arguments = [(True, attrs[op.attr_index[p]]) if p in op.attr_index
                          else (False, self.inputs.index(p))
                          for p in op.params[op.ref]]

    @property
    def address(self):
        """Address of this object, the `extra` of the call."""
        return <size_t><void *>self

    cdef int run(self, fe_call *call) except -1:
        cdef cnp.ndarray y
        cdef int i, nout = call.nargs - call.nin
        owner = <object><PyObject *>call.work if call.work != NULL else None
        cdef list arrays = [read(&call.args[i], owner) for i in range(call.nin)]
        values = self.f(*[value if constant else tuple(arrays) if self.variadic else arrays[value]
                          for constant, value in self.arguments])
        if not isinstance(values, (tuple, list)):
            values = (values,)
        if len(values) != nout:
            raise ShapeError(f"{self.role} returned {len(values)} arrays",
                             expected=f"{nout}: {', '.join(self.outputs)}",
                             got=str(len(values)), fix=f"return {', '.join(self.outputs)}")
        for i in range(nout):
            y = self.checked(values[i], &call.args[call.nin + i], i)
            if call.args[call.nin + i].dtype == FE_BF16:
                y = rounded(y)
            cnp.PyArray_CopyInto(over(&call.args[call.nin + i], None, True), y)
        values = y = None
        if not self.trusted:
            self.check_kept(arrays)
        return 0

    cdef cnp.ndarray checked(self, y, fe_view *want, int i):
        """Return `y` as an array; raise ShapeError or DTypeError unless it has the form of output i."""
        cdef int d
        cdef bint fits
        cdef cnp.ndarray a
        dtype = BY_CODE[want.dtype] if want.dtype != FE_BF16 else BY_CODE[FE_F32]
        if isinstance(y, np.generic):
            y = np.asarray(y)
        if isinstance(y, np.ndarray):
            a = y
            fits = a.descr is dtype.numpy and cnp.PyArray_NDIM(a) == want.ndim
            for d in range(want.ndim):
                fits = fits and cnp.PyArray_DIM(a, d) == want.shape[d]
            if fits:
                return a
        shape = tuple([want.shape[d] for d in range(want.ndim)])
        expected = f"{dtype.name}{list(shape)}"
        if not isinstance(y, np.ndarray):
            raise DTypeError(f"{self.role} returned something else than an array for {self.outputs[i]}",
                             expected=f"an ndarray, {expected}", got=type(y).__name__,
                             fix="return NumPy arrays" if not hasattr(y, "numpy") else "return y.numpy()")
        got = f"{y.dtype.name}{list(y.shape)}"
        if y.dtype != dtype.numpy:
            raise DTypeError(f"{self.role} returned another dtype for {self.outputs[i]}", expected=expected,
                             got=got, fix=f"return y.astype(np.{dtype.numpy.name}), or say in infer= that "
                                          f"the output is {y.dtype.name}")
        if y.shape != shape:
            raise ShapeError(f"{self.role} returned another shape for {self.outputs[i]}", expected=expected,
                             got=got, fix="reshape it, or say in infer= what shape the output has")
        return y

    def kept_error(self, int64_t detail, str where):
        """Return the exception of a failed call, for its caller to raise, with `where` as a note."""
        error = <object><PyObject *>detail
        Py_DECREF(error)
        if isinstance(error, MemoryError) and not isinstance(error, FlowError):
            return OutOfMemoryError("out of memory in a Python kernel", got=str(error),
                                    expected="room for its arrays", at=where,
                                    fix="use smaller sizes or batches, del tensors that are no longer needed")
        if where and isinstance(error, Exception):
            if isinstance(error, ValueError) and "read-only" in str(error):
                where += "\n  fix:      inputs are read-only; change a copy: x = x.copy()"
            error.add_note(where)
        return error

    cdef int check_kept(self, list arrays) except -1:
        """Raise if the function kept an input or a view of one, because that memory will be reused."""
        cdef int i
        for i in range(len(arrays)):
            # Not only in our list.
            if PyList_GET_ITEM(<PyObject *>arrays, i).ob_refcnt > 1 and still_held(arrays, i):
                name = self.inputs[0 if self.variadic else i]
                raise KernelError(f"{self.role} kept its input {name}",
                                  expected="inputs that are used during the call only: their memory is used "
                                           "again",
                                  got="a reference that outlives the call",
                                  fix=f"keep a copy: {name}.copy()")
        return 0


cdef bint still_held(list arrays, int i):
    """Return True if arrays[i] has references other than dead cycles and frames in tracebacks."""
    gc.collect()
    known = 0
    # `isinstance` may run the object's own code.
    for frame in [o for o in gc.get_objects() if type(o) is FrameType]:
        for held in gc.get_referents(frame):                   # locals, and *args
            known += sum([x is arrays[i] for x in held]) if type(held) is tuple else held is arrays[i]
    held = frame = None
    return PyList_GET_ITEM(<PyObject *>arrays, i).ob_refcnt > 1 + known


cdef int python_kernel(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    if team.tid != 0:
        return FE_OK
    with gil:
        try:
            (<PyCall><PyObject *>call.extra).run(call)
            return FE_OK
        except BaseException as error:                         # KeyboardInterrupt too
            Py_INCREF(error)
            call.detail = <int64_t><PyObject *>error
            return FE_PYTHON


cdef tuple KERNEL = (<size_t><void *>python_kernel, 0)         # as in _kernels.TABLE


def python_call(op, attrs):
    """Return the kernel of a call, and its `extra`, for a record without a compiled kernel."""
    return KERNEL, PyCall(op, attrs)
