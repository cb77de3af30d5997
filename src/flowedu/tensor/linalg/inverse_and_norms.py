"""flow.linalg: inv, det, solve, norms, cond, and more from the other files of this folder.

NumPy calls LAPACK for one matrix after the other.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.dims import one_dim
from flowedu.tensor.arguments.types import Axes, Number
from flowedu.tensor.linalg import products
from flowedu.tensor.linalg.factorizations import *  # noqa: F403
from flowedu.tensor.linalg.factorizations import __all__ as _factors
from flowedu.tensor.linalg.factorizations import solved, svdvals
from flowedu.tensor.linalg.least_squares import *  # noqa: F403
from flowedu.tensor.linalg.least_squares import __all__ as _least_squares
from flowedu.tensor.linalg.least_squares import regular
from flowedu.tensor.linalg.lu import *  # noqa: F403
from flowedu.tensor.linalg.lu import __all__ as _lu
from flowedu.tensor.linalg.products import matmul, matrix_power
from flowedu.tensor.reductions import reduce as R
from flowedu.tensor.reductions.reduce import vector_norm
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip

_op = REGISTRY.__getitem__


def inv(A: Tensor) -> Tensor:
    """Return the inverse of each square matrix.

    Args:
        A: matrices (..., n, n).
    """
    return _op("inverse")(A)


inverse = inv


def det(A: Tensor) -> Tensor:
    """Return the determinant of each square matrix.

    Args:
        A: matrices (..., n, n).
    """
    return _op("det")(A)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return X with A @ X = B.

    Args:
        A: matrices (..., n, n).
        B: right-hand sides (..., n, k) or vectors.
        left: if False, solve X @ A = B.
    """
    if B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]):
        return S.squeeze(solve(A, S.unsqueeze(B, -1), left=True), -1) if left else solve(S.mT(A), B)
    return solved(A, B) if left else S.mT(solved(S.mT(A), S.mT(B)))


def matrix_norm(A: Tensor, ord: Number | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *,
                dtype: dt.dtype | None = None) -> Tensor:
    """Return the norm of each matrix.

    Args:
        A: floating tensor.
        ord: "fro" is the root of the sum of squares. 1 and -1 are the largest and smallest column sum of |A|;
            inf and -inf are the same for rows. 2 and -2 are the largest and smallest singular value, and
            "nuc" is the sum of the singular values.
        dim: the two axes of the matrices.
        keepdim: keep the axes, with size 1.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    A = A if dtype is None else cast(A, dtype)
    a, b = (one_dim(d, A.ndim, "linalg.matrix_norm") for d in dim)
    if ord == "fro":
        return R.vector_norm(A, 2, (a, b), keepdim)
    if ord in (2, -2, "nuc"):
        s = svdvals(S.movedim(A, (a, b), (-2, -1)))
        reduce = {"nuc": R.sum, 2: R.amax, -2: R.amin}[ord]
        y = reduce(s, -1)
        for i in sorted((a, b)) if keepdim else ():
            y = S.unsqueeze(y, i)
        return y
    if ord not in (1, -1, float("inf"), -float("inf")):
        raise ArgumentError("linalg.matrix_norm: there is no such ord",
                            expected='"fro", "nuc", 1, -1, 2, -2, inf or -inf',
                            got=repr(ord), fix="flow.linalg.vector_norm for other orders")
    first, second = (a, b) if abs(ord) == 1 else (b, a)
    y = (R.amax if ord > 0 else R.amin)(R.sum(E.abs(A), first, True), second, True)
    return y if keepdim else S.squeeze(y, (a, b))


def cond(A: Tensor, p: Number | str | None = None) -> Tensor:
    """Return the condition number norm(A) * norm(inverse) of each matrix; inf for a singular one.

    Args:
        A: matrices (..., n, n), or (..., m, n) if p is None, 2, or -2.
        p: ord of matrix_norm; default: 2.
    """
    if p in (None, 2, -2):
        s = svdvals(A)
        y = s[..., 0] / s[..., -1]
        return y if p != -2 else 1 / y
    a, singular = regular(A)
    return E.where(singular, float("inf"), matrix_norm(a, p) * matrix_norm(inv(a), p))


def norm(A: Tensor, ord: Number | str | None = None, dim: Axes | None = None, keepdim: bool = False, *,
         dtype: dt.dtype | None = None) -> Tensor:
    """Return a vector norm or a matrix norm.

    The result is a matrix norm if `ord` is passed and `dim` has two axes, or if `ord` is passed for a matrix
    without `dim`.

    Args:
        A: floating tensor.
        ord: order of the norm; default: None, the vector norm of order 2.
        dim: axis, or two axes; default: all.
        keepdim: keep the axes, with size 1.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    A = A if dtype is None else cast(A, dtype)
    if (ord is not None and ((dim is None and A.ndim == 2) or (isinstance(dim, (tuple, list))
                                                               and len(dim) == 2))):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim)
    order: Any = 2 if ord in (None, "fro") else ord
    return R.vector_norm(A, order, dim, keepdim)


def cross(input: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """Return the cross product of vectors of size 3.

    `flow.cross` uses the first axis of size 3 by default.

    Args:
        input: tensor.
        other: tensor; the shapes broadcast.
        dim: axis of the vectors.
    """
    return products.cross(input, other, dim)


def diagonal(A: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of the diagonals A[..., i, i + offset] of the last two axes.

    `flow.diagonal` uses the first two axes by default.

    Args:
        A: tensor with at least two axes.
        offset: number of columns by which the diagonal is shifted to the right.
        dim1: axis of the rows.
        dim2: axis of the columns.
    """
    return split_and_flip.diagonal(A, offset, dim1, dim2)


__all__ = ["cond", "cross", "det", "diagonal", "inv", "inverse", "matmul", "matrix_norm", "matrix_power",
           "norm", "solve", "vector_norm", *_factors, *_least_squares, *_lu]
