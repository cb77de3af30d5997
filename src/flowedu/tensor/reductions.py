"""Reductions: flow.sum, mean, max, any, norm ... over one axis, several, or all. Each is also a method."""
from __future__ import annotations

import builtins
import math

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import REDUCING, cast, default_float, run
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, AxisError, DTypeError, NotATensorError
from flowedu.tensor import elementwise as E
from flowedu.tensor import return_types
from flowedu.tensor.dims import dims, kept, one_dim, reshaped
from flowedu.tensor.promotion import check_rank, wide

_op = REGISTRY.__getitem__
_SUM, _PROD, _MAX, _MIN, _ARGMAX = map(_op, ("sum", "prod", "max", "min", "argmax"))


def _count(shape, axes) -> int:
    n = 1
    for a in axes:
        n *= shape[a]
    return n


def _total(name: str, op):
    def f(input, dim=None, keepdim: bool = False, *, dtype=None):
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

    f.quick = op, 2, -1, [(dims(None, rank, name), False) for rank in range(9)]
    f.__name__ = f.__qualname__ = name
    f.__doc__ = (f"The {name} over `dim` (int, tuple; None: all). Whole numbers and bools give int64; `dtype`: convert "
                 "first.")
    return f


sum, prod = _total("sum", _SUM), _total("prod", _PROD)


def _floats_only(what: str, x) -> None:
    if not x.dtype.is_floating_point:
        raise DTypeError(f"{what}: Can only calculate the {what} of floating types", expected="a floating dtype",
                         got=x.dtype.name, fix=f"x.float().{what}()")


@wide
def mean(input, dim=None, keepdim: bool = False, *, dtype=None):
    """The mean over `dim` (None: all); NaN of nothing. Floats only, or with dtype=."""
    if dtype is not None:
        input = cast(input, dtype)
    _floats_only("mean", input)
    axes = dims(dim, input.ndim, "mean")
    n = input._numel if dim is None else _count(input._sizes(), axes)
    total = _SUM.call((input,), (axes, keepdim)) if input.dtype in dt.FLOATS else \
        run(_SUM, (input,), (axes, keepdim), REDUCING)
    return total * (1.0 / n if n else math.nan)


def nansum(input, dim=None, keepdim: bool = False, *, dtype=None):
    """The sum that takes NaN for 0."""
    return sum(E.where(E.isnan(input), 0, input), dim, keepdim, dtype=dtype)


@wide
def nanmean(input, dim=None, keepdim: bool = False, *, dtype=None):
    """Return the mean of the values that are not NaN."""
    good = sum(cast(E.logical_not(E.isnan(input)), input.dtype), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / good


# ---- largest and smallest
def _extreme(name: str, op):
    """amax, amin: ties share the gradient."""
    def f(input, dim=(), keepdim: bool = False):
        return run(op, (input,), (_filled(name, input, dims(dim, input.ndim, name)), keepdim), REDUCING)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"The {name[1:]} over `dim` (int, tuple; none: all). Elements that tie share the gradient."
    return f


def _filled(what, x, axes):
    if not x._numel and builtins.any(x.shape[a] == 0 for a in axes):
        raise AxisError(f"{what}: Expected reduction dim to have non-zero size: there is no {what} of zero elements",
                        expected="reduced axes of size 1 or more", got=f"{x.shape}, dim={axes}",
                        fix="check that the input is not empty")
    return axes


amax, amin = _extreme("amax", _MAX), _extreme("amin", _MIN)


def aminmax(input, *, dim=None, keepdim: bool = False):
    """(smallest, largest)."""
    axes = () if dim is None else dim
    return amin(input, axes, keepdim), amax(input, axes, keepdim)


def argmax(input, dim: int | None = None, keepdim: bool = False):
    """Where the largest element is (the first of equals, a NaN before all), int64; None: in the flattened tensor."""
    return _position("argmax", input, dim, keepdim, False)


def argmin(input, dim: int | None = None, keepdim: bool = False):
    """Where the smallest element is (the first of equals, a NaN before all), int64; None: in the flattened tensor."""
    return _position("argmin", input, dim, keepdim, True)


def _position(what, x, dim, keepdim, smallest):
    shape = kept(x.shape, range(x.ndim)) if dim is None or not x.ndim else None
    if shape is not None:
        if dim is not None:
            one_dim(dim, 0, what)
        x, axis = reshaped(x, (x._numel,)), 0
    else:
        axis = one_dim(dim, x.ndim, what)
    _filled(what, x, (axis,))
    full = kept(x.shape, (axis,)) if shape is None else shape
    if smallest:
        x = E.neg(x) if x.dtype.is_floating_point else E.bitwise_not(x)
    if x.dtype not in dt.NUMBERS:
        x = cast(x, dt.float32 if x.dtype.is_floating_point else dt.int32)
    y = _ARGMAX.call((x,), (axis,))
    return reshaped(y, full) if keepdim else y


def _max_or_min(name, whole, place, pair):
    result = getattr(return_types, name)

    def f(input, dim=None, keepdim: bool = False):
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
    f.__doc__ = (f"max(x): the {name} of all; max(x, dim): (values, indices), the gradient goes to the element chosen; "
                 "max(x, other): elementwise.".replace("max(", f"{name}("))
    return f


max = _max_or_min("max", amax, argmax, E.maximum)
min = _max_or_min("min", amin, argmin, E.minimum)


# ---- spread
def _correction(what, unbiased, correction) -> float:
    if correction is None:
        return 0 if unbiased is False else 1
    if unbiased is not None:
        raise ArgumentError(f"{what}: unbiased and correction say the same thing", expected="one of them", got="both",
                            fix="correction=0 is unbiased=False")
    return correction


@wide
def var(input, dim=None, unbiased=None, keepdim: bool = False, *, correction: float | None = None):
    """The variance over `dim` (None: all): squares divided by n - correction; correction 1 unless unbiased=False."""
    return _spread("var", input, dim, unbiased, keepdim, correction)


def _spread(what, input, dim, unbiased, keepdim, correction):
    """var or std, by way of float64: a square of float32 may be too large or too small for it where the result is not."""
    if isinstance(dim, bool):                            # var(x, False)
        dim, unbiased = None, dim
    _floats_only(what, input)
    axes = dims(dim, input.ndim, what)
    n = builtins.max(_count(input.shape, axes) - _correction(what, unbiased, correction), 0)
    gap = cast(input - mean(input, axes if axes else None, True), dt.float64)
    y = sum(E.square(gap), axes if axes else None, keepdim)
    y = y * (1.0 / n) if n else y / 0.0                 # infinite, or NaN where all values are equal
    return cast(_root(y, E.sqrt) if what == "std" else y, input.dtype)


@wide
def std(input, dim=None, unbiased=None, keepdim: bool = False, *, correction: float | None = None):
    """The standard deviation: the root of var. Of equal numbers it is 0, and so is its gradient, as PyTorch's."""
    return _spread("std", input, dim, unbiased, keepdim, correction)


@wide
def var_mean(input, dim=None, unbiased=None, keepdim: bool = False, *, correction: float | None = None):
    """(variance, mean)."""
    axes = None if isinstance(dim, bool) else dim
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, axes, keepdim)


