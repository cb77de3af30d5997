"""Schedule: the order in which each rank runs the passes of micro-batches. `graph.schedule()` returns one.

    s = graph.schedule()
    print(s)                 a row for each rank, a column for each slot of time
    s.draw("schedule.svg")   the same as a diagram

F2 is the forward pass of micro-batch 2, and B2 is its backward pass. The columns assume that all passes take
the same time and messages take none. `graph.timeline(x)` records the times of a real run.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.errors import ArgumentError
from flowedu.errors.files import write_text
from flowedu.show.svg import Drawing
from flowedu.show.trace import COLORS

SLOT, ROW = 34, 28
LEFT, TOP = 80, 40

Pass = tuple[int, bool]              # micro-batch, True for the backward pass


@dataclass(frozen=True)
class Stage:
    """The passes of one rank.

    Args:
        rank: the rank; 0 in a graph on one device.
        passes: its passes in order, as pairs (micro-batch, True for the backward pass).
        slots: the slot of time of each pass.
        variables: the names of the variables that the rank stores.
    """

    rank: int
    passes: tuple[Pass, ...]
    slots: tuple[int, ...]
    variables: tuple[str, ...]


class Schedule:
    """The order of the passes of a graph. Its arguments are also attributes.

    Args:
        name: the name of the graph.
        stages: a Stage for each rank.
    """

    def __init__(self, name: str, stages: list[Stage]):
        self.name, self.stages = name, stages

    @property
    def length(self) -> int:
        """The number of slots."""
        return max((slot + 1 for stage in self.stages for slot in stage.slots), default=0)

    def __repr__(self) -> str:
        width = max((len(label(p)) for s in self.stages for p in s.passes), default=2)
        lines = []
        for stage in self.stages:
            cells = {slot: label(p) for slot, p in zip(stage.slots, stage.passes)}
            row = " ".join(cells.get(i, "").ljust(width) for i in range(self.length))
            lines.append(f"rank {stage.rank:<3d} {row}".rstrip())
        return "\n".join(lines)

    def draw(self, path: str | os.PathLike) -> Path:
        """Write the diagram, and create its folder. Return the path.

        Args:
            path: file to write, which ends in .svg.

        Raises:
            ArgumentError: the path does not end in .svg.
        """
        if Path(path).suffix != ".svg":
            raise ArgumentError("schedule.draw: path", expected="a file that ends in .svg", got=str(path))
        return write_text(path, self._repr_svg_())

    def _repr_svg_(self) -> str:
        title = f"schedule of {self.name}"
        d = Drawing(LEFT + SLOT * self.length + 20, TOP + ROW * len(self.stages) + 20, title)
        d.text(12, 22, title, 14, "start")
        for i, stage in enumerate(self.stages):
            d.text(12, TOP + ROW * (i + 0.65), f"rank {stage.rank}", 11, "start")
            for slot, p in zip(stage.slots, stage.passes):
                d.box(LEFT + SLOT * slot, TOP + ROW * i, SLOT, ROW, label(p),
                      COLORS["backward" if p[1] else "forward"], 11, rx=0)
        return d.svg()


def label(p: Pass) -> str:
    """Return the name of a pass, such as F0 or B3."""
    return f"{'FB'[p[1]]}{p[0]}"


def schedule(compiled) -> Schedule:
    """Return the schedule of a compiled graph (core/trace/compiled.py)."""
    view, name = compiled.spread, compiled.owner.name
    if view is None:
        nodes = [(o.node, o.inputs) for o in compiled.operators]
        found = turns(compiled.graph, nodes, compiled.tracer.passes)
        order = tuple(dict.fromkeys(found.values()))
        return Schedule(name, [Stage(0, order, tuple(range(len(order))), tuple(compiled.graph.variables))])
    logical: Graph = view.inferred.graph
    turn = turns(logical, [(n, n.inputs) for n in logical.nodes], compiled.tracer.passes)
    graphs = {r: view.lower(r).graph for r in view.inferred.everywhere.devices}
    names = {rank: {n.name for n in g.nodes} for rank, g in graphs.items()}
    orders = {rank: list(dict.fromkeys(turn[n.name] for n in g.nodes if n.name in turn))
              for rank, g in graphs.items()}
    slots = place_passes(orders, dependencies(logical, turn, names))
    return Schedule(name, [
        Stage(rank, tuple(order), tuple(slots[rank, p] for p in order), tuple(graphs[rank].variables))
        for rank, order in orders.items()])


def turns(graph: Graph, nodes: Sequence[tuple[Node, tuple]], passes: Mapping[Node, Pass]) -> dict[str, Pass]:
    """Return {name of a node: its pass}, for nodes that depend on an input or a variable.

    Constants belong to no pass. Without micro-batches, `passes` has only the forward pass.

    Args:
        graph: the graph, with its inputs and variables.
        nodes: pairs (node, its inputs).
        passes: {node: its pass}.
    """
    whole = all(p == (0, False) for p in passes.values())
    reached = {*graph.inputs.values(), *graph.variables.values(), *graph.hosts.values()}
    found = {}
    for node, inputs in nodes:
        if reached.isdisjoint(inputs):
            continue
        reached.update(node.outputs)
        if node in passes:
            found[node.name] = passes[node]
        elif whole and not node.mutates:
            found[node.name] = (0, True)
    return found


def dependencies(graph: Graph, turn: Mapping[str, Pass], names: Mapping[int, set[str]]) -> dict:
    """Return {(rank, pass): the (rank, pass) of other ranks whose results it reads}.

    names: {rank: the names of its nodes}. Casts are nodes of no rank, so their inputs stand for them.
    """
    ranks_of: dict[str, list[int]] = {}
    for rank, mine in names.items():
        for name in mine:
            ranks_of.setdefault(name, []).append(rank)
    sources: dict[GraphValue, set[str]] = {}
    found: dict[tuple[int, Pass], set[tuple[int, Pass]]] = {}
    for node in graph.nodes:
        reads = set().union(*(sources.get(x, set()) for x in node.inputs))
        runs = node.name in turn and node.name in ranks_of
        sources.update(dict.fromkeys(node.outputs, {node.name} if runs else reads))
        for rank in ranks_of[node.name] if runs else ():
            for name in reads:
                if rank not in ranks_of[name]:
                    needs = ((r, turn[name]) for r in ranks_of[name])
                    found.setdefault((rank, turn[node.name]), set()).update(needs)
    return found


def place_passes(orders: Mapping[int, list[Pass]], needs: Mapping) -> dict[tuple[int, Pass], int]:
    """Return {(rank, pass): its slot}, after the rank's previous pass and the results that it reads."""
    slots: dict[tuple[int, Pass], int] = {}
    left = {rank: list(order) for rank, order in orders.items() if order}
    while left:
        ready = [r for r, order in left.items() if all(n in slots for n in needs.get((r, order[0]), ()))]
        # Two passes that need parts of each other share one slot of the picture.
        for rank in ready or list(left)[:1]:
            p = left[rank].pop(0)
            before = [slots[n] for n in needs.get((rank, p), ()) if n in slots]
            index = orders[rank].index(p)
            before += [slots[rank, orders[rank][index - 1]]] if index else []
            slots[rank, p] = max(before, default=-1) + 1
        left = {r: order for r, order in left.items() if order}
    return slots
