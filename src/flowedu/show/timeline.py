"""Timeline of the calls of a step: `graph.timeline(x)` of an nn.Graph, `job.timeline(x)` of a job.

    t = graph.timeline(x, y)
    t.save("step.json")    for chrome://tracing or ui.perfetto.dev: kernels by thread, and the arena's bytes
    t.save("step.svg")     a diagram: one box per call, its width is the time, its height the threads

Every call is timed separately (show/profile.py) and starts where the previous one ends, so a step has no
gaps.
"""
from __future__ import annotations

import heapq
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flowedu.core.graph.devices import device_name
from flowedu.core.graph.executor import Executor
from flowedu.errors import ArgumentError
from flowedu.errors.files import write_text
from flowedu.show.plan import cut, live_bytes
from flowedu.show.profile import Timing, describe_lanes, place_of_plan, profile
from flowedu.show.svg import BOXES, MOST, Drawing

SPLIT = 65536                  # cost from which core/graph/bind.pxi splits a call among threads
COLORS = {"forward": "#cfe3f2", "backward": "#f6d2ad", "update": "#d8ecc8"}
WIDTH, LANE, LEFT = 900, 26, 70
TOP, LIVE = 58, 90
PER_LETTER = 6.2               # pixels per letter in a box


@dataclass(frozen=True)
class Call:
    """One call of a step.

    Attributes: timing (name, op, part, shape, seconds, nbytes); start, in seconds; threads, their number;
    live, the bytes of the arena in use; count, the number of calls that a diagram merged into it.
    """

    timing: Timing
    start: float
    threads: int
    live: int
    count: int = 1

    @property
    def end(self) -> float:
        return self.start + self.timing.seconds


class Timeline:
    """Calls of a step, in execution order.

    Attributes: name, calls, threads (1 on a GPU), arena (bytes), seconds; place, the device (Block.device).
    """

    def __init__(self, name: str, calls: Sequence[Call], threads: int, arena: int, place: int = 0):
        self.name, self.calls, self.threads = name, list(calls), threads
        self.arena, self.place = arena, place
        self.seconds = self.calls[-1].end if self.calls else 0.0

    def __repr__(self) -> str:
        return (f"{self.name}: {len(self.calls)} calls, {1e3 * self.seconds:.3f} ms on "
                f"{describe_lanes(self.threads, self.place)}, arena {self.arena:,} bytes")

    def lane(self, i: int) -> str:
        """Return the name of lane i: a thread or the GPU."""
        return device_name(self.place) if self.place else f"thread {i}"

    def chrome(self) -> dict:
        """Return a trace for chrome://tracing or Perfetto: an event per call and thread, and live bytes."""
        events = [_metadata("process_name", 0, self.name)]
        events += [_metadata("thread_name", i, self.lane(i)) for i in range(self.threads)]
        for c in self.calls:
            t = c.timing
            args = {"op": t.op, "shape": t.shape, "bytes": t.nbytes, "GB/s": round(_rate(t), 2),
                    "threads": c.threads}
            event = {"name": t.name, "cat": t.part, "ph": "X", "ts": _to_us(c.start),
                     "dur": _to_us(t.seconds), "pid": 0}
            events += [{**event, "tid": i, "args": args} for i in range(c.threads)]
            events.append({"name": "arena", "ph": "C", "ts": _to_us(c.start), "pid": 0,
                           "args": {"live": c.live}})
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def save(self, path: str | os.PathLike) -> Path:
        """Write the trace (.json) or the diagram (.svg), and create its folder."""
        path = Path(path)
        if path.suffix not in (".json", ".svg"):
            raise ArgumentError("timeline.save: path", expected="a file that ends in .json or .svg",
                                got=str(path))
        return write_text(path, json.dumps(self.chrome()) if path.suffix == ".json" else self._repr_svg_())

    def _repr_svg_(self) -> str:
        """Return the diagram as SVG text. Neighbors share a box if there are over BOXES calls."""
        lanes = self.threads * LANE
        d = Drawing(LEFT + WIDTH + 20, TOP + lanes + LIVE + 60, repr(self))

        def at(seconds: float) -> float:
            return LEFT + WIDTH * seconds / (self.seconds or 1.0)

        d.text(12, 22, repr(self), 14, "start")
        for i, (part, color) in enumerate(COLORS.items()):
            d.box(LEFT + 100 * i, 34, 12, 12, "", color, rx=0)
            d.text(LEFT + 100 * i + 18, 45, part, 11, "start")
        for i in range(self.threads):
            d.text(12, TOP + LANE * (i + 0.65), self.lane(i), 11, "start")
        boxes = _gathered(self.calls, BOXES - len(COLORS))
        for c in boxes:
            width = at(c.end) - at(c.start)
            with d.group(_tip(c)):
                d.box(at(c.start), TOP, width, LANE * c.threads, "", COLORS[c.timing.part], line="#555555",
                      rx=0)
                room = int(width / PER_LETTER) - 1
                if room >= 3:
                    d.text(at(c.start) + width / 2, TOP + LANE * c.threads / 2 + 4, cut(c.timing.name, room),
                           10)
        floor, most = TOP + lanes + 20 + LIVE, max(self.arena, 1)
        d.text(12, floor - LIVE + 10, "arena", 11, "start")
        steps = [(at(t), floor - LIVE * c.live / most) for c in (self.calls if len(self.calls) <= MOST else boxes)
                 for t in (c.start, c.end)]
        d.line((at(0), floor), *steps, (at(self.seconds), floor))
        d.text(LEFT, floor + 18, "0", 10)
        d.text(LEFT + WIDTH, floor + 18, f"{1e3 * self.seconds:.3f} ms", 10, "end")
        return d.svg()


