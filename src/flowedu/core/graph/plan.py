"""Plan: a graph lowered to bound kernel calls over one arena.

The planner visits the nodes in order and finds the kernel of each (the `Entry` that eager mode
uses). The output is a view, reuses the buffer of an input that is not read later, or gets a new
buffer. A copy is inserted before kernels that need contiguous inputs and would get strided ones.
Then all lifetimes are known, and memory.place sets the offsets.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from flowedu.core import extensions
from flowedu.core.eager.arrays import make_contiguous
from flowedu.core.eager.dispatch import Entry, prepare
from flowedu.core.graph.executor import scratch_bytes
from flowedu.core.graph.ir import Graph, GraphValue, Node, base
from flowedu.core.graph.memory import Buffer, lower_bound, place, total
from flowedu.core.ops.view import contiguous
from flowedu.core.values.spec import Spec, row_major
from flowedu.core.values.storage import Array

FOLD_LIMIT = 1 << 20      # constants up to this many bytes are computed once, when the plan is made


@dataclass(eq=False)
class Region:
    """The location of a value: a buffer, strides, and an offset (both in elements)."""

    buffer: Buffer
    spec: Spec
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def contiguous(self) -> bool:
        expected, shape = row_major(self.spec.shape), self.spec.shape
        return self.strides == expected or 0 in shape or all(
            s == e or n == 1 for s, e, n in zip(self.strides, expected, shape))


@dataclass(eq=False)
class Step:
    """One kernel call: its Entry, the regions of inputs and then outputs, and scratch memory."""

    name: str
    entry: Entry
    places: list[Region]
    node: Node | None
    scratch: Buffer | None = None
    inplace: bool = False


@dataclass
class Plan:
    """The kernel calls and the memory layout of a graph, for the executor and for `show`."""

    graph: Graph
    steps: list[Step] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    where: dict[GraphValue, Region] = field(default_factory=dict)
    arena: int = 0
    report: list[str] = field(default_factory=list)

    @property
    def sum_bytes(self) -> int:
        return total(self.buffers)

    @property
    def bound_bytes(self) -> int:
        return lower_bound(self.buffers, len(self.steps))


def make_plan(graph: Graph, arrays: dict[GraphValue, Array], report: Sequence[str] = (), *,
              threads: int = 0, inplace: bool = True, reuse: bool = True,
              scratch: Callable[[Step], int] | None = None) -> Plan:
    """Lower `graph` to a Plan.

    Args:
        arrays: tensors of variables and host values.
        report: the lines that the passes returned.
        threads: number of threads of the executor (0: the current setting).
        inplace, reuse: False switches off the memory pass of that name.
        scratch: function that returns the scratch bytes of a step. Default: those of its kernel.
    """
    start, graph.nodes = perf_counter(), snapshot_outputs(graph)
    planner = Planner(Plan(graph, report=list(report)), arrays, threads, inplace, scratch)
    for number, node in enumerate(graph.nodes):
        if node.outputs and node.outputs[0] in planner.constants:
            continue
        if node.op.view is not None:
            planner.view(node)
        else:
            planner.call(node, number)
    plan = planner.plan
    for value in graph.outputs:
        b = plan.where[value].buffer
        b.last, b.pinned = len(plan.steps), True
    lasting = [s.scratch for s in plan.steps if s.scratch and s.node in graph.kept]
    for b in lasting if reuse else plan.buffers:
        b.first, b.last = 0, len(plan.steps)
    graph.spent["plan"], start = perf_counter() - start, perf_counter()
    plan.arena = (extensions.place_buffers or place)(plan.buffers)
    graph.spent["memory"] = perf_counter() - start
    return extensions.check_plan(plan) if extensions.check_plan else plan


class Planner:
    """Builder of a plan, with the constant values and the last reader of each value."""

    def __init__(self, plan: Plan, arrays: dict[GraphValue, Array], threads: int, inplace: bool,
                 scratch: Callable[[Step], int] | None):
        self.plan, self.threads = plan, threads
        self.inplace, self.scratch = inplace, scratch
        graph = plan.graph
        self.constants = fold(graph)
        self.last_read = last_reads(graph)
        self.copies: dict[GraphValue, Region] = {}
        for value in graph.inputs.values():
            self.keep(value, "input")
        for value in (*graph.variables.values(), *graph.hosts.values()):
            self.keep(value, value.kind, arrays[value])
        for value, array in self.constants.items():
            self.keep(value, "const", array)

    def buffer(self, name: str, kind: str, nbytes: int, array: Array | None = None) -> Buffer:
        now = len(self.plan.steps)
        b = Buffer(name, kind, nbytes, first=now, last=now, array=array)
        self.plan.buffers.append(b)
        return b

    def keep(self, value: GraphValue, kind: str, array: Array | None = None) -> None:
        """Add a value whose memory is outside the arena."""
        strides = row_major(value.shape) if array is None else tuple(array.strides)
        self.plan.where[value] = Region(self.buffer(value.name, kind, value.spec.nbytes, array),
                                        value.spec, strides)

    def emit(self, step: Step) -> None:
        """Append a step, extend the lifetimes of its buffers, and add its scratch memory."""
        for p in step.places:
            p.buffer.last = max(p.buffer.last, len(self.plan.steps))
        if self.scratch:
            nbytes = self.scratch(step)
        else:
            nbytes = scratch_bytes(step.entry, step.places, self.threads)
        if nbytes:
            step.scratch = self.buffer(f"{step.name} scratch", "scratch", nbytes)
        self.plan.steps.append(step)

    def pack(self, place: Region, value: GraphValue) -> Region:
        """Return a contiguous copy of `place`. All readers of `value` share it."""
        if value not in self.copies:
            entry, name = prepare(contiguous, [place.spec], ()), value.name
            out = Region(self.buffer(f"{name} packed", "temp", place.spec.nbytes), place.spec,
                         row_major(place.spec.shape))
            self.emit(Step(f"pack {name}", entry, [place, out], None))
            self.copies[value] = out
        return self.copies[value]

    def view(self, node: Node) -> None:
        """Make the output a view of the input, or of a packed copy if strides require it."""
        x, y = node.inputs[0], node.outputs[0]
        specs, place = [v.spec for v in node.inputs], self.plan.where[x]
        entry = prepare(node.op, specs, node.attrs, [place.strides], (y.spec,))
        if entry is None:
            place = self.pack(place, x)
            entry = prepare(node.op, specs, node.attrs, [place.strides], (y.spec,))
        self.plan.where[y] = Region(place.buffer, y.spec, entry.strides,
                                    place.offset + entry.view_offset)
        place.buffer.last = max(place.buffer.last, len(self.plan.steps))

    def call(self, node: Node, number: int) -> None:
        """Append the kernel call of a node."""
        op = node.op
        entry = prepare(op, [x.spec for x in node.inputs], node.attrs, None,
                        tuple([y.spec for y in node.outputs]))
        names = [op.inputs[0]] * len(node.inputs) if op.variadic else op.inputs
        places = [self.plan.where[x] for x in node.inputs]
        places = [p if p.contiguous or n not in op.contiguous else self.pack(p, x)
                  for p, n, x in zip(places, names, node.inputs)]
        took = self.reusable(node, places, names, number) if self.inplace and node.outputs else None
        for i, y in enumerate(node.outputs):
            buffer = took.buffer if took and i == 0 else self.buffer(y.name, "temp", y.spec.nbytes)
            self.plan.where[y] = Region(buffer, y.spec, row_major(y.shape))
        outs = [self.plan.where[y] for y in node.outputs]
        self.emit(Step(node.name, entry, places + outs, node, inplace=took is not None))

    def reusable(self, node: Node, places: Sequence[Region], names: Sequence[str],
                 number: int) -> Region | None:
        """Return the region of an input that is not read later, for reuse by the first output."""
        spec = node.outputs[0].spec
        for p, name, x in zip(places, names, node.inputs):
            fits = name in node.op.inplace and p.spec == spec and p.contiguous
            whole = p.buffer.kind == "temp" and not p.offset and p.buffer.nbytes == spec.nbytes
            alone = fits and whole and node.inputs.count(x) == 1
            shared = alone and any(q is not p and q.buffer is p.buffer for q in places)
            if alone and not shared and self.last_read.get(base(x), -1) <= number:
                return p
        return None


def snapshot_outputs(graph: Graph) -> list[Node]:
    """Return the nodes in order: reads, copies of outputs that no node computes, then updates."""
    reads = [node for node in graph.nodes if not node.mutates]
    for i, value in enumerate(graph.outputs):
        if base(value).kind != "node":
            copy = Node(contiguous, [value], (), [value.spec], f"{value.name} (fetched)", "")
            reads.append(copy)
            graph.outputs[i] = copy.outputs[0]
    return reads + [node for node in graph.nodes if node.mutates]


def fold(graph: Graph) -> dict[GraphValue, Array]:
    """Compute the values that depend only on constants. Returns {value: tensor}."""
    known: dict[GraphValue, Array] = {}
    for node in graph.nodes:
        small = sum(y.spec.nbytes for y in node.outputs) <= FOLD_LIMIT
        effect = node.op.random or node.mutates or node.op.effect
        if effect or not small or any(x not in known for x in node.inputs):
            continue
        out = node.op.call(tuple(known[x] for x in node.inputs), node.attrs)
        for y, t in zip(node.outputs, out if isinstance(out, tuple) else (out,)):
            known[y] = make_contiguous(t)
    return known


def last_reads(graph: Graph) -> dict[GraphValue, int]:
    """Return {value: number of the last node that reads it, directly or through a view}."""
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
