"""GPU plans: a Program (core/graph/program.py) runs them if its variables and inputs are on a GPU.

Passes, planner and offsets are those of the CPU. The arena is one block of the device's memory; buffers
follow it for the inputs, for constants, and for values that are stored in main memory (learning rates, the
count of steps). No address changes from run to run, so every launch is recorded once, its arguments packed. A
run copies the inputs into their buffers, repeats the launches, and copies the fetched values out. The
launches form a CUDA graph (graphs.py); only those that draw random values are packed for each run, as the
draw is an argument.

As with eager calls, a run returns without waiting; a job waits for the arrays it returns. Errors of a kernel
are raised at that point, or at the step itself with FLOWEDU_CUDA_BLOCKING=1.
"""
from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

import numpy as np

from flowedu.core.eager.dispatch import Entry, TensorBase, get_num_threads, new_on_device, prepare
from flowedu.core.graph.devices import device_name
from flowedu.core.graph.memory import ALIGN, Buffer, arena_out_of_memory, rounded
from flowedu.core.graph.plan import Plan, Region, Step
from flowedu.core.ops.view import contiguous
from flowedu.core.values.spec import row_major
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
from flowedu.tensor.interop import memory_of
from flowedu.tensor.writing import bump

OF_THE_CPU = ("inverted_residual", "layout", "packed", "update")        # passes whose reasons are a processor's caches


class OnGpu:
    """What a Program asks of the device `place` (1 + the GPU's number).

    Attributes: off, passes that are of no use there; lower, one that is run last.
    """

    off = OF_THE_CPU
    lower = staticmethod(by_float32)

    def __init__(self, place: int):
        self.place = place

    def scratch(self, step: Step) -> int:
        """Bytes of scratch that the kernel of a step wants. Raises UnsupportedError: there is no such kernel."""
        ready = prepared(step)
        views = [View(0, p.spec.dtype, p.spec.shape, p.strides) for p in step.places]
        return ready.row.work(views, ready.ints, ready.reals)

    def executor(self, plan: Plan, threads: int = 0) -> DeviceExecutor:
        return DeviceExecutor(plan, self.place, threads)


def prepared(step: Step) -> Ready:
    """What is known of the call of a step."""
    entry: Entry = step.entry
    if entry.launched is None:
        try:
            entry.launched = Ready(entry)
        except FlowError as e:
            raise e.told(problem=f"{step.name}: {e.problem}", at=step.node.line if step.node is not None else "",
                         fix="compute it outside the graph, or run the graph on the CPU") from None
    return entry.launched


