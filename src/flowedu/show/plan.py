"""Text of a plan: its calls in order, their inputs, outputs, and offsets, and the memory saved by sharing.

`rows(plan)` returns the plan as data, and `describe(plan)` returns it as text. show/picture.py draws its
memory.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from flowedu.core.graph.ir import GraphValue, base
from flowedu.core.graph.memory import Buffer, rounded
from flowedu.core.graph.plan import Plan, Region, Step
from flowedu.fast.ops.fused import fused
from flowedu.fast.ops.matmul_update import matmul_update

HEAD = ("step", "op", "result", "shape", "reads", "memory", "bytes", "live")
CAPS = {"op": 20, "result": 22, "reads": 32}          # maximum column widths; longer text is cut
LEGEND = ("%n: the result of step n, which has no name of its own.  @n: offset in the arena; with * the "
          "result took\nthe memory of an input that nobody reads later.  live: how much of the arena holds "
          "what is needed now or later.")


@dataclass
class Row:
    """One result of one call (number -1: a further result, or scratch memory, of the call above).

    part: "forward", "backward" or "update". live: bytes of the arena in use while the call runs.
    """

    number: int
    part: str
    op: str
    result: str
    nbytes: int
    shape: str = ""
    reads: list[str] = field(default_factory=list)
    home: str = ""
    live: int = 0


def rows(plan: Plan, arguments: Mapping[str, str] = {}) -> list[Row]:
    """Return the calls of a plan. A value keeps its own name if it reuses the memory of another value.

    Args:
        arguments: {name of an input: the user's name for it}.
    """
    name, live = Names(plan, arguments), live_bytes(plan)
    table: list[Row] = []
    for i, (step, part) in enumerate(zip(plan.steps, parts(plan))):
        ins, outs = split(step)
        node, first = step.node, len(table)
        if node is None:                                        # a copy inserted by the planner: "pack x"
            result = name.packed(outs[0].buffer)
            table.append(Row(i, part, "pack", result, outs[0].spec.nbytes, shape(outs[0]),
                             [result.removesuffix(" packed")], home(outs[0])))
        elif node.mutates:
            written = [node.inputs[k] for k in node.mutates]
            table.append(Row(i, part, node.op.name, f"({len(written)} variables)" if written[1:]
                             else name(written[0]), sum(x.spec.nbytes for x in written), home="(their own)",
                             reads=[name(x) for k, x in enumerate(node.inputs) if k not in node.mutates]))
        else:
            # a fused call has the names of its members
            op = step.name if node.op is fused else node.op.name
            reads = [name.packed(p.buffer) or name(x) for x, p in zip(node.inputs, ins)]
            for k, (y, p) in enumerate(zip(node.outputs, outs)):
                star = "*" if step.inplace and k == 0 else ""
                table.append(Row(i if k == 0 else -1, part, "" if k else op, name(y), p.spec.nbytes, shape(p),
                                 [] if k else reads, home(p) + star))
        if step.scratch is not None:
            table.append(Row(-1, part, "", "(scratch)", step.scratch.nbytes,
                             home=f"@{step.scratch.offset:,}"))
        for row in table[first:]:
            row.live = live[i]
    return table


def describe(plan: Plan, arguments: Mapping[str, str] = {}) -> str:
    """Format a plan as a table, with the passes above it and the memory below it. arguments: see rows."""
    table, peak = rows(plan, arguments), max(live_bytes(plan), default=0)
    unit, scale = ("MB", 1e6) if peak >= 1e6 else ("kB", 1e3)
    titles = {**dict(zip(HEAD, HEAD)), "live": f"{unit} live"}
    cells = [dict(zip(HEAD, (str(r.number), r.op, r.result, r.shape, shorten(r.reads), r.home,
                             f"{r.nbytes:,}",
                             f"{r.live / scale:.2f}" + (" peak" if r.live == peak else "     "))))
             for r in table]
    for r, c in zip(table, cells):
        if r.number < 0:
            c["step"] = c["live"] = ""
        c.update({h: cut(c[h], n) for h, n in CAPS.items()})
    widths = {h: max(len(c[h]) for c in [titles, *cells]) for h in HEAD}

    def line(c: Mapping[str, str]) -> str:
        return "  ".join(c[h].rjust(w) if h in ("step", "bytes", "live") else c[h].ljust(w)
                         for h, w in widths.items()).rstrip()

    lines = [f"plan of {plan.graph.name}: {len(plan.steps)} calls", *passes(plan), "", line(titles)]
    part = ""
    for r, c in zip(table, cells):
        if plan.graph.training and r.part != part:
            part = r.part
            lines.append(f"---- {part}")
        lines.append(line(c))
    outside = {kind: sum(b.nbytes for b in plan.buffers if b.kind == kind)
               for kind in ("variable", "input", "const")}
    return "\n".join([*lines, "", LEGEND, memory_line(plan), "outside the arena: " + ", ".join(
        f"{kind}s {n:,} bytes" for kind, n in outside.items() if n)])


def memory_line(plan: Plan) -> str:
    """Compare the size of the arena with the sum of all buffers and with the lower bound."""
    share = plan.arena / plan.sum_bytes if plan.sum_bytes else 1.0
    return (f"arena {plan.arena:,} bytes, {share:.0%} of the {plan.sum_bytes:,} it would take without "
            f"sharing; at most {plan.bound_bytes:,} live at once")


def passes(plan: Plan) -> list[str]:
    """Return one line for each pass, and one for each kind of decision made while planning."""
    kinds = [b.kind for b in plan.buffers]
    planning = [("fold", kinds.count("const"), "constants computed once, while planning"),
           ("inplace", sum(s.inplace for s in plan.steps),
            "results took the memory of an input that dies there"),
           ("pack", sum(s.node is None for s in plan.steps),
            "strided inputs copied, for kernels that cannot read them")]
    return [f"  {line}" for line in aligned([*plan.report, *(f"{name} {n:4d} {what}"
                                                             for name, n, what in planning if n)])]


def aligned(report: Sequence[str]) -> list[str]:
    """Align the names of the passes in a column. Passes that changed nothing share one line at the end."""
    split = [line.rstrip().partition(" ") for line in report]
    idle = [name for name, _, outcome in split if re.fullmatch(r" *(\d+) -> +\1 nodes", outcome)]
    width = max((len(name) for name, _, _ in split if name not in idle), default=0)
    return [*(f"{name:{width}s} {outcome}" for name, _, outcome in split if name not in idle),
            *([f"nothing to do for {', '.join(idle)}"] if idle else [])]


# ---- names, parts, and memory of a plan
class Names:
    """Display names of values: their own name, the user's name of an argument, grad(w), or %n for step n."""

    def __init__(self, plan: Plan, arguments: Mapping[str, str]):
        self.values = {x.name: x for node in plan.graph.nodes for x in node.inputs}
        self.names = {**arguments, "System-Train-LearningRate": "lr"}
        self.names.update((v, "step") for v in plan.graph.variables
                          if v.startswith("System-Train-TrainStep-"))
        for number, step in enumerate(plan.steps):
            if step.node is None:
                continue
            ops = step.name if step.node.op is fused else step.node.op.name
            for y in step.node.outputs:
                if re.fullmatch(rf"({ops.replace('+', '|')})_\d+(\..*)?", y.name):        # named by the graph
                    self.names[y.name] = f"%{number}" + "".join(y.name.partition(".")[1:])
        for step in plan.steps:
            node = step.node
            # lr, step, then (w, gradient of w, ...) of each parameter
            if node is not None and is_update(step):
                inputs, written = node.inputs, node.mutates
                self.names.update((x.name, f"grad({inputs[i - 1].name})") for i, x in enumerate(inputs)
                                  if i > 2 and i not in written)

    def __call__(self, value: GraphValue) -> str:
        known = self.names.get(value.name)
        if known is None and base(value) is not value:      # a view has no row of its own: name its base
            return f"{self(base(value))} (view)"
        return known or value.name

    def packed(self, buffer: Buffer) -> str:
        """Return the name of a copy inserted by the planner, or "" for other buffers."""
        source = (self.values.get(buffer.name.removesuffix(" packed")) if buffer.name.endswith(" packed")
                  else None)
        return f"{self(source)} packed" if source else ""


def split(step: Step) -> tuple[list[Region], list[Region]]:
    """Return (regions that a step reads, regions that it writes)."""
    n = len(step.places) - len(step.entry.specs)
    return step.places[:n], step.places[n:]


def is_update(step: Step) -> bool:
    """Return True for a step of an optimizer."""
    return step.node is not None and (step.node.op.group is not None or step.node.op is matmul_update)


def parts(plan: Plan) -> list[str]:
    """Return "forward", "backward", or "update" for each step.

    The backward pass and the optimizer are appended after the body has run. They share a line of user code
    that no op of the body has. Steps that write variables come last, such as those for batch norm's running
    statistics.
    """
    lines = {s.node.line for s in plan.steps if s.node is not None and is_update(s)}

    def part_of(step):
        if step.node is not None and step.node.mutates:
            return "update"
        return "backward" if step.node is not None and step.node.line in lines else "forward"

    result = [part_of(s) for s in plan.steps]
    for i in reversed(range(len(result) - 1)):
        if plan.steps[i].node is None:                          # a copy belongs to the call that reads it
            result[i] = result[i + 1]
    return result


def live_bytes(plan: Plan) -> list[int]:
    """Return the bytes of the arena in use at each step. No memory plan can need less than their maximum."""
    steps = len(plan.steps)
    change = [0] * (steps + 1)
    for b in plan.buffers:
        if b.in_arena:
            change[max(b.first, 0)] += rounded(b.nbytes)
            change[min(b.last, steps - 1) + 1] -= rounded(b.nbytes)
    return list(accumulate(change[:steps]))


def saved_for_backward(plan: Plan) -> set[Buffer]:
    """Return the buffers written in the forward part and read in the backward part."""
    where = parts(plan)
    if "backward" not in where:
        return set()
    start = where.index("backward")
    read = {p.buffer for step, part in zip(plan.steps, where) if part == "backward" for p in split(step)[0]}
    return {b for b in read if b.kind == "temp" and b.first < start}


def home(p: Region) -> str:
    return f"@{p.buffer.offset:,}" if p.buffer.in_arena else p.buffer.kind


def shape(p: Region) -> str:
    return "x".join(map(str, p.spec.shape)) or "1"


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width - 1] + "…"


def shorten(reads: Sequence[str]) -> str:
    """Join the names of inputs. Three or more gradients become a count."""
    grads = [r for r in reads if r.startswith("grad(")]
    return ", ".join(reads if len(grads) < 3 else [*[r for r in reads if r not in grads], f"{len(grads)} "
                                                   f"gradients"])