def _to_us(seconds: float) -> float:
    """Return a time in microseconds, rounded to nanoseconds."""
    return round(1e6 * seconds, 3)


def _metadata(kind: str, thread: int, name: str) -> dict:
    return {"name": kind, "ph": "M", "pid": 0, "tid": thread, "args": {"name": name}}


def _rate(t: Timing) -> float:
    """Return the memory bandwidth of a call in GB/s."""
    return t.nbytes / max(t.seconds, 1e-9) / 1e9


def _tip(c: Call) -> str:
    t = c.timing
    return (f"{t.name}\n{t.op} {t.shape}\n{1e6 * t.seconds:.1f} us on {c.threads} "
            f"thread{'s' * (c.threads > 1)}\n{t.nbytes:,} bytes, {_rate(t):.1f} GB/s\n{c.live:,} bytes of "
            f"the arena in use")


def _gathered(calls: Sequence[Call], most: int) -> list[Call]:
    """Merge the shortest neighbors until at most `most` calls are left, first those of the same part.

    A heap holds the pairs of neighbors, so n calls take n merges.
    """
    merged: list[Call | None] = list(calls)            # a merged pair is stored at its first position
    before, after = list(range(-1, len(calls) - 1)), list(range(1, len(calls) + 1))

    def pair(i: int) -> tuple:
        a, b = calls_at(i), calls_at(after[i])
        return (a.timing.part != b.timing.part, a.timing.seconds + b.timing.seconds, i, a.count + b.count)

    def calls_at(i: int) -> Call:
        call = merged[i]
        assert call is not None, "a neighbor is never empty"
        return call

    pairs = [pair(i) for i in range(len(calls) - 1)] if len(calls) > most else []
    heapq.heapify(pairs)
    left = len(calls)
    while left > most and pairs:
        best = heapq.heappop(pairs)
        i = best[2]
        if merged[i] is None or after[i] == len(calls) or pair(i) != best:
            continue                                   # one of the pair was merged since
        j = after[i]
        merged[i], merged[j] = _merge(calls_at(i), calls_at(j)), None
        after[i] = after[j]
        left -= 1
        if after[i] < len(calls):
            before[after[i]] = i
            heapq.heappush(pairs, pair(i))
        if before[i] >= 0:
            heapq.heappush(pairs, pair(before[i]))
    return [c for c in merged if c is not None]


def _merge(a: Call, b: Call) -> Call:
    """Return the call that stands for two neighbors in a diagram."""
    longer = max(a, b, key=lambda c: c.timing.seconds)
    count = a.count + b.count
    t = replace(longer.timing, name=f"{count} calls", seconds=a.timing.seconds + b.timing.seconds, op="several",
                shape="", nbytes=a.timing.nbytes + b.timing.nbytes)
    return Call(t, a.start, longer.threads, max(a.live, b.live), count)


def timeline(executor: Executor, arguments: tuple, repeats: int = 10) -> Timeline:
    """Time a plan on arrays that `executor.accepts`. Variables keep their values."""
    plan, calls = executor.plan, []
    now, place = 0.0, place_of_plan(executor)
    for step, t, live in zip(plan.steps, profile(executor, arguments, repeats), live_bytes(plan)):
        split = step.entry.cost >= SPLIT and not step.entry.python and not place
        calls.append(Call(t, now, executor.nt if split else 1, live))
        now = calls[-1].end
    return Timeline(plan.graph.name, calls, 1 if place else executor.nt, plan.arena, place)
