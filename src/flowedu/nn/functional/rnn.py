"""One step of the recurrent networks, and a whole layer of steps.

The part of a step that depends only on the inputs is one matrix product for all steps. The steps themselves
are one op (ops/recurrent.py). On a GPU, which has no kernel for this op, each step runs several ops.
"""
from __future__ import annotations

from typing import Any

from flowedu.core.ops.concat import concat
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.matmul import matmul
from flowedu.core.ops.view import constant
from flowedu.core.values.dtype import int64
from flowedu.errors import ShapeError
from flowedu.nn.functional.common import States, Weights, reshaped
from flowedu.nn.functional.dense import linear
from flowedu.ops.order import range as range_op
from flowedu.ops.recurrent import gru, lstm, rnn
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices.device import place_at

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
_GATED = {"LSTM": lstm, "GRU": gru}


def _parts(x: Tensor, n: int) -> tuple[Tensor, ...]:
    return x.chunk(n, -1)


def step(mode: str, given: Tensor, state: States, w_hh: Tensor, b_hh: Tensor | None,
         w_hr: Tensor | None = None) -> States:
    """Return the next state.

    Args:
        given: contribution of the inputs, x @ w_ih.T + b_ih, of shape (N, gates * H).
        state: (h,) or (h, c).
    """
    h = state[0]
    mixed = linear(h, w_hh, b_hh)
    if mode == "LSTM":
        i, f, g, o = _parts(given + mixed, 4)
        c = E.sigmoid(f) * state[1] + E.sigmoid(i) * E.tanh(g)
        h = E.sigmoid(o) * E.tanh(c)
        return (h if w_hr is None else linear(h, w_hr), c)
    if mode == "GRU":
        gr, gz, gn = _parts(given, 3)
        hr, hz, hn = _parts(mixed, 3)
        r, z = E.sigmoid(gr + hr), E.sigmoid(gz + hz)
        n = E.tanh(gn + r * hn)
        return (n + z * (h - n),)
    y = given + mixed
    return (E.tanh(y) if mode == "RNN_TANH" else E.relu(y),)


def layer(mode: str, x: Tensor, state: States, weights: Weights, backwards: bool = False,
          lengths: Tensor | None = None) -> tuple[Tensor, States]:
    """Return (outputs (T, N, H), last state) of one layer in one direction.

    Args:
        x: (T, N, I).
        state: (h,) or (h, c), each (N, ...).
        weights: (w_ih, w_hh, b_ih, b_hh, w_hr); the last three may be None.
        lengths: number of steps of each sample, int64 (N, 1), or None. Later steps keep the state, and
            their outputs are undefined.
    """
    if not x.shape[0]:
        raise ShapeError("rnn: Expected sequence length to be larger than 0 in RNN",
                         expected="one step or more", got="0", fix="leave empty sequences out")
    return (_step_by_step if place_at(x) else _at_once)(mode, x, state, weights, backwards, lengths)


def _at_once(mode: str, x: Tensor, state: States, weights: Weights, backwards: bool,
             lengths: Tensor | None) -> tuple[Tensor, States]:
    w_ih, w_hh = weights[:2]
    b_ih, b_hh, w_hr = weights[2:]
    if b_hh is None:
        b_hh = constant(shape=(w_hh.shape[0],), value=0.0, dtype=w_hh.dtype)
    elif mode != "GRU":                                    # there the gate n multiplies b_hh
        b_ih, b_hh = None, b_ih + b_hh
    given, rows = linear(x, w_ih, b_ih), (x.shape[1],)
    # Steps of the state before the projection: w_hh (w_hr h).
    if w_hr is not None:
        given = _with_first(given, linear(state[0], w_hh), backwards, lengths)
        w_hh = matmul(w_hh, w_hr)
        state = (constant(shape=state[1].shape, value=0.0, dtype=given.dtype), state[1])
    lengths = (constant(shape=rows, value=x.shape[0], dtype=int64) if lengths is None
               else reshaped(lengths, rows))
    if mode in _GATED:
        y, *ends = _GATED[mode](given, w_hh, b_hh, lengths, *state, reverse=backwards)
    else:
        y, *ends = rnn(given, w_hh, b_hh, lengths, *state, nonlinearity=mode[4:].lower(), reverse=backwards)
    if w_hr is not None:
        y, ends[0] = linear(y, w_hr), linear(ends[0], w_hr)
    return y, tuple(ends[:len(state)])


def _with_first(given: Tensor, more: Tensor, backwards: bool, lengths: Tensor | None) -> Tensor:
    """Return given (T, N, gates) with `more` (N, gates) added at each sample's first step."""
    steps, rows, _ = given.shape
    at = range_op(size=steps, dtype=int64)
    first: Tensor | int = 0
    if backwards:
        first = steps - 1 if lengths is None else reshaped(lengths, (rows, 1)) - 1
    return given + E.where(E.eq(reshaped(at, (steps, 1, 1)), first), more, 0.0)


def _step_by_step(mode: str, x: Tensor, state: States, weights: Weights, backwards: bool,
                  lengths: Tensor | None) -> tuple[Tensor, States]:
    w_ih, w_hh = weights[:2]
    b_ih, b_hh, w_hr = weights[2:]
    steps = x.shape[0]
    given = linear(x, w_ih, b_ih)
    outputs: list[Any] = [None] * steps
    for t in range(steps - 1, -1, -1) if backwards else range(steps):
        row = reshaped(slice_op(given, start=(t, 0, 0), stop=(t + 1, *given.shape[1:]), step=(1, 1, 1)),
                       tuple(given.shape[1:]))
        new = step(mode, row, state, w_hh, b_hh, w_hr)
        if lengths is not None:
            there = E.gt(lengths, t)
            new = tuple(E.where(there, a, b) for a, b in zip(new, state))
        outputs[t], state = new[0], new
    shape = (1, *outputs[0].shape)
    return concat(*[reshaped(y, shape) for y in outputs], axis=0), state
