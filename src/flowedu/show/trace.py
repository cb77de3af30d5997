"""Trace: a recorded run, as spans of time on lanes. `graph.timeline(x)` and `job.timeline(x)` return one.

    t = graph.timeline(x, y)
    print(t)               a table: time, messages, and waits of each lane, and the longest spans
    t.save("step.json")    for chrome://tracing or ui.perfetto.dev
    t.draw("step.svg")     a diagram: a row for each lane, a box for each span, its width is the time

A lane is a thread, a rank, a device, or a reader. show/recording.py records runs.
"""
from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flowedu.errors import ArgumentError
from flowedu.errors.files import write_text
from flowedu.show.plan import cut
from flowedu.show.svg import BOXES, MOST, Drawing

KINDS = ("call", "message", "wait", "read")
COLORS = {"forward": "#cfe3f2", "backward": "#f6d2ad", "update": "#d8ecc8", "message": "#fbf3b9",
          "wait": "#e9ecef", "read": "#e4dcf5"}
WIDTH, LANE, LEFT = 900, 26, 130
TOP, LIVE = 58, 90
PER_LETTER = 6.2               # pixels per letter in a box
PER_LANE = 20                  # boxes of a lane in a diagram of many lanes
LONGEST = 10                   # rows of the table of the longest spans


@dataclass(frozen=True)
class Span:
    """One interval of a lane.

    Args:
        name: the name of the call, or what was waited for.
        lane: the index of the lane in Trace.lanes.
        begin: the time at which it begins, in ns after the begin of the trace.
        end: the time at which it ends, in ns after the begin of the trace.
        kind: "call", "message", "wait", or "read".
        nbytes: the bytes that a call reads and writes, or that a message sends to other ranks.
        op: the name of the op, or "".
        part: "forward", "backward", or "update" for calls and messages, else "".
        shape: the shape of the result, such as "2x3", or "".
        step: the number of the plan's call that this span completes, else -1. A message that waits is
            several spans, and its last one completes the call.
        thread: the number of the thread in its lane's device or rank; 0 runs all calls.
        count: the number of spans that a diagram merged into this one.
    """

    name: str
    lane: int
    begin: int
    end: int
    kind: str = "call"
    nbytes: int = 0
    op: str = ""
    part: str = ""
    shape: str = ""
    step: int = -1
    thread: int = 0
    count: int = 1

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return (self.end - self.begin) / 1e9

    @property
    def color(self) -> str:
        """The kind, or the part of a call: a key of COLORS."""
        return self.part or "forward" if self.kind == "call" else self.kind


