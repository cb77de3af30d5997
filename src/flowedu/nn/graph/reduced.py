"""Split of the loss of a batch into one part per micro-batch, for gradient accumulation.

If the loss is a factor times a sum over rows, its gradient is that factor times a sum over micro-batches. The
factor is 1 for a sum and 1 / k for a mean. The sum may be divided by a count of the batch, such as the number
of labels that are not ignored. Each part is then computed again with the count of all micro-batches. Counts
must not depend on parameters. Other losses raise UnsupportedError.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Any

from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.ops.concat import concat
from flowedu.core.ops.elementwise import add, div, mul, neg, sub
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import cast, reshape, transpose
from flowedu.errors import UnsupportedError
from flowedu.nn.graph.rows import DERIVED, MIXED, PARTIAL, SAME, RowAnalysis
from flowedu.nn.graph.unroll import recompute

# Linear ops: the op of a sum is the sum of the op of its terms.
TERMS = [add, sub, neg, cast, reshape, sum_op, concat, recompute, transpose]


class LossSplit:
    """The loss of a batch as a sum of parts.

    Args:
        compiled: the graph, traced on a micro-batch.
        nodes: the nodes of build.
        whole: the graph, traced on the whole batch.
        targets: values whose gradients are needed.
    """

    def __init__(self, compiled, nodes: Sequence[Node], whole, targets: Sequence[GraphValue]):
        cuts = compiled.cuts
        self.tracer, self.k = compiled.tracer, len(cuts[0])
        self.rows = RowAnalysis(compiled, nodes, whole, self.k, compiled.batch_parts)
        self.setting = f"set_gradient_accumulation_steps({self.k})"
        self.trained = set(targets)
        for node in nodes:
            if any(x in self.trained for x in node.inputs):
                self.trained.update(node.outputs)
        self.wholes: dict[GraphValue, GraphValue] = {}
        self.copies: list[dict] = [{s[0]: s[i] for s in cuts} for i in range(self.k)]

    # ---- analysis of the loss
    def scale(self, v: GraphValue) -> float | None:
        """Return f if `v` of the batch is f times the sum of `v` over the micro-batches; otherwise None."""
        state = self.rows.state(v)
        if state == MIXED:
            raise self._mixes_rows(v)
        if state == SAME:
            return 1 / self.k if self.rows.factor(v) == 1.0 else None
        if state != DERIVED:
            return self.rows.factor(v)
        if v not in self.trained:
            return None
        node: Any = v.node
        op, inputs = node.op, node.inputs
        if op in TERMS:
            scales = {self.scale(x) for x in inputs}
            return scales.pop() if len(scales) == 1 else None
        a, b = inputs if op in (mul, div) else (v, v)
        if op is mul and self.rows.state(a) == SAME:
            a, b = b, a
        if self.rows.state(b) == SAME:
            scale, factor = self.scale(a), self.rows.factor(b)
            if scale is None:
                return None
            return scale * factor if op is mul else scale / factor
        if b in self.trained and (op is not mul or a in self.trained):
            raise self._not_linear(v)
        return None

    def seed_scale(self, loss: GraphValue, gradient: GraphValue | None) -> float:
        """Return the factor by which `backward(gradient)` of the batch differs from that of a micro-batch."""
        if gradient is None:
            return 1.0
        state = self.rows.state(gradient)
        rows = self.rows.state(loss)
        if state == MIXED or state != (rows if rows[0] == "S" else SAME):
            culprit = self.rows.culprits.get(gradient, gradient.node)
            raise UnsupportedError(f"{self.setting}: the gradient passed to backward is not one number for "
                                   f"each row",
                                   at=getattr(culprit, "line", ""),
                                   expected="a gradient with the rows of the loss",
                                   got=gradient.name, fix="loss.sum().backward(), or leave accumulation out")
        return self.rows.factor(gradient)

    def _mixes_rows(self, v: GraphValue) -> UnsupportedError:
        node = self.rows.culprits[v]
        if not isinstance(node, Node):
            return UnsupportedError(
                f"{self.setting}: the loss reads {node.name}, which differs between micro-batches", at="",
                expected="tensors that build does not write, and whose numbers do not depend on the "
                "batch size",
                got=node.name, fix="update it after backward in a module outside the graph, or leave "
                "accumulation out")
        return UnsupportedError(
            f"{self.setting}: {node.op.name} combines rows of the batch, or depends on their number or "
            f"place, and a micro-batch has only some of them", at=node.line,
            got=f"{node.name} on the way to the loss",
            expected="ops that treat every row alike, then a sum or mean over rows",
            fix="move the op outside the graph, or leave accumulation out")

    def _not_linear(self, v: GraphValue) -> UnsupportedError:
        node: Any = v.node
        return UnsupportedError(
            f"{self.setting}: the loss goes through {node.op.name} after the sum over rows, so the loss "
            f"of the batch does not follow from those of its micro-batches", got=v.name, at=node.line,
            expected="a sum or mean over rows, also divided by a count of labels; times numbers; a sum "
            "of such", fix="apply the op before the mean or sum, or leave accumulation out")

    # ---- recomputation of the loss
    def make_part(self, v: GraphValue, table: dict) -> GraphValue:
        """Append a micro-batch's part of `v`, so that all parts add up to `v` of the whole batch.

        `table` maps values of the first micro-batch to those of this one.
        """
        state, factor = self.rows.state(v), self.rows.factor(v)
        if state == SAME:
            return _times(table.get(v, v), factor / self.k)
        if state != DERIVED:
            return _times(table.get(v, v), factor)
        node: Any = v.node
        if v not in self.trained:
            return self.make_whole(v) * (1 / self.k)
        if node.op in TERMS:
            return self._call(node, [self.make_part(x, table) for x in node.inputs])
        a, b = node.inputs
        if node.op is mul and (a not in self.trained or self.rows.state(a) == SAME):
            return self._call(node, [self.make_whole(a, table), self.make_part(b, table)])
        return self._call(node, [self.make_part(a, table), self.make_whole(b, table)])

    def make_whole(self, v: GraphValue, table: dict | None = None) -> GraphValue:
        """Append `v` of the whole batch, where `v` does not depend on parameters, or not on rows."""
        state, factor = self.rows.state(v), self.rows.factor(v)
        if state == SAME:
            return _times(v if table is None else table.get(v, v), factor)
        if v in self.trained or state not in (PARTIAL, DERIVED):
            raise self._not_linear(v)
        if v not in self.wholes:
            if state == PARTIAL:
                parts = [self._copy(v, i) for i in range(self.k)]
                self.wholes[v] = _times(sum(parts[1:], parts[0]), factor)
            else:
                node: Any = v.node
                self.wholes[v] = self._call(node, [self.make_whole(x) for x in node.inputs])
        return self.wholes[v]

    def _copy(self, v: GraphValue, i: int) -> GraphValue:
        """Return the value of the i-th micro-batch, computed before its turn."""
        known = self.copies[i]
        if self.rows.state(v) == SAME or i == 0:
            return v
        if v not in known:
            node: Any = v.node
            if node.op.random:
                raise UnsupportedError(f"{self.setting}: the loss is divided by a count of random numbers, "
                                       f"which each micro-batch draws in its turn",
                                       expected="counts of inputs", got=v.name,
                                       at=node.line,
                                       fix="draw them outside the graph, and pass them as an input")
            outputs = self.tracer.append(node.op, tuple(self._copy(x, i) for x in node.inputs), node.attrs)
            known.update(zip(node.outputs, outputs))
        return known[v]

    def _call(self, node: Node, inputs: Sequence[GraphValue]) -> GraphValue:
        return self.tracer.append(node.op, tuple(inputs), node.attrs)[0]


def _times(v: GraphValue, factor: float) -> GraphValue:
    return v if isclose(factor, 1.0) else v * factor
