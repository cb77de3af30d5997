"""Passes: short functions that rewrite a graph's node list. Each can be switched off and says what it did.

    simplify  identity and no-op nodes go
    cse       the same op on the same values is computed once
    dead      nodes nobody needs go
    norm_clip batch norm and relu or relu6 become one op (norm_clip.py)
    layout    images are kept channels last where that is faster (layout.py)
    fold_norm in inference, batch norm becomes the last step of a convolution (fold_norm.py)
    pool_first  max pooling moves before bias and relu (pool_first.py)
    masked_softmax, bands   attention: scale and mask go into the softmax; gradients of slices are joined (attention.py)
    fuse      chains of elementwise ops become one kernel
    update    plain SGD goes into the matrix product that makes the gradient

fuse_add and fuse_scale are parts of fuse; inplace and reuse are the planner's (memory.py). All can be switched off by name.
"""
from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from flowedu.blob.dtype import as_dtype, dtype, float32
from flowedu.errors import ShapeError
from flowedu.graph.attention import bands, masked_softmax
from flowedu.graph.fold_norm import fold_norm
from flowedu.graph.ir import Graph, GraphValue, Node
from flowedu.graph.layout import layout
from flowedu.graph.norm_clip import norm_clip
from flowedu.graph.plan import base
from flowedu.graph.pool_first import pool_first
from flowedu.graph.rewrite import dead, replace
from flowedu.ops import axes
from flowedu.ops.define import REGISTRY, define
from flowedu.ops.program import MAX_SLOTS, Formula
from flowedu.ops.record import Kernel, Laws, Meaning, Split
from flowedu.ops.update import number_of

MAX_OPERANDS = 12


def _starts(xs, shape, ints) -> list[int]:
    """Under which output axis each operand's first axis lies."""
    return [ints[1 + i] if ints[0] else len(shape) - x.ndim for i, x in enumerate(xs)]


def _fused_axes(xs, shape, ints):
    out = axes.same(len(shape))
    terms = ["".join("1" if n == 1 and shape[s + d] != 1 else out[s + d] for d, n in enumerate(x.shape))
             for x, s in zip(xs, _starts(xs, shape, ints))]
    return ",".join(terms) + "->" + out


def _check_fused(xs, shape, ints):
    for x, s in zip(xs, _starts(xs, shape, ints)):
        if s < 0 or any(n not in (1, shape[s + d]) for d, n in enumerate(x.shape)):
            raise ShapeError("fused: an operand does not broadcast", expected=str(tuple(shape)), got=str(x.shape))


def _fused_ref(xs, formula, shape, ints):
    lifted = [x.reshape(x.shape + (1,) * (len(shape) - s - x.ndim)) for x, s in zip(xs, _starts(xs, shape, ints))]
    types = formula.types("fused", [as_dtype(x.dtype) for x in xs])
    values = dict(enumerate(lifted)) | {i: np.asarray(v, types[i].numpy) for i, v in formula.consts.items()}
    for name, out, operands in formula.instrs:
        op = REGISTRY[name]
        values[out] = op.ask(op.ref, dict(zip(op.inputs, [values[o] for o in operands])))
    return np.broadcast_to(values[formula.outs[0]], shape)


fused = define(
    "fused(*xs, formula, shape, dtype=None, ints=(0,)) -> y",
    Meaning(_fused_axes, _fused_ref, shape=lambda shape: shape, dtype=lambda xs, dtype: dtype or xs[0].dtype,
            check=_check_fused),
    Kernel("elementwise", pack=lambda ints: (ints, ()), contiguous=False, inplace=["xs"]),
    Split(localize=lambda out: {"shape": out.shape}),
    Laws([dict(shapes=[(6, 12), (12,), (6, 12)], shape=(6, 12), formula=Formula(
        3, [("mul", 4, (0, 1)), ("exp", 5, (4,)), ("sub", 6, (5, 2)), ("mul", 7, (6, 3))], [7], {3: 0.5}))]),
    doc="A chain of elementwise ops as one kernel.")