class Trace:
    """A recorded run: spans on lanes. Spans of one lane do not overlap.

    The arguments are also attributes. `spans` is sorted by lane and begin.

    Args:
        name: the name of the graph or job.
        lanes: the names of the lanes.
        spans: all spans.
        where: the threads, ranks, or devices, as text.
        live: pairs (time in ns, bytes of the arena in use), in a trace of one plan on the CPU, else empty.
        arena: the bytes of the arena of that plan, else 0.
    """

    def __init__(self, name: str, lanes: Sequence[str], spans: Sequence[Span], where: str = "",
                 live: Sequence[tuple[int, int]] = (), arena: int = 0):
        self.name, self.lanes, self.where = name, list(lanes), where
        self.spans = sorted(spans, key=lambda s: (s.lane, s.begin, s.end))
        self.live, self.arena = list(live), arena

    @property
    def seconds(self) -> float:
        """The time from the first begin to the last end, in seconds."""
        return (max((s.end for s in self.spans), default=0) - self._start) / 1e9

    @property
    def _start(self) -> int:
        return min((s.begin for s in self.spans), default=0)

    @property
    def calls(self) -> list[Span]:
        """The spans that complete the calls of the plans, on the first thread of each lane's device."""
        return [s for s in self.spans if s.step >= 0 and s.thread == 0]

    def on(self, lane: str) -> list[Span]:
        """Return the spans of a lane, in the order of time.

        Args:
            lane: its name, one of `lanes`.

        Raises:
            ArgumentError: there is no lane of this name.
        """
        if lane not in self.lanes:
            raise ArgumentError("trace.on: no lane has this name", expected=", ".join(self.lanes),
                                got=repr(lane), fix=f"trace.on({self.lanes[0]!r})" if self.lanes else "")
        return [s for s in self.spans if s.lane == self.lanes.index(lane)]

    # ---- text
    def summary(self) -> str:
        """Return one line: the number of calls, the time, and where the run took place."""
        arena = f", arena {self.arena:,} bytes" if self.arena else ""
        calls = len(self.calls)
        return (f"{self.name}: {calls} call{'s' * (calls != 1)}, {1e3 * self.seconds:.3f} ms on "
                f"{self.where}{arena}")

    def __repr__(self) -> str:
        width = max([4, *map(len, self.lanes)])
        lines = [self.summary(), "", f"{'lane':{width}s} {'calls':>6s} {'call ms':>9s} {'messages':>9s} "
                 f"{'sent bytes':>12s} {'message ms':>11s} {'wait ms':>9s} {'read ms':>9s} {'idle ms':>9s}"]
        for lane in self.lanes:
            spans = self.on(lane)
            spent = {kind: 1e3 * sum(s.seconds for s in spans if s.kind == kind) for kind in KINDS}
            done = [s for s in spans if s.step >= 0]
            messages = [s for s in done if s.kind == "message"]
            idle = 1e3 * self.seconds - sum(spent.values())
            lines.append(f"{lane:{width}s} {len(done) - len(messages):6d} {spent['call']:9.3f} "
                         f"{len(messages):9d} {sum(s.nbytes for s in messages):12,d} "
                         f"{spent['message']:11.3f} {spent['wait']:9.3f} {spent['read']:9.3f} {idle:9.3f}")
        lines += ["", f"{'longest':32s} {'kind':8s} {'lane':{width}s} {'op':18s} {'begin us':>10s} "
                  f"{'us':>10s} {'bytes':>12s}"]
        for s in sorted(self.spans, key=lambda s: s.begin - s.end)[:LONGEST]:
            lines.append(f"{cut(s.name, 32):32s} {s.kind:8s} {self.lanes[s.lane]:{width}s} "
                         f"{cut(s.op, 18):18s} {_to_us(s.begin - self._start):10.1f} "
                         f"{1e6 * s.seconds:10.1f} {s.nbytes:12,d}")
        return "\n".join(lines)

    # ---- files
    def chrome(self) -> dict:
        """Return a trace for chrome://tracing or Perfetto: an event for each span, and the live bytes."""
        start = self._start
        events = [_metadata("process_name", 0, self.name)]
        events += [_metadata("thread_name", i, lane) for i, lane in enumerate(self.lanes)]
        for s in self.spans:
            args = {"op": s.op, "shape": s.shape, "bytes": s.nbytes, "part": s.part, "step": s.step}
            events.append({"name": s.name, "cat": s.kind, "ph": "X", "ts": _to_us(s.begin - start),
                           "dur": _to_us(s.end - s.begin), "pid": 0, "tid": s.lane, "args": args})
        events += [{"name": "arena", "ph": "C", "ts": _to_us(t - start), "pid": 0, "args": {"live": n}}
                   for t, n in self.live]
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def save(self, path: str | os.PathLike) -> Path:
        """Write the trace in Chrome's format (.json) or as a diagram (.svg), and create its folder."""
        path = Path(path)
        if path.suffix not in (".json", ".svg"):
            raise ArgumentError("timeline.save: path", expected="a file that ends in .json or .svg",
                                got=str(path))
        return write_text(path, json.dumps(self.chrome()) if path.suffix == ".json" else self._repr_svg_())

    def draw(self, path: str | os.PathLike) -> Path:
        """Write the diagram (.svg), and create its folder. Return the path."""
        if Path(path).suffix != ".svg":
            raise ArgumentError("timeline.draw: path", expected="a file that ends in .svg", got=str(path))
        return self.save(path)

    def _repr_svg_(self) -> str:
        """Return the diagram as SVG text. Neighbors of one color share a box if there are too many spans."""
        lanes, curve = len(self.lanes) * LANE, LIVE if self.live else 0
        d = Drawing(LEFT + WIDTH + 20, TOP + lanes + curve + 60, self.summary())
        start, seconds = self._start, self.seconds or 1.0

        def at(time: int) -> float:
            return LEFT + WIDTH * (time - start) / 1e9 / seconds

        d.text(12, 22, self.summary(), 14, "start")
        colors = [c for c in COLORS if any(s.color == c for s in self.spans)]
        for i, color in enumerate(colors):
            d.box(LEFT + 100 * i, 34, 12, 12, "", COLORS[color], rx=0)
            d.text(LEFT + 100 * i + 18, 45, color, 11, "start")
        for i, lane in enumerate(self.lanes):
            d.text(12, TOP + LANE * (i + 0.65), cut(lane, 18), 11, "start")
        most = min(MOST, max(BOXES - len(colors), PER_LANE * len(self.lanes)))
        for s in gather(self.spans, most):
            width = at(s.end) - at(s.begin)
            with d.group(_tip(s)):
                d.box(at(s.begin), TOP + LANE * s.lane, width, LANE, "", COLORS[s.color], line="#555555",
                      rx=0)
                room = int(width / PER_LETTER) - 1
                if room >= 3:
                    d.text(at(s.begin) + width / 2, TOP + LANE * (s.lane + 0.5) + 4, cut(s.name, room), 10)
        floor = TOP + lanes + curve + (20 if curve else 0)
        if self.live:
            d.text(12, floor - LIVE + 10, "arena", 11, "start")
            live = highest(self.live, MOST)
            ends = [*(t for t, _ in live[1:]), start + round(1e9 * self.seconds)]
            steps = [(at(t), floor - LIVE * n / max(self.arena, 1))
                     for (begin, n), end in zip(live, ends) for t in (begin, end)]
            d.line((at(start), floor), *steps, (LEFT + WIDTH, floor))
        d.text(LEFT, floor + 18, "0", 10)
        d.text(LEFT + WIDTH, floor + 18, f"{1e3 * self.seconds:.3f} ms", 10, "end")
        return d.svg()


