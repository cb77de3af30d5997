"""Batch norm and layer norm.

Batch norm computes one mean and one (biased) variance per channel, over all axes except `axis`. Layer norm
computes one of each per row, over the axes from `begin_norm_axis` on. Both also return the statistics that
the backward pass needs, so that these are computed once.
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import neg, rsqrt
from flowedu.core.ops.promote import cast
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reduce import sum
from flowedu.core.ops.reverse import vjp
from flowedu.core.ops.view import reshape
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError
from flowedu.ops.types import AnyTensor, Gradients, Ints, Shape

register("batch_norm", "layer_norm")


def _wide(x: Spec) -> dt.dtype:
    """Return the dtype of statistics: float32 for 16-bit floats."""
    return dt.float32 if x.dtype in dt.HALVES else x.dtype


def _check_floats(name: str, x: Spec, **others: Spec) -> None:
    """Check that all inputs have the dtype of x.

    With 16-bit floats, parameters and statistics may also be float32.
    """
    for other, spec in others.items():
        if spec.dtype is not x.dtype and spec.dtype is not _wide(x):
            raise DTypeError(f"{name}: {other} and x have different element types", expected=x.dtype.name,
                             got=spec.dtype.name,
                             fix=f"cast {other}: flow.cast({other}, flow.{x.dtype.name})")


# ---- batch norm
def _check_channels(name: str) -> Callable[..., None]:
    def check(x: Spec, axis: int, **vectors: Spec) -> None:
        if not isinstance(axis, int) or not -x.ndim <= axis < x.ndim:
            raise ShapeError(f"{name}: axis is out of range",
                             expected=f"the axis of the channels of x {x.shape}",
                             got=f"axis={axis!r}", fix="axis=1 for (N, C, H, W), axis=-1 for (N, H, W, C)")
        _check_floats(name, x, **vectors)
        for other, spec in vectors.items():
            if spec.shape != (x.shape[axis],):
                raise ShapeError(f"{name}: {other} does not fit",
                                 expected=f"({x.shape[axis]},), one number for each channel (axis {axis} of "
                                 f"x {x.shape})", got=f"{other} {spec.shape}",
                                 fix=f"pass axis={x.shape.index(spec.size)}" if spec.size in x.shape else "")
    return check


def _channel_terms(x: Spec, axis: int) -> tuple[str, str]:
    """Return the terms of x and of a value per channel: ("NcHW", "c")."""
    axis %= x.ndim
    term = axes.same(x.ndim, [i for i in range(x.ndim) if i != axis])
    return term, term[axis]


def _spread(v: np.ndarray | AnyTensor, shape: Shape, axis: int) -> Any:
    """Return v (channels,) reshaped along `axis` for an array of `shape`; for arrays and for values."""
    shape = tuple(n if i == axis % len(shape) else 1 for i, n in enumerate(shape))
    return v.reshape(shape) if isinstance(v, np.ndarray) else reshape(v, shape=shape)


def _other_axes(x: np.ndarray | Spec | AnyTensor, axis: int) -> Ints:
    return tuple(i for i in range(x.ndim) if i != axis % x.ndim)


def _count(shape: Shape, axis: int) -> int:
    """Return the number of elements in one channel's mean; 1 if empty, as a divisor."""
    return max(prod(n for i, n in enumerate(shape) if i != axis % len(shape)), 1)


def _batch_norm_axes(x: Spec, axis: int) -> str:
    t, c = _channel_terms(x, axis)
    return f"{t},{c},{c}->{t},{c},{c}"


