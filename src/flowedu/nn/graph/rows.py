"""Analysis of the values of build whose rows each depend on one row of the batch, for gradient accumulation.

Build is traced on the first micro-batch and on the whole batch. A call keeps rows separate if the call on the
micro-batch is the part of the call on the whole batch that one of k devices executes. The record of the op
determines this part (equal_parts.py). The axis equations of the records thus determine the safe calls. All
other calls are treated as mixing rows.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import isclose, prod
from typing import Any

import numpy as np

from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.ops.concat import concat
from flowedu.core.ops.elementwise import div
from flowedu.core.ops.view import constant, reshape
from flowedu.nn.graph.equal_parts import keeps_factors, output_layouts, split_equally
from flowedu.nn.modules.norm import _BatchNorm

# The state of a value: "S0", "S1", ...: its rows are along this axis; and
SAME, PARTIAL = "B", "P"          # the same in every micro-batch; summed over rows
# Computed from sums over rows; computed from several rows in another way.
DERIVED, MIXED = "derived", "mixed"

_DRAWN = ("seed", "draw", "shape")     # attributes of random ops that may differ between micro-batches


class RowAnalysis:
    """States of the values that build computes.

    Attributes:
        states: {value: state}, without the values that are SAME.
        factors: {value: ratio of its values in the whole batch to those in a micro-batch}, without ratios of
            1.
        blocks: {value: sizes of its blocks of rows}, if the rows are not in the order of the batch. () means
            that all rows are equal, so that any blocks fit.
        culprits: {mixed value: the node that mixes rows, or the variable that differs}.

    Args:
        compiled: the graph, traced on a micro-batch.
        nodes: the nodes of build.
        whole: the graph, traced on the whole batch.
        k: number of micro-batches.
        parts: number of devices that hold parts of the batch.
    """

    def __init__(self, compiled, nodes: Sequence[Node], whole, k: int, parts: int):
        self.tracer, self.whole, self.counts = compiled.tracer, whole.tracer, sorted({k, k * parts})
        self.k = k
        self.states: dict[GraphValue, str] = {}
        self.factors: dict[GraphValue, float] = {}
        self.blocks: dict[GraphValue, tuple[int, ...]] = {}
        self.culprits: dict[GraphValue, Node | GraphValue] = {}
        self.pairs: dict[GraphValue, GraphValue] = {}
        for slices, value in zip(compiled.cuts, whole.graph.inputs.values()):
            self.pairs[slices[0]], self.states[slices[0]] = value, "S0"
        self._compare(nodes, whole.graph.nodes)

    def state(self, v: GraphValue) -> str:
        return self.states.get(v, SAME)

    def factor(self, v: GraphValue) -> float:
        return self.factors.get(v, 1.0)

    def _compare(self, nodes: Sequence[Node], others: Sequence[Node]) -> None:
        """Compare both traces node by node. Different ops mean that build branches on the size of the batch.
        """
        parted: Node | None = None
        for i, node in enumerate(nodes):
            other: Any = others[i] if i < len(others) else None
            if parted is None and not self._correspond(node, other):
                parted = node
            if parted is not None:
                self._mark(node, parted)
            else:
                self.pairs.update(zip(node.outputs, other.outputs))
                self._classify(node, other)
        for v, other in zip(self.tracer.goal, self.whole.goal or (None, None)):
            if v is not None and v.node is not None and self.pairs.get(v) is not other:
                self.states[v], self.culprits[v] = MIXED, parted or v.node

    def _correspond(self, node: Node, other: Node | None) -> bool:
        if other is None or other.op is not node.op or len(other.inputs) != len(node.inputs) or (
                node in self.tracer.frozen) != (other in self.whole.frozen):
            return False
        for x, y in zip(node.inputs, other.inputs):
            if (x not in self.pairs and x.kind in ("variable", "host") and (y.kind,
                                                                            y.name) == (x.kind, x.name)):
                self.pairs[x] = y
                self._enter(x)
            if self.pairs.get(x) is not y:
                return False
        return True

    def _enter(self, x: GraphValue) -> None:
        """Enter the state of a variable, which differs if build makes it from the batch size or writes to it.
        """
        a, b = self.tracer.variables.get(x.name), self.whole.variables.get(x.name)
        ratio = 1.0 if a is b else _ratio(a, b)
        if ratio is None or x in self.tracer.written:
            self.states[x], self.culprits[x] = MIXED, x
        elif ratio != 1.0:
            self.factors[x] = ratio

    def _mark(self, node: Node, culprit: Node | GraphValue) -> None:
        for y in node.outputs:
            self.states[y], self.culprits[y] = MIXED, culprit

    def _classify(self, node: Node, other: Node) -> None:
        """Enter the states of the node's outputs; `other` is the node of the whole batch."""
        states = [self.state(x) for x in node.inputs]
        mixed = next((x for x in node.inputs if self.state(x) == MIXED), None)
        normalizes = self._is_batch_norm(node) and any(s[0] == "S" for s in states)
        if mixed is not None and not normalizes and not node.op.random:
            self._mark(node, self.culprits[mixed])
            return
        found = self._find_states(node, other, states)
        factor = None if found is None else self._pull_factor(node)
        if found is not None and factor is not None and self._arrange(node, other, states, found):
            for y, state in zip(node.outputs, found):
                self._enter_state(node, y, state, factor)
        elif normalizes:
            for y, z in zip(node.outputs, other.outputs):
                axis = self._find_grown_axis(y, z)
                self._enter_state(node, y, MIXED if axis is None or axis == SAME else axis, 1.0)
        elif node.attrs == other.attrs and set(states) <= {SAME, PARTIAL, DERIVED} and [
                y.spec for y in node.outputs] == [z.spec for z in other.outputs]:
            self.states.update(dict.fromkeys(node.outputs, DERIVED))
        else:
            self._mark(node, node)

    def _find_states(self, node: Node, other: Node, states: Sequence[str]) -> Sequence[str] | None:
        if node.op.random:
            return self._draw_per_row(node, other)
        if node.op is constant:
            return self._constant(node, other)
        return self._split(node, other, states, node.attrs) or self._join(node, other, states)

    def _enter_state(self, node: Node, y: GraphValue, state: str, factor: float) -> None:
        if state != SAME and state != PARTIAL and state[0] != "S":                  # Pmax, Pmin
            self.states[y], self.culprits[y] = MIXED, node
            return
        if state != SAME:
            self.states[y] = state
        if factor != 1.0:
            self.factors[y] = factor

    def _is_batch_norm(self, node: Node) -> bool:
        """Return True for the ops of a BatchNorm layer, which normalizes each micro-batch separately."""
        block = self.tracer.owner.get(node)
        return block is not None and getattr(type(block.origin), "forward", None) is _BatchNorm.forward

    def _split(self, node: Node, other: Node, states: Sequence[str], attrs: tuple) -> Sequence[str] | None:
        """Return the states of the outputs if the node is one of k equal parts of the other, or None."""
        op, specs, inputs = node.op, [x.spec for x in other.inputs], tuple(states)
        outs = tuple(y.spec for y in node.outputs)
        for layouts in output_layouts(op, specs, other.attrs, inputs):
            split: list[Any] = [split_equally(op, specs, other.attrs, inputs + layouts, k)
                                for k in self.counts]
            if None in split:
                continue
            if all(p.op is op and p.attrs == attrs and p.outs == outs for p in split[0]) and all(
                    p.op is op for parts in split for p in parts):
                return layouts
        return None

    def _join(self, node: Node, other: Node, states: Sequence[str]) -> Sequence[str] | None:
        """Return the state of an output with the rows of its inputs in blocks, such as two views."""
        if node.op is concat and node.attrs == other.attrs and set(states) == {f"S{node.attrs[0]}"}:
            sizes = [self._blocks_of(x, s) or (self.pairs[x].shape[node.attrs[0]],)
                     for x, s in zip(node.inputs, states)]
            self.blocks[node.outputs[0]] = tuple(n for blocks in sizes for n in blocks)
            return states[:1]
        if node.op is not reshape or states[0][0] != "S":
            return None
        x, y, axis = other.inputs[0].shape, other.outputs[0].shape, _row_axis(states[0])
        for i in range(axis):
            lead = prod(x[:i])
            for j in (j for j in range(len(y)) if prod(y[:j]) == lead):
                tail, left = divmod(y[j], prod(x[i:axis + 1]))
                if tail and not left and node.outputs[0].shape == (*y[:j], y[j] // self.k, *y[j + 1:]):
                    blocks = self._blocks_of(node.inputs[0], states[0]) or (x[axis],)
                    self.blocks[node.outputs[0]] = tuple(n * tail for n in blocks) * prod(x[i:axis])
                    return [f"S{j}"]
        return None

    def _blocks_of(self, x: GraphValue, state: str) -> tuple[int, ...]:
        known = self.blocks.get(x)
        return (self.pairs[x].shape[_row_axis(state)],) if known is None else known

    def _arrange(self, node: Node, other: Node, states: Sequence[str], found: Sequence[str]) -> bool:
        """Enter the blocks of the outputs; return False if those of the inputs differ."""
        if node.outputs and node.outputs[0] in self.blocks:
            return True
        rows = [(x, s) for x, s in zip(node.inputs, states) if s[0] == "S"]
        known = {self._blocks_of(x, s) for x, s in rows if self.blocks.get(x) != ()}
        if len(known) > 1:
            return False
        for y, z, state in zip(node.outputs, other.outputs, found):
            if state[0] != "S":
                continue
            size = z.shape[_row_axis(state)]
            if not known:                              # equal rows, or random numbers
                self.blocks[y] = ()
                continue
            (blocks,) = known
            scaled = [n * size for n in blocks]
            if any(n % (sum(blocks) * self.counts[-1]) for n in scaled):
                return False
            if len(blocks) > 1:
                self.blocks[y] = tuple(n // sum(blocks) for n in scaled)
        return True

    def _constant(self, node: Node, other: Node) -> Sequence[str] | None:
        i = node.op.attr_index["value"]
        a, b = node.attrs[i], other.attrs[i]
        ratio = _ratio(a, b)
        if ratio is None:
            return None
        if ratio != 1.0:
            self.factors[node.outputs[0]] = ratio
        return self._split(node, other, [], (*node.attrs[:i], b, *node.attrs[i + 1:]))

    def _draw_per_row(self, node: Node, other: Node) -> Sequence[str] | None:
        """Return the states of random numbers, which are drawn separately for every micro-batch."""
        names = [n for n in node.op.attrs if n not in _DRAWN]
        if any(node.attrs[node.op.attr_index[n]] != other.attrs[node.op.attr_index[n]] for n in names):
            return None
        found = [self._find_grown_axis(y, z) for y, z in zip(node.outputs, other.outputs)]
        axes = [state for state in found if state is not None]
        return axes if len(axes) == len(found) else None

    def _find_grown_axis(self, y: GraphValue, z: GraphValue) -> str | None:
        """Return "S<axis>" if z has k times the rows of y, SAME for equal shapes, or else None."""
        if y.ndim != z.ndim:
            return None
        grown = [i for i, (n, m) in enumerate(zip(y.shape, z.shape)) if n != m]
        if not grown:
            return SAME
        return f"S{grown[0]}" if len(grown) == 1 and z.shape[grown[0]] == self.k * y.shape[grown[0]] else None

    def _pull_factor(self, node: Node) -> float | None:
        """Return the factor of the outputs from the inputs' factors and the op's linear groups, or None."""
        if node.op is constant:
            return self.factor(node.outputs[0])
        if node.op.random:
            return 1.0
        factors = [self.factor(x) for x in node.inputs]
        if all(f == 1.0 for f in factors):
            return 1.0
        if any(not keeps_factors(x.dtype, y.dtype) for x in node.inputs for y in node.outputs):
            return None
        if node.op is div:
            return factors[0] / factors[1]
        total = 1.0
        for inputs, outputs in node.op.linear:
            at = range(len(factors)) if node.op.variadic else [node.op.inputs.index(n) for n in inputs]
            if outputs == node.op.outputs and all(isclose(factors[i], factors[at[0]]) for i in at):
                total *= factors[at[0]]
                for i in at:
                    factors[i] = 1.0
        return total if all(f == 1.0 for f in factors) else None


def _row_axis(state: str) -> int:
    """Return the axis of the state "S<axis>"."""
    return int(state[1:])


def _ratio(a, b) -> float | None:
    """Return the number by which `a` is multiplied in `b`; None if no number fits.

    Inputs: numbers, or tensors made by build.
    """
    if a is None or b is None:
        return None
    if hasattr(a, "spec"):
        if a.spec != b.spec or a.is_global or b.is_global:
            return None
        a, b = a.detach().numpy(), b.detach().numpy()
        if a.tobytes() == b.tobytes():
            return 1.0
        if a.size != 1:
            return None
        a, b = a.item(), b.item()
    if a == b or a != a and b != b:
        return 1.0
    return float(b) / float(a) if a and b and np.isfinite(a) and np.isfinite(b) else None
