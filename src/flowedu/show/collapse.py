"""Reduction of a graph to a limited number of boxes: one box per part of the model.

The ops, in execution order, are grouped into runs that belong to one module, at the greatest module depth
that gives few enough runs. Consecutive equal runs may become one box. A run is an interval of the execution
order and reads only earlier boxes, so merging cannot create a cycle.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby

from flowedu.show.boxes import Box

Run = tuple[str, list[Box]]                    # title, its ops


def collapsed(made: Sequence[Box], most: int) -> list[Box]:
    """Merge boxes, which are in execution order, until at most `most` (4 or more) are left."""
    if len(made) <= most:
        return list(made)
    read = {id(r) for b in made for r in b.reads}
    # No box reads these updates, so they can go last.
    last = [b for b in made if b.kind == "update" and id(b) not in read]
    held = {id(b) for b in last}
    ops = [b for b in made if b.kind in ("forward", "backward", "update") and id(b) not in held]
    inputs, outputs = ([b for b in made if b.kind == kind] for kind in ("input", "output"))
    for gather in _groupings(ops, max(0, most - 3)):
        runs = [("inputs", inputs), *gather(), ("updates", last), ("outputs", outputs)]
        runs = [(title, run) for title, run in runs if run]
        if len(runs) <= most:
            return _build_boxes(made, runs)
    raise AssertionError("the last way always does")


def _groupings(ops: Sequence[Box], most: int) -> list[Callable[[], list[Run]]]:
    """Return functions that group `ops`, from the most detailed to one that gives at most `most` runs."""
    depth = max((len(b.module) for b in ops), default=0)
    at = [lambda d=d, merge=merge: merge(_runs(ops, d)) for merge in (list, _merge_repeated)
          for d in range(depth, 0, -1)]
    size = -(-len(ops) // max(most, 1)) or 1
    return [*at, lambda: [(f"ops {i + 1} to {min(i + size, len(ops))}", list(ops[i:i + size]))
                          for i in range(0, len(ops), size)]]


def _runs(ops: Sequence[Box], depth: int) -> list[Run]:
    """Group consecutive ops that share the pass and the module path down to `depth`.

    An op without a module joins the run before it.
    """
    runs: list[tuple[tuple, list[Box]]] = []
    for b in ops:
        key = (b.kind == "backward", b.module[:depth])
        if runs and key[0] == runs[-1][0][0] and (not b.module or key == runs[-1][0]):
            runs[-1][1].append(b)
        else:
            runs.append((key, [b]))
    same = _shared([key[1] for key, _ in runs if key[1]])
    return [(".".join(key[1][same:] or key[1]) or _ends(run), run) for key, run in runs]


def _shared(modules: Sequence[tuple[str, ...]]) -> int:
    """Return 1 if all nested module paths start with the same name, such as "model", else 0."""
    longest = [m for m in modules if len(m) > 1]
    return 1 if longest and len({m[0] for m in longest}) == 1 else 0


def _ends(run: Sequence[Box]) -> str:
    return run[0].title if len(run) == 1 else f"{run[0].title} to {run[-1].title}"


def _merge_repeated(runs: Sequence[Run]) -> list[Run]:
    """Merge consecutive runs that have the same ops."""
    merged: list[Run] = []
    for _, group in groupby(runs, key=lambda r: (r[1][0].kind == "backward", [b.title for b in r[1]])):
        alike = list(group)
        ops = [b for _, run in alike for b in run]
        merged.append(alike[0] if len(alike) == 1 else (f"{len(alike)} times {alike[0][0]}", ops))
    return merged


def _build_boxes(made: Sequence[Box], runs: Sequence[Run]) -> list[Box]:
    """Return one box per run. Variables are in no run and get no box."""
    of: dict[int, Box] = {}
    boxes, wanted = [], _read_by_others(made, runs)
    for title, run in runs:
        reads = list(dict.fromkeys(of[id(r)] for b in run for r in b.reads if id(r) in of))
        if len(run) == 1:
            box = Box(run[0].title, run[0].subtitle, run[0].kind, run[0].tip, reads=reads)
        else:
            ops = Counter(b.title for b in run)
            subtitle = f"{len(run)} of them" if title in ("inputs", "outputs", "updates") else \
                f"{len(run)} ops, {_result_op(run, wanted).subtitle.rpartition(' ')[2]}"
            kind = Counter(b.kind for b in run).most_common(1)[0][0]
            tip = "\n".join([title, *(f"{n} {name}" for name, n in ops.most_common(12))])
            box = Box(title, subtitle, kind, tip, reads=reads)
        of.update({id(b): box for b in run})
        boxes.append(box)
    return boxes


def _read_by_others(made: Sequence[Box], runs: Sequence[Run]) -> set[int]:
    """Return the ids of the boxes that a box of another run reads. Updates do not count as readers."""
    number = {id(b): i for i, (_, run) in enumerate(runs) for b in run}
    wanted: set[int] = set()
    for b in made:
        if b.kind != "update":
            wanted.update(id(r) for r in b.reads if number.get(id(r)) != number.get(id(b)))
    return wanted


def _result_op(run: Sequence[Box], wanted: set[int]) -> Box:
    """Return the last op of a run that other runs read, or else the last op."""
    return next((b for b in reversed(run) if id(b) in wanted), run[-1])
