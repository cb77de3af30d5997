"""Gradients of lstm, gru, and rnn built from ops step by step, for the second derivatives of their records.

A loop from the last step to the first carries dh, the gradient of the state after a step. If a sequence has
ended (lengths <= t), the step changes neither the state nor its gradient.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowedu.core.ops.concat import concat, slice
from flowedu.core.ops.elementwise import gt, relu_grad, square, tanh, where
from flowedu.core.ops.matmul import matmul
from flowedu.core.ops.view import constant, reshape
from flowedu.ops.types import AnyTensor, Shape


def some_steps(x: AnyTensor, start: int, stop: int) -> AnyTensor:
    """Return steps [start, stop) of x, which has shape (steps, ...)."""
    return slice(x, start=(start, *(0,) * (x.ndim - 1)), stop=(stop, *x.shape[1:]), step=(1,) * x.ndim)


def at(x: AnyTensor, t: int) -> AnyTensor:
    """Return step t of x, which has shape (steps, ...)."""
    return reshape(some_steps(x, t, t + 1), shape=tuple(x.shape[1:]))


def parts(x: AnyTensor, n: int) -> list[AnyTensor]:
    """Split the columns of x, which has shape (rows, columns), into n equal parts."""
    rows, width = x.shape[0], x.shape[1] // n
    return [slice(x, start=(0, i * width), stop=(rows, (i + 1) * width), step=(1, 1)) for i in range(n)]


def stacked(xs: list[AnyTensor], shape: Shape, like: AnyTensor) -> AnyTensor:
    """Stack the arrays of all steps to one array of `shape`. Without steps, return zeros like `like`."""
    if not xs:
        return zeros(shape, like)
    return concat(*[reshape(x, shape=(1, *shape[1:])) for x in xs], axis=0)


def zeros(shape: Shape, like: AnyTensor) -> AnyTensor:
    return constant(shape=tuple(shape), value=0.0, dtype=like.dtype)


class Walk:
    """Steps in reverse order: `for t, there in walk`, where `there` marks rows with lengths > t."""

    steps: int
    rows: int

    def __init__(self, like: AnyTensor, lengths: AnyTensor, reverse: bool) -> None:
        self.steps, self.rows = like.shape[:2]
        self.lengths, self.reverse = reshape(lengths, shape=(self.rows, 1)), reverse

    def __iter__(self) -> Iterator[tuple[int, AnyTensor]]:
        for t in range(self.steps) if self.reverse else range(self.steps - 1, -1, -1):
            yield t, gt(self.lengths, constant(shape=(1, 1), value=t, dtype=self.lengths.dtype))

    def slots(self, t: int) -> tuple[int, int]:
        """Return the indices of the states before and after step t in an array (steps + 1, ...)."""
        return (t + 1, t) if self.reverse else (t, t + 1)

    def before(self, t: int, h0: AnyTensor, y: AnyTensor) -> AnyTensor:
        """Return the state before step t."""
        t = t + 1 if self.reverse else t - 1
        return at(y, t) if 0 <= t < self.steps else h0

    def select(self, there: AnyTensor, x: AnyTensor) -> AnyTensor:
        """Return x in the rows that `there` marks, and 0 in the others."""
        return where(there, x, zeros(x.shape, x))


def _plus(x: AnyTensor, more: AnyTensor | None) -> AnyTensor:
    return x if more is None else x + more


def _slope(y: AnyTensor) -> AnyTensor:
    """Return the derivative of tanh, from its value."""
    return 1 - square(y)


def lstm_back(dy: AnyTensor, dh: AnyTensor, dc: AnyTensor, w: AnyTensor, lengths: AnyTensor, cells: AnyTensor,
              gates: AnyTensor, reverse: bool, dcells: AnyTensor | None = None,
              dgates: AnyTensor | None = None) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
    """Run the backward pass of an LSTM: return (dgiven, dh0, dc0).

    dcells, dgates: gradients of the results `cells` and `gates`, or None.
    """
    walk = Walk(dy, lengths, reverse)
    dgiven: list[Any] = [None] * walk.steps
    for t, there in walk:
        before, behind = walk.slots(t)
        i, f, g, o = parts(at(gates, t), 4)
        more = [None] * 4 if dgates is None else parts(at(dgates, t), 4)
        d, dc, cell = (dh + at(dy, t), dc if dcells is None else dc + at(dcells, behind),
                       tanh(at(cells, behind)))
        c = dc + d * o * _slope(cell)
        found = concat(_plus(c * g, more[0]) * i * (1 - i), _plus(c * at(cells, before),
                                                                  more[1]) * f * (1 - f),
                       _plus(c * i, more[2]) * _slope(g), _plus(d * cell, more[3]) * o * (1 - o), axis=1)
        dgiven[t] = walk.select(there, found)
        dh, dc = where(there, matmul(dgiven[t], w), d), where(there, c * f, dc)
    if dcells is not None:
        dc = dc + at(dcells, walk.steps if reverse else 0)
    return stacked(dgiven, gates.shape, dy), dh, dc


def gru_back(dy: AnyTensor, dh: AnyTensor, w: AnyTensor, lengths: AnyTensor, h0: AnyTensor, y: AnyTensor,
             gates: AnyTensor, reverse: bool,
             dgates: AnyTensor | None = None) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
    """Run the backward pass of a GRU: return (dgiven, dmixed, dh0)."""
    walk = Walk(dy, lengths, reverse)
    dgiven: list[Any] = [None] * walk.steps
    dmixed: list[Any] = [None] * walk.steps
    for t, there in walk:
        r, z, n, p = parts(at(gates, t), 4)
        more = [None] * 4 if dgates is None else parts(at(dgates, t), 4)
        d = dh + at(dy, t)
        dn = _plus(d * (1 - z), more[2]) * _slope(n)
        dz = _plus(d * (walk.before(t, h0, y) - n), more[1]) * z * (1 - z)
        dr = _plus(dn * p, more[0]) * r * (1 - r)
        dgiven[t] = walk.select(there, concat(dr, dz, dn, axis=1))
        dmixed[t] = walk.select(there, concat(dr, dz, _plus(dn * r, more[3]), axis=1))
        dh = where(there, d * z + matmul(dmixed[t], w), d)
    shape = (*dy.shape[:2], w.shape[0])
    return stacked(dgiven, shape, dy), stacked(dmixed, shape, dy), dh


def rnn_back(dy: AnyTensor, dh: AnyTensor, w: AnyTensor, lengths: AnyTensor, y: AnyTensor, nonlinearity: str,
             reverse: bool) -> tuple[AnyTensor, AnyTensor]:
    """Run the backward pass of an RNN: return (dgiven, dh0)."""
    walk = Walk(dy, lengths, reverse)
    dgiven: list[Any] = [None] * walk.steps
    for t, there in walk:
        d, value = dh + at(dy, t), at(y, t)
        dgiven[t] = walk.select(there, relu_grad(d, value) if nonlinearity == "relu" else d * _slope(value))
        dh = where(there, matmul(dgiven[t], w), d)
    return stacked(dgiven, dy.shape, dy), dh