def run_passes(graph: Graph, off: Iterable[str] = ()) -> list[str]:
    """All passes in order; returns one line per pass."""
    report = []
    for f in PASSES:
        if f.__name__ not in off:
            before = len(graph.nodes)
            alone = {n for part, names in FUSE_PARTS.items() if part in off for n in names}
            said = fuse(graph, alone) if f is fuse else f(graph)
            report.append(f"{f.__name__:9s} {before:4d} -> {len(graph.nodes):4d} nodes  {said}")
    return report


def simplify(graph: Graph) -> str:
    """x for identity(x), for a hint, for reshape or expand to the same shape, and for a cast to the same dtype."""
    table, kept = {}, []
    for node in graph.nodes:
        plain = node.op.name in ("identity", "distribute_hint", "reshape", "expand", "cast")
        if plain and node.inputs[0].spec == node.outputs[0].spec:
            table[node.outputs[0]] = node.inputs[0]
        else:
            kept.append(node)
    graph.nodes = kept
    replace(graph, table)
    return ""


def cse(graph: Graph) -> str:
    """Common subexpressions. Nodes that draw random numbers or write variables stay."""
    seen: dict = {}
    table: dict[GraphValue, GraphValue] = {}
    kept = []
    for node in graph.nodes:
        node.inputs = tuple(table.get(x, x) for x in node.inputs)
        key = (node.op.name, node.inputs, node.attrs)
        if node.op.random or node.mutates or getattr(node.op, "fresh", False):
            kept.append(node)
        elif key in seen:
            table.update(zip(node.outputs, seen[key].outputs))
        else:
            seen[key] = node
            kept.append(node)
    graph.nodes = kept
    replace(graph, table)
    return ""


class _Group:
    """Elementwise nodes on their way to becoming one kernel."""

    def __init__(self, node: Node):
        self.operands: list[GraphValue] = []
        self.starts: list[int] = []
        self.instrs: list[tuple] = []
        self.consts: dict[int, float] = {}
        self.dtypes: dict[int, dtype] = {}
        self.slots: dict[tuple, int] = {}
        self.count = MAX_OPERANDS          # results and constants are numbered from here until `formula` closes up
        self.size = 0
        self.members = [node]

    def operand(self, value: GraphValue, start: int) -> int:
        key = (value, start)
        if key not in self.slots:
            self.slots[key] = len(self.operands)
            self.operands.append(value)
            self.starts.append(start)
        return self.slots[key]

    def formula(self, out: int) -> Formula:
        """Slots renumbered without gaps: operands, then the rest."""
        n = len(self.operands)
        new = lambda s: s if s < MAX_OPERANDS else s - MAX_OPERANDS + n
        return Formula(n, [(name, new(o), tuple(map(new, ops))) for name, o, ops in self.instrs], [new(out)],
                       {new(s): v for s, v in self.consts.items()}, {new(s): t for s, t in self.dtypes.items()})


