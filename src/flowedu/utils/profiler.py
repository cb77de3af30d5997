"""flow.profiler: times and bytes of the ops that a thread runs, as in torch.profiler.

    with flow.profiler.profile(record_shapes=True) as p:
        with flow.profiler.record_function("step"):
            loss = model(x).sum()
            loss.backward()
    print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    p.export_chrome_trace("trace.json")

A profile is an observer of the dispatcher (core/eager/switches.pxi). It gets each call of an op, of the
forward and the backward pass, and runs it unchanged. Without a profile, calls do not pass through this file.
Calls that an nn.Graph traces are not measured, and a compiled step is not divided: `graph.profile(x)`
measures its calls.
"""
from __future__ import annotations

import functools
import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from flowedu.core.eager.dispatch import call_seeded, run_unobserved, set_observer
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import OpBase, current_interpreter
from flowedu.core.values.storage import bytes_in_use
from flowedu.core.values.thread_state import register_fields, thread_state
from flowedu.errors import ArgumentError, user_line
from flowedu.utils.profiler_events import EventList, FunctionEvent, FunctionEventAvg, Interval

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "ProfilerAction", "ProfilerActivity",
           "profile", "record_function", "schedule", "tensorboard_trace_handler"]

_running: list[Any] = []                # active profiles of all threads
# frames: the open ranges and calls of a thread; profiles: the number of profiles that it has started
register_fields(frames=(), profiles=0)


class ProfilerActivity(Enum):
    """Names of the devices that PyTorch can profile. Only times of the CPU are measured."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """Action of a profiler during a step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


_MEASURED = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


# ---- open events
class _Frame:
    """An open range or call: its start and the closed events inside it."""

    def __init__(self, name: str):
        self.name = name
        self.children: list[FunctionEvent] = []
        thread_state.frames = (*thread_state.frames, self)
        self.bytes = bytes_in_use()
        self.start = time.perf_counter_ns()

    def close(self, shapes: tuple = (), annotation: bool = True) -> None:
        """End the event, and add it to the active profiles and to the frame around it."""
        end, memory = time.perf_counter_ns(), bytes_in_use() - self.bytes
        outer = self._remove()
        if not _running:
            return
        memory = memory if any(p.profile_memory for p in _running) else 0
        stack = [user_line()] if any(p.with_stack for p in _running) else []
        event = FunctionEvent(self.name, (self.start, end), self.children, memory, shapes, stack, annotation)
        for p in _running:
            p._record(event)
        if outer is not None:
            outer.children.append(event)

    def drop(self) -> None:
        """End the frame without an event. The events inside it move to the frame around it."""
        outer = self._remove()
        if outer is not None:
            outer.children += self.children

    def _remove(self) -> _Frame | None:
        """Remove the frame from the stack and return the frame around it."""
        frames = thread_state.frames
        i = frames.index(self)
        thread_state.frames = (*frames[:i], *frames[i + 1:])
        return frames[i - 1] if i else None


def _observe(op: OpBase, inputs: tuple, attrs: tuple, drawn: tuple[int, int] | None = None):
    """Run a call and record it. drawn: the seed and the draw of a random op."""
    if current_interpreter() is not None:         # it traces the call, or it runs ops, which are recorded
        return run_unobserved(op, inputs, attrs)
    frame = _Frame(op.name)
    try:
        return run_unobserved(op, inputs, attrs) if drawn is None else call_seeded(op, inputs, attrs, *drawn)
    finally:
        shapes = tuple(tuple(x.shape) for x in inputs if isinstance(x, Tensor)) if _needs_shapes() else ()
        frame.close(shapes, annotation=False)


def _needs_shapes() -> bool:
    return any(p.record_shapes for p in _running)


