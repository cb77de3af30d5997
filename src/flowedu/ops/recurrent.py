"""One layer of LSTM, GRU, or RNN in one direction as a single op over all steps.

A graph of a thousand steps thus has as many nodes as a graph of one step. The inputs' contribution to the
gates at all steps, `given` (steps, rows, gates), is one product outside the op. A step adds the contribution
of the state h: x = given[t] + h @ w.T + b. For gate n of the GRU, the contribution p of the state is a
separate term. The new state is

    lstm  i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of x;  c' = f * c + i * g;  h' = o * tanh(c')
    gru   r, z = sigmoid of x;  p = h @ w_n.T + b_n;  n = tanh(given_n + r * p);  h' = n + z * (h - n)
    rnn   h' = tanh or relu of x

A row whose sequence has ended, lengths[row] <= t, keeps its state. `reverse` runs from the last step to the
first. y[t] is the state after step t; h_n and c_n are the state after the last step. The op also returns the
values of the gates and, for an LSTM, the cells with c0 before them (with `reverse`: after them), so that the
backward pass does not recompute them. The backward pass goes through the steps once
(_kernels/fast/recurrent.pyx). It computes the gradient of w as one product over all steps.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.matmul import flat, matmul
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reduce import sum
from flowedu.core.ops.reverse import vjp
from flowedu.core.values.dtype import int32, int64
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.ops.kept import KEPT
from flowedu.ops.recurrent_steps import at, gru_back, lstm_back, rnn_back, some_steps, zeros
from flowedu.ops.types import AnyTensor, Gradients, Packed, Shape

register("recurrent")


# ---- what fits
def _check(name: str, first: Spec, w: Spec, lengths: Spec, gates: int, /,
           **others: tuple[Spec, Shape]) -> None:
    """Check the shapes and dtypes of the inputs of a recurrent op.

    first: (steps, rows, ...); w: (gates * hidden, hidden). others: {what: (its Spec, the shape it should
    have)}, where a number -n is n times `hidden`.
    """
    if first.ndim != 3 or w.ndim != 2 or w.shape[0] != gates * w.shape[1]:
        raise ShapeError(f"{name}: w does not fit",
                         expected=f"(steps, rows, ...) and w ({gates} * hidden, hidden)",
                         got=f"{first.shape}, w {w.shape}", fix="w is the weight_hh of the layer")
    if lengths.dtype not in (int32, int64):
        raise DTypeError(f"{name}: lengths have the wrong element type", expected="int32 or int64",
                         got=lengths.dtype.name, fix="flow.cast(lengths, flow.int64)")
    for what, (spec, shape) in {**others, "lengths": (lengths, (first.shape[1],))}.items():
        want = tuple([-n * w.shape[1] if n < 0 else n for n in shape])
        if spec.shape != want:
            raise ShapeError(f"{name}: {what} does not fit", expected=f"{what} {want}, from w {w.shape}",
                             got=f"{what} {spec.shape}",
                             fix=f"an array of the other inputs' sizes for {what}")
    for what, spec in {"w": w, **{n: s for n, (s, _) in others.items()}}.items():
        if spec.dtype is not first.dtype:
            raise DTypeError(f"{name}: the element types differ", expected=first.dtype.name,
                             got=f"{what} {spec.dtype.name}", fix="convert one with flow.cast")


def _check_forward(name: str, gates: int) -> Callable[..., None]:
    def check(given: Spec, w: Spec, b: Spec, lengths: Spec, h0: Spec) -> None:
        _check(name, given, w, lengths, gates, given=(given, (*given.shape[:2], -gates)), b=(b, (-gates,)),
               h0=(h0, (*given.shape[1:2], -1)))
    return check


def _check_lstm(given: Spec, w: Spec, b: Spec, lengths: Spec, h0: Spec, c0: Spec) -> None:
    _check_forward("lstm", 4)(given, w, b, lengths, h0)
    _check("lstm", given, w, lengths, 4, c0=(c0, h0.shape))


def _check_kind(nonlinearity: str) -> None:
    if nonlinearity not in ("tanh", "relu"):
        raise ArgumentError("rnn: unknown nonlinearity", expected="'tanh' or 'relu'", got=repr(nonlinearity),
                            fix="leave it out: 'tanh' is the default")


def _check_rnn(given: Spec, w: Spec, b: Spec, lengths: Spec, h0: Spec, nonlinearity: str) -> None:
    _check_kind(nonlinearity)
    _check_forward("rnn", 1)(given, w, b, lengths, h0)


def _check_lstm_grad(dy: Spec, w: Spec, lengths: Spec, dh_n: Spec, dc_n: Spec, cells: Spec,
                     gates: Spec) -> None:
    steps, rows = dy.shape[:2] if dy.ndim == 3 else (0, 0)
    _check("lstm_grad", dy, w, lengths, 4, dy=(dy, (steps, rows, -1)), dh_n=(dh_n, (rows, -1)),
           dc_n=(dc_n, (rows, -1)), cells=(cells, (steps + 1, rows, -1)), gates=(gates, (steps, rows, -4)))


def _check_gru_grad(dy: Spec, w: Spec, lengths: Spec, dh_n: Spec, h0: Spec, y: Spec, gates: Spec) -> None:
    steps, rows = dy.shape[:2] if dy.ndim == 3 else (0, 0)
    _check("gru_grad", dy, w, lengths, 3, dy=(dy, (steps, rows, -1)), dh_n=(dh_n, (rows, -1)),
           h0=(h0, (rows, -1)), y=(y, dy.shape), gates=(gates, (steps, rows, -4)))


def _check_rnn_grad(dy: Spec, w: Spec, lengths: Spec, dh_n: Spec, y: Spec, nonlinearity: str) -> None:
    _check_kind(nonlinearity)
    _check("rnn_grad", dy, w, lengths, 1, dy=(dy, (*dy.shape[:2], -1)), dh_n=(dh_n, (*dy.shape[1:2], -1)),
           y=(y, dy.shape))


# ---- reference functions
def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _walk(steps: int, reverse: bool) -> list[int]:
    return [int(t) for t in np.arange(steps)[::-1 if reverse else 1]]


def _ref_lstm(given: np.ndarray, w: np.ndarray, b: np.ndarray, lengths: np.ndarray, h0: np.ndarray,
              c0: np.ndarray, reverse: bool) -> tuple[np.ndarray, ...]:
    steps, rows, _ = given.shape
    size = w.shape[1]
    h, c, y = h0, c0, np.zeros((steps, rows, size), given.dtype)
    cells, gates = np.zeros((steps + 1, rows, size), given.dtype), np.zeros_like(given)
    cells[steps if reverse else 0] = c0
    for t in _walk(steps, reverse):
        there = (lengths > t)[:, None]
        i, f, g, o = np.split(given[t] + h @ w.T + b, 4, -1)
        i, f = _sigmoid(i), _sigmoid(f)
        g, o = np.tanh(g), _sigmoid(o)
        new = f * c + i * g
        c, h = np.where(there, new, c), np.where(there, o * np.tanh(new), h)
        y[t], cells[t if reverse else t + 1], gates[t] = h, c, np.where(there,
                                                                        np.concatenate([i, f, g, o], -1), 0)
    return y, np.array(h), np.array(c), cells, gates


def _ref_lstm_grad(dy: np.ndarray, w: np.ndarray, lengths: np.ndarray, dh_n: np.ndarray, dc_n: np.ndarray,
                   cells: np.ndarray, gates: np.ndarray, reverse: bool) -> tuple[np.ndarray, ...]:
    dh, dc, dgiven = dh_n, dc_n, np.zeros_like(gates)
    for t in _walk(len(dy), not reverse):
        there = (lengths > t)[:, None]
        i, f, g, o = np.split(gates[t], 4, -1)
        before, behind = (cells[t + 1], cells[t]) if reverse else (cells[t], cells[t + 1])
        d, cell = dh + dy[t], np.tanh(behind)
        c = dc + d * o * (1 - cell * cell)
        found = [c * g * i * (1 - i), c * before * f * (1 - f), c * i * (1 - g * g), d * cell * o * (1 - o)]
        dgiven[t] = np.where(there, np.concatenate(found, -1), 0)
        dh, dc = np.where(there, dgiven[t] @ w, d), np.where(there, c * f, dc)
    return dgiven, np.array(dh), np.array(dc)


def _ref_gru(given: np.ndarray, w: np.ndarray, b: np.ndarray, lengths: np.ndarray, h0: np.ndarray,
             reverse: bool) -> tuple[np.ndarray, ...]:
    steps, rows, _ = given.shape
    size = w.shape[1]
    h, y = h0, np.zeros((steps, rows, size), given.dtype)
    gates = np.zeros((steps, rows, 4 * size), given.dtype)
    for t in _walk(steps, reverse):
        there = (lengths > t)[:, None]
        gr, gz, gn = np.split(given[t], 3, -1)
        hr, hz, p = np.split(h @ w.T + b, 3, -1)
        r, z = _sigmoid(gr + hr), _sigmoid(gz + hz)
        n = np.tanh(gn + r * p)
        h = np.where(there, n + z * (h - n), h)
        y[t], gates[t] = h, np.where(there, np.concatenate([r, z, n, p], -1), 0)
    return y, np.array(h), gates


def _ref_gru_grad(dy: np.ndarray, w: np.ndarray, lengths: np.ndarray, dh_n: np.ndarray, h0: np.ndarray,
                  y: np.ndarray, gates: np.ndarray, reverse: bool) -> tuple[np.ndarray, ...]:
    steps, dh = len(dy), dh_n
    dgiven, dmixed = (np.zeros((*dy.shape[:2], len(w)), dy.dtype) for _ in range(2))
    for t in _walk(steps, not reverse):
        there = (lengths > t)[:, None]
        r, z, n, p = np.split(gates[t], 4, -1)
        earlier = t + 1 if reverse else t - 1
        h = y[earlier] if 0 <= earlier < steps else h0
        d = dh + dy[t]
        dn, dz = d * (1 - z) * (1 - n * n), d * (h - n) * z * (1 - z)
        dr = dn * p * r * (1 - r)
        dgiven[t] = np.where(there, np.concatenate([dr, dz, dn], -1), 0)
        dmixed[t] = np.where(there, np.concatenate([dr, dz, dn * r], -1), 0)
        dh = np.where(there, d * z + dmixed[t] @ w, d)
    return dgiven, dmixed, np.array(dh)


def _ref_rnn(given: np.ndarray, w: np.ndarray, b: np.ndarray, lengths: np.ndarray, h0: np.ndarray,
             nonlinearity: str, reverse: bool) -> tuple[np.ndarray, ...]:
    h, y = h0, np.zeros_like(given)
    for t in _walk(len(given), reverse):
        x = given[t] + h @ w.T + b
        y[t] = h = np.where((lengths > t)[:, None], np.maximum(x, 0) if nonlinearity == "relu"
                            else np.tanh(x), h)
    return y, np.array(h)


def _ref_rnn_grad(dy: np.ndarray, w: np.ndarray, lengths: np.ndarray, dh_n: np.ndarray, y: np.ndarray,
                  nonlinearity: str, reverse: bool) -> tuple[np.ndarray, ...]:
    dh, dgiven = dh_n, np.zeros_like(dy)
    for t in _walk(len(dy), not reverse):
        there, d = (lengths > t)[:, None], dh + dy[t]
        dgiven[t] = np.where(there, np.where(y[t] > 0, d, 0) if nonlinearity == "relu"
                             else d * (1 - y[t] * y[t]), 0)
        dh = np.where(there, dgiven[t] @ w, d)
    return dgiven, np.array(dh)


# ---- gradients
def _of_weights(d: AnyTensor, h0: AnyTensor, y: AnyTensor, reverse: bool) -> tuple[AnyTensor, AnyTensor]:
    """Return the gradients of w and b, from that of h @ w.T + b at all steps.

    The states before the steps are those of y, and h0.
    """
    n = d.shape[0]
    b = sum(d, axis=(0, 1), keepdims=False)
    if n < 2:
        return matmul(flat(d), h0 if n else flat(y), transpose_a=True), b
    rest, first, states = (some_steps(d, 0, n - 1), n - 1, some_steps(y, 1, n)) if reverse else (
        some_steps(d, 1, n), 0, some_steps(y, 0, n - 1))
    return matmul(flat(rest), flat(states), transpose_a=True) + matmul(at(d, first), h0, transpose_a=True), b


def _all(y: AnyTensor, h0: AnyTensor, *douts: AnyTensor | None) -> list[AnyTensor]:
    """dy, dh_n, ...: zeros where nothing depends on one."""
    return [zeros(x.shape, x) if d is None else d for x, d in zip((y, h0, h0), douts)]


def _lstm_backward(dy: AnyTensor | None, dh_n: AnyTensor | None, dc_n: AnyTensor | None,
                   dcells: AnyTensor | None, dgates: AnyTensor | None, w: AnyTensor, lengths: AnyTensor,
                   h0: AnyTensor, y: AnyTensor, cells: AnyTensor, gates: AnyTensor,
                   reverse: bool) -> Gradients:
    dy, dh_n, dc_n = _all(y, h0, dy, dh_n, dc_n)
    if dcells is None and dgates is None:
        dgiven, dh0, dc0 = lstm_grad(dy, w, lengths, dh_n, dc_n, cells, gates, reverse=reverse)
    else:
        dgiven, dh0, dc0 = lstm_back(dy, dh_n, dc_n, w, lengths, cells, gates, reverse, dcells, dgates)
    dw, db = _of_weights(dgiven, h0, y, reverse)
    return {"given": dgiven, "w": dw, "b": db, "h0": dh0, "c0": dc0}


def _gru_backward(dy: AnyTensor | None, dh_n: AnyTensor | None, dgates: AnyTensor | None, w: AnyTensor,
                  lengths: AnyTensor, h0: AnyTensor, y: AnyTensor, gates: AnyTensor,
                  reverse: bool) -> Gradients:
    dy, dh_n = _all(y, h0, dy, dh_n)
    if dgates is None:
        dgiven, dmixed, dh0 = gru_grad(dy, w, lengths, dh_n, h0, y, gates, reverse=reverse)
    else:
        dgiven, dmixed, dh0 = gru_back(dy, dh_n, w, lengths, h0, y, gates, reverse, dgates)
    dw, db = _of_weights(dmixed, h0, y, reverse)
    return {"given": dgiven, "w": dw, "b": db, "h0": dh0}


def _rnn_backward(dy: AnyTensor | None, dh_n: AnyTensor | None, w: AnyTensor, lengths: AnyTensor,
                  h0: AnyTensor, y: AnyTensor, nonlinearity: str, reverse: bool) -> Gradients:
    dy, dh_n = _all(y, h0, dy, dh_n)
    dgiven, dh0 = rnn_grad(dy, w, lengths, dh_n, y, nonlinearity=nonlinearity, reverse=reverse)
    dw, db = _of_weights(dgiven, h0, y, reverse)
    return {"given": dgiven, "w": dw, "b": db, "h0": dh0}


def _lstm_grad_backward(ddgiven: AnyTensor | None, ddh0: AnyTensor | None, ddc0: AnyTensor | None,
                        dy: AnyTensor, w: AnyTensor, lengths: AnyTensor, dh_n: AnyTensor, dc_n: AnyTensor,
                        cells: AnyTensor, gates: AnyTensor, reverse: bool) -> Gradients:
    def f(dy: AnyTensor, w: AnyTensor, dh_n: AnyTensor, dc_n: AnyTensor, cells: AnyTensor,
          gates: AnyTensor) -> tuple[AnyTensor, ...]:
        return lstm_back(dy, dh_n, dc_n, w, lengths, cells, gates, reverse)

    found = vjp(f, (dy, w, dh_n, dc_n, cells, gates), (ddgiven, ddh0, ddc0))
    return dict(zip(("dy", "w", "dh_n", "dc_n", "cells", "gates"), found))


def _gru_grad_backward(ddgiven: AnyTensor | None, ddmixed: AnyTensor | None, ddh0: AnyTensor | None,
                       dy: AnyTensor, w: AnyTensor, lengths: AnyTensor, dh_n: AnyTensor, h0: AnyTensor,
                       y: AnyTensor, gates: AnyTensor, reverse: bool) -> Gradients:
    def f(dy: AnyTensor, w: AnyTensor, dh_n: AnyTensor, h0: AnyTensor, y: AnyTensor,
          gates: AnyTensor) -> tuple[AnyTensor, ...]:
        return gru_back(dy, dh_n, w, lengths, h0, y, gates, reverse)

    return dict(zip(("dy", "w", "dh_n", "h0", "y", "gates"), vjp(f, (dy, w, dh_n, h0, y, gates),
                                                                 (ddgiven, ddmixed, ddh0))))


def _rnn_grad_backward(ddgiven: AnyTensor | None, ddh0: AnyTensor | None, dy: AnyTensor, w: AnyTensor,
                       lengths: AnyTensor, dh_n: AnyTensor, y: AnyTensor, nonlinearity: str,
                       reverse: bool) -> Gradients:
    def f(dy: AnyTensor, w: AnyTensor, dh_n: AnyTensor, y: AnyTensor) -> tuple[AnyTensor, ...]:
        return rnn_back(dy, dh_n, w, lengths, y, nonlinearity, reverse)

    return dict(zip(("dy", "w", "dh_n", "y"), vjp(f, (dy, w, dh_n, y), (ddgiven, ddh0))))


# ---- the records
def _pack(reverse: bool) -> Packed:
    return (int(reverse), 0), ()


def _pack_rnn(nonlinearity: str, reverse: bool) -> Packed:
    return (int(reverse), int(nonlinearity == "relu")), ()


def _examples(shapes: Callable[..., list[Shape]], **attrs: Any) -> list[dict[str, Any]]:
    """shapes(steps, rows, hidden) of a call; forward and in reverse."""
    return [dict(shapes=shapes(*sizes), reverse=reverse, **attrs)
            for sizes, reverse in (((3, 6, 5), False), ((2, 3, 7), True))]


def _forward_shapes(n: int) -> Callable[..., list[Shape]]:
    return lambda t, rows, h: [(t, rows, n * h), (n * h, h), (n * h,), (rows,), (rows, h)]


def _shape_of_states(given: Spec, h0: Spec) -> Shape:
    return (*given.shape[:2], h0.shape[1])


_LENGTHS = {"lengths": "index:5"}


lstm = define(
    "lstm(given, w, b, lengths, h0, c0, *, reverse=False) -> (y, h_n, c_n, cells, gates)",
    Meaning("TnG,GH,G,n,nH,nH->TnH,nH,nH,UnH,TnG", _ref_lstm, check=_check_lstm, shape=lambda given, h0: (
        _shape_of_states(given, h0), h0.shape, h0.shape, (given.shape[0] + 1, *h0.shape), given.shape)),
    Kernel("lstm", pack=_pack),
    Laws(_examples(lambda *sizes: [*_forward_shapes(4)(*sizes), sizes[1:]]), domain=_LENGTHS),
    grad=_lstm_backward, doc="All steps of an LSTM layer in one direction.")
lstm_grad = define(
    "lstm_grad(dy, w, lengths, dh_n, dc_n, cells, gates, *, reverse=False) -> (dgiven, dh0, dc0)",
    Meaning("TnH,GH,n,nH,nH,UnH,TnG->TnG,nH,nH", _ref_lstm_grad, check=_check_lstm_grad,
            shape=lambda gates, dh_n: (gates.shape, dh_n.shape, dh_n.shape)),
    Kernel("lstm_grad", pack=_pack), Split(linear=[("dy", "dh_n", "dc_n")]),
    Laws(_examples(lambda t, rows, h: [(t, rows, h), (4 * h, h), (rows,), (rows, h), (rows, h),
                                       (t + 1, rows, h),
                                       (t, rows, 4 * h)]), domain=_LENGTHS), grad=_lstm_grad_backward)

gru = define(
    "gru(given, w, b, lengths, h0, *, reverse=False) -> (y, h_n, gates)",
    Meaning("TnG,GH,G,n,nH->TnH,nH,TnF", _ref_gru, check=_check_forward("gru", 3), shape=lambda given, h0: (
        _shape_of_states(given, h0), h0.shape, (*given.shape[:2], 4 * h0.shape[1]))),
    Kernel("gru", pack=_pack), Laws(_examples(_forward_shapes(3)), domain=_LENGTHS), grad=_gru_backward,
    doc="All steps of a GRU layer in one direction.")
gru_grad = define(
    "gru_grad(dy, w, lengths, dh_n, h0, y, gates, *, reverse=False) -> (dgiven, dmixed, dh0)",
    Meaning("TnH,GH,n,nH,nH,TnH,TnF->TnG,TnG,nH", _ref_gru_grad, check=_check_gru_grad,
            shape=lambda dy, w, dh_n: (*[(*dy.shape[:2], w.shape[0])] * 2, dh_n.shape)),
    Kernel("gru_grad", pack=_pack), Split(linear=[("dy", "dh_n")]),
    Laws(_examples(lambda t, rows, h: [(t, rows, h), (3 * h, h), (rows,), (rows, h), (rows, h), (t, rows, h),
                                       (t, rows, 4 * h)]), domain=_LENGTHS), grad=_gru_grad_backward)

rnn = define(
    "rnn(given, w, b, lengths, h0, *, nonlinearity='tanh', reverse=False) -> (y, h_n)",
    Meaning("TnH,HG,H,n,nG->TnH,nG", _ref_rnn, check=_check_rnn,
            shape=lambda given, h0: (given.shape, h0.shape)),
    Kernel("rnn", pack=_pack_rnn),
    Laws(_examples(_forward_shapes(1)) + _examples(_forward_shapes(1), nonlinearity="relu"), domain=_LENGTHS),
    grad=_rnn_backward, doc="All steps of an RNN layer in one direction.")
rnn_grad = define(
    "rnn_grad(dy, w, lengths, dh_n, y, *, nonlinearity='tanh', reverse=False) -> (dgiven, dh0)",
    Meaning("TnH,HG,n,nG,TnH->TnH,nG", _ref_rnn_grad, check=_check_rnn_grad,
            shape=lambda dy, dh_n: (dy.shape, dh_n.shape)),
    Kernel("rnn_grad", pack=_pack_rnn), Split(linear=[("dy", "dh_n")]),
    Laws([e for kind in ("tanh", "relu") for e in _examples(lambda t, rows, h: [
        (t, rows, h), (h, h), (rows,), (rows, h), (t, rows, h)], nonlinearity=kind)], domain=_LENGTHS),
    grad=_rnn_grad_backward)

for op in (lstm, gru, rnn):
    KEPT[op] = (1,)
