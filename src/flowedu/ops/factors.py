"""Matrix factorizations by NumPy's LAPACK functions: Cholesky, eigenvalues, SVD, QR, pseudo-inverse.

Eigenvalues are computed for symmetric matrices only. The pseudo-inverse has its own gradient, because a
gradient through singular values fails if two of them are equal. As in ops/linalg.py, `ref` is the kernel, and
gradients are made of ops, so they can be differentiated again. If two eigenvalues or two singular values are
equal, the rotation between their vectors has no derivative; the gradients use 0.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.ops.concat import slice
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import sign
from flowedu.core.ops.record import Laws, Meaning
from flowedu.core.ops.view import reshape
from flowedu.core.values.dtype import dtype, float32, float64, int32
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, LinAlgError, ShapeError, UnsupportedError
from flowedu.ops.functions import reciprocal_no_nan
from flowedu.ops.linalg import batch_axes, check_square, solve, turned
from flowedu.ops.order import range as numbers
from flowedu.ops.terms import add_known, as_column
from flowedu.ops.types import AnyTensor, Shape


def check_matrix(name: str, tall: bool = False) -> Callable[..., None]:
    def check(x: Spec) -> None:
        if x.ndim < 2 or tall and x.shape[-2] < x.shape[-1]:
            raise ShapeError(f"{name}: not a {'tall ' * tall}matrix", got=str(x.shape),
                             fix="look at the last two axes",
                             expected="a shape (..., m, n)" + " with m >= n" * tall)
        if x.dtype not in (float32, float64):
            raise DTypeError(f"{name}: no kernel for this element type", expected="float32 or float64",
                             got=x.dtype.name, fix="convert with .float()")
    return check


def _mean_of_triangles(x: np.ndarray) -> np.ndarray:
    return (x + np.swapaxes(x, -1, -2)) / x.dtype.type(2)


def _symmetric(g: AnyTensor) -> AnyTensor:
    return (g + turned(g)) * 0.5


def _lower(n: int, dtype: dtype) -> AnyTensor:
    """Return a matrix of 1 below the diagonal, 1/2 on it, and 0 above."""
    places = numbers(size=n, dtype=dtype)
    return (sign(reshape(places, shape=(n, 1)) - places) + 1) * 0.5


def _row(x: AnyTensor) -> AnyTensor:
    return reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))


def _apart(w: AnyTensor) -> AnyTensor:
    """1 / (w_j - w_i), 0 where the two are equal."""
    return reciprocal_no_nan(_row(w) - as_column(w))


def _no_answer(name: str, x: np.ndarray) -> LinAlgError:
    return LinAlgError(f"{name}: LAPACK finds no answer", expected="finite numbers",
                       got=f"shape {x.shape}, {int((~np.isfinite(x)).sum())} numbers that are not finite",
                       fix="find the op that computed them: flow.isfinite(x).all()")


# ---- Cholesky
def _positive(a: np.ndarray) -> bool:
    try:
        return bool(np.isfinite(np.linalg.cholesky(a)).all())
    except np.linalg.LinAlgError:
        return False


def _minor(a: np.ndarray) -> int:
    """Return the order of the first leading minor of a symmetric matrix that is not positive.

    0: all are positive.
    """
    low, high = 0, len(a)                                        # a minor holds those before it
    if _positive(a):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _positive(a[:middle, :middle]) else (low, middle)
    return high


def _minor_ref(x: np.ndarray) -> np.ndarray:
    a, y = _mean_of_triangles(x), np.zeros(x.shape[:-2], np.int32)
    for i in np.ndindex(y.shape):
        y[i] = _minor(a[i])
    return y


def _cholesky_ref(x: np.ndarray, checked: bool) -> np.ndarray:
    a = _mean_of_triangles(x)
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        info = _minor_ref(x)
    if checked:
        which = int(np.flatnonzero(info)[0])
        raise LinAlgError("linalg.cholesky: the matrix is not positive definite",
                          expected="x.T @ A @ x > 0 for every x",
                          got=f"shape {x.shape}: the leading minor of order {int(info.reshape(-1)[which])} "
                          f"is not positive"
                          + f" (matrix {which} of the batch)" * (x.ndim > 2),
                          fix="add a small multiple of flow.eye(n), or ask flow.linalg.cholesky_ex "
                          "which it is")
    y = np.full_like(a, np.nan)
    y[info == 0] = np.linalg.cholesky(a[info == 0])
    return y


def _cholesky_grad(dy: AnyTensor, y: AnyTensor) -> AnyTensor:
    inner = turned(y) @ dy * _lower(y.shape[-1], y.dtype)
    back = turned(y)
    return _symmetric(solve(back, turned(solve(back, turned(inner)))))


cholesky = define(
    "cholesky(x, *, checked=True) -> y",
    Meaning(lambda x: "{0}MN->{0}MN".format(batch_axes(x.ndim)), _cholesky_ref,
            check=check_square("linalg.cholesky")),
    Laws([dict(shapes=[(4, 4)]), dict(shapes=[(6, 3, 3)], checked=False)], domain={"x": "definite"}),
    grad={"x": _cholesky_grad},
    doc="The lower triangle L with L @ L.T = (x + x.T) / 2. checked=False: NaN for a matrix that is not "
    "positive definite.")

leading_minor = define(
    "leading_minor(x) -> info",
    Meaning(lambda x: "{0}MN->{0}".format(batch_axes(x.ndim)), _minor_ref, shape=lambda x: x.shape[:-2],
            dtype=lambda: int32, check=check_square("leading_minor")),
    Laws([dict(shapes=[(4, 4)]), dict(shapes=[(6, 3, 3)])]),
    doc="The order of the first leading minor of (x + x.T) / 2 that is not positive, 0 where there is none: "
    "int32.")


# ---- eigenvalues of symmetric matrices
def _factor(name: str, f: Callable, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the factors of matrices.

    In a batch, matrices with infinities or NaNs get NaNs, so that the others get their factors. If all
    matrices have some, raise LinAlgError. LAPACK does not get these matrices, because it may not return from
    one with an infinity.
    """
    finite = np.isfinite(x).all((-2, -1))
    try:
        if finite.all():
            return tuple(f(x))
        if not finite.any():
            raise _no_answer(name, x)
        parts = f(x[finite])
    except np.linalg.LinAlgError:
        raise _no_answer(name, x) from None
    factors = tuple(np.full((*x.shape[:-2], *y.shape[1:]), np.nan, x.dtype) for y in parts)
    for y, part in zip(factors, parts):
        y[finite] = part
    return factors


