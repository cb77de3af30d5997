"""Reverse accumulation over a list of recorded calls, the backward pass of all modes.

Records are objects with op, attrs, inputs, and outputs, such as the nodes of a graph. Gradient
rules compute values in eager mode, and append backward nodes while a graph is built.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from flowedu.core.ops.call import call_below, interpreter
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import Operand
from flowedu.errors import no_gradient


class Call(NamedTuple):
    op: Op
    inputs: tuple
    attrs: tuple
    outputs: tuple


class Recorder:
    """An interpreter that records calls and passes them to the interpreter below."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def run(self, op: Op, inputs: tuple, attrs: tuple) -> Any:
        result = call_below(op, inputs, attrs)
        self.calls.append(Call(op, tuple(inputs), attrs,
                               result if isinstance(result, tuple) else (result,)))
        return result


def reverse(records: Sequence, seeds: Iterable[tuple], targets: Sequence,
            visit: Callable | None = None) -> list:
    """Return the gradients of `targets` (None without a path); seeds: (value, gradient) pairs.

    Only calls on a path from a target to a seed are visited, each once. `visit(call)` may return
    another record with recomputed values. Integers and bools have no derivative.
    """
    reached = {id(t) for t in targets}
    for call in records:
        if (call.op.rules or call.op.any_rule) and any(id(x) in reached for x in call.inputs):
            reached.update(id(y) for y in call.outputs if y.dtype.is_floating_point)
    grads: dict[int, Operand] = {}
    for value, grad in seeds:
        _accumulate(grads, value, grad)
    for call in reversed(records):
        douts = [grads.get(id(y)) for y in call.outputs]
        if all(d is None for d in douts):
            continue
        wanted = [id(x) in reached for x in call.inputs]
        if (call.op.rules or call.op.any_rule) and any(wanted):
            source = visit(call) if visit is not None else None
            for x, dx in zip(call.inputs, input_gradients(source or call, douts, wanted)):
                if dx is not None:
                    _accumulate(grads, x, dx)
    return [grads.get(id(t)) for t in targets]


def _accumulate(grads: dict[int, Operand], value: Operand, grad: Operand) -> None:
    old = grads.get(id(value))
    grads[id(value)] = grad if old is None else old + grad


def input_gradients(call: Any, douts: Sequence, wanted: Sequence[bool]) -> list:
    """Return the gradient of each input, in its shape (None: not wanted or not differentiable)."""
    op = call.op
    if not op.rules:
        raise no_gradient(op.name, getattr(call, "line", None))
    if op.variadic:
        saved = (tuple(call.inputs),)
        shapes = (tuple(x.shape for x in call.inputs),)
        dtypes = (tuple(x.dtype for x in call.inputs),)
    else:
        saved = tuple([call.inputs[s] if s >= 0 else call.outputs[~s] for s in op.saved])
        shapes = tuple([x.shape for x in call.inputs])
        dtypes = tuple([x.dtype for x in call.inputs])

    def rule(target: str) -> Any:
        return op.rules[target].apply(douts, saved, call.attrs, shapes, dtypes)

    if op.variadic:
        grads = rule(op.inputs[0]) if op.inputs[0] in op.rules else [None] * len(call.inputs)
    elif "*" in op.rules:
        table = rule("*")
        grads = [table.get(n) for n in op.inputs]
    else:
        grads = [rule(n) if w and n in op.rules else None for n, w in zip(op.inputs, wanted)]
    return [None if g is None or not w else unbroadcast(g, x.shape)
            for g, w, x in zip(grads, wanted, call.inputs)]


@functools.cache
def _broadcast_axes(grad_shape: tuple[int, ...],
                    shape: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Return (axes to sum over, True if axes of size 1 have to be restored)."""
    extra = len(grad_shape) - len(shape)
    ones = tuple(extra + i for i, n in enumerate(shape) if n == 1 and grad_shape[extra + i] != 1)
    return tuple(range(extra)) + ones, bool(ones)


def unbroadcast(grad: Operand, shape: tuple[int, ...]) -> Operand:
    """Sum `grad` over the axes along which a value of `shape` was broadcast."""
    if grad.shape == shape:
        return grad
    axes, narrow = _broadcast_axes(grad.shape, shape)
    grad = REGISTRY["sum"].call((grad,), (axes, False))
    return REGISTRY["reshape"](grad, shape=shape) if narrow else grad


def vjp(f: Callable, inputs: tuple, douts: tuple) -> list:
    """Return the gradients of f, a composition of ops, at `inputs`, weighted by `douts`."""
    recorder = Recorder()
    identity = REGISTRY["identity"]
    with interpreter(recorder):
        fresh = tuple(identity(x) for x in inputs)    # one input may occur twice
        outputs = f(*fresh)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    seeds = [(y, d) for y, d in zip(outputs, douts) if d is not None]
    return reverse(recorder.calls, seeds, fresh)
