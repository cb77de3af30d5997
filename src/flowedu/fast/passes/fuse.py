"""The pass fuse replaces chains of elementwise ops by one kernel, which reads and writes memory once."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.rewrite import attributes, dead, replace
from flowedu.core.ops.define import Op
from flowedu.core.ops.program import MAX_SLOTS, Formula
from flowedu.core.ops.view import constant
from flowedu.core.values.dtype import dtype
from flowedu.fast.ops.fused import fused
from flowedu.ops.formula import inline
from flowedu.ops.halves import widened

MAX_OPERANDS = 12


def fuse(graph: Graph, alone: Collection[Op] = ()) -> str:
    """Merge elementwise nodes into their only reader if it is elementwise over the same shape.

    alone: ops that are not merged.
    """
    readers, outputs = graph.consumers(), set(graph.outputs)
    absorbed: set[Node] = set()
    kernels: dict[Node, Node] = {}
    for node in reversed(graph.nodes):
        if fusible(node, alone) and node not in absorbed:
            group = Group(node, lambda value, shape: joins(value, shape, readers, outputs, alone))
            if group.pays:
                absorbed.update(group.members[1:])
                kernels[node] = group.kernel()
    graph.nodes = [kernels.get(n, n) for n in graph.nodes if n not in absorbed]
    replace(graph, {old.outputs[0]: new.outputs[0] for old, new in kernels.items()})
    dead(graph)                                                # removes constants that moved into kernels
    return f"{len(absorbed)} ops joined {len(kernels)} kernels"


def fusible(node: Node | None, alone: Collection[Op] = ()) -> bool:
    """Return True for an elementwise node (None: an input) that is not excluded by `alone`."""
    return node is not None and node.op.program is not None and node.op not in alone


def joins(value: GraphValue, shape: tuple[int, ...], readers: Mapping[GraphValue, Sequence[Node]],
          outputs: Collection[GraphValue], alone: Collection[Op] = ()) -> bool:
    """Return True if the node of `value` can be merged into a kernel over `shape` that reads it."""
    return (fusible(value.node, alone) and value.shape == shape and value not in outputs
            and len(readers[value]) == 1)


class Group:
    """Elementwise nodes that become one kernel: a last one, and earlier ones that `joins` accepts.

    Values have slots. Operands are numbered from 0, results and constants from MAX_OPERANDS until `formula`
    renumbers them. Attributes: members, from the last to the first.
    """

    def __init__(self, last: Node, joins: Callable[[GraphValue, tuple], bool]) -> None:
        self.joins = joins
        self.operands: list[GraphValue] = []
        self.starts: list[int] = []                         # result axis of each operand's first axis
        self.instrs: list[tuple] = []
        self.consts: dict[int, float] = {}
        self.dtypes: dict[int, dtype] = {}
        self.slots: dict[tuple, int] = {}
        self.count, self.size = MAX_OPERANDS, _size(last)
        self.members = [last]
        self.out = self.enter(last)

    @property
    def pays(self) -> bool:
        """Return True if the kernel is worthwhile.

        Nodes of constants only are folded elsewhere.
        """
        return bool(self.operands) and (len(self.members) > 1 or bool(self.consts))

    def enter(self, node: Node) -> int:
        """Add the instructions of a node and of the inputs that join it. Return the slot of its result."""
        program, shape, slots = formula(node), node.outputs[0].shape, {}
        for i, (x, start) in enumerate(zip(node.inputs, _starts(node))):
            if x.node is not None and x.node.op is constant and x.ndim == 0:
                slots[i] = self.constant(x)
            elif self.joins(x, shape) and self.fits(x.node):
                self.members.append(x.node)
                slots[i] = self.enter(x.node)
            else:
                slots[i] = self.operand(x, start)
        self.count = inline(program, slots, self.instrs, self.consts, self.count)
        types = program.types(node.op.name, [x.dtype for x in node.inputs])
        self.dtypes.update({slots[s]: types[s] for s in program.consts})
        return slots[program.outs[0]]

    def fits(self, node: Node) -> bool:
        """Return True and reserve slots if the kernel has enough slots left for `node`."""
        size = self.size + _size(node)
        if size + len(self.members) >= MAX_SLOTS - 8 or size >= MAX_OPERANDS + 6:
            return False
        self.size = size
        return True

    def constant(self, value: GraphValue) -> int:
        slot, self.count = self.count, self.count + 1
        self.consts[slot], self.dtypes[slot] = attributes(value.node)["value"], value.dtype
        return slot

    def operand(self, value: GraphValue, start: int) -> int:
        key = (value, start)
        if key not in self.slots:
            self.slots[key] = len(self.operands)
            self.operands.append(value)
            self.starts.append(start)
        return self.slots[key]

    def formula(self) -> Formula:
        """Return the formula with slots renumbered without gaps: operands, then the others."""
        n = len(self.operands)

        def new(s: int) -> int:
            return s if s < MAX_OPERANDS else s - MAX_OPERANDS + n

        return Formula(n, [(name, new(o), tuple(map(new, ops))) for name, o, ops in self.instrs],
                       [new(self.out)],
                       {new(s): v for s, v in self.consts.items()},
                       {new(s): t for s, t in self.dtypes.items()})

    def kernel(self) -> Node:
        """Return the fused node, named after its members."""
        last = self.members[0]
        spec = last.outputs[0].spec
        at_the_end = all(s == spec.ndim - x.ndim for s, x in zip(self.starts, self.operands))
        attrs = (self.formula(), spec.shape, spec.dtype, (0,) if at_the_end else (1, *self.starts))
        node = Node(fused, self.operands, attrs, [spec], last.name, last.line)
        node.name = "+".join(dict.fromkeys(m.op.name for m in reversed(self.members)))
        node.outputs[0].name = last.outputs[0].name
        return node


def formula(node: Node) -> Formula:
    """Return the formula of a node. It rounds 16-bit results, so that a chain gives the bits of its ops."""
    return widened(node.op.program, [x.dtype for x in node.inputs], [y.dtype for y in node.outputs])


def _size(node: Node) -> int:
    return len(formula(node).instrs) + len(node.inputs)


def _starts(node: Node) -> list[int]:
    """Return the result axis of each input's first axis. Except for bias_add, last axes are aligned."""
    op = node.op
    ints = op.ask(op.pack, op.bind([x.spec for x in node.inputs], node.attrs))[0] if op.pack else ()
    return [ints[1 + i] if ints and ints[0] else node.outputs[0].ndim - x.ndim
            for i, x in enumerate(node.inputs)]