def _to_us(ns: int) -> float:
    """Return a time in microseconds, with all its nanoseconds."""
    return round(ns / 1e3, 3)


def _metadata(kind: str, lane: int, name: str) -> dict:
    return {"name": kind, "ph": "M", "pid": 0, "tid": lane, "args": {"name": name}}


def _tip(s: Span) -> str:
    what = " ".join(word for word in (s.kind, s.op, s.shape) if word)
    return f"{s.name}\n{what}\n{1e6 * s.seconds:.1f} us\n{s.nbytes:,} bytes"


def highest(live: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Return at most `most` pairs (time, bytes): the first time and the most bytes of neighbors."""
    n = -(-len(live) // most) or 1
    return [(live[i][0], max(b for _, b in live[i:i + n])) for i in range(0, len(live), n)]


def gather(spans: Sequence[Span], most: int) -> list[Span]:
    """Merge neighbors of one lane until at most `most` spans are left, or one for each lane.

    Neighbors of one color merge first. Neighbors merge if together they take less than a width, which doubles
    until few spans are left. So the time does not grow with the square of the number of spans.
    """
    merged = list(spans)
    duration = max((s.end for s in merged), default=0) - min((s.begin for s in merged), default=0)
    for one_color in (True, False):
        width = duration // 1024 + 1
        while len(merged) > most and width <= 4 * duration + 4:
            merged, width = _merge(merged, width, one_color), 2 * width
    return merged


def _merge(spans: Sequence[Span], width: int, one_color: bool) -> list[Span]:
    """Merge neighbors of one lane that together take at most `width` ns. The longer one has the color."""
    merged: list[Span] = []
    for s in spans:
        last = merged[-1] if merged else None
        fits = last is not None and last.lane == s.lane and s.end - last.begin <= width
        if last is None or not fits or one_color and last.color != s.color:
            merged.append(s)
            continue
        longer, count = max(last, s, key=lambda x: x.end - x.begin), last.count + s.count
        kinds = f"{longer.kind}s" if last.color == s.color else "spans"
        merged[-1] = replace(longer, name=f"{count} {kinds}", op="", shape="", begin=last.begin, end=s.end,
                             step=-1, nbytes=last.nbytes + s.nbytes, count=count)
    return merged