class DeviceExecutor:
    """Runs a Plan on one GPU. `run(arguments)` returns the outputs, fresh tensors there (or arrays).

    Attributes: plan; nt, a number of threads, which nothing here depends on; runs, counter, written, as_tensors: those of
    the CPU's Executor.
    """

    pythons = ()

    def __init__(self, plan: Plan, place: int, threads: int = 0):
        self.plan, self.place, self.index, self.nt = plan, place, place - 1, threads or get_num_threads()
        self.runs, self.as_tensors, self.counter, self.written = 0, True, None, []
        self.inputs = list(plan.graph.inputs.values())
        self.last: Stream | None = None
        self.parts: list[Sequence | int] | None = None    # the launches as CUDA graphs (_captured)
        fetched = self._fetched()
        self.rooms, size = self._rooms([p for p, _ in fetched])
        with machine().on(self.index):
            try:
                self.memory = device_memory(max(size, ALIGN), self.index)
            except OutOfMemoryError as e:
                if not plan.arena:
                    raise e from None
                raise arena_out_of_memory(plan).told(problem=e.problem, expected=e.expected) from None
            self.base = self.memory.address
            rooms = [(self.base + at, b.nbytes) for b, at in self.rooms.items()]
            self.ends = Ends(self.base, size, plan.buffers, rooms) if machine().checks else None
            self._bind(fetched)

    # ---- where everything is
    def _fetched(self) -> list[tuple[Region, Step | None]]:
        """Where each output lies, and the step that packs it, row by row, where it lies otherwise."""
        found = []
        for value in self.plan.graph.outputs:
            p = self.plan.where[value]
            if p.contiguous:
                found.append((p, None))
            else:
                entry = prepare(contiguous, [p.spec], ())
                out = Region(Buffer(f"{value.name} packed", "output", p.spec.nbytes), p.spec, row_major(p.spec.shape))
                found.append((out, Step(f"pack {value.name}", entry, [p, out], None)))
        return found

    def _rooms(self, fetched: list[Region]) -> tuple[dict[Buffer, int], int]:
        """Offsets behind the arena of what is not in it and not on the device either; the bytes of all."""
        written = {step.places[k].buffer for step in self.plan.steps if step.node for k in step.node.mutates}
        buffers = [b for b in self.plan.buffers if not b.in_arena and not self._there(b, b in written)]
        rooms, size = {}, spread() * rounded(self.plan.arena)
        for b in dict.fromkeys([*buffers, *(p.buffer for p in fetched if p.buffer.kind == "output")]):
            rooms[b], size = size, size + spread() * rounded(b.nbytes)
        return rooms, size

    def _there(self, b: Buffer, written: bool) -> bool:
        """Whether a buffer is a tensor of the device. Numbers of main memory get a room, unless the plan writes them."""
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
            at = self.base + self.rooms[b] if b in self.rooms else b.array.address
        return at + p.offset * p.spec.dtype.bytes

    def _view(self, p: Region) -> View:
        return View(self._address(p), p.spec.dtype, p.spec.shape, p.strides)

    def _bind(self, fetched: list[tuple[Region, Step | None]]) -> None:
        """Record every launch; bring the constants there."""
        plan = self.plan
        self.steps = [*plan.steps, *(step for _, step in fetched if step is not None)]
        self.views = [[self._view(p) for p in step.places] for step in self.steps]
        self.draws = [i for i, s in enumerate(self.steps) if s.entry.op.random]
        self.readers = {s.entry.op.name: s.entry.op for s in self.steps if prepared(s).indexes}
        self.queues = [self._record(i) for i in range(len(self.steps))]
        self.held = [*KEPT.values()]                      # numbers that launches point to
        self.feeds = [(self._address(plan.where[v]), v.spec) for v in self.inputs]
        self.outs = [(self._address(p), p.spec) for p, _ in fetched]
        self.lasting = [(b.array, b.array.address, b.array.strides) for b in plan.buffers if b.kind == "variable"]
        self.numbers = [[self.base + self.rooms[b], memory_of(b.array), b""] for b in self.rooms
                        if b.kind in ("variable", "host") and b.nbytes]
        for b in self.rooms:
            if b.kind == "const" and b.nbytes:
                machine().driver.memcpy_htod(self.base + self.rooms[b], memory_of(b.array))

    def _record(self, i: int) -> list[Queued]:
        """The launches of step i, in this run."""
        step, ready, found = self.steps[i], prepared(self.steps[i]), []
        ints = [ready.ints[0], self.runs, *ready.ints[2:]] if step.entry.op.random else ready.ints
        work = self.base + spread() * step.scratch.offset if step.scratch is not None else 0
        with check(step.name):
            ready.row(self.views[i], ints, ready.reals, formula=ready.formula, work=work, record=found)
        return found

    # ---- what a Program asks
    def stale(self, share: int = 1) -> bool:
        """Whether a variable was given other memory, or another layout, since this was laid out."""
        return any(t.address != at or t.strides != strides for t, at, strides in self.lasting)

    def takes(self, arguments: tuple) -> bool:
        """Whether these can be run as they are: local tensors on the device, of the right shape and dtype, contiguous."""
        return len(arguments) == len(self.inputs) and all(
            isinstance(x, TensorBase) and x._device == self.place and x.is_eager and x.global_layout is None and x.spec ==
            v.spec and x._is_row_major() for x, v in zip(arguments, self.inputs))

    def accepts(self, arguments: tuple) -> bool:
        """Whether these can be run as they are: ndarrays of the right shape and dtype, C-contiguous."""
        return len(arguments) == len(self.inputs) and all(
            type(a) is np.ndarray and a.dtype == v.spec.dtype.numpy and a.shape == v.spec.shape and a.flags.c_contiguous
            and a.flags.aligned for a, v in zip(arguments, self.inputs))

    def run(self, arguments: tuple) -> list:
        """One step. `arguments`: tensors that it `takes`, or arrays that it `accepts`; the outputs are the same."""
        name = self.plan.graph.name
        with machine().on(self.index), check(name):
            stream = self._begin(arguments)
            self._queue(stream)
            note_readers(self.index, self.readers)
            self.runs += 1
            if self.counter is not None:
                self.counter.numpy()[0] = self.runs
            for t in self.written:                        # for the tape: what it saved of them is gone
                bump(t)
            return self._fetch_tensors(stream) if self.as_tensors else self._fetch_arrays(stream)

    def _begin(self, arguments: tuple) -> Stream:
        """Inputs into their rooms, and numbers of main memory that have changed."""
        driver, stream = machine().driver, current_stream(self.index)
        if stream != self.last:
            if self.last is not None and not is_current_stream_capturing():
                stream.wait_stream(self.last)
            if stream != self.memory.stream:              # whose next owner has to wait for this one's work
                self.memory.users = {*(self.memory.users or ()), stream}
            self.last = stream
        if self.counter is not None:                      # a reloaded state goes on with the same dropout masks
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
        """All steps on the stream. From the second run on the steps between two that draw random numbers are one call."""
        for i in self.draws:
            self.queues[i] = self._record(i)
        apart = BLOCKING or is_current_stream_capturing()
        if apart or self.parts is None:                   # the first time: what goes wrong at once names its step
            self._repeat_all(range(len(self.steps)), stream)
        else:
            for part in self.parts:
                part.launch(stream) if isinstance(part, Sequence) else self._repeat(part, stream)
        if not apart and self.parts is None:
            self.parts = self._captured()

    def _captured(self) -> list[Sequence | int]:
        """The steps as CUDA graphs, and the numbers of those that are packed anew for each run."""
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
        """Step i on the stream."""
        handle, step = stream.handle, self.steps[i]
        if self.ends is not None:
            self.ends.before(i, stream.cuda_stream)
        with check(f"{self.plan.graph.name}: {step.name}", step.node.line if step.node is not None else ""):
            for _, start, arguments in self.queues[i]:
                start(*arguments, handle)
            if BLOCKING:
                machine().driver.Context.synchronize()
                note_readers(self.index, {step.entry.op.name: step.entry.op} if prepared(step).indexes else {})
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
        """Raises KernelError: a kernel met an index out of range, in a step, or in some step."""
        try:
            look(self.index)
        except KernelError as e:
            where = self.plan.graph.name if step is None else f"{self.plan.graph.name}: {step.name}"
            raise e.told(problem=f"{where}: {e.problem}", at=step.node.line if step and step.node else e.at) from None

    def times(self, arguments: tuple, repeats: int = 20) -> list[float]:
        """Seconds each call takes (the least of `repeats` runs), called one by one. Writes variables, as `run` does."""
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