def fuse(graph: Graph, alone: Collection[str] = ()) -> str:
    """Merge an elementwise node into its only reader when that is elementwise over the same shape. alone: ops to leave."""
    readers = graph.consumers()
    outputs = set(graph.outputs)
    absorbed: set[Node] = set()

    def joins(value: GraphValue, shape) -> bool:
        p = value.node
        return (p is not None and p.op.program is not None and p.op.name not in alone and value.shape == shape
                and value not in outputs and len(readers.get(value, ())) == 1)

    def build(group: _Group, node: Node) -> int:
        """Add `node`'s instructions; returns the slot of its result."""
        program = node.op.program
        ints = node.op.ask(node.op.pack, node.op.bind([x.spec for x in node.inputs], node.attrs))[0] if node.op.pack else ()
        rank, slots = node.outputs[0].ndim, {}
        for i, x in enumerate(node.inputs):
            start = ints[1 + i] if ints and ints[0] else rank - x.ndim
            if x.node is not None and x.node.op.name == "constant" and x.ndim == 0:
                slots[i] = group.count
                group.consts[group.count] = x.node.attrs[x.node.op.attr_index["value"]]
                group.dtypes[group.count] = x.dtype
                group.count += 1
            elif joins(x, node.outputs[0].shape) and fits(group, x.node):
                absorbed.add(x.node)
                group.members.append(x.node)
                slots[i] = build(group, x.node)
            else:
                slots[i] = group.operand(x, start)
        group.count = program.inline_into(slots, group.instrs, group.consts, group.count)
        types = program.types(node.op.name, [x.dtype for x in node.inputs])
        group.dtypes.update({slots[s]: types[s] for s in program.consts})
        return slots[program.outs[0]]

    def fits(group: _Group, node: Node) -> bool:
        group.size += len(node.op.program.instrs) + len(node.inputs)
        ok = group.size + len(group.members) < MAX_SLOTS - 8 and group.size < MAX_OPERANDS + 6
        if not ok:
            group.size -= len(node.op.program.instrs) + len(node.inputs)
        return ok

    replaced: dict[Node, Node] = {}
    for node in reversed(graph.nodes):
        if node.op.program is None or node in absorbed or node.op.name in alone:
            continue
        group = _Group(node)
        group.size = len(node.op.program.instrs) + len(node.inputs)
        out = build(group, node)
        if len(group.members) == 1 and not group.consts:
            continue
        if not group.operands:                                 # only constants: leave it to folding
            absorbed.difference_update(group.members)
            continue
        group.members.reverse()
        ints = (1, *group.starts) if any(s != node.outputs[0].ndim - x.ndim
                                         for s, x in zip(group.starts, group.operands)) else (0,)
        spec = node.outputs[0].spec
        new = Node(fused, group.operands, (group.formula(out), spec.shape, spec.dtype, ints), [spec],
                   node.name, node.line)
        replaced[node] = new
        new.name = "+".join(dict.fromkeys(m.op.name for m in group.members))
        new.outputs[0].name = node.outputs[0].name
    table = {old.outputs[0]: new.outputs[0] for old, new in replaced.items()}
    graph.nodes = [replaced.get(n, n) for n in graph.nodes if n not in absorbed]
    replace(graph, table)
    dead(graph)                                                # constants that moved into kernels
    return f"{len(absorbed)} ops joined {len(replaced)} kernels"


def update(graph: Graph) -> str:
    """w -= lr * (a @ b), where a @ b is the gradient of w and nothing else reads it: one BLAS call with beta = 1.

    The gradient, as large as the weights, is neither written nor read back.
    """
    readers = graph.consumers()
    kept, absorbed = [], set()
    for node in graph.nodes:
        if node.op.name != "sgd_update":
            kept.append(node)
            continue
        attrs = dict(zip(node.op.attrs, node.attrs))
        left, decay = list(node.inputs[:2]), {n: [] for n in ("weight_decay", "l1", "l2")}
        for i, (w, g) in enumerate(zip(node.inputs[2::2], node.inputs[3::2])):
            own = {n: number_of(attrs[n], i) for n in decay}
            made = g.node
            if (made is not None and made.op.name == "matmul" and len(w.shape) == 2 and not any(own.values())
                    and len(readers[g]) == 1 and g not in graph.outputs and node.inputs[0].dtype is float32
                    and node.inputs[1].kind != "node"          # an update that may be left out
                    and all(base(x).kind != "variable" for x in made.inputs)):  # it may have been updated by then
                flags = dict(zip(made.op.attrs, made.attrs))
                values = REGISTRY["matmul_update"].complete({**flags, "scale": attrs["scale"]})
                kept.append(Node(REGISTRY["matmul_update"], (*made.inputs, node.inputs[0], w), values, (),
                                 f"{w.name}-update", node.line))
                absorbed.add(made)
            else:
                left += [w, g]
                for n, v in own.items():
                    decay[n].append(v)
        if len(left) > 2:
            values = node.op.complete({**attrs, **decay})
            kept.append(Node(node.op, left, values, (), node.name, node.line))
    graph.nodes = [n for n in kept if n not in absorbed]
    return f"{len(absorbed)} gradients go straight into their weights" if absorbed else ""


PASSES = (simplify, cse, dead, norm_clip, layout, fold_norm, pool_first, masked_softmax, bands, fuse, update)
FUSE_PARTS = {"fuse_add": ("add",), "fuse_scale": ("cast", "mul", "div")}
NAMES = (*(f.__name__ for f in PASSES), *FUSE_PARTS, "inplace", "reuse")     # what can be switched off
