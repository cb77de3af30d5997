"""Checks of a plan: values are computed before they are read, and buffers are not overwritten too early."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import zip_longest

from flowedu.core import extensions
from flowedu.core.graph import memory
from flowedu.core.graph import plan as planning
from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.graph.memory import ALIGN, Buffer
from flowedu.core.graph.plan import Plan, Region, Step
from flowedu.diagnostics.verify.graphs import fault
from flowedu.errors import GraphError

OVERLAP = (
    "correct the planner: a buffer keeps its memory from the step that writes it to the last that reads it"
)
STEPS = "correct the planner: one step for each node, with buffers of its own for its results"

Content = Buffer | Node  # of a buffer: the node whose result it contains, or itself outside the arena


def check_plan(plan: Plan) -> None:
    """Check that the steps of a plan compute its graph, and that its buffers are placed correctly.

    Raises:
        GraphError: a rule is broken. The message contains planner, step or buffer, and the node's line.
    """
    planner = f'planner "{name_of(planning.make_plan)}"'
    replay = Replay(plan, planner)
    replay.run()
    _check_lifetimes(plan, planner, replay.lives)
    place = vars(extensions).get("place_buffers") or memory.place
    _check_places(plan, f'planner "{name_of(place)}"')


def name_of(f: Callable) -> str:
    """Return the name in the code of a function, which a swapped function takes from the other one."""
    code = getattr(f, "__code__", None)
    return getattr(f, "__name__", type(f).__name__) if code is None else code.co_name


# ---- steps
class Replay:
    """A traversal of the steps of a plan that tracks the contents of each buffer, without computing anything.

    Attributes:
        contents: {buffer: node whose result it contains}, or the buffer itself for memory outside the arena.
        lives: {arena buffer: (first step, last step) of its use}.
    """

    def __init__(self, plan: Plan, who: str):
        self.plan, self.who = plan, who
        self.value_at = {id(region): value for value, region in plan.where.items()}
        self.contents: dict[Buffer, Content] = {b: b for b in plan.buffers if not b.in_arena}
        self.copies: dict[int, Content] = {}  # {id of a packed region: values copied to it}
        self.lives: dict[Buffer, tuple[int, int]] = {}

    def fault(self, problem: str, line: str, *, expected: str, got: str, fix: str = STEPS) -> GraphError:
        return fault(self.who, problem, expected=expected, got=got, line=line, fix=fix)

    def run(self) -> None:
        for number, step in enumerate(self.plan.steps):
            self._step(step)
            for b in _buffers(step):
                self.lives[b] = (self.lives[b][0] if b in self.lives else number, number)
        self._check_complete([step.node for step in self.plan.steps if step.node is not None])
        for value in self.plan.graph.outputs:
            self._check_output(value)

    def _step(self, step: Step) -> None:
        count = len(step.places) - len(step.entry.specs)
        reads, writes = step.places[:count], step.places[count:]
        for region in step.places:
            self._check_region(region, step)
        for region in reads:
            self._check_read(region, step)
        if step.scratch is not None:
            self._check_scratch(step, step.scratch)
        for region in writes:
            self._check_write(region, step, reads)
            if step.node is not None:
                self.contents[region.buffer] = step.node
            else:  # a packed copy
                self.contents[region.buffer] = self.copies[id(region)] = self.contents[reads[0].buffer]

    def _origin(self, value: GraphValue) -> Content:
        """Return the contents of the buffer of `value`, or of the value that it is a view of."""
        b, node = self.plan.where[value].buffer, value.node
        while b.in_arena and node is not None and node.op.view is not None:
            value = node.inputs[0]
            b, node = self.plan.where[value].buffer, value.node
        return node if b.in_arena and node is not None else b

    def _check_region(self, region: Region, step: Step) -> None:
        """Check that a region is inside its buffer. The size of a tensor's memory is not known here."""
        if 0 in region.spec.shape or region.buffer.array is not None:
            return
        extents = [(n - 1) * s for n, s in zip(region.spec.shape, region.strides)]
        first = region.offset + sum(e for e in extents if e < 0)
        last = region.offset + sum(e for e in extents if e > 0)
        if first < 0 or (last + 1) * region.spec.dtype.bytes > region.buffer.nbytes:
            raise self.fault(
                f"{step.name} uses memory outside the buffer {region.buffer.name}",
                _line(step),
                expected=f"elements inside its {region.buffer.nbytes:,} bytes",
                got=f"elements {first} to {last} of {region.spec}",
            )

    def _check_read(self, region: Region, step: Step) -> None:
        """Check that the memory a step reads has been written, and has not been overwritten since."""
        b, value = region.buffer, self.value_at.get(id(region))
        if b not in self.contents:
            raise self.fault(
                f"{step.name} reads {b.name} before it is written",
                _line(step),
                expected="an earlier step that writes it",
                got="none",
            )
        want = self.copies.get(id(region)) if value is None else self._origin(value)
        if self.contents[b] is not want:
            raise self.fault(
                f"{step.name} reads {value.name if value else b.name} after it was overwritten",
                _line(step),
                expected=f"{_name(want)} in the buffer {b.name}",
                got=f"{_name(self.contents[b])} in it",
                fix=OVERLAP,
            )

    def _check_write(self, region: Region, step: Step, reads: Sequence[Region]) -> None:
        """Check that a step writes to the arena, and to the buffer of an input only if its op allows this."""
        b = region.buffer
        if not b.in_arena:
            raise self.fault(
                f"{step.name} writes its result into the {b.kind} {b.name}",
                _line(step),
                expected="a buffer of the arena",
                got=b.kind,
            )
        shared = [i for i, r in enumerate(reads) if r.buffer is b]
        if not shared:
            return
        op, read = step.entry.op, reads[shared[0]]
        name = op.inputs[0 if op.variadic else shared[0]]
        if len(shared) > 1 or name not in op.inplace or read.spec != region.spec or not read.contiguous:
            raise self.fault(
                f"{step.name} writes over its own input {name}",
                _line(step),
                expected=f"an input that {op.name} may overwrite: {', '.join(op.inplace) or 'none'}",
                got=f"{name} {read.spec} in the buffer of the result {region.spec}",
            )

    def _check_scratch(self, step: Step, b: Buffer) -> None:
        if b.kind != "scratch" or b in self.lives or any(region.buffer is b for region in step.places):
            raise self.fault(
                f"the scratch memory of {step.name} is used by another step or value",
                _line(step),
                expected="a scratch buffer for each step",
                got=f"the {b.kind} buffer {b.name}",
            )

    def _check_complete(self, done: list[Node]) -> None:
        """Check that each node has a step, except for views and constants, in the order of the graph."""
        expected = [n for n in self.plan.graph.nodes if n.op.view is None and not self._is_constant(n)]
        if done == expected:
            return
        missing = [n for n in expected if n not in done]
        node = missing[0] if missing else next(a for a, b in zip_longest(done, expected) if a is not b)
        raise self.fault(
            f"no step computes {node.name}" if missing else f"the step of {node.name} is misplaced",
            node.line,
            expected="one step for each node, in the order of the graph",
            got=f"{len(done)} steps for {len(expected)} nodes",
        )

    def _is_constant(self, node: Node) -> bool:
        region = self.plan.where.get(node.outputs[0]) if node.outputs else None
        return region is not None and region.buffer.kind == "const"

    def _check_output(self, value: GraphValue) -> None:
        line = value.node.line if value.node is not None else ""
        b, end = self.plan.where[value].buffer, len(self.plan.steps)
        if b not in self.contents:
            raise self.fault(
                f"the output {value.name} is never written",
                line,
                expected="a step that writes it",
                got="none",
            )
        if self.contents[b] is not self._origin(value):
            raise self.fault(
                f"the output {value.name} is overwritten",
                line,
                got=f"{_name(self.contents[b])} in it",
                fix=OVERLAP,
                expected=f"{_name(self._origin(value))} in the buffer {b.name} at the end",
            )
        if b.in_arena:
            self.lives[b] = self.lives[b][0], end


