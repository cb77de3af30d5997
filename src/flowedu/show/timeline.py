"""Timeline of the calls of a step: `graph.timeline(x)` of an nn.Graph, `job.timeline(x)` of a job.

    t = graph.timeline(x, y)
    t.save("step.json")      for chrome://tracing or ui.perfetto.dev: kernels on their threads, the arena's bytes below
    t.save("step.svg")       a diagram: one box per call, its width is the time and its height the number of threads

Every call is timed separately (show/profile.py) and starts where the previous one ends: a step has no gaps.
"""
from __future__ import annotations

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
from flowedu.show.svg import BOXES, Drawing

SPLIT = 65536                  # the cost from which the executor divides a call among threads (core/graph/executor.pyx)
COLORS = {"forward": "#cfe3f2", "backward": "#f6d2ad", "update": "#d8ecc8"}
WIDTH, LANE, LEFT, TOP, LIVE = 900, 26, 70, 58, 90
PER_LETTER = 6.2               # pixels of a letter in a box


@dataclass(frozen=True)
class Call:
    """One call of a step.

    Attributes: timing (name, op, part, shape, seconds, nbytes); start, in seconds; threads that run it; live, the bytes of
    the arena that are in use meanwhile; count, of how many calls it is made (in a picture of many).
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
    """The calls of a step in the order they run.

    Attributes: name, calls, threads (1 on a GPU), arena (bytes), seconds; place, the device (Block.device).
    """

    def __init__(self, name: str, calls: Sequence[Call], threads: int, arena: int, place: int = 0):
        self.name, self.calls, self.threads, self.arena, self.place = name, list(calls), threads, arena, place
        self.seconds = self.calls[-1].end if self.calls else 0.0

    def __repr__(self) -> str:
        return (f"{self.name}: {len(self.calls)} calls, {1e3 * self.seconds:.3f} ms on "
                f"{describe_lanes(self.threads, self.place)}, arena {self.arena:,} bytes")

    def lane(self, i: int) -> str:
        """The name of lane i: a thread, or the GPU."""
        return device_name(self.place) if self.place else f"thread {i}"

    def chrome(self) -> dict:
        """What chrome://tracing and Perfetto read: an event for each call on each of its threads, and the arena's live
        bytes."""
        us = lambda seconds: round(1e6 * seconds, 3)
        events = [_named("process_name", 0, self.name)]
        events += [_named("thread_name", i, self.lane(i)) for i in range(self.threads)]
        for c in self.calls:
            t = c.timing
            about = {"op": t.op, "shape": t.shape, "bytes": t.nbytes, "GB/s": round(_rate(t), 2), "threads": c.threads}
            event = {"name": t.name, "cat": t.part, "ph": "X", "ts": us(c.start), "dur": us(t.seconds), "pid": 0}
            events += [{**event, "tid": i, "args": about} for i in range(c.threads)]
            events.append({"name": "arena", "ph": "C", "ts": us(c.start), "pid": 0, "args": {"live": c.live}})
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def save(self, path: str | os.PathLike) -> Path:
        """Write the trace (.json) or the picture (.svg), making its folder."""
        path = Path(path)
        if path.suffix not in (".json", ".svg"):
            raise ArgumentError("timeline.save: path", expected="a file that ends in .json or .svg", got=str(path))
        return write_text(path, json.dumps(self.chrome()) if path.suffix == ".json" else self._repr_svg_())

    def _repr_svg_(self) -> str:
        """The picture. Of more than BOXES calls, neighbours of one part share a box."""
        lanes = self.threads * LANE
        d = Drawing(LEFT + WIDTH + 20, TOP + lanes + LIVE + 60, repr(self))
        at = lambda seconds: LEFT + WIDTH * seconds / (self.seconds or 1.0)
        d.text(12, 22, repr(self), 14, "start")
        for i, (part, color) in enumerate(COLORS.items()):
            d.box(LEFT + 100 * i, 34, 12, 12, "", color, rx=0)
            d.text(LEFT + 100 * i + 18, 45, part, 11, "start")
        for i in range(self.threads):
            d.text(12, TOP + LANE * (i + 0.65), self.lane(i), 11, "start")
        for c in _gathered(self.calls, BOXES - len(COLORS)):
            width = at(c.end) - at(c.start)
            with d.group(_tip(c)):
                d.box(at(c.start), TOP, width, LANE * c.threads, "", COLORS[c.timing.part], line="#555555", rx=0)
                room = int(width / PER_LETTER) - 1
                if room >= 3:
                    d.text(at(c.start) + width / 2, TOP + LANE * c.threads / 2 + 4, cut(c.timing.name, room), 10)
        floor, most = TOP + lanes + 20 + LIVE, max(self.arena, 1)
        d.text(12, floor - LIVE + 10, "arena", 11, "start")
        steps = [(at(t), floor - LIVE * c.live / most) for c in self.calls for t in (c.start, c.end)]
        d.line((at(0), floor), *steps, (at(self.seconds), floor))
        d.text(LEFT, floor + 18, "0", 10)
        d.text(LEFT + WIDTH, floor + 18, f"{1e3 * self.seconds:.3f} ms", 10, "end")
        return d.svg()


def _named(what: str, thread: int, name: str) -> dict:
    return {"name": what, "ph": "M", "pid": 0, "tid": thread, "args": {"name": name}}


def _rate(t: Timing) -> float:
    """GB/s."""
    return t.nbytes / max(t.seconds, 1e-9) / 1e9


def _tip(c: Call) -> str:
    t = c.timing
    return (f"{t.name}\n{t.op} {t.shape}\n{1e6 * t.seconds:.1f} us on {c.threads} thread{'s' * (c.threads > 1)}\n"
            f"{t.nbytes:,} bytes, {_rate(t):.1f} GB/s\n{c.live:,} bytes of the arena in use")


def _gathered(calls: Sequence[Call], most: int) -> list[Call]:
    """At most `most` boxes, where parts allow it: the two neighbours that are shortest together become one."""
    found = list(calls)
    while len(found) > most:
        pairs = [i for i in range(len(found) - 1) if found[i].timing.part == found[i + 1].timing.part]
        if not pairs:
            break
        i = min(pairs, key=lambda i: found[i].timing.seconds + found[i + 1].timing.seconds)
        a, b = found[i:i + 2]
        longer = max(a, b, key=lambda c: c.timing.seconds)
        count, t = a.count + b.count, replace(a.timing, seconds=a.timing.seconds + b.timing.seconds, op="several", shape="",
                                              nbytes=a.timing.nbytes + b.timing.nbytes)
        t.name = f"{count} calls"
        found[i:i + 2] = [Call(t, a.start, longer.threads, max(a.live, b.live), count)]
    return found


def timeline(executor: Executor, arguments: tuple, repeats: int = 10) -> Timeline:
    """Time a plan on these arguments (arrays that `executor.accepts`). Variables end as they were."""
    plan, calls, now, place = executor.plan, [], 0.0, place_of_plan(executor)
    for step, t, live in zip(plan.steps, profile(executor, arguments, repeats), live_bytes(plan)):
        split = step.entry.cost >= SPLIT and not step.entry.python and not place
        calls.append(Call(t, now, executor.nt if split else 1, live))
        now = calls[-1].end
    return Timeline(plan.graph.name, calls, 1 if place else executor.nt, plan.arena, place)
