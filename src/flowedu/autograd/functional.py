"""flow.autograd.functional: Jacobians and Hessians of functions, and their products with vectors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops import concat as concat_ops
from flowedu.core.ops import view
from flowedu.errors import ArgumentError
from flowedu.tensor.gradients.backward import grad
from flowedu.tensor.gradients.grad_mode import enable_grad
from flowedu.tensor.inplace.tape_nodes import zeros


def _tuple(x) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _leaves(inputs: tuple, create_graph: bool) -> tuple:
    """Return the inputs as differentiable values, connected to the caller's if create_graph."""
    return tuple(view.identity.call((x,), ()) if create_graph and x.requires_grad else
                 x.detach().requires_grad_() for x in inputs)


def _or_zeros(found, values) -> tuple:
    return tuple(zeros(tuple(x.shape), x.dtype) if g is None else g for g, x in zip(found, values))


def _stack(rows: list, shape: tuple) -> Tensor:
    flat = [view.reshape.call((r,), ((1, r.numel()),)) for r in rows]
    y = concat_ops.concat.call(tuple(flat), (0,)) if len(flat) > 1 else flat[0]
    return view.reshape.call((y,), (shape,))


def jacobian(func: Callable, inputs, create_graph: bool = False, strict: bool = False):
    """Return the Jacobian of a function, nested in tuples for several outputs and inputs (outputs first).

    Args:
        func: function of tensors.
        inputs: tensor or tuple of tensors.
        create_graph: record the computation, so that it can be differentiated.
        strict: True raises an error if an output is independent of an input; False returns zeros.

    Shape:
        (*shape of the output, *shape of the input).
    """
    args = _tuple(inputs)
    with enable_grad():
        leaves = _leaves(args, create_graph)
        result = func(*leaves)
        table: list[Any] = []
        for y in _tuple(result):
            rows = []
            for k in range(y.numel()):
                seed = np.zeros(tuple(y.shape), y.dtype.numpy)
                seed.reshape(-1)[k] = 1
                found = grad(y, leaves, from_numpy(seed), retain_graph=True, create_graph=create_graph,
                             allow_unused=True) if y.requires_grad else (None,) * len(leaves)
                if strict and any(g is None for g in found):
                    raise ArgumentError("jacobian: an output is independent of an input, and strict is True",
                                        fix="strict=False gives zeros")
                rows.append(_or_zeros(found, leaves))
            table.append(tuple(_stack([r[i] for r in rows], (*y.shape, *x.shape)) if rows else
                               zeros((*y.shape, *x.shape), x.dtype) for i, x in enumerate(leaves)))
    table = [row if isinstance(inputs, (tuple, list)) else row[0] for row in table]
    return tuple(table) if isinstance(result, (tuple, list)) else table[0]


def hessian(func: Callable, inputs, create_graph: bool = False):
    """Return the second derivatives of a function with one number as its result.

    Args:
        func: function of tensors.
        inputs: tensor or tuple of tensors.
        create_graph: record the computation, so that it can be differentiated.

    Shape:
        (*shape of x, *shape of z) for inputs x and z.
    """
    def slopes(*xs):
        y = func(*xs)
        if y.numel() != 1:
            raise ArgumentError("hessian: the function's result is not one number", expected="one element",
                                got=str(tuple(y.shape)), fix="sum it")
        found = grad(y, xs, create_graph=True, allow_unused=True)
        return _or_zeros(found, xs)

    found = jacobian(slopes, _tuple(inputs), create_graph=create_graph)
    return found if isinstance(inputs, (tuple, list)) else found[0][0]


def vjp(func: Callable, inputs, v=None, create_graph: bool = False):
    """Return (func(*inputs), the vector v times the Jacobian).

    Args:
        func: function of tensors.
        inputs: tensor or tuple of tensors.
        v: tensor of the output's shape; default: 1, for one number.
        create_graph: record the computation, so that it can be differentiated.
    """
    with enable_grad():
        leaves = _leaves(_tuple(inputs), create_graph)
        y = func(*leaves)
        found = _or_zeros(grad(y, leaves, v, create_graph=create_graph, allow_unused=True), leaves)
    out = tuple(t if create_graph else t.detach() for t in _tuple(y))
    return (out if isinstance(y, (tuple, list)) else out[0], found if isinstance(inputs, (tuple, list))
            else found[0])


def jvp(func: Callable, inputs, v=None, create_graph: bool = False):
    """Return (func(*inputs), the Jacobian times the vector v).

    The function f(u) = u times the Jacobian (see vjp) is linear in u. The product is the gradient of the
    inner product of f(u) and v with respect to u.

    Args:
        func: function of tensors.
        inputs: tensor or tuple of tensors.
        v: tensor of the input's shape; default: 1, for one number.
        create_graph: record the computation, so that it can be differentiated.
    """
    args = _tuple(inputs)
    with enable_grad():
        leaves = _leaves(args, create_graph)
        result = func(*leaves)
        outs = _tuple(result)
        us = tuple(zeros(tuple(y.shape), y.dtype).requires_grad_() for y in outs)
        rows = _or_zeros(grad(outs, leaves, us, create_graph=True, allow_unused=True), leaves)
        vs = ([from_numpy(np.ones(tuple(x.shape), x.dtype.numpy)) for x in args] if v is None
              else list(_tuple(v)))
        kept = [(r, w) for r, w in zip(rows, vs) if r.requires_grad]
        found = _or_zeros(grad([r for r, _ in kept], us, [w for _, w in kept], create_graph=create_graph,
                               allow_unused=True), us) if kept else _or_zeros([None] * len(us), us)
    out = tuple(t if create_graph else t.detach() for t in outs)
    pair = isinstance(result, (tuple, list))
    return (out if pair else out[0]), (found if pair else found[0])


__all__ = ["hessian", "jacobian", "jvp", "vjp"]
