"""Matrix inverse, determinants, and linear systems, by NumPy's LAPACK functions; also searchsorted.

Compiled kernels would not be worthwhile for these ops, so `ref` is the kernel. The gradients are made of ops,
so they can be differentiated again.
"""
from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Literal

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.concat import concat, slice
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import abs, add, equal, mul, neg, sub
from flowedu.core.ops.matmul import matmul
from flowedu.core.ops.record import Laws, Meaning, Split
from flowedu.core.ops.reduce import max
from flowedu.core.ops.view import cast, expand, reshape, transpose
from flowedu.core.values.dtype import float32, float64, int64
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, LinAlgError, ShapeError
from flowedu.ops.strided import _diagonal_grad as on_diagonal
from flowedu.ops.types import AnyTensor, Gradients


def check_square(name: str) -> Callable[..., None]:
    def check(x: Spec) -> None:
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ShapeError(f"{name}: not a square matrix", expected="a shape (..., n, n)", got=str(x.shape),
                             fix="the last two axes must be equal")
        if x.dtype not in (float32, float64):
            raise DTypeError(f"{name}: no kernel for this element type", expected="float32 or float64",
                             got=x.dtype.name, fix="convert with .float()")
    return check


def batch_axes(rank: int) -> str:
    return axes.same(rank - 2)


