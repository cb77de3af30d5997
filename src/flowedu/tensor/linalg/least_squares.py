"""Linear algebra for singular and non-square matrices: pinv, lstsq, matrix_rank, slogdet, and inv_ex.

The module also contains matrix_exp, vander, and products and equations of several matrices or axes
(multi_dot, tensorinv, and tensorsolve).
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast, is_number
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor import elementwise as E
from flowedu.tensor import return_types
from flowedu.tensor.construction.creation import zeros
from flowedu.tensor.devices.conversion import on_cpu, use_device_of
from flowedu.tensor.dtypes.numeric_limits import finfo
from flowedu.tensor.dtypes.promotion import check_rank, check_tensor
from flowedu.tensor.indexing.nonzero_positions import data
from flowedu.tensor.linalg.factorizations import eigvalsh, identity, mirrored, solved, svdvals
from flowedu.tensor.linalg.products import matmul
from flowedu.tensor.reductions import cumulative
from flowedu.tensor.reductions import reduce as R
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes.join_and_pad import cat, stack


def _tolerance(what: str, x: Tensor | float | None) -> Tensor | float | None:
    """Return a tolerance as a number, or as a tensor with one number for each matrix."""
    if isinstance(x, Tensor):
        return x.detach() if x.ndim else x.item()
    if x is not None and not is_number(x):
        raise ArgumentError(f"{what}: a tolerance is not a number", got=repr(x), fix="rtol=1e-5",
                            expected="a number, or a tensor with one for each matrix")
    return x


def _cut(what: str, A: Tensor, atol: Tensor | float | None,
         rtol: Tensor | float | None) -> tuple[Tensor | float, Tensor | float]:
    """Return (atol, rtol).

    If rtol is None, it is the rounding error of the largest singular value, or 0 where atol is positive.
    """
    atol, rtol = _tolerance(what, atol), _tolerance(what, rtol)
    atol = 0.0 if atol is None else atol
    if rtol is None:
        rtol = max(A.shape[-2:], default=0) * finfo(A.dtype).eps
        if isinstance(atol, Tensor):
            rtol = cast(E.le(atol, 0), A.dtype) * rtol
        elif atol:
            rtol = 0.0
    return atol, rtol


def _for_each(x: Any, batch: Sequence[int]) -> np.ndarray:
    """Return a tolerance as an array with one number for each matrix of a batch."""
    return np.broadcast_to(data("linalg.pinv", x) if isinstance(x, Tensor) else x, batch)


def pinv(A: Tensor, rcond: Tensor | float | None = None, hermitian: bool = False, *,
         atol: Tensor | float | None = None, rtol: Tensor | float | None = None) -> Tensor:
    """Return the pseudo-inverse of each matrix.

    Args:
        A: matrices of shape (..., m, n).
        rcond: an older name of rtol; default: None.
        hermitian: treat A as symmetric and read only its lower triangle. The gradient G of a loss f is then a
            full matrix: a small symmetric change dA of A changes f by the sum of G * dA.
        atol, rtol: singular values of at most max(atol, rtol * the largest one) count as 0. Each tolerance is
            a number, or a tensor with one number for each matrix. The tensor broadcasts with the batch, and
            is not supported in graphs. The default of rtol is max(m, n) * eps, or 0 if atol is positive.

    Raises:
        ArgumentError: a tolerance is neither a number nor a tensor.

    Note:
        The gradient is correct as long as the rank does not change.

    Example:
        >>> flow.linalg.pinv(flow.eye(2).expand(2, 2, 2), rtol=flow.tensor([0.1, 2.0]))[:, 0, 0]
        tensor([1., 0.], dtype=flowedu.float32)
    """
    check_tensor("linalg.pinv", A)
    a = mirrored("linalg.pinv", A, False) if hermitian else A
    if a.dtype.is_floating_point and a.ndim > 1:
        atol, rtol = _cut("linalg.pinv", a, atol, rcond if rtol is None else rtol)
    tensors = [x for x in (atol, rtol) if isinstance(x, Tensor)]
    if not tensors:
        return on_cpu("pseudo_inverse", a, atol=float(atol or 0.0), rtol=float(rtol or 0.0))
    batch = S.broadcast_shapes(a.shape[:-2], *[x.shape for x in tensors])
    wide = S.reshape(S.expand(a, *batch, *a.shape[-2:]), -1, *a.shape[-2:])
    cuts = zip(_for_each(atol, batch).flat, _for_each(rtol, batch).flat)
    inverses = [on_cpu("pseudo_inverse", wide[i], atol=float(x), rtol=float(y))
                for i, (x, y) in enumerate(cuts)]
    y = stack(inverses) if inverses else S.mT(wide)
    return S.reshape(y, *batch, *y.shape[-2:])


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return flow.linalg.pinv(input, rcond).

    Args:
        input: matrices of shape (..., m, n).
        rcond: relative tolerance.
    """
    return pinv(input, rcond)


