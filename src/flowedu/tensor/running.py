"""Running results along an axis: cumsum, cumprod, cummax, diff ... Each is also a method."""
from __future__ import annotations

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import REDUCING, cast, run
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor import elementwise as E
from flowedu.tensor import return_types
from flowedu.tensor.dims import moved, one_dim, reshaped
from flowedu.tensor.joining import cat
from flowedu.tensor.reductions import amax, sum

_op = REGISTRY.__getitem__


def _along(what, x, dim):
    return one_dim(dim, x.ndim, what)


def cumsum(input, dim: int, *, dtype=None):
    """The sum of all elements up to each one along `dim`. Whole numbers give int64."""
    x = cast(input, dtype) if dtype is not None else input if input.dtype.is_floating_point else cast(input, dt.int64)
    axis = _along("cumsum", x, dim)
    return run(_op("cumsum"), (x,), (axis, False), REDUCING) if x.ndim else x * 1


def cumprod(input, dim: int, *, dtype=None):
    """The product of all elements up to each one along `dim`. Whole numbers give int64. Exact gradients also at zeros."""
    x = cast(input, dtype) if dtype is not None else input if input.dtype.is_floating_point else cast(input, dt.int64)
    axis = _along("cumprod", x, dim)
    if not x.ndim or not x._numel:
        return x * 1
    n = x.shape[axis]
    start, stop, step = (0,) * x.ndim, tuple(1 if i == axis else m for i, m in enumerate(x.shape)), (1,) * x.ndim
    first = _op("slice")(x, start=start, stop=stop, step=step)
    first = _op("slice_grad")(first, shape=x.shape, start=start, stop=stop, step=step) if n > 1 else first
    c = REDUCING.get(x.dtype.name)
    if c is not None:
        return cast(_op("linear_scan").call((cast(x, c), cast(first, c)), (axis, False)), x.dtype)
    return _op("linear_scan").call((x, first), (axis, False))


def _running(name: str, smallest: bool):
    result = getattr(return_types, name)

    def f(input, dim: int):
        axis = _along(name, input, dim)
        if not input.ndim:
            return result(E.clone(input), cast(input * 0, dt.int64))
        at = _op("extreme_place").call((input,), (axis, smallest))
        return result(_op("dim_gather").call((input, at), (axis,)), at)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"(values, indices): the {'smallest' if smallest else 'largest'} element up to each one along `dim`."
    return f


cummax, cummin = _running("cummax", False), _running("cummin", True)


def logcumsumexp(input, dim: int):
    """log(cumsum(exp(x))), shifted by the largest element."""
    axis = _along("logcumsumexp", input, dim)
    if not input.ndim or not input._numel:
        return input * 1
    top = amax(input.detach() if hasattr(input, "detach") else input, axis, True)
    top = E.where(E.isfinite(top), top, 0.0)
    return E.log(cumsum(E.exp(input - top), axis)) + top


def diff(input, n: int = 1, dim: int = -1, prepend=None, append=None):
    """The n-th difference of neighbours along `dim`. prepend, append: tensors joined to it there first."""
    axis = one_dim(dim, input.ndim, "diff")
    if prepend is not None or append is not None:
        input = cat([x for x in (prepend, input, append) if x is not None], axis)
    if n < 0:
        raise ArgumentError("diff: order must be non-negative", expected="n of 0 or more", got=str(n), fix="n=1")
    for _ in range(min(n, input.shape[axis]) if input.ndim else n):        # then none is left
        x = moved(input, axis, 0)
        a, b = x[1:], x[:-1]
        input = moved(E.logical_xor(a, b) if x.dtype is dt.bool_ else a - b, 0, axis)
    return input


def trapezoid(y, x=None, *, dx: float = 1.0, dim: int = -1):
    """Return the area under y along an axis by trapezoids: of points x, a vector or broadcast with y, or dx apart."""
    axis = one_dim(dim, y.ndim, "trapezoid")
    y = moved(y, axis, y.ndim - 1)
    if x is None:
        gap = dx
    else:
        if 1 < x.ndim <= y.ndim:
            x = moved(reshaped(x, (1,) * (y.ndim - x.ndim) + tuple(x.shape)), axis, y.ndim - 1)
        if x.ndim not in (1, y.ndim) or x.shape[-1] != y.shape[-1]:
            raise ShapeError("trapezoid: x does not give a point for each value along the axis",
                             expected=f"({y.shape[-1]},), or a shape that broadcasts with that of y",
                             got=str(tuple(x.shape)), fix="x = flow.arange(y.shape[dim])")
        gap = diff(x)
    return sum((y[..., 1:] + y[..., :-1]) * gap, -1) * 0.5
