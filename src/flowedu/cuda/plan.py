"""GPU plans: a Program (core/graph/program.py) runs them if its variables and inputs are on a GPU.

Passes, planner, and offsets are the CPU's. The arena is one block of the device's memory. It is followed by
buffers for the inputs, for constants, and for values that are stored in main memory (learning rates, the
count of steps). No address changes from run to run, so every launch is recorded once, with its arguments
packed. A run copies the inputs into their buffers, repeats the launches, and copies the fetched values out.
The launches form a CUDA graph (graphs.py). Only launches that draw random values are packed again for each
run, because the draw is an argument.

As with eager calls, a run returns without waiting; a job waits for the arrays it returns. Errors of a kernel
are raised at that point, or at the step itself with FLOWEDU_CUDA_BLOCKING=1.
"""
from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

import numpy as np

from flowedu.core.eager.dispatch import Entry, TensorBase, get_num_threads, new_on_device, prepare
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.devices import device_name
from flowedu.core.graph.memory import ALIGN, Buffer, arena_out_of_memory, rounded
from flowedu.core.graph.plan import Plan, Region, Step
from flowedu.core.ops.view import contiguous
from flowedu.core.values.spec import Spec, row_major
from flowedu.cuda.by_float32 import by_float32
from flowedu.cuda.ends import Ends, spread
from flowedu.cuda.engine import BLOCKING, Ready, look, note_readers
from flowedu.cuda.faults import check
from flowedu.cuda.graphs import Sequence, captured, is_current_stream_capturing, stream_apart
from flowedu.cuda.launch import KEPT, Queued
from flowedu.cuda.machine import machine
from flowedu.cuda.memory import device_memory
from flowedu.cuda.streams import Event, Stream, current_stream
from flowedu.cuda.view import View
from flowedu.errors import DeviceError, FlowError, KernelError, OutOfMemoryError
from flowedu.tensor.inplace.writing import bump
from flowedu.tensor.interop.protocols import memory_of

OF_THE_CPU = ("inverted_residual", "layout", "packed", "update")        # passes for the caches of a CPU


class OnGpu:
    """Settings of a Program for device `place` (1 + GPU). off: passes to skip; lower: pass to run last."""

    off = OF_THE_CPU
    lower = staticmethod(by_float32)

    def __init__(self, place: int):
        self.place = place

    def scratch(self, step: Step) -> int:
        """Return the bytes of scratch of a step's kernel. Raises UnsupportedError: there is no kernel."""
        ready = prepared(step)
        views = [View(0, p.spec.dtype, p.spec.shape, p.strides) for p in step.places]
        return ready.row.work(views, ready.ints, ready.reals)

    def executor(self, plan: Plan, threads: int = 0) -> DeviceExecutor:
        return DeviceExecutor(plan, self.place, threads)


def prepared(step: Step) -> Ready:
    """Return the cached data of a step's call, created on first use."""
    entry: Entry = step.entry
    if entry.launched is None:
        try:
            entry.launched = Ready(entry)
        except FlowError as e:
            line = step.node.line if step.node is not None else ""
            raise e.with_texts(problem=f"{step.name}: {e.problem}", at=line,
                               fix="compute it outside the graph, or run the graph on the CPU") from None
    return entry.launched


def _is_local_tensor(x, spec: Spec, place: int) -> bool:
    """Return True for a contiguous local tensor of this spec on device `place`."""
    if not isinstance(x, TensorBase) or x._device != place:
        return False
    if not x.is_eager or x.global_layout is not None:
        return False
    return x.spec == spec and x._is_row_major()


def _is_plain_array(a, spec: Spec) -> bool:
    """Return True for an ndarray of this spec, C-contiguous and aligned.

    Subclasses may have other semantics.
    """
    if type(a) is not np.ndarray:
        return False
    if a.dtype != spec.dtype.numpy or a.shape != spec.shape:
        return False
    return a.flags.c_contiguous and a.flags.aligned