def _batch_norm_ref(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, axis: int,
                    epsilon: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    over = _other_axes(x, axis)
    mean, var = x.mean(over), x.var(over)
    return _infer_ref(x, gamma, beta, mean, var, axis, epsilon), mean, var


def _infer_ref(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, var: np.ndarray,
               axis: int, epsilon: float) -> np.ndarray:
    def c(v: np.ndarray) -> np.ndarray:
        return _spread(v, x.shape, axis)
    return ((x - c(mean)) / np.sqrt(c(var) + epsilon) * c(gamma) + c(beta)).astype(x.dtype)


def _batch_norm_backward(dy: AnyTensor | None, dmean: AnyTensor | None, dvar: AnyTensor | None, x: AnyTensor,
                         gamma: AnyTensor, mean: AnyTensor, var: AnyTensor, axis: int,
                         epsilon: float) -> Gradients:
    """Through y, and through mean and variance where something depends on them."""
    dx = dgamma = dbeta = None
    if dy is not None:
        dx, dgamma, dbeta = batch_norm_grad(dy, x, gamma, mean, var, axis=axis, epsilon=epsilon)
    share = 1.0 / _count(x.shape, axis)
    parts = [dx]
    if dmean is not None:
        parts.append(x * 0 + _spread(dmean, x.shape, axis) * share)
    if dvar is not None:
        parts.append((x - _spread(mean, x.shape, axis)) * (_spread(dvar, x.shape, axis) * (2 * share)))
    return {"x": _total(parts, x.dtype), "gamma": dgamma, "beta": dbeta}


def _total(parts: list[AnyTensor | None], dtype: dt.dtype) -> AnyTensor | None:
    total = None
    for p in parts:
        if p is not None:
            total = cast(p, dtype) if total is None else total + cast(p, dtype)
    return total


_CHANNELS: list[dict[str, Any]] = [
    dict(axis=1, shape=(2, 6, 3, 2)), dict(axis=2, shape=(3, 2, 6)), dict(axis=1, shape=(5, 6))]


def _channel_examples(full: int, vectors: int) -> list[dict[str, Any]]:
    """`full` inputs of x's shape around the vectors, in the order of the record."""
    return [dict(shapes=[e["shape"]] * full + [(6,)] * vectors, axis=e["axis"],
                 epsilon=1e-3) for e in _CHANNELS]


batch_norm = define(
    "batch_norm(x, gamma, beta, *, axis=1, epsilon) -> (y, mean, var)",
    Meaning(_batch_norm_axes, _batch_norm_ref, dtype=lambda x: (x.dtype, _wide(x), _wide(x)),
            check=lambda x, gamma, beta, axis: _check_channels("batch_norm")(x, axis, gamma=gamma,
                                                                             beta=beta)),
    Kernel("batch_norm", pack=lambda x, axis, epsilon: ((axis % x.ndim,), (epsilon,))),
    Split(linear=["gamma,beta->y"]), Laws(_channel_examples(1, 2)), grad=_batch_norm_backward,
    doc="Training: mean and biased variance of this batch, and x normalised by them.")


def _infer_axes(x: Spec, axis: int) -> str:
    t = axes.same(x.ndim)
    c = t[axis % x.ndim]
    return f"{t},{c},{c},{c},{c}->{t}"


def _scale(gamma: AnyTensor, var: AnyTensor, epsilon: float) -> AnyTensor:
    return gamma * rsqrt(var + epsilon)


batch_norm_infer = define(
    "batch_norm_infer(x, gamma, beta, mean, var, *, axis=1, epsilon) -> y",
    Meaning(_infer_axes, _infer_ref,
            check=lambda x, gamma, beta, mean, var, axis: _check_channels("batch_norm_infer")(
                x, axis, gamma=gamma, beta=beta, mean=mean, var=var)),
    Kernel("batch_norm_infer", pack=lambda x, axis, epsilon: ((axis % x.ndim,), (epsilon,))),
    Split(linear=[("gamma", "beta"), ("x", "beta", "mean")]), Laws(_channel_examples(1, 4),
                                                                   domain={"var": "positive"}),
    grad={"x": lambda dy, x_shape, gamma, var, axis, epsilon: dy * _spread(_scale(gamma, var, epsilon),
                                                                           x_shape, axis),
          "gamma": lambda dy, x, mean, var, axis, epsilon:
              sum(dy * (x - _spread(mean, x.shape, axis)), axis=_other_axes(x, axis)) * rsqrt(var + epsilon),
          "beta": lambda dy, axis: sum(dy, axis=_other_axes(dy, axis)),
          "mean": lambda dy, gamma, var, axis, epsilon:
              neg(sum(dy, axis=_other_axes(dy, axis)) * _scale(gamma, var, epsilon)),
          "var": lambda dy, x, gamma, mean, var, axis, epsilon:
              sum(dy * (x - _spread(mean, x.shape, axis)), axis=_other_axes(x, axis))
              * _scale(gamma, var, epsilon) / (var + epsilon) * -0.5},
    doc="Inference: x normalised by the given mean and variance.")


def _batch_norm_grad_axes(x: Spec, axis: int) -> str:
    t, c = _channel_terms(x, axis)
    return f"{t},{t},{c},{c},{c}->{t},{c},{c}"


def _check_batch_norm_grad(dy: Spec, x: Spec, gamma: Spec, mean: Spec, var: Spec, axis: int) -> None:
    _check_channels("batch_norm_grad")(x, axis, gamma=gamma, mean=mean, var=var)
    if dy != x:
        raise ShapeError("batch_norm_grad: dy and x differ", expected=f"dy {x}", got=f"dy {dy}",
                         fix="dy is the gradient of y, which has x's shape and dtype")


def _batch_norm_grad_ref(dy: np.ndarray, x: np.ndarray, gamma: np.ndarray, mean: np.ndarray, var: np.ndarray,
                         axis: int, epsilon: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    over, n = _other_axes(x, axis), _count(x.shape, axis)

    def c(v: np.ndarray) -> np.ndarray:
        return _spread(v, x.shape, axis)

    r = 1 / np.sqrt(var + epsilon)
    xhat = (x - c(mean)) * c(r)
    dbeta, dgamma = dy.sum(over), (dy * xhat).sum(over)
    return (c(gamma * r) * (dy - c(dbeta) / n - xhat * c(dgamma) / n)).astype(x.dtype), dgamma, dbeta


def _batch_norm_grad_backward(ddx: AnyTensor | None, ddgamma: AnyTensor | None, ddbeta: AnyTensor | None,
                              dy: AnyTensor, x: AnyTensor, gamma: AnyTensor, mean: AnyTensor, var: AnyTensor,
                              axis: int, epsilon: float) -> Gradients:
    """Differentiate the formula of the reference, written in elementary ops."""
    def f(dy: AnyTensor, x: AnyTensor, gamma: AnyTensor, mean: AnyTensor,
          var: AnyTensor) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
        over, share = _other_axes(x, axis), 1.0 / _count(x.shape, axis)

        def c(v: AnyTensor) -> AnyTensor:
            return _spread(v, x.shape, axis)

        r = rsqrt(var + epsilon)
        xhat = (x - c(mean)) * c(r)
        dbeta, dgamma = sum(dy, axis=over), sum(dy * xhat, axis=over)
        return c(gamma * r) * (dy - c(dbeta * share) - xhat * c(dgamma * share)), dgamma, dbeta

    names = ("dy", "x", "gamma", "mean", "var")
    return dict(zip(names, vjp(f, (dy, x, gamma, mean, var), (ddx, ddgamma, ddbeta))))


batch_norm_grad = define(
    "batch_norm_grad(dy, x, gamma, mean, var, *, axis=1, epsilon) -> (dx, dgamma, dbeta)",
    Meaning(_batch_norm_grad_axes, _batch_norm_grad_ref, check=_check_batch_norm_grad,
            dtype=lambda x, gamma: (x.dtype, gamma.dtype, gamma.dtype)),
    Kernel("batch_norm_grad", pack=lambda x, axis, epsilon: ((axis % x.ndim,), (epsilon,)),
           inplace=["dy", "x"]),
    Split(linear=["dy", "gamma->dx"]), Laws(_channel_examples(2, 3), domain={"var": "positive"}),
    grad=_batch_norm_grad_backward)


# ---- layer norm
def _check_rows(name: str) -> Callable[..., None]:
    def check(x: Spec, begin: int, **params: Spec) -> None:
        if not isinstance(begin, int) or not 0 <= begin < x.ndim:
            raise ShapeError(f"{name}: begin_norm_axis is out of range", got=f"begin_norm_axis={begin!r}",
                             expected=f"an axis in [0, {x.ndim - 1}] of x {x.shape}",
                             fix="the last axis is x.ndim - 1")
        _check_floats(name, x, **params)
        for other, spec in params.items():
            want = x.shape[:begin] if other in ("mean", "inv_std") else x.shape[begin:]
            if spec.shape != want:
                raise ShapeError(f"{name}: {other} does not fit",
                                 expected=f"{other} {want}, from x {x.shape} and begin_norm_axis={begin}",
                                 got=f"{other} {spec.shape}",
                                 fix=f"make {other} as large as the axes that are normalised" if begin
                                 else "")
    return check


def _row_terms(x: Spec, begin: int) -> tuple[str, str, str]:
    """Return the terms of x, of a row, and of a value per row: ("abNM", "NM", "ab")."""
    term = axes.same(x.ndim, range(begin, x.ndim))
    return term, term[begin:], term[:begin]


def _layer_norm_axes(x: Spec, begin_norm_axis: int) -> str:
    t, p, rows = _row_terms(x, begin_norm_axis)
    return f"{t},{p},{p}->{t},{rows},{rows}"


def _layer_norm_ref(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, begin_norm_axis: int,
                    epsilon: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    over = tuple(range(begin_norm_axis, x.ndim))
    mean = x.mean(over, keepdims=True)
    inv_std = 1 / np.sqrt(x.var(over, keepdims=True) + epsilon)
    rows = x.shape[:begin_norm_axis]
    return ((x - mean) * inv_std * gamma + beta).astype(x.dtype), mean.reshape(rows), inv_std.reshape(rows)


def _row(v: np.ndarray | AnyTensor, rank: int) -> Any:
    """Return v (rows...) with axes of size 1 for the normalised ones; for arrays and for values."""
    shape = (*v.shape, *(1,) * (rank - len(v.shape)))
    return v.reshape(shape) if isinstance(v, np.ndarray) else reshape(v, shape=shape)


def _layer_norm_backward(dy: AnyTensor | None, dmean: AnyTensor | None, dinv_std: AnyTensor | None,
                         x: AnyTensor, gamma: AnyTensor, mean: AnyTensor, inv_std: AnyTensor,
                         begin_norm_axis: int) -> Gradients:
    dx = dgamma = dbeta = None
    if dy is not None:
        dx, dgamma, dbeta = layer_norm_grad(dy, x, gamma, mean, inv_std, begin_norm_axis=begin_norm_axis)
    share = 1.0 / max(prod(x.shape[begin_norm_axis:]), 1)
    parts = [dx]
    if dmean is not None:
        parts.append(x * 0 + _row(dmean * share, x.ndim))
    if dinv_std is not None:                      # inv_std = (var + epsilon) ** -0.5
        slope = dinv_std * inv_std * inv_std * inv_std * -share
        parts.append((x - _row(mean, x.ndim)) * _row(slope, x.ndim))
    return {"x": _total(parts, x.dtype), "gamma": dgamma, "beta": dbeta}


_ROWS = [((6, 5), 1), ((6, 6, 2, 3), 2), ((5,), 0)]

layer_norm = define(
    "layer_norm(x, gamma, beta, *, begin_norm_axis, epsilon) -> (y, mean, inv_std)",
    Meaning(_layer_norm_axes, _layer_norm_ref, dtype=lambda x: (x.dtype, _wide(x), _wide(x)),
            check=lambda x, gamma, beta, begin_norm_axis: _check_rows("layer_norm")(
                x, begin_norm_axis, gamma=gamma, beta=beta)),
    Kernel("layer_norm", pack=lambda begin_norm_axis, epsilon: ((begin_norm_axis,), (epsilon,))),
    Split(linear=["gamma,beta->y"]),
    Laws([dict(shapes=[s, s[b:], s[b:]], begin_norm_axis=b, epsilon=1e-3) for s, b in _ROWS]),
    grad=_layer_norm_backward,
    doc="x normalised over its axes from begin_norm_axis on; inv_std = 1 / sqrt(var + epsilon).")


def _layer_norm_grad_axes(x: Spec, begin_norm_axis: int) -> str:
    t, p, rows = _row_terms(x, begin_norm_axis)
    return f"{t},{t},{p},{rows},{rows}->{t},{p},{p}"


def _check_layer_norm_grad(dy: Spec, x: Spec, gamma: Spec, mean: Spec, inv_std: Spec,
                           begin_norm_axis: int) -> None:
    _check_rows("layer_norm_grad")(x, begin_norm_axis, gamma=gamma, mean=mean, inv_std=inv_std)
    if dy != x:
        raise ShapeError("layer_norm_grad: dy and x differ", expected=f"dy {x}", got=f"dy {dy}",
                         fix="dy is the gradient of y, which has x's shape and dtype")


def _layer_norm_grad_ref(dy: np.ndarray, x: np.ndarray, gamma: np.ndarray, mean: np.ndarray,
                         inv_std: np.ndarray,
                         begin_norm_axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, cols = tuple(range(begin_norm_axis)), tuple(range(begin_norm_axis, x.ndim))
    r = _row(inv_std, x.ndim)
    xhat, g = (x - _row(mean, x.ndim)) * r, dy * gamma
    dx = r * (g - g.mean(cols, keepdims=True) - xhat * (g * xhat).mean(cols, keepdims=True))
    return dx.astype(x.dtype), (dy * xhat).sum(rows), dy.sum(rows)


def _layer_norm_grad_backward(ddx: AnyTensor | None, ddgamma: AnyTensor | None, ddbeta: AnyTensor | None,
                              dy: AnyTensor, x: AnyTensor, gamma: AnyTensor, mean: AnyTensor,
                              inv_std: AnyTensor, begin_norm_axis: int) -> Gradients:
    """Differentiate the formula of the reference, written in elementary ops."""
    def f(dy: AnyTensor, x: AnyTensor, gamma: AnyTensor, mean: AnyTensor,
          inv_std: AnyTensor) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
        rows, cols = tuple(range(begin_norm_axis)), tuple(range(begin_norm_axis, x.ndim))
        share, r = 1.0 / max(prod(x.shape[begin_norm_axis:]), 1), _row(inv_std, x.ndim)
        xhat, g = (x - _row(mean, x.ndim)) * r, dy * gamma
        one, two = sum(g, axis=cols, keepdims=True) * share, sum(g * xhat, axis=cols, keepdims=True) * share
        return r * (g - one - xhat * two), sum(dy * xhat, axis=rows), sum(dy, axis=rows)

    names = ("dy", "x", "gamma", "mean", "inv_std")
    return dict(zip(names, vjp(f, (dy, x, gamma, mean, inv_std), (ddx, ddgamma, ddbeta))))


layer_norm_grad = define(
    "layer_norm_grad(dy, x, gamma, mean, inv_std, *, begin_norm_axis) -> (dx, dgamma, dbeta)",
    Meaning(_layer_norm_grad_axes, _layer_norm_grad_ref, check=_check_layer_norm_grad,
            dtype=lambda x, gamma: (x.dtype, gamma.dtype, gamma.dtype)),
    Kernel("layer_norm_grad", pack=lambda begin_norm_axis: ((begin_norm_axis,), ())),
    Split(linear=["dy", "gamma->dx"]),
    Laws([dict(shapes=[s, s, s[b:], s[:b], s[:b]], begin_norm_axis=b) for s, b in _ROWS]),
    grad=_layer_norm_grad_backward)