@wide
def std_mean(input, dim=None, unbiased=None, keepdim: bool = False, *, correction: float | None = None):
    """(standard deviation, mean)."""
    axes = None if isinstance(dim, bool) else dim
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, axes, keepdim)


@wide
def logsumexp(input, dim, keepdim: bool = False):
    """log(sum(exp(x))), without overflow."""
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
def vector_norm(x, ord=2, dim=None, keepdim: bool = False, *, dtype=None):
    """sum(|x|^ord)^(1/ord) over `dim` (None: all); inf and -inf: the largest and smallest; 0: how many are not 0."""
    x = x if dtype is None else cast(x, dtype)
    if not x.dtype.is_floating_point:
        raise DTypeError("linalg.vector_norm: a floating dtype is needed", expected="floats", got=x.dtype.name,
                         fix="x.float()")
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
    if ord < 1:                                          # at 0 the slope is infinite: none is taken there
        zero = E.eq(size, 0)
        powers = E.where(zero, math.inf if ord < 0 else 0.0, E.pow(E.where(zero, 1.0, size), float(ord)))
    return _root(sum(powers, axes, keepdim), lambda total: E.pow(total, 1.0 / ord))


def _root(total, root):
    """root(total); where the total is 0 the gradient is 0, not 0 / 0."""
    zero = E.eq(total, 0)
    return E.where(zero, 0.0, root(E.where(zero, 1.0, total)))


def norm(input, p="fro", dim=None, keepdim: bool = False, dtype=None):
    """The p-norm over `dim` (None: all elements as one vector). "fro" is 2. ArgumentError for another word: the
    nuclear norm is flow.linalg.matrix_norm's."""
    try:
        order = 2 if p in ("fro", None) else float(p)
    except ValueError:
        raise ArgumentError(f"norm: there is no norm {p!r}", expected='"fro" or a number', got=repr(p),
                            fix='"fro" is the root of the sum of squares; flow.linalg.matrix_norm(x, "nuc")') from None
    return vector_norm(input, order, dim, keepdim, dtype=dtype)


def renorm(input, p: float, dim: int, maxnorm: float):
    """x with every part along `dim` scaled down to a p-norm of at most maxnorm."""
    check_rank("renorm", input, 2)
    axis = one_dim(dim, input.ndim, "renorm")
    if not (p > 0 and maxnorm >= 0):
        raise ArgumentError("renorm: p must be positive, and maxnorm at least 0", expected="p > 0 and maxnorm >= 0",
                            got=f"p={p}, maxnorm={maxnorm}", fix="p=2, say")
    size = vector_norm(input, p, tuple(i for i in range(input.ndim) if i != axis), True)
    return input * E.where(E.gt(size, maxnorm), maxnorm / (size + 1e-7), 1.0)


def _softmax(name: str):
    op = _op(name)

    def f(input, dim: int | None = None, dtype=None):
        x = input if dtype is None else cast(input, dtype)
        _floats_only(name, x)
        if dim is None:
            dim = 0 if x.ndim in (0, 1, 3) else 1
        if not x.ndim:
            one_dim(dim, 0, name)
            return x * 0 + (1 if name == "softmax" else 0)
        return run(op, (x,), (one_dim(dim, x.ndim, name),), REDUCING)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{name} along `dim`."
    return f


softmax, log_softmax = _softmax("softmax"), _softmax("log_softmax")
