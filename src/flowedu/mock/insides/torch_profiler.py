"""profiler: wall-clock times of the named ranges of a program.

Single ops are not measured separately. The profile(x) of an nn.Graph prints the times within a compiled step.
"""
from __future__ import annotations

import functools
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from flowedu.errors import ArgumentError
from flowedu.saving.packed import pack_file

_running: list[Any] = []
_open: dict[int, list[float]] = {}                       # {thread: seconds of nested ranges, per open range}


class ProfilerActivity(Enum):
    """Names of the devices that PyTorch can profile."""

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


class record_function:  # noqa: N801
    """Context manager or decorator that records its body as a named range while a `profile` is active."""

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        _open.setdefault(threading.get_ident(), []).append(0.0)
        self._at = time.perf_counter()
        return self

    def __exit__(self, *error) -> None:
        duration, mine = time.perf_counter() - self._at, _open[threading.get_ident()]
        inside = mine.pop()
        if mine:
            mine[-1] += duration
        else:
            del _open[threading.get_ident()]
        for p in _running:
            p._record(self.name, self._at, duration, duration - inside)

    def __call__(self, func: Callable) -> Callable:
        @functools.wraps(func)
        def ranged(*args, **kwargs):
            with record_function(self.name):
                return func(*args, **kwargs)
        return ranged


class Event:
    """Statistics of all ranges with one name: key, count, cpu_time_total and self_cpu_time_total in us."""

    def __init__(self, key: str):
        self.key, self.count = key, 0
        self.cpu_time_total, self.self_cpu_time_total = 0.0, 0.0
        self.device_time_total = self.self_device_time_total = self.cuda_time_total = 0.0

    @property
    def cpu_time(self) -> float:
        """Mean time of a range in microseconds."""
        return self.cpu_time_total / max(self.count, 1)


class EventList(list):
    """Result of key_averages(), a list of events."""

    def total_average(self) -> Event:
        """Return one event with the sums of all events."""
        total = Event("Total")
        for e in self:
            total.count += e.count
            total.cpu_time_total += e.self_cpu_time_total
            total.self_cpu_time_total += e.self_cpu_time_total
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options) -> str:
        """Return a text table with one row per name. sort_by: attribute of events; the largest is first."""
        rows = list(self)
        if sort_by:
            rows.sort(key=lambda e: -getattr(e, sort_by, 0.0))
        total_time = sum(e.self_cpu_time_total for e in self) or 1.0
        form = "{:<32}  {:>10}  {:>12}  {:>12}  {:>12}  {:>10}"
        head = form.format("Name", "Self CPU %", "Self CPU", "CPU total", "CPU time avg", "# of Calls")
        lines = [form.format(e.key[:32], f"{100 * e.self_cpu_time_total / total_time:.2f}%", *(
            f"{us / 1000:.3f}ms" for us in (e.self_cpu_time_total, e.cpu_time_total, e.cpu_time)), e.count)
            for e in rows[:row_limit if row_limit >= 0 else None]]
        bar = "-" * len(head)
        return "\n".join([bar, head, bar, *lines, bar, f"Self CPU time total: {total_time / 1000:.3f}ms"])


class profile:  # noqa: N801
    """Context manager that measures the `record_function` ranges in its body.

    activities, record_shapes, and PyTorch's other options have no effect. schedule selects the measured
    steps; on_trace_ready(self) is called at the end of each cycle, or at the end.
    """

    def __init__(self, *, activities: Iterable[ProfilerActivity] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable | None = None,
                 record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
                 with_flops: bool = False, with_modules: bool = False, experimental_config=None,
                 execution_trace_observer=None, acc_events: bool = False, use_cuda: bool | None = None,
                 **options):
        self._schedule, self.on_trace_ready = schedule, on_trace_ready
        self.step_num = 0
        self._spans: list[tuple[str, float, float, float]] = []   # name, start, duration, own time

    def _action(self) -> ProfilerAction:
        return self._schedule(self.step_num) if self._schedule else ProfilerAction.RECORD

    def _record(self, name: str, at: float, duration: float, self_time: float) -> None:
        if self._action() in _MEASURED:
            self._spans.append((name, at, duration, self_time))

    def start(self) -> None:
        """Start measuring, like entering the context."""
        self._began = time.perf_counter()
        _running.append(self)

    def stop(self) -> None:
        """Stop measuring, like leaving the context."""
        _running.remove(self)
        if self.on_trace_ready and self._action() in _MEASURED:
            self.on_trace_ready(self)

    def step(self) -> None:
        """End a step, which the schedule counts."""
        now, ended = time.perf_counter(), self._action()
        self._record(f"ProfilerStep#{self.step_num}", self._began, now - self._began, now - self._began)
        self._began, self.step_num = now, self.step_num + 1
        if ended is ProfilerAction.RECORD_AND_SAVE:
            if self.on_trace_ready:
                self.on_trace_ready(self)
            self._spans = []

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error) -> None:
        self.stop()

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     **options) -> EventList:
        """Return one event per name."""
        events: dict[str, Event] = {}
        for name, _, duration, self_time in self._spans:
            e = events.setdefault(name, Event(name))
            e.count, e.cpu_time_total, e.self_cpu_time_total = (
                e.count + 1, e.cpu_time_total + duration * 1e6, e.self_cpu_time_total + self_time * 1e6)
        return EventList(events.values())

    def table(self, **options) -> str:
        """Return key_averages().table(**options)."""
        return self.key_averages().table(**options)

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write the ranges to a file for chrome://tracing and Perfetto."""
        pid = os.getpid()
        events = [{"name": name, "ph": "X", "ts": at * 1e6, "dur": duration * 1e6, "pid": pid, "tid": 0}
                  for name, at, duration, _ in self._spans]
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
        pack_file(lambda f: f.write(text.encode()), path)


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """Return a function from a step to its action.

    `skip_first` steps are followed by `repeat` cycles (0: no limit). Each cycle has `wait` and `warmup`
    steps, which are not measured, and `active` steps, which are measured.
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
    """Return a function for on_trace_ready that writes dir_name/worker.time.pt.trace.json."""
    def handler(p: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        p.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json"))
    return handler