def _eigh_ref(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return _factor("linalg.eigh", np.linalg.eigh, _mean_of_triangles(x))


def _eigh_grad(dw: AnyTensor | None, dv: AnyTensor | None, w: AnyTensor, v: AnyTensor) -> AnyTensor:
    inner = None if dv is None else turned(v) @ dv * _apart(w)
    return _symmetric(add_known([None if dw is None else v * _row(dw) @ turned(v),
                                 None if inner is None else v @ inner @ turned(v)]))


eigh = define(
    "eigh(x) -> (w, v)",
    Meaning(lambda x: "{0}MN->{0}N,{0}MN".format(batch_axes(x.ndim)), _eigh_ref,
            shape=lambda x: (x.shape[:-1], x.shape), check=check_square("linalg.eigh")),
    Laws([dict(shapes=[(4, 4)]), dict(shapes=[(6, 3, 3)])], domain={"x": "matrix"}), grad={"x": _eigh_grad},
    doc="The eigenvalues of (x + x.T) / 2, the smallest first, and as columns its eigenvectors.")


# ---- singular values
def _svd_ref(x: np.ndarray, full: bool) -> tuple[np.ndarray, ...]:
    return _factor("linalg.svd", lambda a: np.linalg.svd(a, full_matrices=full), x)


def _svd_shape(x: Spec, full: bool) -> tuple[Shape, Shape, Shape]:
    *batch, m, n = x.shape
    k = min(m, n)
    return (*batch, m, m if full else k), (*batch, k), (*batch, n if full else k, n)


def _first(x: AnyTensor | None, axis: int, k: int) -> AnyTensor | Any:
    """Return the first k rows (axis -2) or columns (axis -1) of x, or None if x is None."""
    if x is None or x.shape[axis] == k:
        return x
    stop = (*x.shape[:-2], k, x.shape[-1]) if axis == -2 else (*x.shape[:-1], k)
    return slice(x, start=(0,) * x.ndim, stop=stop, step=(1,) * x.ndim)


def _skew(a: AnyTensor) -> AnyTensor:
    return a - turned(a)


def _svd_grad(du: AnyTensor | None, ds: AnyTensor | None, dvh: AnyTensor | None, x_shape: Shape, u: AnyTensor,
              s: AnyTensor, vh: AnyTensor) -> AnyTensor | None:
    k = min(x_shape[-2:])
    u, du = _first(u, -1, k), _first(du, -1, k)
    vh, dvh = _first(vh, -2, k), _first(dvh, -2, k)
    ut, v, over = turned(u), turned(vh), reciprocal_no_nan(s)
    apart, parts = _apart(s * s), []
    if du is not None:
        inner = ut @ du
        parts.append(u @ (_skew(inner) * apart * _row(s)) @ vh)
        parts.append((du - u @ inner) * _row(over) @ vh if x_shape[-2] > k else None)
    if dvh is not None:
        inner = dvh @ v
        parts.append(u @ (as_column(s) * (_skew(turned(inner)) * apart)) @ vh)
        parts.append(u @ (as_column(over) * (dvh - inner @ vh)) if x_shape[-1] > k else None)
    if ds is not None:
        parts.append(u * _row(ds) @ vh)
    return add_known(parts)


svd = define(
    "svd(x, *, full=False) -> (u, s, vh)",
    Meaning(lambda x: "{0}MN->{0}MK,{0}K,{0}KN".format(batch_axes(x.ndim)), _svd_ref, shape=_svd_shape,
            check=check_matrix("linalg.svd")),
    Laws([dict(shapes=[(4, 4)], full=True), dict(shapes=[(6, 4, 3)]), dict(shapes=[(2, 5)])]),
    grad={"x": _svd_grad},
    doc="x = u @ diag(s) @ vh with orthonormal columns of u and rows of vh, the largest s first. full: with "
    "as many more columns and rows as make them square; these have no derivative.")


# ---- QR
def _qr_ref(x: np.ndarray, complete: bool) -> tuple[np.ndarray, np.ndarray]:
    q, r = np.linalg.qr(x, "complete" if complete else "reduced")
    return np.ascontiguousarray(q), np.ascontiguousarray(r)


def _qr_shape(x: Spec, complete: bool) -> tuple[Shape, Shape]:
    *batch, m, n = x.shape
    k = m if complete else n
    return (*batch, m, k), (*batch, k, n)


def _qr_grad(dq: AnyTensor | None, dr: AnyTensor | None, q: AnyTensor, r: AnyTensor) -> AnyTensor:
    if q.shape[-1] > r.shape[-1]:
        raise UnsupportedError('linalg.qr: mode="complete" has no gradient where there are more rows than '
                               'columns', expected='mode="reduced", whose Q is determined by the matrix',
                               got=f"Q {q.shape}, R {r.shape}", fix="flow.linalg.qr(A)")
    inner = add_known([None if dr is None else dr @ turned(r), None if dq is None else -(turned(q) @ dq)])
    upper = inner * turned(_lower(r.shape[-1], r.dtype))
    total = add_known([q @ (upper + turned(upper)), dq])
    return turned(solve(r, turned(total)))


qr = define(
    "qr(x, *, complete=False) -> (q, r)",
    Meaning(lambda x: "{0}MN->{0}MK,{0}KN".format(batch_axes(x.ndim)), _qr_ref, shape=_qr_shape,
            check=check_matrix("linalg.qr", tall=True)),
    Laws([dict(shapes=[(4, 4)], complete=True), dict(shapes=[(6, 4, 3)])]), grad={"x": _qr_grad},
    doc="x = q @ r with orthonormal columns of q and an upper triangle r, for at least as many rows as "
    "columns. complete: q is square.")


# ---- pseudo-inverse
def _pseudo_inverse_ref(x: np.ndarray, atol: float, rtol: float) -> np.ndarray:
    u, s, vh = _svd_ref(x, False)
    largest = s.max(-1, keepdims=True) if s.shape[-1] else s
    kept = s > np.maximum(atol, rtol * largest)
    over = np.divide(1, s, where=kept, out=np.zeros_like(s))
    return np.swapaxes(vh, -1, -2) * over[..., None, :] @ np.swapaxes(u, -1, -2)


def _pseudo_inverse_grad(dy: AnyTensor, x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """Golub and Pereyra's: the rank stays as it is."""
    yt, dyt = turned(y), turned(dy)
    a, b = dyt @ y @ yt, yt @ y @ dyt
    return a - x @ (y @ a) + (b - b @ y @ x) - yt @ dy @ yt


pseudo_inverse = define(
    "pseudo_inverse(x, *, atol=0.0, rtol=1e-6) -> y",
    Meaning(lambda x: "{0}MN->{0}NM".format(batch_axes(x.ndim)), _pseudo_inverse_ref,
            shape=lambda x: (*x.shape[:-2], x.shape[-1], x.shape[-2]), check=check_matrix("pseudo_inverse")),
    Laws([dict(shapes=[(4, 4)]), dict(shapes=[(6, 4, 3)]), dict(shapes=[(2, 5)])]),
    grad={"x": _pseudo_inverse_grad},
    doc="The inverse of each matrix on what it does not send to 0: singular values of at most atol or rtol * "
    "the largest count as 0.")
