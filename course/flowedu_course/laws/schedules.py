"""Laws of chapter 6: the order of passes in each pipeline stage.

A forward pass takes 1 unit of time, a backward pass 2.
"""
from __future__ import annotations

from flowedu_course.laws import holds, less, short, simpler

TIME = {False: 1, True: 2}


def _pipelines(rng, size):
    """Draw (number of stages, number of micro-batches, True for a training pipeline)."""
    return rng.randint(1, 1 + size), rng.randint(1, 2 * size), rng.random() < 0.9


_smaller_pipelines = simpler((0, less(1)), (1, less(1)))


def _passes(case):
    _, m, back = case
    return sorted((i, b) for i in range(m) for b in ((False, True) if back else (False,)))


def _text(order):
    return " ".join(f"{'FB'[back]}{m}" for m, back in order) or "nothing"


def _describe(case):
    s, m, back = case
    return short(f"{s} stage{'s' * (s > 1)}, {m} micro-batch{'es' * (m > 1)}; found: {_text(_passes(case))}")


def _orders(case, yours):
    return [list(yours(i, case[0], _passes(case))) for i in range(case[0])]


EDGES = [(1, 1, True), (1, 3, False), (3, 1, True), (2, 2, True), (4, 4, True), (4, 5, True)]


@holds("each pass once, forward before backward", _pipelines, _smaller_pipelines, cases=100, told=_describe,
       edges=EDGES)
def each_once(case, yours):
    return _misses(case, _orders(case, yours))


def _misses(case, orders):
    """Return the lines of a failure if an order is not one of all passes, or None."""
    for i, order in enumerate(orders):
        said = f"  yours           stage {i}: {_text(order)}"
        if sorted(order) != _passes(case):
            return [said, f"  should be       {_text(_passes(case))}, in some order"]
        for n, (m, back) in enumerate(order):
            if back and (m, False) not in order[:n]:
                return [said, f"  B{m} comes before F{m}: there are no activations yet"]
    return None


def clocked(orders):
    """Simulate the pipeline.

    Returns (end time, peak number of micro-batches in each stage, {deadlocked stage: pass it waits for}).
    """
    done, at, clock = {}, [0] * len(orders), [0] * len(orders)
    last = len(orders) - 1
    moved = True
    while moved:
        moved = False
        for i, order in enumerate(orders):
            while at[i] < len(order):
                m, back = order[at[i]]
                source = i + 1 if back else i - 1
                other = (source, m, back) if 0 <= source <= last else None
                if other is not None and other not in done:
                    break
                clock[i] = done[i, m, back] = max(clock[i], done.get(other, 0)) + TIME[back]
                at[i] += 1
                moved = True
    kept = []
    for order in orders:
        alive = [0]
        for _, back in order:
            alive.append(alive[-1] + (-1 if back else 1))
        kept.append(max(alive))
    return max(clock), kept, {i: o[at[i]] for i, o in enumerate(orders) if at[i] < len(o)}


@holds("no stage waits forever", _pipelines, _smaller_pipelines, cases=100, told=_describe, edges=EDGES)
def ends(case, yours):
    return _waits(_orders(case, yours))


def _waits(orders):
    stuck = clocked(orders)[2]
    if not stuck:
        return None
    lines = [f"  stage {i}: {_text(orders[i])} waits in {_text([p])} for stage {i + 1 if p[1] else i - 1}"
             for i, p in list(stuck.items())[:3]]
    return [*lines, "  each stage waits for another one forever"]


def turns_stars(yours, seed=0):
    """Measure 4 stages with 8 micro-batches: the end time, and the stages' summed peaks of micro-batches."""
    case = 4, 8, True
    orders = _orders(case, yours)
    each_once.accept(case, _misses(case, orders))
    ends.accept(case, _waits(orders))
    time, kept, _ = clocked(orders)
    return {"time": time, "kept": sum(kept)}