def _buffers(step: Step) -> list[Buffer]:
    """Return the arena buffers that a step uses."""
    used = [region.buffer for region in step.places] + ([step.scratch] if step.scratch is not None else [])
    return [b for b in used if b.in_arena]


def _name(content: Content | None) -> str:
    if content is None:
        return "nothing"
    return (
        f"the {content.kind} {content.name}"
        if isinstance(content, Buffer)
        else f"the result of {content.name}"
    )


def _line(step: Step) -> str:
    return step.node.line if step.node is not None else ""


# ---- memory
def _check_lifetimes(plan: Plan, who: str, lives: dict[Buffer, tuple[int, int]]) -> None:
    """Check that each buffer is reserved from the step that writes it to the last step that reads it."""
    listed = set(plan.buffers)
    for b, (first, last) in lives.items():
        if b not in listed:
            raise fault(
                who,
                f"the buffer {b.name} is not in plan.buffers",
                expected="all buffers of the steps",
                got="others",
                line=_line_of(plan, b),
                fix=STEPS,
            )
        if b.first > first or b.last < last:
            when = "freed too early" if b.last < last else "reserved too late"
            raise fault(
                who,
                f"the buffer {b.name} is {when}",
                expected=f"steps {first} to {last}",
                got=f"steps {b.first} to {b.last}",
                line=_line_of(plan, b),
                fix=OVERLAP,
            )


