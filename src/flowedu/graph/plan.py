"""Plan: a graph lowered to bound kernel calls over one arena.

For each node in order: find the kernel (the same `Entry` the eager mode uses), give the output a buffer, or let it take
the buffer of an input that dies here, or make it a view. Strided inputs of kernels that want contiguous ones are packed
by an inserted copy. Then lifetimes are known, and memory.place gives every buffer its offset.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flowedu.blob.spec import Spec, row_major
from flowedu.graph.executor import scratch_bytes
from flowedu.graph.ir import Graph, GraphValue, Node
from flowedu.graph.memory import Buffer, lower_bound, place, total
from flowedu.ops.core import Entry
from flowedu.ops.view import contiguous

FOLD_LIMIT = 1 << 20      # constants up to this many bytes are computed once, when the plan is made


@dataclass(eq=False)
class Place:
    """Where a value is: a buffer seen through strides (in elements) from an offset (in elements)."""

    buffer: Buffer
    spec: Spec
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def contiguous(self) -> bool:
        want = row_major(self.spec.shape)
        return all(s == w or n == 1 for s, w, n in zip(self.strides, want, self.spec.shape)) or self.spec.size == 0


@dataclass(eq=False)
class Step:
    """One kernel call: its Entry, the places of inputs then outputs, and scratch."""

    name: str
    entry: Entry
    places: list[Place]
    node: Node | None
    scratch: Buffer | None = None
    inplace: bool = False


@dataclass
class Plan:
    """What the executor runs, and what `show` prints."""

    graph: Graph
    steps: list[Step] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    where: dict[GraphValue, Place] = field(default_factory=dict)
    arena: int = 0
    report: list[str] = field(default_factory=list)

    @property
    def sum_bytes(self) -> int:
        return total(self.buffers)

    @property
    def bound_bytes(self) -> int:
        return lower_bound(self.buffers, len(self.steps))


def make_plan(graph: Graph, arrays: dict[GraphValue, object], report: Sequence[str] = (), *, threads: int = 0,
              inplace: bool = True, reuse: bool = True) -> Plan:
    """Lower `graph`.

    Args:
        arrays: tensors of variables and host values.
        report: what the passes said.
        threads: how many the executor will use (0: the present number).
        inplace, reuse: switches of the two memory passes.
    """
    plan = Plan(graph, report=list(report))
    graph.nodes = snapshot_outputs(graph)
    constants = fold(graph)
    last_read = _last_reads(graph)

    def new_buffer(name, kind, nbytes, array=None):
        b = Buffer(name, kind, nbytes, first=len(plan.steps), last=len(plan.steps), array=array)
        plan.buffers.append(b)
        return b

    def persistent(value: GraphValue, kind: str, array) -> None:
        plan.where[value] = Place(new_buffer(value.name, kind, value.spec.nbytes, array), value.spec,
                                  row_major(value.shape) if array is None else tuple(array.strides))

    for value in graph.inputs.values():
        persistent(value, "input", None)
    for value in (*graph.variables.values(), *graph.hosts.values()):
        persistent(value, value.kind, arrays[value])
    for value, array in constants.items():
        persistent(value, "const", array)

    def emit(name, entry, places, node, **more):
        step = Step(name, entry, places, node, **more)
        for p in places:
            p.buffer.last = max(p.buffer.last, len(plan.steps))
        nbytes = scratch_bytes(entry, places, threads)
        if nbytes:
            step.scratch = new_buffer(f"{name} scratch", "scratch", nbytes)
        plan.steps.append(step)

    copies: dict[GraphValue, Place] = {}

    def packed(place: Place, value: GraphValue) -> Place:
        """`place` as a contiguous copy, one for all readers of `value`."""
        if value in copies:
            return copies[value]
        copy, name = contiguous, value.name
        entry = copy.prepare([place.spec], ())
        out = Place(new_buffer(f"{name} packed", "temp", place.spec.nbytes), place.spec, row_major(place.spec.shape))
        emit(f"pack {name}", entry, [place, out], None)
        copies[value] = out
        return out

    for number, node in enumerate(graph.nodes):
        if node.outputs and node.outputs[0] in constants:
            continue
        specs = [x.spec for x in node.inputs]
        places = [plan.where[x] for x in node.inputs]
        if node.op.view is not None:
            entry = node.op.prepare(specs, node.attrs, [places[0].strides])
            if entry is None:
                places[0] = packed(places[0], node.inputs[0])
                entry = node.op.prepare(specs, node.attrs, [places[0].strides])
            plan.where[node.outputs[0]] = Place(places[0].buffer, node.outputs[0].spec, entry.strides,
                                                places[0].offset + entry.view_offset)
            places[0].buffer.last = max(places[0].buffer.last, len(plan.steps))
            continue
        entry = node.op.prepare(specs, node.attrs)
        wants = node.op.contiguous
        names = [node.op.inputs[0]] * len(places) if node.op.variadic else node.op.inputs
        places = [p if p.contiguous or n not in wants else packed(p, x)
                  for p, n, x in zip(places, names, node.inputs)]
        outs = []
        took = None
        for i, y in enumerate(node.outputs):
            took = _reusable(node, places, names, y, number, last_read, graph) if inplace and i == 0 else None
            buffer = took.buffer if took else new_buffer(y.name, "temp", y.spec.nbytes)
            outs.append(Place(buffer, y.spec, row_major(y.shape)))
            plan.where[y] = outs[-1]
        emit(node.name, entry, places + outs, node, inplace=took is not None)
    for value in graph.outputs:
        b = plan.where[value].buffer
        b.last, b.pinned = len(plan.steps), True
    if not reuse:
        for b in plan.buffers:
            b.first, b.last = 0, len(plan.steps)
    plan.arena = place(plan.buffers)
    return plan


def snapshot_outputs(graph: Graph) -> list[Node]:
    """The node list with updates last, and copies before them: what is fetched shows the values from before the update."""
    reads = [node for node in graph.nodes if not node.mutates]
    for i, value in enumerate(graph.outputs):
        if base(value).kind != "node":
            copy = Node(contiguous, [value], (), [value.spec], f"{value.name} (fetched)", "")
            reads.append(copy)
            graph.outputs[i] = copy.outputs[0]
    return reads + [node for node in graph.nodes if node.mutates]


def base(value: GraphValue) -> GraphValue:
    """The value whose memory `value` is a view of; itself when it is none."""
    while value.node is not None and value.node.op.view is not None:
        value = value.node.inputs[0]
    return value


def fold(graph: Graph) -> dict[GraphValue, object]:
    """Values that depend on nothing that changes, computed once: {value: tensor}."""
    known: dict[GraphValue, object] = {}
    for node in graph.nodes:
        small = sum(y.spec.nbytes for y in node.outputs) <= FOLD_LIMIT
        effect = node.op.random or node.mutates or node.op.effect
        if effect or not small or any(x not in known for x in node.inputs):
            continue
        out = node.op.call(tuple(known[x] for x in node.inputs), node.attrs)
        for y, t in zip(node.outputs, out if isinstance(out, tuple) else (out,)):
            known[y] = t.contiguous()
    return known


def _last_reads(graph: Graph) -> dict[GraphValue, int]:
    """{value: number of the last node that reads it, directly or through a view}."""
    last: dict[GraphValue, int] = {}
    for number, node in enumerate(graph.nodes):
        for x in node.inputs:
            last[x] = number
    for node in reversed(graph.nodes):
        if node.op.view is not None:
            x, y = node.inputs[0], node.outputs[0]
            last[x] = max(last.get(x, -1), last.get(y, -1))
    for value in graph.outputs:
        last[value] = last[base(value)] = len(graph.nodes)
    return last


def _reusable(node, places, names, y, number, last_read, graph) -> Place | None:
    """An input whose buffer output y may take: it dies here, and has the same spec and layout."""
    for p, name, x in zip(places, names, node.inputs):
        if name not in node.op.inplace or p.buffer.kind != "temp" or p.spec != y.spec or not p.contiguous:
            continue
        if p.offset or p.buffer.nbytes != y.spec.nbytes:
            continue
        others = [q for q, o in zip(places, node.inputs) if q is not p and q.buffer is p.buffer]
        if others or node.inputs.count(x) > 1:
            continue
        if last_read.get(base(x), -1) <= number:
            return p
    return None
