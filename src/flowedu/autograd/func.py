"""flow.func: transformations of functions (grad, vjp, jvp, Jacobians, vmap) and functional calls of modules.

The transformations differentiate with respect to their arguments without requires_grad. They nest in any
order and give higher derivatives:

    per_sample = func.vmap(func.grad(loss), in_dims=(None, 0, 0))
    curvature = func.hessian(f)(x)

Eager calls are recorded on the tape, as for backward(). Calls on lazy tensors inside vmap are traced. The
gradient rules of the traced calls make further calls, which vmap's interpreter executes for the batch.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from flowedu.autograd.batched import vmap
from flowedu.autograd.batching import stacked
from flowedu.autograd.functional_modules import functional_call, stack_module_state
from flowedu.autograd.trees import leaves, mapped, rebuilt
from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.dispatch import is_grad_enabled
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops import view
from flowedu.core.ops.call import current_interpreter, interpreter
from flowedu.core.ops.promote import cast
from flowedu.core.ops.reverse import Recorder, reverse
from flowedu.errors import ArgumentError, CallError, ShapeError, UnsupportedError
from flowedu.tensor.gradients.backward import grad as tape_grad
from flowedu.tensor.gradients.grad_mode import enable_grad


# ---- one run of a function, and its gradients
class Calls(Recorder):
    """Recorder of calls while gradients are computed.

    Raises UnsupportedError if a recorded value was written in place later, which the record does not show.
    """

    def __init__(self):
        super().__init__()
        self.epochs: dict[int, int] = {}

    def run(self, op, inputs: tuple, attrs: tuple):
        for x in inputs:
            self.check(x)
        if not is_grad_enabled():
            with _unrecorded(self):
                return super().run(op, inputs, attrs)
        result = super().run(op, inputs, attrs)
        self.epochs |= {id(y): y.epoch for y in self.calls[-1].outputs}
        return result

    def check(self, x: Tensor) -> None:
        if self.epochs.get(id(x), x.epoch) != x.epoch:
            raise UnsupportedError("func: a value is written in place inside vmap, where its gradient "
                                   "is taken",
                                   expected="new values", got=f"a tensor of shape {tuple(x.shape)}",
                                   fix="y = y + x")


@contextmanager
def _unrecorded(recorder: Calls) -> Iterator[None]:
    calls = recorder.calls
    recorder.calls = []
    try:
        yield
    finally:
        recorder.calls = calls


def _zeros(x: Tensor) -> Tensor:
    return view.constant.call((), (x._sizes(), 0, x.dtype))


def _or_zeros(found: Sequence[Tensor | None], xs: Sequence[Tensor]) -> list[Tensor]:
    return [_zeros(x) if g is None else g for g, x in zip(found, xs)]


class Trace:
    """One run of f(*xs).

    `pull(seeds)` returns the gradient of each x for the gradients `seeds` of the result's leaves.

    Attributes:
        result: the result of f.
        own: the tensors of this run on the tape, to detect other values that require a gradient.
    """

    def __init__(self, f: Callable, xs: Sequence[Tensor], own: Sequence[Tensor] = ()):
        self.xs = xs
        for x in xs:
            if not isinstance(x, Tensor) or not x.dtype.is_floating_point:
                raise ArgumentError("func: gradients are of floating tensors", expected="float32 or float64",
                                    got=x.dtype.name if isinstance(x, Tensor) else type(x).__name__,
                                    fix="argnums says which arguments to differentiate")
        self.calls = None if current_interpreter() is None else Calls()
        with enable_grad(), nullcontext() if self.calls is None else interpreter(self.calls):
            self.fresh = [view.identity.call((x,), ()) if self.calls is not None or x.requires_grad else
                          x.detach().requires_grad_() for x in xs]
            self.result = f(*self.fresh)
            self.outs = [y for y in leaves(self.result) if isinstance(y, Tensor)]
        self.own = [*own, *self.fresh]
        if self.calls is None:
            self.keep = any(x.requires_grad for x in xs) or _has_others(self.outs, {id(x) for x in self.own})
        else:
            for y in self.outs:
                self.calls.check(y)

    def pull(self, seeds: Sequence[Tensor]) -> list[Tensor]:
        pairs = [(y, s) for y, s in zip(self.outs, seeds) if y.dtype.is_floating_point]
        if self.calls is not None:
            return _or_zeros(reverse(self.calls.calls, pairs, self.fresh), self.xs)
        pairs = [(y, s) for y, s in pairs if y.requires_grad]
        if not pairs:
            return _or_zeros([None] * len(self.xs), self.xs)
        again = self.keep or any(s.requires_grad for _, s in pairs)
        with enable_grad():
            found = tape_grad([y for y, _ in pairs], self.fresh, [s for _, s in pairs], retain_graph=True,
                              create_graph=again, allow_unused=True)
        return _or_zeros(found, self.xs)

    def value(self, tree: Any) -> Any:
        """Return a part of the result without the history that belongs to this run alone."""
        if self.calls is not None or self.keep:
            return tree
        return mapped(lambda y: y.detach() if isinstance(y, Tensor) else y, tree)


def _has_others(outs: Sequence[Tensor], own: set[int]) -> bool:
    """Return True if the results depend on a value that is not our own and requires a gradient.

    Only values on the tape count.
    """
    todo, seen = [y if y.grad_fn is None else y.grad_fn for y in outs if y.requires_grad], set()
    while todo:
        node = todo.pop()
        if id(node) in seen or id(node) in own:
            continue
        if isinstance(node, Tensor):
            return True
        seen.add(id(node))
        for edge in node.edges:
            if edge is not None:
                todo.append(edge)
    return False


# ---- products with the Jacobian
def _aux(result: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    """Return (the value to differentiate, the auxiliary value)."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise CallError(f"{what}: with has_aux the function returns (output, aux)", expected="a tuple of two",
                        got=type(result).__name__, fix="return loss, predictions")
    return result


