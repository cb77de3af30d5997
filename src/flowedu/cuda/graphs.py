"""CUDA graphs: work that was queued once, repeated by one call. Plans use them (plan.py), and users:

    y = model(x)                      # compiles what has to be compiled
    g = flow.cuda.CUDAGraph()
    with flow.cuda.graph(g):          # calls on cuda are recorded, not run
        y = model(x)
    x.copy_(batch)
    g.replay()                        # y has the values of this batch

PyCUDA does not support CUDA graphs: the driver's functions are called through ctypes.
"""
from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flowedu.cuda import engine
from flowedu.cuda.faults import FOR_GRAPHS, reported
from flowedu.cuda.launch import CAPTURED, KEPT
from flowedu.cuda.machine import machine
from flowedu.cuda.memory import pool
from flowedu.cuda.streams import Stream, current_stream
from flowedu.cuda.streams import stream as on_stream
from flowedu.errors import ArgumentError, KernelError

RELAXED = 2                             # CU_STREAM_CAPTURE_MODE_RELAXED: memory may be asked for meanwhile
NON_BLOCKING = 1                        # CU_STREAM_NON_BLOCKING: does not wait for the default stream, nor that for it
LAUNCH_FAILED = 719                     # CUDA_ERROR_LAUNCH_FAILED


@functools.cache
def _driver() -> ctypes.CDLL:
    return machine().library or ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    """Calls a function of the driver. Raises KernelError with what it says."""
    status = getattr(_driver(), name)(*arguments)
    if status == LAUNCH_FAILED and machine().library is not None:
        raise reported(machine())
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        raise KernelError(f"{name}: {(text.value or b'').decode(errors='replace') or f'CUDA error {status}'}",
                          expected="work that a CUDA graph can keep: nobody waits for it or looks at its numbers",
                          got=f"CUDA error {status}", fix=FOR_GRAPHS)


def _handle(s: Stream) -> ctypes.c_void_p:
    return ctypes.c_void_p(s.cuda_stream)


class Sequence:
    """What was queued on a stream from `begin` to `end`, ready to be queued again. nodes: how many pieces of work."""

    def __init__(self, s: Stream):
        self.stream, self.nodes, self._exec = s, 0, ctypes.c_void_p()

    def begin(self) -> None:
        _call("cuStreamBeginCapture_v2", _handle(self.stream), RELAXED)

    def end(self, failed: bool = False) -> None:
        """failed: nothing comes of it."""
        graph, count = ctypes.c_void_p(), ctypes.c_size_t()
        if failed:
            _driver().cuStreamEndCapture(_handle(self.stream), ctypes.byref(graph))
        else:
            _call("cuStreamEndCapture", _handle(self.stream), ctypes.byref(graph))
            _call("cuGraphGetNodes", graph, None, ctypes.byref(count))
            self.nodes = count.value
            _call("cuGraphInstantiateWithFlags", ctypes.byref(self._exec), graph, ctypes.c_ulonglong(0))
        if graph.value:
            _driver().cuGraphDestroy(graph)

    def launch(self, s: Stream) -> None:
        """Queues all of it on a stream."""
        _call("cuGraphLaunch", self._exec, _handle(s))

    def __del__(self):
        if self._exec.value and not sys.is_finalizing():
            _driver().cuGraphExecDestroy(self._exec)


def stream_apart(index: int) -> Stream:
    """A stream of a device that can be captured whatever other threads do on the default stream meanwhile."""
    return Stream(index, handle=machine().driver.Stream(NON_BLOCKING))


def captured(queue: Callable[[Stream], None], s: Stream) -> Sequence:
    """What `queue(s)` queues on the stream s, which is not the default one."""
    found = Sequence(s)
    found.begin()
    try:
        queue(s)
    except BaseException:
        found.end(failed=True)
        raise
    found.end()
    return found


class CUDAGraph:
    """Work that `with flow.cuda.graph(g):` keeps, and g.replay() repeats: on the tensors of that block, at their addresses.

    Memory that the block asks for stays the graph's until it goes; tensors it reads from outside must be kept by the user.
    Numbers of Python, such as learning rates, and draws of random numbers are those of the block at every replay.
    """

    def __init__(self):
        self._sequence: Sequence | None = None
        self._open: Sequence | None = None

    def capture_begin(self) -> None:
        """From here on what is queued on the current stream, which is not the default one, is kept."""
        s = current_stream()
        if self._sequence is not None or self._open is not None:
            raise ArgumentError("CUDAGraph: it is captured already", expected="a new graph", got="one with a capture",
                                fix="g.reset(), or another flow.cuda.CUDAGraph()")
        self._open = Sequence(s)
        self._open.begin()
        CAPTURED.add(s.cuda_stream)
        pool(s.device_index).private.add(s)
        self._before = engine.readers(s.device_index)

    def capture_end(self, failed: bool = False) -> None:
        """Keeps what was queued since capture_begin. Raises KernelError: something in between waited for the device."""
        found, self._open = self._open, None
        if found is None:
            raise ArgumentError("CUDAGraph: nothing is being captured", expected="capture_begin() before it", got="none")
        s = found.stream
        CAPTURED.discard(s.cuda_stream)
        self._readers = engine.readers(s.device_index, self._before)
        self._held = [*KEPT.values(), *engine.numbers()]             # what the kept launches point to
        try:
            found.end(failed)
            self._sequence = None if failed else found
        finally:
            if self._sequence is None:
                pool(s.device_index).private.discard(s)

    def replay(self) -> None:
        """Queues all of it on the current stream. Raises ArgumentError: nothing was captured yet."""
        if self._sequence is None:
            raise ArgumentError("CUDAGraph.replay: nothing was captured", expected="with flow.cuda.graph(g): ... before",
                                got="an empty graph")
        index = self._sequence.stream.device_index
        with machine().on(index):
            self._sequence.launch(current_stream(index))
            engine.note_readers(index, self._readers)

    def reset(self) -> None:
        """Forgets what was captured, and gives its memory back."""
        if self._sequence is not None:
            s, self._sequence = self._sequence.stream, None
            pool(s.device_index).private.discard(s)

    def __del__(self):
        if not sys.is_finalizing():
            self.reset()


@contextmanager
def graph(cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None) -> Iterator[None]:
    """Inside it calls on cuda are kept in the graph instead of done.

    Args:
        pool: as in PyTorch; every graph has memory of its own.
        stream: the one to capture; default: one of the graph's own.
    Raises KernelError: something in the block waits for the device, or reads numbers of it.
    """
    with on_stream(stream or Stream()):
        cuda_graph.capture_begin()
        try:
            yield
        except BaseException:
            cuda_graph.capture_end(failed=True)
            raise
        cuda_graph.capture_end()


def is_current_stream_capturing() -> bool:
    """Whether what is queued now is kept in a graph."""
    return current_stream().cuda_stream in CAPTURED
