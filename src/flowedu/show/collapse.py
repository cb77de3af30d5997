"""Reduction of a graph to a limited number of boxes: one box per part of the model.

Equal parts that follow each other become one box.

    boxes in the order they run -> runs that belong to one module, at the greatest depth at which they are few
    enough

A run is an interval of that order, so no cycle can arise: a box reads only boxes before it.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby

from flowedu.show.boxes import Box

Run = tuple[str, list[Box]]                    # title, its ops


def collapsed(made: Sequence[Box], most: int) -> list[Box]:
    """At most `most` (4 or more) boxes that stand for those given, which are in the order they run."""
    if len(made) <= most:
        return list(made)
    read = {id(r) for b in made for r in b.reads}
    last = [b for b in made if b.kind == "update" and id(b) not in read]           # nobody reads them: they may wait
    held = {id(b) for b in last}
    ops = [b for b in made if b.kind in ("forward", "backward", "update") and id(b) not in held]
    for gather in _ways(ops, max(0, most - 3)):
        runs = gather()
        boxes = _joined(made, [*runs, *([("updates", last)] if last else [])])
        if len(boxes) <= most:
            return boxes
    raise AssertionError("the last way always does")


def _ways(ops: Sequence[Box], most: int) -> list[Callable[[], list[Run]]]:
    """From the most detailed to one that gives at most `most` runs."""
    depth = max((len(b.module) for b in ops), default=0)
    at = [lambda d=d, merge=merge: merge(_runs(ops, d)) for merge in (list, _repeated) for d in range(depth, 0, -1)]
    size = -(-len(ops) // max(most, 1)) or 1
    return [*at, lambda: [(f"ops {i + 1} to {min(i + size, len(ops))}", list(ops[i:i + size]))
                          for i in range(0, len(ops), size)]]


def _runs(ops: Sequence[Box], depth: int) -> list[Run]:
    """Ops that follow each other, of one part and one module down to `depth`; one of no module goes with those before."""
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
    """How many names at the beginning all of these have: that of the attribute of the graph, say."""
    longest = [m for m in modules if len(m) > 1]
    return 1 if longest and len({m[0] for m in longest}) == 1 else 0


def _ends(run: Sequence[Box]) -> str:
    return run[0].title if len(run) == 1 else f"{run[0].title} to {run[-1].title}"


def _repeated(runs: Sequence[Run]) -> list[Run]:
    """Runs with the same ops, one behind the other, as one."""
    found = []
    for _, alike in groupby(runs, key=lambda r: (r[1][0].kind == "backward", [b.title for b in r[1]])):
        alike = list(alike)
        ops = [b for _, run in alike for b in run]
        found.append(alike[0] if len(alike) == 1 else (f"{len(alike)} times {alike[0][0]}", ops))
    return found


def _joined(made: Sequence[Box], runs: Sequence[Run]) -> list[Box]:
    """A box for each run, for all inputs and for all outputs; variables are in the boxes that read them."""
    of: dict[int, Box] = {}
    boxes = []
    for title, run in [("inputs", [b for b in made if b.kind == "input"]), *runs,
                       ("outputs", [b for b in made if b.kind == "output"])]:
        if not run:
            continue
        reads = list(dict.fromkeys(of[id(r)] for b in run for r in b.reads if id(r) in of))
        if len(run) == 1:
            box = Box(run[0].title, run[0].subtitle, run[0].kind, run[0].tip, reads=reads)
        else:
            ops = Counter(b.title for b in run)
            said = f"{len(run)} of them" if title in ("inputs", "outputs", "updates") else \
                f"{len(run)} ops, {_given(run, made).subtitle.rpartition(' ')[2]}"
            kind = Counter(b.kind for b in run).most_common(1)[0][0]
            tip = "\n".join([title, *(f"{n} {name}" for name, n in ops.most_common(12))])
            box = Box(title, said, kind, tip, reads=reads)
        of.update({id(b): box for b in run})
        boxes.append(box)
    return boxes


def _given(run: Sequence[Box], made: Sequence[Box]) -> Box:
    """The last op of a run that others but updates read; else its last."""
    own = {id(b) for b in run}
    wanted = {id(r) for b in made if id(b) not in own and b.kind != "update" for r in b.reads}
    return next((b for b in reversed(run) if id(b) in wanted), run[-1])
