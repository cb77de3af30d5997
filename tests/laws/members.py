"""Runs one member of a team of threads at a time, to find the elements of the result that it writes.

A kernel is a C function that every thread of a team calls (_kernels/core/abi.h). Called one after another,
the members do not disturb each other, so that a part computed by two of them shows on every run and every
machine.
"""
import ctypes
import threading
import time

import numpy as np

from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec, row_major

MAX_DIM, SENTINELS = 8, (0xA5, 0x5A)
ADDRESS, I32, I64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64


class View(ctypes.Structure):
    _fields_ = [("data", ADDRESS), ("dtype", I32), ("ndim", I32), ("shape", I64 * MAX_DIM),
                ("stride", I64 * MAX_DIM)]


class Barrier(ctypes.Structure):
    _fields_ = [("arrived", ctypes.c_int), ("phase", ctypes.c_int), ("fail", ctypes.c_int),
                ("stop", ctypes.c_int), ("pad", ctypes.c_char * 48)]


class Team(ctypes.Structure):
    _fields_ = [("tid", ctypes.c_int), ("nt", ctypes.c_int), ("barrier", ctypes.POINTER(Barrier))]


class Call(ctypes.Structure):
    _fields_ = [("fn", ADDRESS), ("args", ctypes.POINTER(View)), ("nin", I32), ("nargs", I32),
                ("ints", ADDRESS),
                ("reals", ADDRESS), ("work", ADDRESS), ("extra", ADDRESS), ("detail", I64), ("parallel", I32),
                ("node", I32), ("kept", I32)]


KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Call), ctypes.POINTER(Team), ADDRESS)
WORK = ctypes.CFUNCTYPE(I64, ctypes.POINTER(Call), ctypes.c_int)


def fill_view(view, a):
    view.data, view.dtype, view.ndim = a.ctypes.data, as_dtype(a.dtype).code, a.ndim
    for d, (n, s) in enumerate(zip(a.shape, row_major(a.shape))):
        view.shape[d], view.stride[d] = n, s


def find_writers(op, arrays, attrs, size: int) -> list[np.ndarray] | None:
    """Return, for each output, how many members of a team of `size` write each element. None: the members
    synchronize.
    """
    arrays = [np.array(a, order="C") for a in arrays]
    specs = [Spec(a.shape, as_dtype(a.dtype)) for a in arrays]
    outs = op.infer(specs, attrs)
    names = op.bind(specs, attrs, outs=outs)
    (function, work), extra = op.kernel_for(specs, outs, names)
    ints, reals = op.ask(op.pack, names) if op.pack is not None else ((), ())
    ints, reals = np.array([*ints, 0], np.int64), np.array([*reals, 0], np.float64)
    results = [np.empty(s.shape, s.dtype.numpy) for s in outs]
    views = (View * (len(arrays) + len(results)))()
    for view, a in zip(views, [*arrays, *results]):
        fill_view(view, a)
    call = Call(function, views, len(arrays), len(views), ints.ctypes.data, reals.ctypes.data, None,
                None if extra is None else extra.address, 0, 1, 0, 0)
    scratch = np.zeros((WORK(work)(call, size) if work else 0) + 64, np.uint8)
    call.work = -(-scratch.ctypes.data // 64) * 64
    writers = [np.zeros(y.shape, np.int64) for y in results]
    for member in range(size):
        written = [np.zeros(y.shape, bool) for y in results]
        for sentinel in SENTINELS:
            scratch[:] = 0
            for y in results:
                y.reshape(-1).view(np.uint8)[:] = sentinel
            before = [y.copy() for y in results]
            barrier = Barrier()
            status, met = run_alone(KERNEL(function), call, Team(member, size, ctypes.pointer(barrier)),
                                    barrier)
            if met:
                return None
            assert status == 0, status
            for changed, y, old in zip(written, results, before):
                different = y.reshape(-1).view(np.uint8) != old.reshape(-1).view(np.uint8)
                changed |= different.reshape(*y.shape, y.itemsize).any(-1)
        for count, changed in zip(writers, written):
            count += changed
    return writers


def run_alone(kernel, call, team, barrier) -> tuple[int, bool]:
    """Return (status, whether the member waited for others). A waiting member continues, and its result is
    not used.
    """
    done = threading.Event()

    def let_through():
        while not done.is_set():
            if barrier.arrived:
                barrier.phase += 1
            time.sleep(1e-4)

    other = threading.Thread(target=let_through)
    other.start()
    try:
        status = kernel(call, team, None)
    finally:
        done.set()
        other.join()
    return status, bool(barrier.arrived)