def _check_places(plan: Plan, who: str) -> None:
    """Check that buffers are inside the arena, and that no two live at the same step overlap."""
    if not isinstance(plan.arena, int) or plan.arena < plan.bound_bytes:
        raise fault(
            who,
            "the arena is too small",
            expected=f"at least {plan.bound_bytes:,} bytes, which are live at one step",
            got=f"{plan.arena!r} bytes",
            fix="return the end of the last buffer, b.offset + rounded(b.nbytes)",
        )
    live: list[tuple[int, int, Buffer]] = []  # (offset, number, buffer), sorted, without overlap
    ends: list[tuple[int, int, Buffer]] = []  # heap of (last step, number, buffer) of the same buffers
    for number, b in enumerate(sorted((b for b in plan.buffers if b.in_arena), key=lambda b: b.first)):
        if b.offset < 0 or b.offset % ALIGN or b.offset + b.nbytes > plan.arena:
            raise fault(
                who,
                f"the buffer {b.name} is not placed inside the arena",
                line=_line_of(plan, b),
                fix=OVERLAP,
                expected=f"{b.nbytes:,} bytes from a multiple of {ALIGN} in an arena of {plan.arena:,} bytes",
                got=f"offset {b.offset:,}",
            )
        while ends and ends[0][0] < b.first:
            _, old, gone = heappop(ends)
            live.pop(bisect_left(live, (gone.offset, old)))
        if b.nbytes:
            at = bisect_left(live, (b.offset, number))
            for _, _, other in live[max(at - 1, 0) : at + 1]:
                _check_apart(plan, who, other, b)
            live.insert(at, (b.offset, number, b))
            heappush(ends, (b.last, number, b))


def _check_apart(plan: Plan, who: str, a: Buffer, b: Buffer) -> None:
    if a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes:
        raise fault(
            who,
            f"the buffers {a.name} and {b.name} overlap",
            line=_line_of(plan, a),
            fix=OVERLAP,
            expected=f"separate memory: both are live at step {max(a.first, b.first)}",
            got=f"bytes {a.offset:,} to {a.offset + a.nbytes:,} and {b.offset:,} to {b.offset + b.nbytes:,}",
        )


def _line_of(plan: Plan, b: Buffer) -> str:
    """Return the line of the node that first uses a buffer."""
    return next((_line(s) for s in plan.steps if s.scratch is b or any(r.buffer is b for r in s.places)), "")
