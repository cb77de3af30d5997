"""Reductions over one axis, several, or all, such as sum, mean, max, any, and norm. Each is also a method."""
from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.promote import REDUCING, cast, default_float, run
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, AxisError, DTypeError, NotATensorError
from flowedu.tensor import elementwise as E
from flowedu.tensor import return_types
from flowedu.tensor.arguments.dims import dims, keepdim_shape, one_dim, reshaped
from flowedu.tensor.arguments.types import Axes, Number
from flowedu.tensor.dtypes.promotion import check_rank, wide

_op = REGISTRY.__getitem__
_SUM, _PROD = _op("sum"), _op("prod")
_MAX, _MIN, _ARGMAX = _op("max"), _op("min"), _op("argmax")


def _count(shape: Sequence[int], axes: Sequence[int]) -> int:
    n = 1
    for a in axes:
        n *= shape[a]
    return n


def _total(name: str, op: Op) -> Callable[..., Tensor]:
    """Return the sum or the product as a function."""
    def f(input: Tensor, dim: Axes | None = None, keepdim: bool = False, *,
          dtype: dt.dtype | None = None) -> Tensor:
        try:
            kind = input.dtype
        except AttributeError:
            raise NotATensorError(name, input) from None
        if dtype is not None:
            input = cast(input, dtype)
            kind = dtype
        if kind not in dt.FLOATS:
            if not input.dtype.is_floating_point and dtype is None:
                input = cast(input, dt.int64)
            return run(op, (input,), (dims(dim, input.ndim, name), keepdim), REDUCING)
        return op.call((input,), (dims(dim, input.ndim, name), keepdim))

    attributes = [(dims(None, rank, name), False) for rank in range(9)]
    f.quick = op, 2, -1, attributes  # type: ignore[attr-defined]  # an attribute of a function
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"""Return the {name} of the elements.

    Args:
        input: tensor of any shape. Integers and bools give int64.
        dim: axis or axes to reduce; default: all.
        keepdim: keep the reduced axes, with size 1.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    return f


sum, prod = _total("sum", _SUM), _total("prod", _PROD)


def _floats_only(what: str, x: Tensor) -> None:
    if not x.dtype.is_floating_point:
        raise DTypeError(f"{what}: Can only calculate the {what} of floating types",
                         expected="a floating dtype", got=x.dtype.name, fix=f"x.float().{what}()")


@wide
def mean(input: Tensor, dim: Axes | None = None, keepdim: bool = False, *,
         dtype: dt.dtype | None = None) -> Tensor:
    """Return the mean of the elements, or NaN for a tensor without elements.

    Args:
        input: tensor of any shape. If it is not floating, `dtype` must be passed.
        dim: axis or axes to reduce; default: all.
        keepdim: keep the reduced axes, with size 1.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    if dtype is not None:
        input = cast(input, dtype)
    _floats_only("mean", input)
    axes = dims(dim, input.ndim, "mean")
    n = input._numel if dim is None else _count(input._sizes(), axes)
    total = _SUM.call((input,), (axes, keepdim)) if input.dtype in dt.FLOATS else \
        run(_SUM, (input,), (axes, keepdim), REDUCING)
    return total * (1.0 / n if n else math.nan)