def matrix_rank(A: Tensor, tol: Tensor | float | None = None, hermitian: bool = False, *,
                atol: Tensor | float | None = None, rtol: Tensor | float | None = None) -> Tensor:
    """Return the int64 number of singular values of each matrix above max(atol, rtol * the largest one).

    Args:
        A: matrices of shape (..., m, n).
        tol: an older name of atol; rtol is then 0.
        hermitian: treat A as symmetric and read only its lower triangle.
        atol, rtol: a number, or a tensor with one number for each matrix, which broadcasts with the batch.
            The default of rtol is max(m, n) * eps, or 0 where atol is positive.

    Raises:
        ArgumentError: a tolerance is neither a number nor a tensor.

    Example:
        >>> flow.linalg.matrix_rank(flow.eye(2).expand(2, 2, 2), rtol=flow.tensor([0.1, 2.0]))
        tensor([2, 0], dtype=flowedu.int64)
    """
    check_tensor("linalg.matrix_rank", A)
    s = E.abs(eigvalsh(A.detach())) if hermitian else svdvals(A.detach())
    if tol is not None:
        atol, rtol = tol, 0.0
    cut = _cut("linalg.matrix_rank", A, atol, rtol)
    tolerances = [S.unsqueeze(x, -1) if isinstance(x, Tensor) else x for x in cut]
    if not s.shape[-1]:
        return R.sum(cast(s, dt.int64), -1)
    atol, rtol = tolerances
    return R.sum(cast((s > atol) & (s > R.amax(s, -1, True) * rtol), dt.int64), -1)


_DRIVERS: dict[str | None, str] = {None: "gelsy", "gels": "gels", "gelsy": "gelsy", "gelsd": "gelsd",
                                   "gelss": "gelss"}


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *,
          driver: str | None = None) -> return_types.linalg_lstsq:
    """Return the least-squares solution of A @ X = B: (solution, residuals, rank, singular_values).

    If there are several solutions, the one with the smallest norm is returned. It is computed with the
    pseudo-inverse.

    Args:
        A: matrices (..., m, n).
        B: right-hand sides (..., m, k).
        rcond: singular values up to rcond * the largest count as 0; default: max(m, n) * eps.
        driver: "gelsy" (None), "gelsd", "gelss", or "gels", which ignores rcond.

    Returns:
        residuals: the sum of squared errors of each column, if m > n and the rank is full; empty for "gelsy".
        rank: the rank of A; empty for "gels".
        singular_values: the singular values of A; empty except for "gelsd" and "gelss".
    """
    if driver not in _DRIVERS:
        raise ArgumentError("linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)",
                            expected=", ".join(filter(None, _DRIVERS)), got=repr(driver), fix="leave it out")
    check_rank("linalg.lstsq", A, 2, "A")
    check_rank("linalg.lstsq", B, 1, "B")
    if B.ndim == A.ndim - 1:
        found = lstsq(A, S.unsqueeze(B, -1), rcond, driver=driver)
        return found._replace(solution=S.squeeze(found.solution, -1))
    driver = _DRIVERS[driver]
    m, n = A.shape[-2:]
    cut: dict[str, Any] = {"rtol": 0.0} if driver == "gels" else {"rtol": rcond}
    solution = matmul(pinv(A, **cut), B)
    with use_device_of(A):
        values, rank = zeros(0, dtype=A.dtype), zeros(0, dtype=dt.int64)
    residuals = S.reshape(solution, -1)[:0]
    if driver != "gels":
        rank = matrix_rank(A, **cut)
    if m > n and (driver == "gels" or driver != "gelsy" and (A.is_lazy or bool((rank == n).all()))):
        residuals = R.sum(E.square(matmul(A, solution) - B), -2)
    if driver in ("gelsd", "gelss"):
        values = svdvals(A.detach())
    return return_types.linalg_lstsq(solution, residuals, rank, values)


