"""CUDA graphs: work that is recorded once, and repeated by one call.

plan.py uses them, and programs can:

    y = model(x)                      # compiles the kernels
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

RELAXED = 2                             # CU_STREAM_CAPTURE_MODE_RELAXED: allows allocation meanwhile
NON_BLOCKING = 1                        # CU_STREAM_NON_BLOCKING: no implicit order with the default stream
LAUNCH_FAILED = 719                     # CUDA_ERROR_LAUNCH_FAILED


@functools.cache
def _driver() -> ctypes.CDLL:
    return machine().library or ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the driver. Raises KernelError: the driver reported an error."""
    status = getattr(_driver(), name)(*arguments)
    if status == LAUNCH_FAILED and machine().library is not None:
        raise reported(machine())
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        raise KernelError(f"{name}: {(text.value or b'').decode(errors='replace') or f'CUDA error {status}'}",
                          expected="work that a CUDA graph can keep: nobody waits for it or looks at its "
                          "numbers", got=f"CUDA error {status}", fix=FOR_GRAPHS)


def _handle(s: Stream) -> ctypes.c_void_p:
    return ctypes.c_void_p(s.cuda_stream)


class Sequence:
    """Work queued on a stream between `begin` and `end`, to be queued again. nodes: number of graph nodes."""

    def __init__(self, s: Stream):
        self.stream, self.nodes, self._exec = s, 0, ctypes.c_void_p()

    def begin(self) -> None:
        _call("cuStreamBeginCapture_v2", _handle(self.stream), RELAXED)

    def end(self, failed: bool = False) -> None:
        """End the capture. failed: discard the work."""
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
        """Queue all the work on a stream."""
        _call("cuGraphLaunch", self._exec, _handle(s))

    def __del__(self):
        if self._exec.value and not sys.is_finalizing():
            _driver().cuGraphExecDestroy(self._exec)


def stream_apart(index: int) -> Stream:
    """Return a new stream, whose capture is independent of other threads' work on the default stream."""
    return Stream(index, handle=machine().driver.Stream(NON_BLOCKING))


def captured(queue: Callable[[Stream], None], s: Stream) -> Sequence:
    """Return the work that `queue(s)` queues on the stream s, which must not be the default one."""
    sequence = Sequence(s)
    sequence.begin()
    try:
        queue(s)
    except BaseException:
        sequence.end(failed=True)
        raise
    sequence.end()
    return sequence


class CUDAGraph:
    """Work recorded by `with flow.cuda.graph(g):`, and repeated by g.replay() on the same tensors.

    Memory that the block allocates belongs to the graph. The user must keep alive the other tensors that the
    block reads. Every replay uses the addresses, the Python numbers (such as learning rates), and the random
    draws of the recording.
    """

    def __init__(self):
        self._sequence: Sequence | None = None
        self._open: Sequence | None = None

    def capture_begin(self) -> None:
        """Start to record the work of the current stream, which must not be the default one."""
        s = current_stream()
        if self._sequence is not None or self._open is not None:
            raise ArgumentError("CUDAGraph: it is captured already", expected="a new graph",
                                got="one with a capture", fix="g.reset(), or another flow.cuda.CUDAGraph()")
        self._open = Sequence(s)
        self._open.begin()
        CAPTURED.add(s.cuda_stream)
        pool(s.device_index).private.add(s)
        self._before = engine.readers(s.device_index)

    def capture_end(self, failed: bool = False) -> None:
        """End the recording. Raises KernelError: the work waited for the device."""
        sequence, self._open = self._open, None
        if sequence is None:
            raise ArgumentError("CUDAGraph: nothing is being captured", expected="capture_begin() before it",
                                got="none")
        s = sequence.stream
        CAPTURED.discard(s.cuda_stream)
        self._readers = engine.readers(s.device_index, self._before)
        self._held = [*KEPT.values(), *engine.numbers()]             # memory that the launches read
        try:
            sequence.end(failed)
            self._sequence = None if failed else sequence
        finally:
            if self._sequence is None:
                pool(s.device_index).private.discard(s)

    def replay(self) -> None:
        """Queue the work on the current stream. Raises ArgumentError: nothing was recorded."""
        if self._sequence is None:
            raise ArgumentError("CUDAGraph.replay: nothing was captured",
                                expected="with flow.cuda.graph(g): ... before", got="an empty graph")
        index = self._sequence.stream.device_index
        with machine().on(index):
            self._sequence.launch(current_stream(index))
            engine.note_readers(index, self._readers)

    def reset(self) -> None:
        """Discard the work, and free its memory."""
        if self._sequence is not None:
            s, self._sequence = self._sequence.stream, None
            pool(s.device_index).private.discard(s)

    def __del__(self):
        if not sys.is_finalizing():
            self.reset()


@contextmanager
def graph(cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None) -> Iterator[None]:
    """Record the calls of a block on cuda into a graph, instead of running them.

    Args:
        cuda_graph: a CUDAGraph without a recording.
        pool: accepted for compatibility and ignored; every graph has its own memory.
        stream: stream to record; default: a new one.

    Raises:
        KernelError: the block waits for the device, or reads values from it.
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
    """Return True if work on the current stream is recorded into a graph."""
    return current_stream().cuda_stream in CAPTURED