def turned(x: AnyTensor) -> AnyTensor:
    """Exchange the last two axes of x."""
    return transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _inverse_ref(x: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        finite = x[np.isfinite(x).all((-2, -1))]               # singular values of others may never end
        rank = f", rank {int(np.min(np.linalg.matrix_rank(finite)))}" if len(finite) else ""
        raise LinAlgError("inverse: the matrix is singular", expected="a matrix with an inverse",
                          got=f"shape {x.shape}{rank}",
                          fix="solve a least-squares problem instead, or add a small multiple of "
                              "flow.eye(n)") from None


inverse = define(
    "inverse(x) -> y",
    Meaning(lambda x: "{0}MN->{0}NM".format(batch_axes(x.ndim)), _inverse_ref, shape=lambda x: x.shape,
            check=check_square("inverse")),
    Laws([dict(shapes=[(5, 5)]), dict(shapes=[(6, 3, 3)])], domain={"x": "matrix"}),
    grad={"x": lambda dy, y: neg(matmul(matmul(turned(y), dy), turned(y)))},
    doc="The inverse of each square matrix.")


# About eps^(1/3): rounding and the step then cost as much.
_STEP = {float32: 2.0 ** -8, float64: 2.0 ** -17}


def _det_grad(dy: AnyTensor, x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Return dy times the cofactors, det(x) inverse(x).T.

    For a singular x they are the mean of those of x + h and x - h, with an error of order h^2.
    """
    column, last = (*y.shape, 1, 1), (x.ndim - 2, x.ndim - 1)
    size = max(abs(x), axis=last, keepdims=True) if x.shape[-1] else reshape(y, shape=column)
    step = mul(add(size, cast(equal(size, 0.0), dtype=x.dtype)), _STEP[x.dtype])
    step = mul(step, cast(reshape(equal(y, 0.0), shape=column), dtype=x.dtype))
    h = on_diagonal(expand(reshape(step, shape=(*y.shape, 1)), shape=x.shape[:-1]), x.shape, 0, *last)
    total = add(*(mul(reshape(det(near), shape=column), turned(inverse(near)))
                  for near in (add(x, h), sub(x, h))))
    return mul(reshape(dy, shape=column), mul(total, 0.5))


det = define(
    "det(x) -> y",
    Meaning(lambda x: "{0}MN->{0}".format(batch_axes(x.ndim)),
            lambda x: np.asarray(np.linalg.det(x), x.dtype),
            shape=lambda x: x.shape[:-2], check=check_square("linalg.det")),
    Laws([dict(shapes=[(4, 4)]), dict(shapes=[(6, 3, 3)])], domain={"x": "matrix"}), grad={"x": _det_grad},
    doc="The determinant of each square matrix.")


slogdet = define(
    "slogdet(x) -> (sign, logabsdet)",
    Meaning(lambda x: "{0}MN->{0},{0}".format(batch_axes(x.ndim)),
            lambda x: tuple(np.asarray(y, x.dtype) for y in np.linalg.slogdet(x)),
            shape=lambda x: (x.shape[:-2],) * 2, check=check_square("linalg.slogdet")),
    Laws([dict(shapes=[(4, 4)]), dict(shapes=[(6, 3, 3)])], domain={"x": "matrix"}),
    grad={"x": lambda dlogabsdet, x: None if dlogabsdet is None else
          mul(reshape(dlogabsdet, shape=(*dlogabsdet.shape, 1, 1)), turned(inverse(x)))},
    doc="The determinant of each square matrix: its sign, and the logarithm of its size.")


def _check_solve(a: Spec, b: Spec) -> None:
    check_square("linalg.solve")(a)
    if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1] or b.dtype is not a.dtype:
        raise ShapeError("linalg.solve: b does not fit", expected=f"b {a.dtype.name} {(*a.shape[:-1], 'k')}",
                         got=f"a {a}, b {b}", fix="reshape a vector to (n, 1)")


def _solve_ref(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise LinAlgError("linalg.solve: the matrix is singular", expected="a matrix with an inverse",
                          got=f"shape {a.shape}", fix="add a small multiple of flow.eye(n)") from None


def _solve_grad(dy: AnyTensor, a: AnyTensor, y: AnyTensor) -> Gradients:
    db = solve(turned(a), dy)
    return {"a": neg(matmul(db, turned(y))), "b": db}


solve = define(
    "solve(a, b) -> y",
    Meaning(lambda a: "{0}MN,{0}Nk->{0}Nk".format(batch_axes(a.ndim)), _solve_ref, shape=lambda b: b.shape,
            check=_check_solve),
    Split(linear=["b"]), Laws([dict(shapes=[(4, 4), (4, 6)]), dict(shapes=[(6, 3, 3), (6, 3, 2)])],
                              domain={"a": "matrix"}),
    grad=_solve_grad, doc="y with a @ y = b.")


# ---- exponentials
def _exponential_ref(x: np.ndarray) -> np.ndarray:
    """Compute the exponential of each matrix x: the Taylor series of x / 2^k, squared k times.

    k bounds the norm of x / 2^k by 1/8, so that the 17 terms have a remainder below 1/8^17 / 17! < 1e-29.
    Each matrix of a batch has its own k, so none changes another.
    """
    a = x.astype(np.float64)
    norms = np.abs(a).sum(-1).max(-1, initial=0)
    exponents = np.where(np.isfinite(norms), np.frexp(np.where(np.isfinite(norms), norms, 0))[1] + 3,
                         0).clip(0)
    with np.errstate(all="ignore"):                # infinities, NaNs, and overflows are results
        scaled = a / np.ldexp(1.0, exponents)[..., None, None]
        term = y = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
        for i in builtins.range(1, 17):
            term = term @ scaled / i
            y = y + term
        for i in builtins.range(int(exponents.max(initial=0))):
            rest = exponents > i
            y[rest] = y[rest] @ y[rest]
        return y.astype(x.dtype)


def _exponential_grad(dy: AnyTensor, x: AnyTensor) -> AnyTensor:
    """Return the upper right quarter of the exponential of the blocks x.T, dy over 0, x.T."""
    n, xt = x.shape[-1], turned(x)
    wide = concat(concat(xt, dy, axis=x.ndim - 1), concat(sub(xt, xt), xt, axis=x.ndim - 1), axis=x.ndim - 2)
    batch = (0,) * (x.ndim - 2)
    return slice(matrix_exp(wide), start=(*batch, 0, n), stop=(*x.shape[:-2], n, 2 * n), step=(1,) * x.ndim)


matrix_exp = define(
    "matrix_exp(x) -> y",
    Meaning(lambda x: "{0}MN->{0}MN".format(batch_axes(x.ndim)), _exponential_ref,
            check=check_square("linalg.matrix_exp")),
    Laws([dict(shapes=[(4, 4)]), dict(shapes=[(6, 3, 3)])]), grad={"x": _exponential_grad},
    doc="1 + x + x @ x / 2 + ... of each square matrix.")


# ---- looking up
def _check_search(rows: Spec, values: Spec) -> None:
    if (not rows.ndim or (rows.ndim > 1 and (rows.ndim != values.ndim
                                             or rows.shape[:-1] != values.shape[:-1]))):
        raise ShapeError("searchsorted: the rows do not fit the values",
                         got=f"{rows.shape} and {values.shape}",
                         expected="one sorted row, or as many as there are rows of values",
                         fix="flatten the rows, or give each row of values one")


def _search_ref(rows: np.ndarray, values: np.ndarray, right: bool) -> np.ndarray:
    side: Literal["left", "right"] = "right" if right else "left"
    if rows.ndim == 1:
        return np.searchsorted(rows, values, side).astype(np.int64)
    y = np.empty(values.shape, np.int64)
    for i in np.ndindex(rows.shape[:-1]):
        y[i] = np.searchsorted(rows[i], values[i], side)
    return y


searchsorted = define(
    "searchsorted(rows, values, *, right=False) -> y",
    Meaning(lambda rows, values: (
                f"k,{axes.same(values.ndim)}->{axes.same(values.ndim)}" if rows.ndim == 1 else
                "{0}K,{0}z->{0}z".format(axes.same(rows.ndim - 1))), _search_ref,
            shape=lambda values: values.shape, dtype=lambda: int64, check=_check_search),
    Laws([dict(shapes=[(7,), (6, 12)]), dict(shapes=[(6, 5), (6, 3)], right=True)], domain={"rows": "sorted"},
         float_only=False),
    doc="Where each value would go in its row, which must be in order.")