# ---- determinants
def slogdet(A: Tensor) -> return_types.linalg_slogdet:
    """Return (sign, logabsdet), such that the determinant is sign * exp(logabsdet).

    The result is also finite if the determinant would overflow.

    Args:
        A: matrices (..., n, n).
    """
    check_tensor("linalg.slogdet", A)
    return return_types.linalg_slogdet(*on_cpu("slogdet", A))


def old_slogdet(input: Tensor) -> return_types.slogdet:
    """Return flow.linalg.slogdet(input).

    Args:
        input: matrices (..., n, n).
    """
    return return_types.slogdet(*slogdet(input))


def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of each determinant, or NaN for a negative determinant.

    Args:
        input: matrices (..., n, n).
    """
    sign, size = slogdet(input)
    return E.where(E.lt(sign, 0), float("nan"), size)


def regular(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return A with singular matrices replaced by the identity, and a mask of the singular matrices."""
    sign, _ = on_cpu("slogdet", A.detach())
    singular = E.eq(sign, 0)
    return E.where(singular[..., None, None], identity(A, A.shape[-1]), A), singular


def inv_ex(A: Tensor, *, check_errors: bool = False) -> return_types.linalg_inv_ex:
    """Return (inverse, info) like inv, without an error for singular matrices.

    For a singular matrix, all elements of the inverse are inf, and info is n. For other matrices, info is 0.

    Args:
        A: matrices (..., n, n).
        check_errors: raise an error like inv.
    """
    check_tensor("linalg.inv_ex", A)
    if check_errors:
        with use_device_of(A):
            return return_types.linalg_inv_ex(solved(A, identity(A, A.shape[-1])),
                                              zeros(*A.shape[:-2], dtype=dt.int32))
    a, singular = regular(A)
    y = E.where(singular[..., None, None], math.inf, solved(a, identity(A, A.shape[-1])))
    return return_types.linalg_inv_ex(y, cast(singular, dt.int32) * A.shape[-1])


