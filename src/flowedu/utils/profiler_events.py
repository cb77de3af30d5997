"""Events of a profile: calls of ops and named ranges, their sums, their table, and their Chrome trace.

Times are stored in nanoseconds as integers, so that the self times of a range sum exactly to its total.
"""
from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from flowedu.errors import ArgumentError
from flowedu.errors.files import write_text

Shapes = tuple[tuple[int, ...], ...]


class Interval(NamedTuple):
    """Start and end of an event, on the clock of time.perf_counter.

    Args:
        start: time in microseconds.
        end: time in microseconds.
    """

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return the duration in microseconds."""
        return self.end - self.start


class _Times:
    """Times in microseconds and bytes of an event, or of several."""

    count: int
    nanoseconds: int
    own_nanoseconds: int
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    # The GPU runs asynchronously. Its time is not measured.
    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = cuda_time = 0.0
    device_memory_usage = self_device_memory_usage = cuda_memory_usage = self_cuda_memory_usage = 0

    @property
    def cpu_time_total(self) -> float:
        """Time with nested events."""
        return self.nanoseconds / 1e3

    @property
    def self_cpu_time_total(self) -> float:
        """Time without nested events."""
        return self.own_nanoseconds / 1e3

    @property
    def cpu_time(self) -> float:
        """Mean time of a call with nested events."""
        return self.cpu_time_total / max(self.count, 1)


class FunctionEvent(_Times):
    """One call of an op, or one named range.

    Attributes:
        name, key: name of the op or the range.
        thread: number of the thread.
        input_shapes: shapes of the tensors, if `record_shapes`.
        stack: the line of user code, if `with_stack`.
        cpu_parent, cpu_children: events around and inside this one.
        is_user_annotation: True for a named range.
        cpu_memory_usage, self_cpu_memory_usage: bytes allocated minus bytes freed, with and without nested
            events, if `profile_memory`.

    Args:
        name: name of the op or the range.
        span: start and end in nanoseconds.
        children: events inside this one.
        memory: bytes allocated minus bytes freed.
        shapes: shapes of the tensors.
        stack: the line of user code.
        annotation: True for a named range.
    """

    count = 1

    def __init__(self, name: str, span: tuple[int, int], children: list[FunctionEvent], memory: int = 0,
                 shapes: Shapes = (), stack: Sequence[str] = (), annotation: bool = False):
        self.name = self.key = name
        self.start, self.nanoseconds = span[0], span[1] - span[0]
        self.thread, self.input_shapes = threading.get_ident(), [list(s) for s in shapes]
        self.stack, self.is_user_annotation = list(stack), annotation
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children = children
        self.cpu_memory_usage = memory
        for child in children:
            child.cpu_parent = self
        self.own_nanoseconds = self.nanoseconds - sum(c.nanoseconds for c in children)
        self.self_cpu_memory_usage = memory - sum(c.cpu_memory_usage for c in children)

    @property
    def time_range(self) -> Interval:
        """Start and end in microseconds."""
        return Interval(self.start / 1e3, (self.start + self.nanoseconds) / 1e3)

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name} {self.cpu_time_total:.3f}us>"


class FunctionEventAvg(_Times):
    """Sums of the events with one key: count, times in microseconds, and bytes.

    Args:
        key: name of the op or the range.
        shapes: shapes of the inputs of all events.
        stack: lines of user code of all events.
    """

    def __init__(self, key: str, shapes: Sequence = (), stack: Sequence[str] = ()):
        self.key, self.count = key, 0
        self.input_shapes, self.stack = list(shapes), list(stack)
        self.nanoseconds = self.own_nanoseconds = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0

    def add(self, event: _Times) -> None:
        """Add the times and the bytes of an event."""
        self.count += event.count
        self.nanoseconds += event.nanoseconds
        self.own_nanoseconds += event.own_nanoseconds
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage

    def __repr__(self) -> str:
        return f"<FunctionEventAvg {self.key} calls={self.count} self={self.self_cpu_time_total:.3f}us>"


class EventList(list):
    """List of events. Prints as a table.

    Args:
        events: the events.
        memory: if True, the events have bytes, and the table has columns for them.
        shapes: if True, the events have shapes, and the table has a column for them.
    """

    def __init__(self, events: Iterable = (), memory: bool = False, shapes: bool = False):
        super().__init__(events)
        self.memory, self.shapes = memory, shapes

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the self times in microseconds."""
        return sum(e.own_nanoseconds for e in self) / 1e3

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Return the sums of the events with equal names.

        Args:
            group_by_input_shape: if True, only events with equal shapes of inputs are summed.
            group_by_stack_n: number of lines of user code that must also be equal.
        """
        groups: dict[tuple, FunctionEventAvg] = {}
        for e in self:
            shapes = e.input_shapes if group_by_input_shape else []
            stack = e.stack[:group_by_stack_n]
            key = (e.key, str(shapes), tuple(stack))
            groups.setdefault(key, FunctionEventAvg(e.key, shapes, stack)).add(e)
        return EventList(groups.values(), self.memory, group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """Return one event with the sums of the counts and of the self times."""
        total = FunctionEventAvg("Total")
        for e in self:
            total.add(e)
        total.nanoseconds = total.own_nanoseconds
        total.cpu_memory_usage = total.self_cpu_memory_usage
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_name_column_width: int = 55,
              **options) -> str:
        """Return a text table with one row per event.

        Args:
            sort_by: attribute of the events, such as "self_cpu_time_total" or "count"; the largest is first.
            row_limit: maximum number of rows; -1 for all.
            max_name_column_width: maximum width of the names.

        Raises:
            ArgumentError: the events have no number of the name `sort_by`.
        """
        rows = list(self)
        if sort_by:
            if not all(isinstance(getattr(e, sort_by, None), (int, float)) for e in rows):
                raise ArgumentError("profiler.table: an event has no such number",
                                    expected="self_cpu_time_total, cpu_time_total, cpu_time, count, "
                                    "cpu_memory_usage, or self_cpu_memory_usage", got=sort_by,
                                    fix='sort_by="self_cpu_time_total"')
            rows.sort(key=lambda e: -getattr(e, sort_by))
        rows = rows[:row_limit if row_limit >= 0 else None]
        total = sum(e.own_nanoseconds for e in self)
        cells = [self._heads(), *(self._cells(e, total, max_name_column_width) for e in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        lines = ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))])
                 for row in cells]
        bar = "-" * len(lines[0])
        return "\n".join([bar, lines[0], bar, *lines[1:], bar, f"Self CPU time total: {_time(total)}"])

    def _heads(self) -> list[str]:
        return ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
                *(["CPU Mem", "Self CPU Mem"] if self.memory else []), "# of Calls",
                *(["Input Shapes"] if self.shapes else [])]

    def _cells(self, e, total: int, width: int) -> list[str]:
        name = e.key if len(e.key) <= width else e.key[:width - 3] + "..."
        memory = [_bytes(e.cpu_memory_usage), _bytes(e.self_cpu_memory_usage)] if self.memory else []
        return [name, _share(e.own_nanoseconds, total), _time(e.own_nanoseconds),
                _share(e.nanoseconds, total), _time(e.nanoseconds), _time(e.nanoseconds / max(e.count, 1)),
                *memory, str(e.count), *([str(e.input_shapes)] if self.shapes else [])]

    def export_chrome_trace(self, path: str | os.PathLike) -> Path:
        """Write the events to a file for chrome://tracing and Perfetto, under a temporary name at first."""
        pid = os.getpid()
        events = [{"name": e.name, "cat": "user_annotation" if e.is_user_annotation else "cpu_op", "ph": "X",
                   "ts": e.start / 1e3, "dur": e.nanoseconds / 1e3, "pid": pid, "tid": e.thread,
                   "args": _details(e)} for e in self]
        return write_text(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))

    def __str__(self) -> str:
        return self.table()


def _details(e: FunctionEvent) -> dict:
    return {name: value for name, value in (("Input Dims", e.input_shapes), ("Bytes", e.cpu_memory_usage),
                                            ("Call stack", "; ".join(e.stack))) if value}


def _time(nanoseconds: float) -> str:
    """Format a time as PyTorch does: 12.000us, 3.400ms, or 1.200s."""
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3f}{unit}"
    return f"{nanoseconds / 1e3:.3f}us"


def _share(part: int, total: int) -> str:
    return f"{100 * part / (total or 1):.2f}%"


def _bytes(n: int) -> str:
    for unit, size in (("Gb", 2 ** 30), ("Mb", 2 ** 20), ("Kb", 2 ** 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} b"
