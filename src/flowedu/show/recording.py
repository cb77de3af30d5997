"""Recording of real runs: the calls of plans on their threads, and the waits of ranks for messages.

`record` runs a step several times while the executors stamp their calls (stamps.pyx). `timeline` makes a
Trace of the shortest run, and `profile` the shortest time of each call. Variables keep their values.
"""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, replace
from typing import Any, NamedTuple

import numpy as np

from flowedu.core.eager.arrays import copy_of, tensor_alias
from flowedu.core.eager.dispatch import copy_into
from flowedu.core.graph.devices import device_name
from flowedu.core.graph.program import Program
from flowedu.distributed.graph.nodes import box, box_in, box_out
from flowedu.distributed.rank_graphs import all_reduce
from flowedu.show.plan import live_bytes, parts, shape, split
from flowedu.show.profile import Profile, Timing, describe_lanes
from flowedu.show.stamps import Stamps
from flowedu.show.trace import Span, Trace

MESSAGES = (box, box_in, box_out, all_reduce)
Waits = list[tuple[int, int, str]]           # (begin, end, call) of each wait, in ns


class Run(NamedTuple):
    """The record of one run, with times in ns of time.monotonic_ns.

    Attributes:
        stamps: {rank: its stamps (calls, threads, 2)}.
        waits: {rank: its waits}.
        begin, end: the first and the last stamp of the run.
    """

    stamps: dict[int, np.ndarray]
    waits: dict[int, Waits]
    begin: int
    end: int


@contextmanager
def preserve(programs: Sequence[Program]) -> Iterator[None]:
    """Restore the variables and the counters of random draws of these programs at the end of the block."""
    arrays: dict[int, Any] = {}
    for p in programs:
        plan: Any = p.plan
        found = [b.array for b in plan.buffers if b.kind == "variable"]
        arrays.update((id(a), a) for a in (*found, getattr(p.executor, "counter", None)) if a is not None)
    originals = [(a, copy_of(a.detach())) for a in arrays.values()]
    runs = [p.executor.runs for p in programs]
    try:
        yield
    finally:
        for array, original in originals:
            copy_into(tensor_alias(array), original)
        for p, number in zip(programs, runs):
            p.executor.runs = number


def record(programs: Mapping[int, Program], run: Callable[[], object], repeats: int,
           comms: Mapping[int, Any] = {}) -> list[Run]:
    """Run a step `repeats` times, and return the record of each run.

    Args:
        programs: {rank: its program}. They are not stale.
        run: function that runs all of these programs once.
        repeats: the number of runs.
        comms: {rank: its communicator}, for ranks that wait for each other.
    """
    runs = []
    with ExitStack() as stack:
        stamps = {r: stack.enter_context(Stamps(p.executor)) for r, p in programs.items()}
        for comm in comms.values():
            stack.callback(comm.record_waits, None)
        for _ in range(repeats):
            waits: dict[int, Waits] = {r: [] for r in programs}
            for rank, comm in comms.items():
                comm.record_waits(waits[rank])
            for s in stamps.values():
                s.times[:] = 0
            begin = time.monotonic_ns()
            run()
            end = time.monotonic_ns()
            times = {r: s.times.copy() for r, s in stamps.items()}
            stamped = [t[t > 0] for t in times.values() if t.any()]
            if stamped:
                begin, end = min(int(t.min()) for t in stamped), max(int(t.max()) for t in stamped)
            runs.append(Run(times, waits, begin, end))
    return runs


def step_spans(program: Program, moved: Mapping[str, int] = {}) -> list[Span]:
    """Return a span without times for each call of a plan. moved: {name of a message: bytes it sends}."""
    plan: Any = program.plan
    spans = []
    for i, (step, part) in enumerate(zip(plan.steps, parts(plan))):
        ins, outs = split(step)
        op = None if step.node is None else step.node.op
        message = any(op is m for m in MESSAGES)
        nbytes = moved.get(step.name, 0) if message else sum(p.spec.nbytes for p in step.places)
        places = outs or ins
        spans.append(Span(step.name, 0, 0, 0, "message" if message else "call", nbytes,
                          "pack" if op is None else op.name, part, shape(places[0]) if places else "", i))
    return spans


def recorded_spans(steps: Sequence[Span], stamps: np.ndarray, waits: Waits) -> list[Span]:
    """Return the spans of one run of a plan: its calls on each thread, interrupted by its waits."""
    spans = []
    for thread in range(stamps.shape[1]):
        timed = [replace(s, thread=thread, begin=int(begin), end=int(end))
                 for s, (begin, end) in zip(steps, stamps[:, thread]) if begin]
        spans += interrupt(timed, waits) if thread == 0 else timed
    return spans


def interrupt(spans: Sequence[Span], waits: Waits) -> list[Span]:
    """Return spans in order of time, and the waits between or inside of them, without overlaps."""
    found, left = [], sorted(waits)[::-1]
    for span in spans:
        at = span.begin
        while left and left[-1][0] < span.end:
            begin, end, name = left.pop()
            if begin > at:
                found.append(replace(span, begin=at, end=begin, nbytes=0, step=-1))
            found.append(Span(name, span.lane, begin, end, "wait", thread=span.thread))
            at = max(end, span.begin)
        found.append(replace(span, begin=at))
    return found + [Span(name, 0, begin, end, "wait") for begin, end, name in reversed(left)]


# ---- one plan
def run_program(program: Program, arguments: tuple, repeats: int) -> list[Run]:
    """Record runs of one program on checked arguments."""
    with program.lock:
        if program.stale():
            program.lay_out()
        with preserve([program]):
            return record({0: program}, lambda: program.run(arguments), repeats)