class record_function:  # noqa: N801
    """Context manager or decorator that records its body as a named range while a `profile` is active.

    Args:
        name: name of the range.
        args: ignored, as in PyTorch's tables.

    Example:
        >>> with flow.profiler.profile() as p, flow.profiler.record_function("sum"):
        ...     y = flow.ones(3).sum()
        >>> p.key_averages()[-1]
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        self._frame = _Frame(self.name)
        return self

    def __exit__(self, *error) -> None:
        self._frame.close()

    def __call__(self, func: Callable) -> Callable:
        @functools.wraps(func)
        def ranged(*args, **kwargs):
            with record_function(self.name):
                return func(*args, **kwargs)
        return ranged


class profile:  # noqa: N801
    """Context manager that measures the ops and the `record_function` ranges in its body.

    Ops are measured in the thread that enters the context, and ranges in all threads.

    Args:
        activities: ignored; only the time of the CPU is measured, also for tensors on a GPU.
        schedule: function from the number of a step to a ProfilerAction; default: measure everything.
        on_trace_ready: function that is called with the profile at the end of each cycle of the schedule, or
            at the end.
        record_shapes: if True, record the shapes of the inputs.
        profile_memory: if True, record the bytes that each op allocates minus those that it frees.
        with_stack: if True, record the line of user code of each op.
        with_flops, with_modules, experimental_config, execution_trace_observer, acc_events, use_cuda:
            ignored.
        enabled: if False, measure nothing.

    Example:
        >>> with flow.profiler.profile() as p:
        ...     y = flow.ones(3) + 1
        >>> print(p.key_averages().table())
    """

    def __init__(self, *, activities: Iterable[ProfilerActivity] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable | None = None,
                 record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
                 with_flops: bool = False, with_modules: bool = False, experimental_config=None,
                 execution_trace_observer=None, acc_events: bool = False, use_cuda: bool | None = None,
                 enabled: bool = True, **options):
        self._schedule, self.on_trace_ready = schedule, on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.enabled = enabled
        self.step_num = 0
        self._events: list[FunctionEvent] = []

    def _action(self) -> ProfilerAction:
        return self._schedule(self.step_num) if self._schedule else ProfilerAction.RECORD

    def _record(self, event: FunctionEvent) -> None:
        if self._action() in _MEASURED:
            self._events.append(event)

    def start(self) -> None:
        """Start measuring, like entering the context."""
        if self.enabled:
            self._frame = _Frame(f"ProfilerStep#{self.step_num}")
            _running.append(self)
            thread_state.profiles += 1
            set_observer(_observe)

    def stop(self) -> None:
        """Stop measuring, like leaving the context."""
        if not self.enabled:
            return
        _running.remove(self)
        self._frame.drop()
        thread_state.profiles -= 1
        if not thread_state.profiles:
            set_observer(None)
        if self.on_trace_ready and self._action() in _MEASURED:
            self.on_trace_ready(self)

    def step(self) -> None:
        """End a step, which the schedule counts."""
        if not self.enabled:
            return
        self._frame.close()
        ended = self._action()
        self.step_num += 1
        if ended is ProfilerAction.RECORD_AND_SAVE:
            if self.on_trace_ready:
                self.on_trace_ready(self)
            self._events = []
        self._frame = _Frame(f"ProfilerStep#{self.step_num}")

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error) -> None:
        self.stop()

    def events(self) -> EventList:
        """Return the calls of ops and the ranges, in the order in which they ended."""
        return EventList(self._events, self.profile_memory, self.record_shapes)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     **options) -> EventList:
        """Return the sums of the events with equal names (see EventList.key_averages)."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def table(self, **options) -> str:
        """Return key_averages().table(**options)."""
        return self.key_averages().table(**options)

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write the events to a file for chrome://tracing and Perfetto."""
        self.events().export_chrome_trace(path)


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Return a function from a step to its action.

    Args:
        wait: number of steps at the start of each cycle that are not measured.
        warmup: number of further steps that are not measured.
        active: number of steps at the end of each cycle that are measured, at least 1.
        repeat: number of cycles; 0: no limit.
        skip_first: number of steps before the first cycle that are not measured.
        skip_first_wait: if not 0, the first cycle has no `wait` steps.

    Raises:
        ArgumentError: a number is negative, or `active` is less than 1.
    """
    if active < 1 or min(wait, warmup, repeat, skip_first) < 0:
        raise ArgumentError("profiler.schedule: no such numbers of steps",
                            expected="active 1 or more, others not negative",
                            got=f"wait={wait}, warmup={warmup}, active={active}, repeat={repeat}",
                            fix="active=3")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        n = step - skip_first + (wait if skip_first_wait else 0)
        if step < skip_first or repeat and n >= repeat * cycle:
            return ProfilerAction.NONE
        n %= cycle
        if n < wait:
            return ProfilerAction.NONE
        if n < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if n < cycle - 1 else ProfilerAction.RECORD_AND_SAVE
    return action


def tensorboard_trace_handler(dir_name: str | os.PathLike, worker_name: str | None = None,
                              use_gzip: bool = False) -> Callable[[profile], None]:
    """Return a function for on_trace_ready that writes dir_name/worker.time.pt.trace.json.

    Args:
        dir_name: folder of the files.
        worker_name: first part of the file names; default: the name of the host and the process.
        use_gzip: ignored.
    """
    def handler(p: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        p.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json"))
    return handler
