"""How a loss was reduced over the batch, so that k micro-batches make the step that the whole batch makes.

build is traced on one micro-batch. From there follows what the loss of all rows is: the sum of the micro-batches' losses,
their mean, or, where a sum is divided by what was counted in the batch (labels that are not ignored), something that no
micro-batch knows alone. Then each micro-batch's loss is made anew with what was counted in all of them; what is counted
must not hang on parameters. Of layers, as a batch norm, nothing is said here: they see micro-batches.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import isclose, prod

import numpy as np

from flowedu.core.graph.ir import GraphValue
from flowedu.core.ops.define import REGISTRY
from flowedu.errors import UnsupportedError
from flowedu.nn.graph import unroll  # noqa: F401  (defines recompute)

_SUM, _TRANSPOSE, _RESHAPE, _MATMUL, _CONSTANT, _MUL, _DIV = (REGISTRY[n] for n in (
    "sum", "transpose", "reshape", "matmul", "constant", "mul", "div"))
TERMS = [REGISTRY[n] for n in ("add", "sub", "neg", "cast", "reshape", "sum", "concat", "recompute", "transpose")]  # linear
CONST, SUM, MEAN, OWN = "constant", "sum", "mean", "own"         # OWN: each part of the loss is to be looked at by itself


class Reduced:
    """Args: nodes, those of build. cuts: every input's micro-batches. targets: values whose gradients are wanted."""

    def __init__(self, tracer, nodes: Sequence, cuts: Sequence[Sequence[GraphValue]], targets: Sequence[GraphValue]):
        self.tracer, self.cuts, self.k = tracer, cuts, len(cuts[0])
        self.axes: dict[GraphValue, int | None] = {slices[0]: 0 for slices in cuts}      # None: no rows, but of the batch
        self.rows = cuts[0][0].shape[0]
        self.what = f"set_gradient_accumulation_steps({self.k})"
        self.trained, self.sums, self.mixed = set(targets), set(), set()
        self.wholes: dict[GraphValue, GraphValue] = {}
        self.copies: list[dict] = [{s[0]: s[i] for s in cuts} for i in range(self.k)]
        for node in nodes:
            known = [x for x in node.inputs if x in self.axes]
            for y in node.outputs if known else ():
                self.axes[y] = self._axis(node, known, y)
                if any(x in self.mixed for x in known) or self._mixes(node, known, y):
                    self.mixed.add(y)
            if any(x in self.trained for x in node.inputs):
                self.trained.update(node.outputs)

    def _mixes(self, node, known: Sequence[GraphValue], y: GraphValue) -> bool:
        """Whether a row of `y` is made of several rows of the batch. Layers may do so: they see micro-batches."""
        layer = self.tracer.owner.get(node)
        if layer is not None and next(layer.origin.parameters(), None) is not None or len(known) == 1:
            return False
        axes = [self.axes[x] for x in known]
        if node.op is _MATMUL:
            return y.ndim < 3
        if self.axes[y] is None or None in axes:
            return self.axes[y] is not None
        return len({a - x.ndim for a, x in zip(axes, known)}) > 1 and _broadcast(known) == y.shape

    def _axis(self, node, known: Sequence[GraphValue], y: GraphValue) -> int | None:
        """Along which axis of an output the rows lie."""
        for x in known:
            a = self.axes[x]
            if a is None:
                continue
            if node.op is _SUM:
                axes, keep = node.attrs
                if a in axes:
                    self.sums.add(y)
                    return None
                return a if keep else a - sum(b < a for b in axes)
            if node.op is _TRANSPOSE:
                return node.attrs[0].index(a)
            if node.op is _RESHAPE:
                start, end = prod(x.shape[:a]), prod(x.shape[:a + 1])
                fits = [[prod(y.shape[:j]) == start, prod(y.shape[:j]) <= start and prod(y.shape[:j + 1]) >= end, True]
                        for j in range(y.ndim)]
                found = [j for how in range(3) for j, n in enumerate(y.shape) if n % self.rows == 0 and fits[j][how]]
                return found[0] if found else None
            fitting = [j for j in (a + y.ndim - x.ndim, a, *range(y.ndim)) if 0 <= j < y.ndim and y.shape[j] == x.shape[a]]
            if fitting:
                return fitting[0]
        return None

    # ---- what a loss is
    def kind(self, v: GraphValue) -> str:
        """SUM: of all rows it is the sum of the micro-batches' values; MEAN: their mean; CONST: the same; OWN: see made."""
        if v not in self.axes:
            return CONST
        if v in self.mixed:
            raise UnsupportedError(f"{self.what}: the loss of a row hangs on other rows of the batch, of which a "
                                   "micro-batch has some", expected="rows that are added up or averaged last", got=v.name,
                                   fix="divide or subtract after the sum, do it in a module with parameters if it is to be "
                                   "done for each micro-batch, or leave accumulation out")
        if v in self.sums or self.axes[v] is not None:
            return SUM
        op, inputs = v.node.op, v.node.inputs
        if v not in self.trained:
            return OWN
        if op in TERMS:
            found = {self.kind(x) for x in inputs}
            return found.pop() if len(found) == 1 else MEAN if found == {MEAN, CONST} else OWN
        a, b = inputs if op in (_MUL, _DIV) else (v, v)
        if b not in self.axes:
            return MEAN if self._is_mean(v) else self.kind(a)
        if op is _MUL and a not in self.axes:
            return self.kind(b)
        if b in self.trained and (op is not _MUL or a in self.trained):
            raise self._refusal(v)
        return OWN

    def _counts(self, v: GraphValue) -> bool:
        """Whether a sum is divided by how many were summed, or by the number of rows: it is a mean."""
        total, number = v.node.inputs
        while total not in self.sums and total.node is not None and len(total.node.inputs) == 1:
            total = total.node.inputs[0]
        if number.node is None or number.node.op is not _CONSTANT or total not in self.sums:
            return False
        n, c = prod(total.node.inputs[0].shape) // max(1, prod(total.shape)), float(number.node.attrs[1])
        if v.node.op is _DIV:
            return c in (n, self.rows)
        if n != self.rows and isclose(c * self.rows, 1):
            raise UnsupportedError(f"{self.what}: the loss is a sum, times {c:g}, which may stand for the {self.rows} rows "
                                   "of a micro-batch or for a number", got="a sum * a number",
                                   expected="a mean, a sum, or a sum divided by the number of rows",
                                   fix="loss.mean(), or loss.sum() / x.shape[0]")
        return isclose(c * n, 1)

    def _refusal(self, v: GraphValue) -> UnsupportedError:
        return UnsupportedError(
            f"{self.what}: the loss goes through {v.node.op.name} after the rows were added up, so that the loss of the "
            "batch does not follow from those of its micro-batches", got=v.name,
            expected="a loss that is a sum or a mean over rows, also divided by a count of labels; times numbers; a sum of "
            "such", fix="put the last step before the mean or sum, or leave accumulation out")

    # ---- a loss made anew
    def made(self, v: GraphValue, table: dict) -> GraphValue:
        """A micro-batch's part of `v`: those of all micro-batches sum up to what v is of the whole batch. table: the
        micro-batch's values by those of the first."""
        if v not in self.axes:
            return table.get(v, v) * (1 / self.k)
        if v in self.sums or self.axes[v] is not None:
            return table.get(v, v)
        node = v.node
        if v not in self.trained:
            return self.whole(v, table) * (1 / self.k)
        if node.op in TERMS:
            return self._call(node, [self.made(x, table) for x in node.inputs])
        a, b = node.inputs
        first = node.op is _MUL and (a not in self.axes or a not in self.trained)
        if first:
            return self._call(node, [self.whole(a, table), self.made(b, table)])
        y = self._call(node, [self.made(a, table), self.whole(b, table)])
        return y * (1 / self.k) if self._is_mean(v) else y

    def _is_mean(self, v: GraphValue) -> bool:
        a, b = v.node.inputs
        return b not in self.axes and a in self.axes and self.kind(a) == SUM and self._counts(v)

    def whole(self, v: GraphValue, table: dict) -> GraphValue:
        """What `v`, which hangs on no parameter or on no row, is of the whole batch."""
        if v not in self.axes:
            return table.get(v, v)
        if v in self.trained or self.axes[v] is not None:
            raise self._refusal(v)
        if v not in self.wholes:
            if v in self.sums:
                parts = [self._copy(v, i) for i in range(self.k)]
                y = sum(parts[1:], parts[0])
            else:
                y = self._call(v.node, [self.whole(x, {}) for x in v.node.inputs])
                if v.node.op in (_MUL, _DIV) and self._is_mean(v):
                    y = y * (1 / self.k)
            self.wholes[v] = y
        return self.wholes[v]

    def _copy(self, v: GraphValue, i: int) -> GraphValue:
        """The value of the i-th micro-batch, computed before its turn."""
        known = self.copies[i]
        if v not in self.axes or i == 0:
            return v
        if v not in known:
            outputs = self.tracer.append(v.node.op, tuple(self._copy(x, i) for x in v.node.inputs), v.node.attrs)
            known.update(zip(v.node.outputs, outputs))
        return known[v]

    def _call(self, node, inputs: Sequence[GraphValue]) -> GraphValue:
        return self.tracer.append(node.op, tuple(inputs), node.attrs)[0]


def _broadcast(values: Sequence[GraphValue]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*(v.shape for v in values))
    except ValueError:
        return None


def seed_kind(loss: GraphValue, gradient: GraphValue | None, rows: int) -> str:
    """Of a loss that is a number for each row, and backward(gradient): whether the gradient has 1 / rows in it."""
    node = None if gradient is None else gradient.node
    while node is not None and node.inputs and node.op in TERMS[3:5]:              # cast, reshape
        node = node.inputs[0].node
    if node is None or node.op is not _CONSTANT or rows == 1:
        return SUM
    return MEAN if any(isclose(float(node.attrs[1]) * n, 1) for n in (rows, prod(loss.shape))) else SUM