class DeviceExecutor:
    """Executor of a Plan on one GPU. `run(arguments)` returns the outputs, as new tensors (or arrays).

    Attributes: plan; nt, a number of threads, which is not used; runs, counter, written, as_tensors: as in
    the CPU's Executor.
    """

    pythons = ()

    def __init__(self, plan: Plan, place: int, threads: int = 0):
        self.plan, self.place = plan, place
        self.index, self.nt = place - 1, threads or get_num_threads()
        self.runs, self.as_tensors = 0, True
        self.counter: Tensor | None = None
        self.written: list[Tensor] = []
        self.inputs = list(plan.graph.inputs.values())
        self.last: Stream | None = None
        self.parts: list[Sequence | int] | None = None    # the launches as CUDA graphs (_capture)
        fetched = self._find_outputs()
        self.offsets, size = self._place_buffers([p for p, _ in fetched])
        with machine().on(self.index):
            try:
                self.memory = device_memory(max(size, ALIGN), self.index)
            except OutOfMemoryError as e:
                if not plan.arena:
                    raise e from None
                raise arena_out_of_memory(plan).with_texts(problem=e.problem, expected=e.expected) from None
            self.base = self.memory.address
            regions = [(self.base + at, b.nbytes) for b, at in self.offsets.items()]
            self.ends = Ends(self.base, size, plan.buffers, regions) if machine().checks else None
            self._bind(fetched)

    # ---- addresses
    def _find_outputs(self) -> list[tuple[Region, Step | None]]:
        """Return the region of each output, with the step that makes it contiguous, or None."""
        outputs: list[tuple[Region, Step | None]] = []
        for value in self.plan.graph.outputs:
            p = self.plan.where[value]
            if p.contiguous:
                outputs.append((p, None))
            else:
                entry = prepare(contiguous, [p.spec], ())
                out = Region(Buffer(f"{value.name} packed", "output", p.spec.nbytes), p.spec,
                             row_major(p.spec.shape))
                outputs.append((out, Step(f"pack {value.name}", entry, [p, out], None)))
        return outputs

    def _place_buffers(self, fetched: list[Region]) -> tuple[dict[Buffer, int], int]:
        """Return the offsets of buffers after the arena, and the size of all memory in bytes."""
        written = {step.places[k].buffer for step in self.plan.steps if step.node for k in step.node.mutates}
        buffers = [b for b in self.plan.buffers if not b.in_arena and not self._is_on_device(b, b in written)]
        offsets, size = {}, spread() * rounded(self.plan.arena)
        for b in dict.fromkeys([*buffers, *(p.buffer for p in fetched if p.buffer.kind == "output")]):
            offsets[b], size = size, size + spread() * rounded(b.nbytes)
        return offsets, size

    def _is_on_device(self, b: Buffer, written: bool) -> bool:
        """Return True if a buffer is a tensor of the device, and raise DeviceError if it must be moved there.

        CPU tensors of one element are copied to the device by each run, unless the plan writes them.
        """
        if b.array is None or b.array._device == self.place:
            return b.array is not None
        if b.kind == "variable" and (b.array._device or b.array._numel != 1 or written):
            raise DeviceError(f"{self.plan.graph.name}: {b.name} is on another device than the graph",
                              expected=device_name(self.place), got=device_name(b.array._device),
                              fix=f'move it there: .to("{device_name(self.place)}")')
        return False

    def _address(self, p: Region) -> int:
        b = p.buffer
        if b.in_arena:
            at = self.base + spread() * b.offset
        else:
            at = self.base + self.offsets[b] if b in self.offsets else b.array.address
        return at + p.offset * p.spec.dtype.bytes

    def _view(self, p: Region) -> View:
        return View(self._address(p), p.spec.dtype, p.spec.shape, p.strides)

    def _bind(self, fetched: list[tuple[Region, Step | None]]) -> None:
        """Record every launch, and copy the constants to the device."""
        plan = self.plan
        self.steps = [*plan.steps, *(step for _, step in fetched if step is not None)]
        self.views = [[self._view(p) for p in step.places] for step in self.steps]
        self.draws = [i for i, s in enumerate(self.steps) if s.entry.op.random]
        self.readers = {s.entry.op.name: s.entry.op for s in self.steps if prepared(s).indexes}
        self.queues = [self._record(i) for i in range(len(self.steps))]
        self.held = [*KEPT.values()]                      # constants that launches read
        self.feeds = [(self._address(plan.where[v]), v.spec) for v in self.inputs]
        self.outs = [(self._address(p), p.spec) for p, _ in fetched]
        self.lasting = [(b.array, b.array.address, b.array.strides) for b in plan.buffers
                        if b.kind == "variable"]
        self.numbers = [[self.base + self.offsets[b], memory_of(b.array), b""] for b in self.offsets
                        if b.kind in ("variable", "host") and b.nbytes]
        for b in self.offsets:
            if b.kind == "const" and b.nbytes:
                machine().driver.memcpy_htod(self.base + self.offsets[b], memory_of(b.array))

    def _record(self, i: int) -> list[Queued]:
        """Return the launches of step i in this run."""
        step, ready = self.steps[i], prepared(self.steps[i])
        launches: list[Queued] = []
        ints = [ready.ints[0], self.runs, *ready.ints[2:]] if step.entry.op.random else ready.ints
        work = self.base + spread() * step.scratch.offset if step.scratch is not None else 0
        with check(step.name):
            ready.row(self.views[i], ints, ready.reals, formula=ready.formula, work=work, record=launches)
        return launches

    # ---- methods that a Program calls
    def stale(self, share: int = 1) -> bool:
        """Return True if the address or layout of a variable has changed since its launches were recorded."""
        return any(t.address != at or t.strides != strides for t, at, strides in self.lasting)

    def takes(self, arguments: tuple) -> bool:
        """Return True for local tensors on the device, of the right shapes and dtypes, contiguous."""
        if len(arguments) != len(self.inputs):
            return False
        return all(_is_local_tensor(x, v.spec, self.place) for x, v in zip(arguments, self.inputs))

    def accepts(self, arguments: tuple) -> bool:
        """Return True for ndarrays of the right shapes and dtypes, C-contiguous and aligned."""
        if len(arguments) != len(self.inputs):
            return False
        return all(_is_plain_array(a, v.spec) for a, v in zip(arguments, self.inputs))

    def run(self, arguments: tuple) -> list:
        """Run one step. `arguments`: tensors that it `takes`, or arrays that it `accepts`.

        Returns tensors, or arrays if as_tensors is False.
        """
        name = self.plan.graph.name
        with machine().on(self.index), check(name):
            stream = self._begin(arguments)
            self._queue(stream)
            note_readers(self.index, self.readers)
            self.runs += 1
            if self.counter is not None:
                self.counter.numpy()[0] = self.runs
            for t in self.written:                        # the tape's saved values of these are overwritten
                bump(t)
            return self._fetch_tensors(stream) if self.as_tensors else self._fetch_arrays(stream)

    def _begin(self, arguments: tuple) -> Stream:
        """Copy the inputs, and CPU numbers that have changed, into their buffers. Returns the stream."""
        driver, stream = machine().driver, current_stream(self.index)
        if stream != self.last:
            if self.last is not None and not is_current_stream_capturing():
                stream.wait_stream(self.last)
            if stream != self.memory.stream:              # the memory's next owner must wait for this stream
                self.memory.users = {*(self.memory.users or ()), stream}
            self.last = stream
        if self.counter is not None:  # a reloaded state continues with the same dropout masks
            self.runs = int(self.counter.numpy()[0])
        for (at, spec), x in zip(self.feeds, arguments):
            if spec.nbytes and isinstance(x, np.ndarray):
                driver.memcpy_htod_async(at, x, stream.handle)
            elif spec.nbytes:
                driver.memcpy_dtod_async(at, x.address, spec.nbytes, stream.handle)
        for number in self.numbers:
            at, live, sent = number
            if sent != live.raw:
                number[2] = now = live.raw
                driver.memcpy_htod_async(at, now, stream.handle)
        return stream

    def _queue(self, stream: Stream) -> None:
        """Queue all steps. From the second run on, steps between two random ones are one CUDA graph."""
        for i in self.draws:
            self.queues[i] = self._record(i)
        apart = BLOCKING or is_current_stream_capturing()
        if apart or self.parts is None:                   # in the first run, immediate errors name their step
            self._repeat_all(range(len(self.steps)), stream)
        else:
            for part in self.parts:
                part.launch(stream) if isinstance(part, Sequence) else self._repeat(part, stream)
        if not apart and self.parts is None:
            self.parts = self._capture()

    def _capture(self) -> list[Sequence | int]:
        """Return the steps as CUDA graphs, with the indices of steps that are packed for each run."""
        parts: list[Sequence | int] = []
        s = stream_apart(self.index)
        for begin, end in pairwise([-1, *self.draws, len(self.steps)]):
            if any(self.queues[i] for i in range(begin + 1, end)):
                parts.append(captured(partial(self._repeat_all, range(begin + 1, end)), s))
            parts.append(end)
        return parts[:-1]

    def _repeat_all(self, steps: Iterable[int], stream: Stream) -> None:
        for i in steps:
            self._repeat(i, stream)

    def _repeat(self, i: int, stream: Stream) -> None:
        """Queue step i on the stream."""
        handle, step = stream.handle, self.steps[i]
        if self.ends is not None:
            self.ends.before(i, stream.cuda_stream)
        with check(f"{self.plan.graph.name}: {step.name}", step.node.line if step.node is not None else ""):
            for _, start, arguments in self.queues[i]:
                start(*arguments, handle)
            if BLOCKING:
                machine().driver.Context.synchronize()
                note_readers(self.index, {step.entry.op.name: step.entry.op} if prepared(step).indexes
                             else {})
                self._look(step)

    def _fetch_tensors(self, stream: Stream) -> list[TensorBase]:
        out = []
        for at, spec in self.outs:
            y = new_on_device(spec.shape, spec.dtype, self.place)
            if spec.nbytes:
                machine().driver.memcpy_dtod_async(y.address, at, spec.nbytes, stream.handle)
            out.append(y)
        return out

    def _fetch_arrays(self, stream: Stream) -> list[np.ndarray]:
        out = []
        for at, spec in self.outs:
            a = np.empty(spec.shape, spec.dtype.numpy or np.uint16)
            if spec.nbytes:
                machine().driver.memcpy_dtoh_async(a, at, stream.handle)
            out.append(a)
        stream.synchronize()
        self._look()
        return out

    def _look(self, step: Step | None = None) -> None:
        """Raise the error that a kernel reported, with the name of the step or the graph."""
        try:
            look(self.index)
        except KernelError as e:
            where = self.plan.graph.name if step is None else f"{self.plan.graph.name}: {step.name}"
            raise e.with_texts(problem=f"{where}: {e.problem}", at=step.node.line if step and step.node
                               else e.at) from None

    def times(self, arguments: tuple, repeats: int = 20) -> list[float]:
        """Return the seconds of each call: the least of `repeats` runs. Writes variables, as `run` does."""
        best = [float("inf")] * len(self.plan.steps)
        with machine().on(self.index):
            stream = self._begin(arguments)
            for _ in range(repeats):
                for i in range(len(best)):
                    begin, end = Event(enable_timing=True), Event(enable_timing=True)
                    begin.record(stream)
                    self._repeat(i, stream)
                    end.record(stream)
                    end.synchronize()
                    best[i] = min(best[i], begin.elapsed_time(end) / 1e3)
        return best