def timeline(program: Program, arguments: tuple, repeats: int = 10) -> Trace:
    """Return the shortest of several recorded runs of a program. On a GPU, each call is timed separately."""
    plan: Any = program.plan
    if program.place:
        spans, now = [], 0
        for step, t in zip(step_spans(program), profile(program, arguments, repeats)):
            spans.append(replace(step, begin=now, end=now + round(1e9 * t.seconds)))
            now = spans[-1].end
        lanes = [device_name(program.place)]
    else:
        run = min(run_program(program, arguments, repeats), key=lambda r: r.end - r.begin)
        found = recorded_spans(step_spans(program), run.stamps[0], [])
        spans = [replace(s, lane=s.thread, begin=s.begin - run.begin, end=s.end - run.begin) for s in found]
        lanes = [f"thread {i}" for i in range(program.executor.nt)]
        plan = program.plan
    calls = sorted((s for s in spans if s.thread == 0), key=lambda s: s.step)
    live = [(s.begin, n) for s, n in zip(calls, live_bytes(plan))]
    where = describe_lanes(program.executor.nt, program.place)
    return Trace(plan.graph.name, lanes, spans, where, live, plan.arena)


def profile(program: Program, arguments: tuple, repeats: int = 10) -> Profile:
    """Return the shortest time of each call in several runs. On a GPU, each call is timed separately."""
    if program.place:
        with preserve([program]):
            device: Any = program.executor
            seconds = device.times(arguments, repeats)
    else:
        runs = [r.stamps[0] for r in run_program(program, arguments, repeats)]
        seconds = shortest(runs).tolist()
    return Profile(timings(step_spans(program), seconds), program.executor.nt, program.place)


def shortest(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Return the shortest time of each call, in seconds, from its first begin to its last end."""
    spent = [s[:, :, 1].max(1) - np.where(s[:, :, 0], s[:, :, 0], s[:, :, 0].max(1)[:, None]).min(1)
             for s in runs]
    return np.min(spent, 0) / 1e9


def timings(steps: Sequence[Span], seconds: Sequence[float], prefix: str = "") -> list[Timing]:
    """Return a Timing for each call of a plan. prefix: the rank, in front of the names."""
    return [Timing(prefix + s.name, s.op, s.part, s.shape, t, s.nbytes) for s, t in zip(steps, seconds)]


# ---- graphs of global tensors
def run_ranks(view, arguments: tuple, repeats: int) -> list[Run]:
    """Record runs of the ranks of this process. All ranks of the graph make this call."""
    with view.lock:
        if view.stale():
            view.lay_out()
        programs = view.programs.programs
        comms = {r: view.engine.comm(r) for r in programs}
        with preserve(list(programs.values())):
            return record(programs, lambda: view.run(arguments), repeats, comms)


def gather(view, mine: list) -> list:
    """Return the items of all ranks. `mine` has those of this process's ranks, of JSON types."""
    if view.engine.name == "virtual":
        return mine
    every = view.engine.comm(view.engine.rank).all_gather_object(mine, None, "trace")
    return [item for items in every for item in items]


def clock_shift(view) -> int:
    """Return the ns to add to this rank's clock to get that of rank 0.

    Processes of one machine have the same clock. Clocks of other machines are compared after a barrier.
    """
    if view.engine.name == "virtual":
        return 0
    view.engine.comm(view.engine.rank).barrier(None, "trace")
    rows = gather(view, [[os.uname().nodename, time.monotonic_ns()]])
    return shift_between(rows[0], rows[view.engine.rank])


def shift_between(first: Sequence, own: Sequence) -> int:
    """Return the shift of a clock, from rows of (machine, ns) that were read at the same time."""
    return 0 if first[0] == own[0] else first[1] - own[1]


def ranks_timeline(view, arguments: tuple, repeats: int = 10) -> Trace:
    """Return the shortest of several recorded runs of all ranks. All ranks make this call."""
    runs, shift = run_ranks(view, arguments, repeats), clock_shift(view)
    ends = np.array(gather(view, [[[r.begin + shift, r.end + shift] for r in runs]]))
    best = int(np.argmin(ends[:, :, 1].max(0) - ends[:, :, 0].min(0)))
    start, run = int(ends[:, best, 0].min()) - shift, runs[best]
    rows = []
    for rank, program in view.programs.programs.items():
        found = recorded_spans(step_spans(program, view.ranks[rank].moved), run.stamps[rank],
                               run.waits[rank])
        rows.append([rank, program.executor.nt,
                     [astuple(replace(s, begin=s.begin - start, end=s.end - start)) for s in found]])
    lanes: list[str] = []
    spans: list[Span] = []
    for rank, threads, found in sorted(gather(view, rows), key=lambda row: row[0]):
        spans += [replace(s, lane=len(lanes) + s.thread) for s in (Span(*fields) for fields in found)]
        lanes += [f"rank {rank}", *(f"rank {rank} thread {i}" for i in range(1, threads))]
    return Trace(view.owner.name, lanes, spans, f"{view.engine.size} ranks")


def ranks_profile(view, arguments: tuple, repeats: int = 10) -> Profile:
    """Return the shortest time of each call of each rank. All ranks make this call."""
    runs, rows = run_ranks(view, arguments, repeats), []
    for rank, program in view.programs.programs.items():
        steps = step_spans(program, view.ranks[rank].moved)
        seconds = shortest([r.stamps[rank] for r in runs]).tolist()
        rows += [[rank, *astuple(t)] for t in timings(steps, seconds, f"rank {rank}: ")]
    found = [Timing(*row[1:]) for row in sorted(gather(view, rows), key=lambda row: row[0])]
    return Profile(found, view.first.executor.nt)
