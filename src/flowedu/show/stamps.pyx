"""Stamps: the begin and the end of each kernel call of a plan, on each thread, during a real run.

While a plan is recorded, each of its calls points to `stamped_kernel`, which reads the clock, calls the
kernel, and reads the clock again. Otherwise the calls point to their kernels, so plans that are not recorded
execute no additional instruction.
"""
from libc.stdint cimport int64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from threading import Lock

import numpy as np

from flowedu._kernels.core.abi cimport fe_call, fe_kernel, fe_team
from flowedu.errors import CheckError

cdef enum:
    MOST = 1 << 13                # plans that are recorded at the same time

cdef struct Table:
    fe_call *calls
    fe_kernel *kernels
    int64_t *stamps               # (calls, threads, 2): begin and end in ns, 0 if a thread did not run it
    int threads

cdef Table tables[MOST]
free_tables = list(range(MOST - 1, 0, -1))
lock = Lock()


cdef int64_t now() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return <int64_t>t.tv_sec * 1_000_000_000 + t.tv_nsec


cdef int stamped_kernel(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    cdef Table *table = &tables[call.node]
    cdef int64_t i = call - table.calls
    cdef int64_t *stamp = table.stamps + 2 * (i * table.threads + team.tid)
    cdef int status
    stamp[0] = now()
    status = table.kernels[i](call, team, tag)
    stamp[1] = now()
    return status


class Stamps:
    """Recording of the calls of a plan. `with Stamps(executor) as s:` records the runs inside the block.

    Attributes: times, the stamps of the latest run, an int64 array (calls, threads, 2) in ns of the clock of
    time.monotonic_ns; 0 for threads that do not take part in a call.
    """

    def __init__(self, executor):
        address, calls = executor.call_table
        self.executor, self.address = executor, address
        self.times = np.zeros((calls, executor.nt, 2), np.int64)
        self.kernels = np.zeros(calls, np.uintp)
        self.number = 0

    def __enter__(self):
        cdef size_t address = self.address, stamps = self.times.ctypes.data
        cdef size_t kernels = self.kernels.ctypes.data
        cdef fe_call *calls = <fe_call *>address
        cdef Table *table
        cdef int i, number
        with lock:
            if self.kernels.size and calls[0].fn == stamped_kernel:
                raise CheckError("trace: this plan is being recorded", got="a second recording",
                                 expected="one recording at a time", fix="wait for the other thread")
            self.number = number = free_tables.pop()
            table = &tables[number]
            table.calls, table.kernels = calls, <fe_kernel *>kernels
            table.stamps, table.threads = <int64_t *>stamps, self.times.shape[1]
            for i in range(self.times.shape[0]):
                table.kernels[i] = calls[i].fn
                calls[i].node, calls[i].fn = number, stamped_kernel
        return self

    def __exit__(self, *exc):
        cdef size_t address = self.address
        cdef fe_call *calls = <fe_call *>address
        cdef int i
        with lock:
            for i in range(self.times.shape[0]):
                calls[i].fn, calls[i].node = tables[<int>self.number].kernels[i], 0
            free_tables.append(self.number)