def _select_arguments(args: tuple, argnums: int | Sequence[int], what: str) -> tuple[Any, Callable]:
    """Return (the differentiated arguments, put(others): all arguments with `others` substituted for them).
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(-len(args) <= k < len(args) for k in numbers):
        raise ArgumentError(f"{what}: argnums names no argument", expected=f"numbers below {len(args)}",
                            got=repr(argnums), fix="arguments that are differentiated come by their place")
    numbers = tuple(k % len(args) for k in numbers)
    chosen = args[numbers[0]] if isinstance(argnums, int) else tuple(args[k] for k in numbers)

    def put(others):
        table = dict(zip(numbers, (others,) if isinstance(argnums, int) else others))
        return tuple(table.get(k, a) for k, a in enumerate(args))

    return chosen, put


def _split(func: Callable, chosen: Any, put: Callable, kwargs: Mapping, has_aux: bool,
           what: str) -> tuple[Callable, list]:
    """Return (func of the differentiated leaves, these leaves); other leaves are constants."""
    aux: list = []

    def f(*xs):
        out, more = _aux(func(*put(rebuilt(chosen, list(xs))), **kwargs), has_aux, what)
        aux[:] = [more]
        return out

    return f, aux


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function of the same arguments that returns (the gradient, func's value).

    Args:
        func: function that returns one number, or with has_aux (the number, an auxiliary value).
        argnums: index or indices of the differentiated arguments.
        has_aux: return (gradient, (value, aux)).
    """
    @functools.wraps(func)
    def evaluate(*args, **kwargs):
        chosen, put = _select_arguments(args, argnums, "grad")
        f, aux = _split(func, chosen, put, kwargs, has_aux, "grad")
        trace = Trace(f, leaves(chosen))
        y = trace.result
        if not isinstance(y, Tensor) or y.ndim:
            raise ShapeError("grad: the function must return one number", expected="a 0-dim tensor",
                             got=f"a tensor of shape {tuple(y.shape)}" if isinstance(y, Tensor)
                             else type(y).__name__, fix="sum it; jacrev takes derivatives of more")
        found = rebuilt(chosen, trace.pull([_ones(y)]))
        value = trace.value(y)
        return found, ((value, trace.value(aux[0])) if has_aux else value)

    return evaluate