def nansum(input: Tensor, dim: Axes | None = None, keepdim: bool = False, *,
           dtype: dt.dtype | None = None) -> Tensor:
    """Return the sum of the elements that are not NaN.

    Args:
        input: tensor of any shape.
        dim: axis or axes to reduce; default: all.
        keepdim: keep the reduced axes, with size 1.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    return sum(E.where(E.isnan(input), 0, input), dim, keepdim, dtype=dtype)


@wide
def nanmean(input: Tensor, dim: Axes | None = None, keepdim: bool = False, *,
            dtype: dt.dtype | None = None) -> Tensor:
    """Return the mean of the elements that are not NaN.

    Args:
        input: tensor of any shape.
        dim: axis or axes to reduce; default: all.
        keepdim: keep the reduced axes, with size 1.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    good = sum(cast(E.logical_not(E.isnan(input)), input.dtype), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / good


# ---- minimum and maximum
def _extreme(name: str, op: Op) -> Callable[..., Tensor]:
    """Return amax or amin as a function."""
    def f(input: Tensor, dim: Axes | None = (), keepdim: bool = False) -> Tensor:
        return run(op, (input,), (_filled(name, input, dims(dim, input.ndim, name)), keepdim), REDUCING)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"""Return the {name[1:]} of the elements; equal elements share the gradient.

    Args:
        input: tensor of any shape.
        dim: axis or axes to reduce; default: all.
        keepdim: keep the reduced axes, with size 1.
    """
    return f


def _filled(what: str, x: Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
    if not x._numel and builtins.any(x.shape[a] == 0 for a in axes):
        raise AxisError(f"{what}: Expected reduction dim to have non-zero size: there is no {what} of zero "
                        f"elements", expected="reduced axes of size 1 or more", got=f"{x.shape}, dim={axes}",
                        fix="check that the input is not empty")
    return axes


amax, amin = _extreme("amax", _MAX), _extreme("amin", _MIN)


def aminmax(input: Tensor, *, dim: Axes | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return (minimum, maximum) of the elements.

    Args:
        input: tensor of any shape.
        dim: axis or axes to reduce; default: all.
        keepdim: keep the reduced axes, with size 1.
    """
    axes = () if dim is None else dim
    return amin(input, axes, keepdim), amax(input, axes, keepdim)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the int64 position of the maximum, the first one of equal elements; NaN counts as the maximum.

    Args:
        input: tensor of any shape.
        dim: axis; default: None, the flattened tensor.
        keepdim: keep the axis, with size 1.
    """
    return _position("argmax", input, dim, keepdim, False)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the int64 position of the minimum, the first one of equal elements; NaN counts as the minimum.

    Args:
        input: tensor of any shape.
        dim: axis; default: None, the flattened tensor.
        keepdim: keep the axis, with size 1.
    """
    return _position("argmin", input, dim, keepdim, True)


def _position(what: str, x: Tensor, dim: int | None, keepdim: bool, smallest: bool) -> Tensor:
    shape = None
    if dim is None or not x.ndim:
        shape = keepdim_shape(x.shape, tuple(range(x.ndim)))
        if dim is not None:
            one_dim(dim, 0, what)
        x, axis = reshaped(x, (x._numel,)), 0
    else:
        axis = one_dim(dim, x.ndim, what)
    _filled(what, x, (axis,))
    full = keepdim_shape(x.shape, (axis,)) if shape is None else shape
    if smallest:
        x = E.neg(x) if x.dtype.is_floating_point else E.bitwise_not(x)
    if x.dtype not in dt.NUMBERS:
        x = cast(x, dt.float32 if x.dtype.is_floating_point else dt.int32)
    y = _ARGMAX.call((x,), (axis,))
    return reshaped(y, full) if keepdim else y


def _max_or_min(name: str, whole: Callable, place: Callable, pair: Callable) -> Callable[..., Any]:
    result = getattr(return_types, name)

    def f(input: Tensor, dim: Tensor | int | None = None, keepdim: bool = False) -> Any:
        if isinstance(dim, TensorBase):
            return pair(input, dim)
        if dim is None:
            return whole(input)
        if not input.ndim:
            one_dim(dim, 0, name)
            return result(input * 1 if input.dtype.is_floating_point else E.clone(input), place(input))
        at = place(input, dim, True)
        values = _op("dim_gather").call((input, at), (one_dim(dim, input.ndim, name),))
        if keepdim:
            return result(values, at)
        shape = tuple(n for i, n in enumerate(input.shape) if i != one_dim(dim, input.ndim, name))
        return result(reshaped(values, shape), reshaped(at, shape))

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"""Return the {name}imum of all elements, along an axis, or of two tensors.

    `{name}(x)` is 0-dim. `{name}(x, dim)` returns (values, indices); the gradient goes to the selected
    element.
    `{name}(x, other)` is the elementwise {name}imum.

    Args:
        input: tensor of any shape.
        dim: axis, or another tensor; default: all elements.
        keepdim: keep the axis, with size 1.
    """
    return f


max = _max_or_min("max", amax, argmax, E.maximum)
min = _max_or_min("min", amin, argmin, E.minimum)


# ---- variance
def _correction(what: str, unbiased: bool | None, correction: float | None) -> float:
    if correction is None:
        return 0 if unbiased is False else 1
    if unbiased is not None:
        raise ArgumentError(f"{what}: unbiased and correction say the same thing", expected="one of them",
                            got="both", fix="correction=0 is unbiased=False")
    return correction


@wide
def var(input: Tensor, dim: Axes | None = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None) -> Tensor:
    """Return the variance: the sum of squared deviations divided by n - correction.

    Args:
        input: floating tensor of any shape.
        dim: axis or axes to reduce; default: all.
        unbiased: False means correction=0, and True means correction=1; default: None, use `correction`.
        keepdim: keep the reduced axes, with size 1.
        correction: number subtracted from n; default: 1.
    """
    return _spread("var", input, dim, unbiased, keepdim, correction)


def _spread(what: str, input: Tensor, dim: Axes | None, unbiased: bool | None, keepdim: bool,
            correction: float | None) -> Tensor:
    """Compute var or std in float64, because squares of float32 may overflow or underflow."""
    if isinstance(dim, bool):                            # var(x, False)
        dim, unbiased = None, dim
    _floats_only(what, input)
    axes = dims(dim, input.ndim, what)
    n = builtins.max(_count(input.shape, axes) - _correction(what, unbiased, correction), 0)
    gap = cast(input - mean(input, axes if axes else None, True), dt.float64)
    y = sum(E.square(gap), axes if axes else None, keepdim)
    y = y * (1.0 / n) if n else y / 0.0                 # infinite, or NaN if all values are equal
    return cast(_root(y, E.sqrt) if what == "std" else y, input.dtype)


@wide
def std(input: Tensor, dim: Axes | None = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None) -> Tensor:
    """Return the standard deviation, the square root of var.

    If all elements are equal, the standard deviation and its gradient are 0.

    Args:
        input: floating tensor of any shape.
        dim: axis or axes to reduce; default: all.
        unbiased: False means correction=0, and True means correction=1; default: None, use `correction`.
        keepdim: keep the reduced axes, with size 1.
        correction: number subtracted from n; default: 1.
    """
    return _spread("std", input, dim, unbiased, keepdim, correction)


@wide
def var_mean(input: Tensor, dim: Axes | None = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> tuple[Tensor, Tensor]:
    """Return (variance, mean); see var.

    Args:
        input: floating tensor of any shape.
        dim: axis or axes to reduce; default: all.
        unbiased: False means correction=0, and True means correction=1; default: None, use `correction`.
        keepdim: keep the reduced axes, with size 1.
        correction: number subtracted from n; default: 1.
    """
    axes = None if isinstance(dim, bool) else dim
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, axes, keepdim)


@wide
def std_mean(input: Tensor, dim: Axes | None = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> tuple[Tensor, Tensor]:
    """Return (standard deviation, mean); see std.

    Args:
        input: floating tensor of any shape.
        dim: axis or axes to reduce; default: all.
        unbiased: False means correction=0, and True means correction=1; default: None, use `correction`.
        keepdim: keep the reduced axes, with size 1.
        correction: number subtracted from n; default: 1.
    """
    axes = None if isinstance(dim, bool) else dim
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, axes, keepdim)


@wide
def logsumexp(input: Tensor, dim: Axes, keepdim: bool = False) -> Tensor:
    """Return log(sum(exp(x))), without overflow.

    Args:
        input: tensor of any shape.
        dim: axis or axes to reduce.
        keepdim: keep the reduced axes, with size 1.
    """
    if not input.dtype.is_floating_point:
        input = cast(input, default_float())
    axes = dims(dim, input.ndim, "logsumexp")
    if _count(input.shape, axes) == 0:
        return E.log(sum(input, axes, keepdim))
    top = amax(input.detach() if hasattr(input, "detach") else input, axes, True)
    top = E.where(E.isfinite(top), top, 0.0)
    y = E.log(sum(E.exp(input - top), axes, True)) + top
    return y if keepdim else reshaped(y, tuple(n for i, n in enumerate(input.shape) if i not in axes))


# ---- norms
@wide
def vector_norm(x: Tensor, ord: Number = 2, dim: Axes | None = None, keepdim: bool = False, *,
                dtype: dt.dtype | None = None) -> Tensor:
    """Return sum(|x|^ord)^(1/ord).

    Args:
        x: floating tensor of any shape.
        ord: order. inf and -inf return the largest and smallest |x|, and 0 returns the number of elements
            that are not 0.
        dim: axis or axes to reduce; default: all.
        keepdim: keep the reduced axes, with size 1.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    x = x if dtype is None else cast(x, dtype)
    if not x.dtype.is_floating_point:
        raise DTypeError("linalg.vector_norm: a floating dtype is needed", expected="floats",
                         got=x.dtype.name, fix="x.float()")
    axes = dims(dim, x.ndim, "norm")
    if ord not in (0, 1, math.inf, -math.inf) and x.dtype is not dt.float64:       # as in _spread
        return cast(vector_norm(cast(x, dt.float64), ord, dim, keepdim), x.dtype)
    if ord == 2:
        return _root(sum(E.square(x), axes, keepdim), E.sqrt)
    if ord in (math.inf, -math.inf):
        return (amax if ord > 0 else amin)(E.abs(x), axes, keepdim)
    if ord == 0:
        return sum(E.square(E.sign(x)), axes, keepdim)
    if ord == 1:
        return sum(E.abs(x), axes, keepdim)
    size = E.abs(x)
    powers = E.pow(size, float(ord))
    if ord < 1:                                          # the slope at 0 is infinite and is replaced by 0
        zero = E.eq(size, 0)
        powers = E.where(zero, math.inf if ord < 0 else 0.0, E.pow(E.where(zero, 1.0, size), float(ord)))
    return _root(sum(powers, axes, keepdim), lambda total: E.pow(total, 1.0 / ord))


def _root(total: Tensor, root: Callable[[Tensor], Tensor]) -> Tensor:
    """Return root(total), with a gradient of 0 instead of 0 / 0 where the total is 0."""
    zero = E.eq(total, 0)
    return E.where(zero, 0.0, root(E.where(zero, 1.0, total)))


def norm(input: Tensor, p: Number | str = "fro", dim: Axes | None = None, keepdim: bool = False,
         dtype: dt.dtype | None = None) -> Tensor:
    """Return the p-norm of the elements.

    Args:
        input: floating tensor of any shape.
        p: order of the norm; "fro" means 2.
        dim: axis or axes to reduce; default: None, all elements as one vector.
        keepdim: keep the reduced axes, with size 1.
        dtype: dtype to convert the input to first; default: no conversion.

    Raises:
        ArgumentError: p is a string other than "fro". flow.linalg.matrix_norm computes the nuclear norm.
    """
    try:
        order = 2 if p in ("fro", None) else float(p)
    except ValueError:
        raise ArgumentError(f"norm: there is no norm {p!r}", expected='"fro" or a number', got=repr(p),
                            fix='"fro" is the root of the sum of squares; '
                                'flow.linalg.matrix_norm(x, "nuc")') from None
    return vector_norm(input, order, dim, keepdim, dtype=dtype)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Scale down the slices along an axis, so that the p-norm of each is at most maxnorm.

    Args:
        input: floating tensor.
        p: order of the norm.
        dim: axis of the slices.
        maxnorm: largest allowed norm.
    """
    check_rank("renorm", input, 2)
    axis = one_dim(dim, input.ndim, "renorm")
    if not (p > 0 and maxnorm >= 0):
        raise ArgumentError("renorm: p must be positive, and maxnorm at least 0",
                            expected="p > 0 and maxnorm >= 0",
                            got=f"p={p}, maxnorm={maxnorm}", fix="p=2, say")
    size = vector_norm(input, p, tuple(i for i in range(input.ndim) if i != axis), True)
    return input * E.where(E.gt(size, maxnorm), maxnorm / (size + 1e-7), 1.0)


def _softmax(name: str) -> Callable[..., Tensor]:
    op = _op(name)

    def f(input: Tensor, dim: int | None = None, dtype: dt.dtype | None = None) -> Tensor:
        x = input if dtype is None else cast(input, dtype)
        _floats_only(name, x)
        if dim is None:
            dim = 0 if x.ndim in (0, 1, 3) else 1
        if not x.ndim:
            one_dim(dim, 0, name)
            return x * 0 + (1 if name == "softmax" else 0)
        return run(op, (x,), (one_dim(dim, x.ndim, name),), REDUCING)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"""Return the {name} along an axis.

    Args:
        input: floating tensor of any shape.
        dim: axis that is normalized; default: 0 for inputs with 0, 1, or 3 axes, else 1.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    return f


softmax, log_softmax = _softmax("softmax"), _softmax("log_softmax")
