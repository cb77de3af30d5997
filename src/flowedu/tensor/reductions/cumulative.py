"""Running results along an axis, such as cumsum, cumprod, cummax, and diff. Each is also a method."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import REDUCING, cast, run
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor import elementwise as E
from flowedu.tensor import return_types
from flowedu.tensor.arguments.dims import move_axis, one_dim, reshaped
from flowedu.tensor.reductions.reduce import amax, sum
from flowedu.tensor.shapes.join_and_pad import cat

_op = REGISTRY.__getitem__


def _along(what: str, x: Tensor, dim: int) -> int:
    return one_dim(dim, x.ndim, what)


def _as_summable(input: Tensor, dtype: dt.dtype | None) -> Tensor:
    """Return the input as `dtype`, or by default integers as int64."""
    if dtype is None and input.dtype.is_floating_point:
        return input
    return cast(input, dt.int64 if dtype is None else dtype)


def cumsum(input: Tensor, dim: int, *, dtype: dt.dtype | None = None) -> Tensor:
    """Return the running sum along an axis; integers give int64.

    Args:
        input: tensor.
        dim: axis.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    x = _as_summable(input, dtype)
    axis = _along("cumsum", x, dim)
    return run(_op("cumsum"), (x,), (axis, False), REDUCING) if x.ndim else x * 1


def cumprod(input: Tensor, dim: int, *, dtype: dt.dtype | None = None) -> Tensor:
    """Return the running product along an axis; integers give int64.

    Gradients are exact even if elements are 0.

    Args:
        input: tensor.
        dim: axis.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    x = _as_summable(input, dtype)
    axis = _along("cumprod", x, dim)
    if not x.ndim or not x._numel:
        return x * 1
    n = x.shape[axis]
    start, stop, step = ((0,) * x.ndim, tuple(1 if i == axis else m for i, m in enumerate(x.shape)),
                         (1,) * x.ndim)
    first = _op("slice")(x, start=start, stop=stop, step=step)
    first = _op("slice_grad")(first, shape=x.shape, start=start, stop=stop, step=step) if n > 1 else first
    c = REDUCING.get(x.dtype.name)
    if c is not None:
        return cast(_op("linear_scan").call((cast(x, c), cast(first, c)), (axis, False)), x.dtype)
    return _op("linear_scan").call((x, first), (axis, False))


def _running(name: str, smallest: bool) -> Callable[..., Any]:
    """Return cummax or cummin as a function."""
    result = getattr(return_types, name)

    def f(input: Tensor, dim: int) -> Any:
        axis = _along(name, input, dim)
        if not input.ndim:
            return result(E.clone(input), cast(input * 0, dt.int64))
        at = _op("extreme_place").call((input,), (axis, smallest))
        return result(_op("dim_gather").call((input, at), (axis,)), at)

    f.__name__ = f.__qualname__ = name
    rank = "smallest" if smallest else "largest"
    f.__doc__ = f"""Return (values, indices) of the {rank} element up to each index.

    Args:
        input: tensor.
        dim: axis.
    """
    return f


cummax, cummin = _running("cummax", False), _running("cummin", True)


def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Return log(cumsum(exp(x))) along an axis, without overflow.

    Args:
        input: tensor.
        dim: axis.
    """
    axis = _along("logcumsumexp", input, dim)
    if not input.ndim or not input._numel:
        return input * 1
    top = amax(input.detach() if hasattr(input, "detach") else input, axis, True)
    top = E.where(E.isfinite(top), top, 0.0)
    return E.log(cumsum(E.exp(input - top), axis)) + top


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """Return the n-th difference of neighbors along an axis.

    Args:
        input: tensor.
        n: number of times that the difference is taken.
        dim: axis.
        prepend: tensor that is first joined before the input; default: none.
        append: tensor that is first joined after the input; default: none.
    """
    axis = one_dim(dim, input.ndim, "diff")
    if prepend is not None or append is not None:
        input = cat([x for x in (prepend, input, append) if x is not None], axis)
    if n < 0:
        raise ArgumentError("diff: order must be non-negative", expected="n of 0 or more", got=str(n),
                            fix="n=1")
    for _ in range(min(n, input.shape[axis]) if input.ndim else n):        # nothing is left
        x = move_axis(input, axis, 0)
        a, b = x[1:], x[:-1]
        input = move_axis(E.logical_xor(a, b) if x.dtype is dt.bool_ else a - b, 0, axis)
    return input


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Return the area under y along an axis by the trapezoidal rule.

    Args:
        y: values.
        x: positions, a vector or a tensor that broadcasts with y; default: None, positions with distance dx.
        dx: distance between neighbors.
        dim: axis.
    """
    axis = one_dim(dim, y.ndim, "trapezoid")
    y = move_axis(y, axis, y.ndim - 1)
    if x is None:
        gap: Tensor | float = dx
    else:
        if 1 < x.ndim <= y.ndim:
            x = move_axis(reshaped(x, (1,) * (y.ndim - x.ndim) + tuple(x.shape)), axis, y.ndim - 1)
        if x.ndim not in (1, y.ndim) or x.shape[-1] != y.shape[-1]:
            raise ShapeError("trapezoid: x does not give a point for each value along the axis",
                             expected=f"({y.shape[-1]},), or a shape that broadcasts with that of y",
                             got=str(tuple(x.shape)), fix="x = flow.arange(y.shape[dim])")
        gap = diff(x)
    return sum((y[..., 1:] + y[..., :-1]) * gap, -1) * 0.5
