"""Kernel calls from Python, made as in the engine: a C function, its arguments, and a team of threads.

    call(address, [x, y], nin=1, ints=[1])      # x and y are NumPy arrays

The structs match those of _kernels/core/abi.h, field by field.
"""
from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence

import numpy as np

from flowedu.core.values.dtype import as_dtype
from flowedu.errors import ArgumentError, format_value

MAX_DIM, MAX_THREADS = 8, 64


class View(ctypes.Structure):
    """fe_view: the address, dtype, shape, and strides of an array. Strides count elements."""

    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("shape", ctypes.c_int64 * MAX_DIM), ("stride", ctypes.c_int64 * MAX_DIM)]


class Barrier(ctypes.Structure):
    """fe_barrier: the barrier of a team of threads."""

    _fields_ = [(n, ctypes.c_int) for n in ("arrived", "phase", "fail",
                                            "stop")] + [("pad", ctypes.c_char * 48)]


class Team(ctypes.Structure):
    """fe_team: the index of a thread, and the number of threads."""

    _fields_ = [("tid", ctypes.c_int), ("nt", ctypes.c_int), ("barrier", ctypes.POINTER(Barrier))]


class Call(ctypes.Structure):
    """fe_call: the arguments of a kernel."""

    _fields_ = [("fn", ctypes.c_void_p), ("args", ctypes.POINTER(View)), ("nin", ctypes.c_int32),
                ("nargs", ctypes.c_int32),
                ("ints", ctypes.POINTER(ctypes.c_int64)), ("reals", ctypes.POINTER(ctypes.c_double)),
                ("work", ctypes.c_void_p), ("extra", ctypes.c_void_p), ("detail", ctypes.c_int64),
                ("parallel", ctypes.c_int32), ("node", ctypes.c_int32), ("kept", ctypes.c_int32)]


KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Call), ctypes.POINTER(Team), ctypes.c_void_p)


def view(a: np.ndarray) -> View:
    """Return the view of an array. Raises ArgumentError for other types or dtypes, or more than 8 axes."""
    if not isinstance(a, np.ndarray) or a.ndim > MAX_DIM:
        raise ArgumentError("call: an argument is no array",
                            expected=f"NumPy arrays of at most {MAX_DIM} axes", got=format_value(a))
    steps = [s // a.itemsize for s in a.strides]
    return View(a.ctypes.data, as_dtype(a.dtype).code, a.ndim, (ctypes.c_int64 * MAX_DIM)(*a.shape),
                (ctypes.c_int64 * MAX_DIM)(*steps))


class Bound:
    """Kernel with its arguments. Calling it runs the kernel on every thread of a team and returns its status.

    The status is 0 (FE_OK) or an error code; `detail` then holds the kernel's detail of the error.

    Args:
        address: address of a kernel, such as `flowedu._kernels.TABLE["softmax", 0][0]`.
        arrays: inputs, then outputs. Outputs must have the right shapes, because a kernel checks nothing.
        nin: number of inputs. ints, reals: the attributes. work: bytes of scratch memory.

    Raises:
        ArgumentError: `address`, `threads`, or an array is invalid.
    """

    def __init__(self, address: int, arrays: Sequence[np.ndarray], nin: int, ints: Sequence[int] = (),
                 reals: Sequence[float] = (), threads: int = 1, work: int = 0):
        if (type(address) is not int or address <= 0 or type(threads) is not int
            or not 1 <= threads <= MAX_THREADS):
            raise ArgumentError("call: this cannot be called",
                                got=f"{format_value(address)}, threads={format_value(threads)}",
                                expected=f"the address of a kernel, 1 to {MAX_THREADS} threads")
        self._arrays, self._scratch = arrays, np.full(work + 64, 0xA5, np.uint8)   # keep both alive
        aligned = self._scratch.ctypes.data + -self._scratch.ctypes.data % 64
        self._call = Call(address, (View * len(arrays))(*map(view, arrays)), nin, len(arrays),
                          (ctypes.c_int64 * max(len(ints), 1))(*ints),
                          (ctypes.c_double * max(len(reals), 1))(*reals), aligned, None, 0, threads > 1, 0)
        self._barrier = Barrier()
        self._teams = [Team(tid, threads, ctypes.pointer(self._barrier)) for tid in range(threads)]
        self._run = functools.partial(KERNEL(address), ctypes.byref(self._call), ctypes.byref(self._teams[0]),
                                      None)

    def __call__(self) -> int:
        if len(self._teams) == 1:
            return self._run()
        status = [0] * len(self._teams)

        def one(tid: int) -> None:
            status[tid] = KERNEL(self._call.fn)(ctypes.byref(self._call), ctypes.byref(self._teams[tid]),
                                                None)

        others = [threading.Thread(target=one, args=(tid,)) for tid in range(1, len(status))]
        for t in others:
            t.start()
        one(0)
        for t in others:
            t.join()
        return next((s for s in status if s), 0)

    def alone(self, tid: int) -> int:
        """Run the part of one thread of the team, for a kernel that does not wait for the others."""
        return KERNEL(self._call.fn)(ctypes.byref(self._call), ctypes.byref(self._teams[tid]), None)

    @property
    def detail(self) -> int:
        return self._call.detail


WORK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(Call), ctypes.c_int)


def bound_with_work(address: int, work: int, arrays: Sequence[np.ndarray], nin: int, ints: Sequence[int] = (),
                    threads: int = 1) -> Bound:
    """Return a Bound. work: address of the function that returns the bytes of scratch memory; 0 for none."""
    if not work:
        return Bound(address, arrays, nin, ints, threads=threads)
    probe = Bound(address, arrays, nin, ints)._call
    return Bound(address, arrays, nin, ints, threads=threads,
                 work=max(0, WORK(work)(ctypes.byref(probe), threads)))


def call(address: int, arrays: Sequence[np.ndarray], nin: int, **more) -> int:
    """Call the kernel at `address` once. Arguments and result are those of Bound."""
    return Bound(address, arrays, nin, **more)()