# ---- products and powers
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of several matrices, in the order with the fewest multiplications.

    Args:
        tensors: two or more matrices. The first and the last may be vectors, used as a row and a column.
    """
    xs = list(tensors)
    if len(xs) < 2:
        raise ArgumentError("linalg.multi_dot: expected at least 2 tensors", expected="two matrices or more",
                            got=str(len(xs)), fix="flow.linalg.multi_dot([a, b])")
    ranks = [x.ndim for x in xs]
    if any(n != 2 for n in ranks[1:-1]) or not {ranks[0], ranks[-1]} <= {1, 2}:
        raise ShapeError("linalg.multi_dot: tensors must be matrices",
                         expected="2 axes; the first and last may have 1",
                         got=str(ranks), fix="flow.matmul takes batches")
    row, column = ranks[0] == 1, ranks[-1] == 1
    xs[0] = xs[0][None] if row else xs[0]
    xs[-1] = xs[-1][:, None] if column else xs[-1]
    sizes = [x.shape[0] for x in xs] + [xs[-1].shape[1]]
    best = {(i, i): (0, i) for i in range(len(xs))}
    for length in range(1, len(xs)):
        for i in range(len(xs) - length):
            j = i + length
            best[i, j] = min((best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                             for k in range(i, j))

    def product(i: int, j: int) -> Tensor:
        return xs[i] if i == j else matmul(product(i, best[i, j][1]), product(best[i, j][1] + 1, j))

    y = product(0, len(xs) - 1)
    if row:
        y = y[0]
    return y[..., 0] if column else y


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the powers 1, x, x^2, ... of each number as a row.

    Args:
        x: vectors (..., n).
        N: number of powers; default: n.
    """
    check_tensor("linalg.vander", x)
    x = x if x.ndim else S.unsqueeze(x, 0)
    n = x.shape[-1] if N is None else N
    if n < 2:
        raise ArgumentError("linalg.vander: N must be greater than 1", expected="2 or more", got=str(n),
                            fix="N=2")
    wide = S.expand(S.unsqueeze(x, -1), *x.shape, n - 1)
    powers = cumulative.cumprod(wide, -1)
    return cat([powers[..., :1] * 0 + 1, powers], -1)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the inner products of vectors along an axis.

    Args:
        x: tensor.
        y: tensor; the shapes broadcast.
        dim: axis of the vectors.
    """
    return R.sum(x * y, dim)


def matrix_exp(input: Tensor) -> Tensor:
    """Return 1 + A + A @ A / 2 + ... of each square matrix A.

    The result is computed in float64. The Taylor series of A / 2^k is squared k times. The number k is
    floor(log2(|A|)) + 4, or 0 if this is negative, where |A| is the largest sum of the absolute values of a
    row. The error of a float64 result is at most n * 2^-52 * (8 |A| + 20) * exp(|A|), where n is the number
    of rows. A float32 result is rounded once more, with an error of at most 2^-24 of each entry.

    Args:
        input: matrices (..., n, n).
    """
    check_tensor("linalg.matrix_exp", input)
    return on_cpu("matrix_exp", input)


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of A, which is treated as a linear map from its last axes to its first `ind` axes.

    Args:
        A: tensor whose first `ind` axes together have as many elements as its other axes.
        ind: number of first axes.
    """
    n = math.prod(A.shape[:ind])
    if ind < 1 or n != math.prod(A.shape[ind:]):
        raise ShapeError("linalg.tensorinv: expected self to satisfy the requirement prod(self.shape[ind:]) "
                         "== prod(self.shape[:ind])", expected="as many elements before as behind",
                         got=f"{A.shape}, ind={ind}", fix="another ind")
    y = solved(S.reshape(A, n, n), identity(A, n))
    return S.reshape(y, *A.shape[ind:], *A.shape[:ind])


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Return X with tensordot(A, X, X.ndim) = B.

    Args:
        A: tensor.
        B: tensor with the shape of A's first axes.
        dims: axes of A that are moved to its end before solving; default: none.
    """
    if dims is not None:
        A = S.movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape, n = A.shape[B.ndim:], math.prod(B.shape)
    if A.shape[:B.ndim] != B.shape or math.prod(shape) != n:
        raise ShapeError("linalg.tensorsolve: A does not fit B",
                         expected=f"A of the shape {(*B.shape, '...')}, square",
                         got=f"A {A.shape}, B {B.shape}", fix="dims= names the axes of the unknown")
    return S.reshape(solved(S.reshape(A, n, n), S.reshape(B, n, 1)), *shape)


__all__ = ["inv_ex", "lstsq", "matrix_exp", "matrix_rank", "multi_dot", "pinv", "slogdet", "tensorinv",
           "tensorsolve", "vander", "vecdot"]
