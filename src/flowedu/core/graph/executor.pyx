"""Executor: runs a plan as one C array of kernel calls, without the GIL and without Python."""
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from cpython.object cimport PyObject
cimport numpy as cnp

from threading import Lock, main_thread

import numpy as np

from flowedu._kernels.core.abi cimport *
from flowedu.core.values.storage cimport ON_DEVICE, Array, Block, allocate, block_drop, block_try
from flowedu.core.values.storage cimport set_row_major, view_contiguous
from flowedu.core.eager.dispatch cimport FE_SIGNAL, GLOBAL, Entry, TensorBase, bind, copy_values
from flowedu.core.eager.dispatch cimport fe_run, new_tensor, same_view

from flowedu.core.values.thread_state import register_fields, thread_state
from flowedu.core.values import storage
from flowedu.core.values.dtype import uint8
from flowedu.core.values.spec import LARGEST
from flowedu.core.values.storage import empty, out_of_memory
from flowedu.errors import graphs as errors
from flowedu.core.graph.devices import need_cpu
from flowedu.core.graph.memory import arena_out_of_memory
from flowedu.core.eager.dispatch import get_num_threads, index_error

register_fields(plans=0)     # number of running plans of the thread that may call Python code
cnp.import_array()

cdef extern from "Python.h":
    int PyErr_CheckSignals() noexcept               # an exception of a handler stays pending
    void raise_pending "PyErr_Occurred"() except *  # raise the pending exception, if any
    unsigned long PyThread_get_thread_ident() nogil

cdef enum:
    PAUSE = 50_000_000       # ns until a step first checks for signals, and between checks

cdef unsigned long main_ident    # id of the thread that runs signal handlers
cdef int64_t due                 # time of the next check in this thread, in ns

include "bind.pxi"
include "arrays.pxi"


cdef class Executor(ArrayInterface):
    """Executor of a Plan. `run(arguments)` returns the outputs as new arrays.

    always_parallel: split small calls too (for tests). threads: 0 for the current setting.

    Ctrl-C ends a step between two calls, not earlier than PAUSE ns after its start. After the first
    call that writes a variable, a step is not interrupted. So no variable is partly updated.
    """
    cdef object lock
    cdef public int64_t runs
    cdef public list written     # the tensors of the variables that a step writes
    cdef public TensorBase counter   # None, or the variable (int64) that counts the finished steps

    def __cinit__(self, plan, bint always_parallel=False, int threads=0):
        self.lock, self.written = Lock(), []

    def run(self, tuple arguments):
        """Run one step. `arguments` are values for which `accepts` or `takes` is true."""
        return self.run_guarded(arguments) if self.open else self.step(arguments)

    cdef list run_guarded(self, tuple arguments):
        """Run a step, and refuse calls of this plan by its Python kernels or signal handlers."""
        global due, main_ident
        depth, main_ident = thread_state.plans, main_thread().ident
        if PyThread_get_thread_ident() == main_ident:
            due = now() + PAUSE
        if not self.lock.acquire(blocking=depth == 0):    # waiting inside a job could deadlock
            raise errors.nested_call(self.plan.graph.name)
        thread_state.plans = depth + 1
        try:
            return self.step(arguments)
        finally:
            thread_state.plans = depth
            self.lock.release()

    cdef int set_owner(self, owner) except -1:
        """Pass the owner of the inputs' memory to every Python kernel."""
        cdef int i
        for i in self.pythons:
            self.calls[i].work = <char *><PyObject *>owner
        return 0

    cdef list step(self, tuple arguments):
        """Run all calls. The outputs are tensors if the arguments are tensors, else ndarrays."""
        cdef int i, status, failed = -1
        cdef tuple out = self.new_outputs()
        owner = None
        if self.counter is not None:       # a loaded checkpoint continues the random sequence
            self.runs = (<int64_t *>self.counter.v.data)[0]
        self.set_addresses(arguments + out)
        for i in self.draws:
            (<int64_t *>self.calls[i].ints)[1] = self.runs
        if self.pythons:
            owner = (self, arguments, out)
            self.set_owner(owner)
        with nogil:
            status = fe_run(self.calls, self.ncalls, self.nt if self.split else 1, &failed,
                            self.polls, poll)
        if status != FE_OK:
            raise self.make_error(status, failed)
        self.runs += 1
        if self.counter is not None:       # in C, so that Ctrl-C cannot separate the updates
            (<int64_t *>self.counter.v.data)[0] = self.runs
        for t in self.written:             # the tape detects overwritten values by the version
            (<TensorBase>t).block.version += 1
        for i in range(self.noutputs):
            self.fetch(i, out[i])
        return list(out)

    cdef object make_error(self, int status, int failed):
        """Return the exception for call `failed`, or raise the exception of a signal handler."""
        raise_pending()
        step = self.plan.steps[failed]
        line = step.node.line if step.node is not None else ""
        if status == FE_PYTHON:
            return step.entry.keep.kept_error(self.calls[failed].detail,
                                              f"in {step.name} of job {self.plan.graph.name}, made "
                                              f"at {line}; no variable was updated")
        op, got = step.entry.op, self.calls[failed].detail
        error = index_error(op, step.entry.attrs, got, line,
                            f"{step.name}: {op.name} met the index {got}, out of range")
        return error.with_texts(fix=f"{error.fix}; no variable was updated")


cdef int64_t now() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return <int64_t>t.tv_sec * 1_000_000_000 + t.tv_nsec


cdef int poll() noexcept nogil:
    """Run pending signal handlers between two calls, only in the main thread and once per PAUSE."""
    global due
    if PyThread_get_thread_ident() != main_ident or now() < due:
        return FE_OK
    with gil:
        due = now() + PAUSE
        return FE_SIGNAL if PyErr_CheckSignals() else FE_OK
