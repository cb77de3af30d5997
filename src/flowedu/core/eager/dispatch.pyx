"""The engine: `OpBase.call` passes each op call to the interpreter on top of the stack.

If the stack is empty, `eager` finds the Entry (cached per op, input specs and attributes),
allocates the outputs, runs the kernel, and records the call if an input requires a gradient.
"""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy
from cpython.ref cimport Py_INCREF
from cpython.object cimport PyObject, PyTypeObject
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
cimport cython

from flowedu._kernels.core.abi cimport *
from flowedu.core.ops.call cimport OpBase, Rule, active, dispatch_by, current_interpreter
from flowedu.core.values.storage cimport (ON_DEVICE, Array, Block, allocate, block_drop, block_new,
                                          block_over, itemsize, set_row_major, view_contiguous)

import os
import warnings

from flowedu._kernels import TABLE
from flowedu.core.values.dtype import BY_CODE
from flowedu.core.values.thread_state import thread_state as _thread_state
from flowedu.core.values.spec import Spec
from flowedu.core.values.storage import out_of_memory
from flowedu.errors import FlowError, KernelError, NotATensorError, ShapeError, user_line
from flowedu.errors import tensors as errors
from flowedu.errors.element_types import no_kernel
from flowedu.core.ops import axes as equations
from flowedu.core.ops.define import REGISTRY
from flowedu.core import extensions

cdef extern from "Python.h":
    object PyType_GenericAlloc(PyTypeObject *, Py_ssize_t)
    void PyTuple_SET_ITEM(object, Py_ssize_t, object)
    ctypedef object (*newfunc)(PyTypeObject *, PyObject *, PyObject *)
    ctypedef struct _Type "PyTypeObject":
        newfunc tp_new

cdef extern from *:
    """
    #if defined(__linux__) && defined(__GNUC__)
    #define FE_LOCAL static __thread __attribute__((tls_model("initial-exec")))
    #else
    #define FE_LOCAL static __thread
    #endif
    FE_LOCAL int fe_grad_off;        /* 1: calls of this thread are not recorded */
    FE_LOCAL int fe_inference;
    FE_LOCAL int fe_hooks;           /* bits CAST (by thread_state.amp), OBSERVE (.observer) */
    FE_LOCAL int fe_device;          /* Block.device of calls without inputs */
    """
    int fe_grad_off, fe_inference, fe_hooks, fe_device

cdef enum:
    MAX_ARGS = 14                    # most inputs and outputs whose views fit on the C stack
    MAX_INPUTS = 10                  # most inputs whose key fits on the C stack
    MAX_DRAWN = 8                    # integers of a random op
    SMALL = 32768                    # below this cost one thread is faster
    CAST = 1, OBSERVE = 2            # bits of fe_hooks

cdef object thread_state = _thread_state
cdef int threads = 1
cdef int64_t sequence = 0
cdef tuple NOTHING = ()
cdef int64_t copy_kernel[FE_NDTYPE]
cdef int _code
for _code in range(FE_NDTYPE):
    copy_kernel[_code] = TABLE["copy", _code][0]

cdef inline bint is_float(int32_t dtype) noexcept:         # dtypes that kernels compute in
    return dtype == FE_F32 or dtype == FE_F64


cdef inline bint computes(int32_t dtype):                  # also 16-bit floats, but not in a graph
    return is_float(dtype) or has_gradient(dtype) and not lazy_mode()


cdef inline bint is_integer(int32_t dtype) noexcept:       # dtypes that kernels compute in
    return dtype == FE_I32 or dtype == FE_I64


# The files form one C module, so that their functions call each other directly.
include "hooks.pxi"
include "switches.pxi"
include "entry.pxi"
include "memory.pxi"
include "launch.pxi"
include "eager.pxi"
include "later/device.pxi"
include "node.pxi"
include "link.pxi"
include "inplace.pxi"
include "later/lazy.pxi"
include "later/global.pxi"
include "tensorbase.pxi"

dispatch_by(dispatch)
set_num_threads(default_threads())
