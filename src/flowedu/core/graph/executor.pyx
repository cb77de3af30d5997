"""Executor: runs a plan as one C array of kernel calls, without the GIL and without Python."""
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from cpython.object cimport PyObject
cimport numpy as cnp

from threading import Lock, main_thread
from time import perf_counter

import numpy as np

from flowedu._kernels.core.abi cimport *
from flowedu.core.values.storage cimport ON_DEVICE, Array, Block, block_drop, block_try
from flowedu.core.values.storage cimport itemsize, set_row_major, view_contiguous
from flowedu.core.eager.dispatch cimport FE_SIGNAL, GLOBAL, Entry, TensorBase, copy_values
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
    SPLIT = 65536            # cheaper calls (less than about 10 us) run on one thread
    PAUSE = 50_000_000       # ns until a step first checks for signals, and between checks

cdef unsigned long main_ident    # id of the thread that runs signal handlers
cdef int64_t due                 # time of the next check in this thread, in ns


include "scratch.pxi"


cdef struct Patch:           # a view that points into a job argument, or into an output
    int arg                  # index of the argument; outputs follow the arguments
    int64_t offset           # bytes
    fe_view *view


cdef class Executor:
    """Executor of a Plan. `run(arguments)` returns the outputs as new arrays.

    always_parallel: split small calls too (for tests). threads: 0 for the current setting.

    Ctrl-C ends a step between two calls, not earlier than PAUSE ns after its start. After the first
    call that writes a variable, a step is not interrupted. So no variable is partly updated.

    Attributes: `plan`, and `nt`, the number of threads.
    """
    cdef readonly object plan
    cdef readonly int nt
    cdef int split               # nonzero if any call is split over the threads
    cdef int ncalls, npatch, ninputs, noutputs
    cdef readonly list pythons   # indices of the calls with a Python kernel
    cdef list draws              # indices of the calls that draw random numbers
    cdef bint open               # Python kernels or signal handlers may run during a step
    cdef char *polls             # 1 for a call after which signals are checked
    cdef object lock
    cdef fe_call *calls
    cdef fe_view *views
    cdef Patch *patches
    cdef Block *arena
    cdef list keep
    cdef dict homes
    cdef tuple in_types, out_types, out_shapes
    cdef fe_view *in_views
    cdef fe_view *outs
    cdef list lasting            # the arrays of variables; `planned`: their views in the plan
    cdef fe_view *planned
    cdef public int64_t runs
    cdef public bint as_tensors  # arguments and outputs are tensors, not ndarrays
    cdef public list written     # the tensors of the variables that a step writes
    cdef public TensorBase counter   # None, or the variable (int64) that counts the finished steps

    def __cinit__(self, plan, bint always_parallel=False, int threads=0):
        cdef int i, k
        cdef int64_t writes = 0, unpolled = -64 * SPLIT    # steps of less than 1 ms never check
        cdef Entry e
        cdef fe_view *v
        self.plan, self.nt = plan, threads or get_num_threads()
        self.ncalls = len(plan.steps)
        self.keep, self.written, self.pythons, self.draws = [], [], [], []
        outputs = [plan.where[value] for value in plan.graph.outputs]
        inputs = [plan.where[value] for value in plan.graph.inputs.values()]
        places = [*inputs, *outputs, *(p for step in plan.steps for p in step.places)]
        self.ninputs, self.noutputs, self.lock = len(inputs), len(outputs), Lock()
        self.calls = <fe_call *>calloc(self.ncalls + 1, sizeof(fe_call))
        self.polls = <char *>calloc(self.ncalls + 1, 1)
        self.views = <fe_view *>calloc(len(places) + 1, sizeof(fe_view))
        self.patches = <Patch *>calloc(len(places) + 1, sizeof(Patch))
        self.planned = <fe_view *>calloc(len(plan.buffers) + 1, sizeof(fe_view))
        if not (self.calls and self.polls and self.views and self.patches and self.planned):
            raise MemoryError
        self.in_views, self.outs = self.views, self.views + self.ninputs
        if storage.separate:
            self.homes = {b: empty((b.nbytes,), uint8) for b in plan.buffers if b.in_arena}
        if plan.arena <= LARGEST:
            self.arena = block_try(max(plan.arena, 64))
        if self.arena == NULL:
            raise arena_out_of_memory(plan)
        buffers = {p.buffer: i for i, p in enumerate(inputs)}
        for i, p in enumerate(outputs):            # kernels write directly into the returned array
            if p.buffer.in_arena and p.contiguous and p.buffer.nbytes == p.spec.nbytes:
                buffers.setdefault(p.buffer, self.ninputs + i)
        v = self.outs + self.noutputs
        for i, step in enumerate(plan.steps):
            e = step.entry
            self.keep.append(e)
            self.calls[i].fn, self.calls[i].args = e.fn, v
            self.calls[i].nin, self.calls[i].nargs = e.nin, len(step.places)
            self.calls[i].ints, self.calls[i].reals, self.calls[i].extra = e.ints, e.reals, e.extra
            large = e.cost >= SPLIT or always_parallel
            self.calls[i].parallel = large and self.nt > 1 and not e.python
            if e.python:
                self.pythons.append(i)
            if e.fn == NULL:
                raise errors.no_kernel(step.name, e.op.name)
            if step.scratch is not None:
                self.calls[i].work = self.buffer_address(step.scratch)
            if e.op.random and not e.python:
                self.draws.append(i)
            v += len(step.places)
            self.split |= self.calls[i].parallel
            writes = writes or (step.node is not None and bool(step.node.mutates))
            unpolled += max(e.cost, SPLIT // 16)
            if unpolled >= SPLIT and i < self.ncalls - 1 and not writes:   # a write ends the checks
                self.polls[i], self.open, unpolled = True, True, 0
        self.open |= bool(self.pythons)
        for k, p in enumerate(places):
            fill_view(&self.views[k], p)
            if p.buffer in buffers:
                self.patches[self.npatch].arg = buffers[p.buffer]
                self.patches[self.npatch].view = &self.views[k]
                self.patches[self.npatch].offset = p.offset * p.spec.dtype.bytes
                self.npatch += 1
            else:
                self.views[k].data = self.locate(p)
        self.lasting = [b.array for b in plan.buffers if b.kind == "variable"]
        self.in_types = tuple([p.spec.dtype.numpy for p in inputs])
        self.out_shapes = tuple([value.spec.shape for value in plan.graph.outputs])
        for i, array in enumerate(self.lasting):
            self.planned[i] = (<Array>array).v
        self.out_types = tuple([value.spec.dtype.numpy or np.dtype(np.uint16)     # bfloat16
                                for value in plan.graph.outputs])

    def set_kept(self, bint valid):
        """Set `kept` (abi.h) of each call. valid: True if an earlier run filled kept scratch."""
        for i, step in enumerate(self.plan.steps):
            self.calls[i].kept = valid and step.node in self.plan.graph.kept

    cdef char *buffer_address(self, buffer) except NULL:
        """Return the address of an arena buffer."""
        if self.homes is not None:
            return (<Array>self.homes[buffer]).v.data
        return self.arena.data + <int64_t>buffer.offset

    cdef char *locate(self, p) except NULL:
        cdef int64_t offset = p.offset * p.spec.dtype.bytes
        cdef Array a
        if p.buffer.in_arena:
            return self.buffer_address(p.buffer) + offset
        a = p.buffer.array
        need_cpu(self.plan.graph.name, p.buffer.name, a)
        self.keep.append(a)
        return a.v.data + offset

    def __dealloc__(self):
        free(self.calls)
        free(self.polls)
        free(self.views)
        free(self.patches)
        free(self.planned)
        if self.arena != NULL:
            block_drop(self.arena)

    def stale(self, int share=1):
        """Return True if the number of threads, or a variable's memory or layout, has changed."""
        cdef int i
        if max(1, <int>get_num_threads() // share) != self.nt:
            return True
        for i in range(len(self.lasting)):
            if not same_view(&(<Array>(<list>self.lasting)[i]).v, &self.planned[i]):
                return True
        return False

    def accepts(self, tuple arguments):
        """Return True for C-contiguous, aligned ndarrays with the right shapes and dtypes."""
        cdef int i
        cdef cnp.ndarray a
        if len(arguments) != self.ninputs:
            return False
        for i in range(self.ninputs):
            o = arguments[i]
            if type(o) is not np.ndarray:
                return False
            a = <cnp.ndarray>o
            if cnp.PyArray_NDIM(a) != self.in_views[i].ndim or not cnp.PyArray_IS_C_CONTIGUOUS(a) \
                    or not cnp.PyArray_ISALIGNED(a) or a.descr is not self.in_types[i] \
                    or memcmp(cnp.PyArray_DIMS(a), self.in_views[i].shape,
                              self.in_views[i].ndim * sizeof(int64_t)):
                return False
        return True

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

    def takes(self, tuple arguments):
        """Return True for contiguous, eager, local CPU tensors with the right shapes and dtypes."""
        cdef int i
        cdef fe_view *v
        cdef TensorBase x
        if len(arguments) != self.ninputs:
            return False
        for i in range(self.ninputs):
            o = arguments[i]
            if not isinstance(o, TensorBase):
                return False
            x, v = <TensorBase>o, &self.in_views[i]
            if x.block == NULL or x.flags & (GLOBAL | ON_DEVICE) or x.v.ndim != v.ndim \
                    or x.v.dtype != v.dtype or not view_contiguous(&x.v) \
                    or memcmp(x.v.shape, v.shape, v.ndim * sizeof(int64_t)):
                return False
        return True

    cdef int set_addresses(self, tuple arguments) except -1:
        """Point the views into `arguments`, which has the inputs, then the new outputs."""
        cdef int i
        cdef char *data
        for i in range(self.npatch):
            data = self.memory(arguments[self.patches[i].arg])
            self.patches[i].view.data = data + self.patches[i].offset
        return 0

    cdef char *memory(self, o) noexcept:
        if self.as_tensors:
            return (<TensorBase>o).v.data
        return <char *>cnp.PyArray_DATA(<cnp.ndarray>o)

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

    def times(self, tuple arguments, int repeats=20):
        """Return the shortest time (s) of each call in `repeats` runs, which change variables."""
        cdef int i, k, status, failed = -1
        cdef tuple out = self.new_outputs(), owner = (self, arguments, out)
        cdef list best = [float("inf")] * self.ncalls
        for k in range(repeats):
            self.set_addresses(arguments + out)
            self.set_owner(owner)
            for i in range(self.ncalls):
                start = perf_counter()
                status = fe_run(&self.calls[i], 1, self.nt if self.calls[i].parallel else 1,
                                &failed, NULL, NULL)
                if status != FE_OK:
                    raise self.make_error(status, i)
                best[i] = min(best[i], perf_counter() - start)
        return best

    cdef tuple new_outputs(self):
        """Allocate the outputs as tensors or ndarrays."""
        return tuple([self.output_tensor(i) if self.as_tensors else self.output_array(i)
                      for i in range(self.noutputs)])

    cdef object output_tensor(self, int i):
        cdef fe_view *v = &self.outs[i]
        cdef int64_t nbytes = fe_numel(v) * itemsize(v.dtype)
        cdef TensorBase y = new_tensor()
        y.v = v[0]
        y.block = block_try(nbytes)
        if y.block == NULL:
            raise out_of_memory(self.plan.graph.name,
                                f"output {i}, {self.plan.graph.outputs[i].spec}", nbytes)
        y.v.data = y.block.data
        set_row_major(&y.v)
        return y

    cdef object output_array(self, int i):
        cdef fe_view *v = &self.outs[i]
        return np.empty(self.out_shapes[i], self.out_types[i]) if v.dtype > FE_I64 else \
            cnp.PyArray_SimpleNew(v.ndim, <cnp.npy_intp *>v.shape, NUMPY_CODE[v.dtype])

    cdef int fetch(self, int i, to) except -1:
        """Copy output `i` into `to` in row-major order, unless a kernel wrote it there."""
        cdef fe_view y = self.outs[i]
        y.data = self.memory(to)
        set_row_major(&y)
        return copy_values(&self.outs[i], &y) if y.data != self.outs[i].data else 0


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


cdef int *NUMPY_CODE = [cnp.NPY_FLOAT32, cnp.NPY_FLOAT64, cnp.NPY_INT32, cnp.NPY_INT64]