def value_and_grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function of the same arguments that returns (func's value, the gradient).

    Args:
        func: function that returns one number, or with has_aux (the number, an auxiliary value).
        argnums: index or indices of the differentiated arguments.
        has_aux: return ((value, aux), gradient).
    """
    evaluate = grad_and_value(func, argnums, has_aux)
    return functools.wraps(func)(lambda *args, **kwargs: evaluate(*args, **kwargs)[::-1])


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function of the same arguments that returns func's gradient.

    Args:
        func: function that returns one number, or with has_aux (the number, an auxiliary value).
        argnums: index or indices of the differentiated arguments.
        has_aux: return (gradient, aux).
    """
    evaluate = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args, **kwargs):
        found, value = evaluate(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def _ones(y: Tensor) -> Tensor:
    return view.constant.call((), (y._sizes(), 1, y.dtype))


def vjp(func: Callable, *primals, has_aux: bool = False):
    """Return (func(*primals), pull), where pull(cotangents) is the vector-Jacobian product.

    The product is a tuple with one tensor per primal.

    Args:
        func: function of tensors.
        *primals: arguments.
        has_aux: func returns (result, aux), and aux is returned as a third result.
    """
    f, aux = _split(func, primals, lambda xs: xs, {}, has_aux, "vjp")
    trace = Trace(f, leaves(primals))

    def pull(cotangents):
        return rebuilt(primals, trace.pull(_fitting("vjp", leaves(cotangents), trace.outs)))

    found = trace.value(trace.result), pull
    return (*found, trace.value(aux[0])) if has_aux else found


def _fitting(what: str, given: list, wanted: Sequence[Tensor]) -> list:
    if [tuple(x.shape) for x in given] != [tuple(y.shape) for y in wanted]:
        raise ShapeError(f"{what}: the vectors do not fit",
                         expected=", ".join(str(tuple(y.shape)) for y in wanted),
                         got=", ".join(str(tuple(x.shape)) for x in given),
                         fix="one of the same shape for each tensor")
    return given


def _pushed(trace: Trace) -> Trace:
    """Return the trace of u -> u times the Jacobian.

    It is linear, so its gradient is the Jacobian times a vector.
    """
    return Trace(lambda *us: trace.pull(us), [_zeros(y) for y in trace.outs], trace.own)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, has_aux: bool = False):
    """Return (func(*primals), the Jacobian times the tangents).

    Args:
        func: function of tensors.
        primals: arguments, a tuple.
        tangents: a tensor for each primal, of the same shape.
        has_aux: func returns (result, aux), and aux is returned as a third result.
    """
    f, aux = _split(func, tuple(primals), lambda xs: xs, {}, has_aux, "jvp")
    trace = Trace(f, leaves(tuple(primals)))
    rates = rebuilt(trace.result, _pushed(trace).pull(_fitting("jvp", leaves(tuple(tangents)), trace.xs)))
    found = trace.value(trace.result), rates
    return (*found, trace.value(aux[0])) if has_aux else found


# ---- Jacobians
def _unit(x: Tensor, k: int) -> Tensor:
    one = np.zeros(x._sizes(), np.float64)
    one.reshape(-1)[k] = 1
    return cast(from_numpy(one), x.dtype)


def _rows(pull: Callable, seeds: Sequence[Tensor], count: int) -> list[list[Tensor | None]]:
    """Return pull(e) for each unit vector e of each seed, stacked as tensors (elements, ...)."""
    table = []
    for i, s in enumerate(seeds):
        rows = [pull([_unit(t, k) if i == j else _zeros(t) for j, t in enumerate(seeds)])
                for k in range(s.numel())]
        table.append([stacked([r[m] for r in rows]) if rows else None for m in range(count)])
    return table


def _jacobian(func: Callable, argnums: int | tuple[int, ...], has_aux: bool, forward: bool) -> Callable:
    what = "jacfwd" if forward else "jacrev"

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        chosen, put = _select_arguments(args, argnums, what)
        f, aux = _split(func, chosen, put, kwargs, has_aux, what)
        trace = Trace(f, leaves(chosen))
        ys, xs = trace.outs, trace.xs

        def entry(rows: Tensor | None, y: Tensor, x: Tensor) -> Tensor:
            shape = (*y._sizes(), *x._sizes())
            if rows is None:
                return view.constant.call((), (shape, 0, x.dtype))
            if forward:
                rows = rows.permute(*range(1, rows.ndim), 0)
            return view.reshape.call((rows,), (shape,))

        if forward:
            columns = _rows(_pushed(trace).pull, xs, len(ys))
            parts = [[entry(columns[j][i], y, x) for j, x in enumerate(xs)] for i, y in enumerate(ys)]
        else:
            rows = _rows(trace.pull, ys, len(xs))
            parts = [[entry(rows[i][j], y, x) for j, x in enumerate(xs)] for i, y in enumerate(ys)]
        found = rebuilt(trace.result, [rebuilt(chosen, row) for row in parts])
        return (found, trace.value(aux[0])) if has_aux else found

    return jacobian


def jacrev(func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False) -> Callable:
    """Return a function of the same arguments that returns func's Jacobian.

    It computes one gradient per element of the result.

    Args:
        func: function of tensors.
        argnums: index or indices of the differentiated arguments.
        has_aux: func returns (result, aux), and (Jacobian, aux) is returned.

    Shape:
        (*shape of the result, *shape of the argument) for each result and argument.
    """
    return _jacobian(func, argnums, has_aux, False)


def jacfwd(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function of the same arguments that returns func's Jacobian, in forward mode.

    It computes one product per element of the arguments, and is faster than jacrev for few arguments and
    large results.

    Args:
        func: function of tensors.
        argnums: index or indices of the differentiated arguments.
        has_aux: func returns (result, aux), and (Jacobian, aux) is returned.
    """
    return _jacobian(func, argnums, has_aux, True)


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """Return a function that computes the second derivatives of func: jacfwd(jacrev(func)).

    Args:
        func: function that returns one number.
        argnums: index or indices of the differentiated arguments.
    """
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
           "stack_module_state", "value_and_grad", "vjp", "vmap"]
