"""Covariances and correlations of variables, one per row of a tensor."""
from __future__ import annotations

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast, default_float
from flowedu.core.values.dtype import float64
from flowedu.errors import ArgumentError, ShapeError
from flowedu.ops.checks import require_range
from flowedu.tensor.elementwise import clamp, sqrt
from flowedu.tensor.shapes.join_and_pad import diag
from flowedu.tensor.shapes.reshape_and_permute import unsqueeze


def _weights(name: str, w: Tensor | None, observations: int, whole: bool) -> Tensor | None:
    if w is None:
        return None
    if whole == w.dtype.is_floating_point:
        raise ArgumentError(f"cov: {name} must be {'integers' if whole else 'floats'}", got=w.dtype.name,
                            expected="int64" if whole else "float32 or float64",
                            fix=f"{name}={name}.{'long' if whole else 'float'}()")
    if tuple(w.shape) != (observations,):
        raise ShapeError(f"cov: {name} must have a number for each observation",
                         expected=f"({observations},)",
                         got=str(tuple(w.shape)), fix="one weight for each column of the input")
    return require_range(w, 0, nan=True, problem=f"cov: {name} cannot be negative", expected="0 or more",
                         fix=f"{name}={name}.abs()")


def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None,
        aweights: Tensor | None = None) -> Tensor:
    """Return the covariances of the rows, of shape (variables, variables).

    Args:
        input: matrix (variables, observations) or vector.
        correction: number subtracted from the number of observations.
        fweights: integer frequency of each observation; default: 1.
        aweights: weight of each observation; default: 1.

    Raises:
        ShapeError: the input has more than two axes, or the size of the weights is not that of the rows.
    """
    if input.ndim > 2:
        raise ShapeError("cov: expected input to have two or fewer dimensions",
                         expected="(variables, observations)",
                         got=str(tuple(input.shape)), fix="x.flatten(1)")
    x = input if input.dtype.is_floating_point else cast(input, default_float())
    x = x.reshape(1, -1) if x.ndim < 2 else x
    n = x.shape[1]
    f, a = _weights("fweights", fweights, n, True), _weights("aweights", aweights, n, False)
    if f is None and a is None:
        centred, counted = x - x.mean(1, True), max(n - correction, 0)
        y = centred @ centred.T / counted if counted else centred @ centred.T * float("inf")
    else:
        # in float64, because the gradient of the weights is a small difference of large sums
        kind, x, a = x.dtype, cast(x, float64), None if a is None else cast(a, float64)
        if a is None or f is None:
            w = cast(a if f is None else f, float64)
        else:
            w = cast(f * a, float64)
        total = w.sum()
        centred = x - unsqueeze((x * w).sum(1) / total, 1)
        counted = total - correction * (1 if a is None else (w * a).sum() / total)
        y = cast((centred * w) @ centred.T / clamp(counted, min=0), kind)
    return y.reshape(()) if len(x) == 1 else y


def corrcoef(input: Tensor) -> Tensor:
    """Return the correlations of the rows, in [-1, 1].

    Args:
        input: matrix (variables, observations) or vector.
    """
    c = cov(input)
    if not c.ndim:
        return c / c
    spread = sqrt(diag(c))
    return clamp(c / unsqueeze(spread, 1) / spread, -1, 1)
