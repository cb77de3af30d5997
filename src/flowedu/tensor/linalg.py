"""flow.linalg for tensors: inv, det, solve, norms, cond, cross, diagonal; and what factors.py, lu.py, least_squares.py add.
(LAPACK by way of NumPy, a matrix after the other.)"""
from __future__ import annotations

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast
from flowedu.errors import ArgumentError
from flowedu.tensor import elementwise as E
from flowedu.tensor import linear, pieces
from flowedu.tensor import reductions as R
from flowedu.tensor import shapes as S
from flowedu.tensor.dims import one_dim
from flowedu.tensor.factors import *  # noqa: F403
from flowedu.tensor.factors import __all__ as _factors
from flowedu.tensor.factors import solved, svdvals
from flowedu.tensor.least_squares import *  # noqa: F403
from flowedu.tensor.least_squares import __all__ as _least_squares
from flowedu.tensor.least_squares import regular
from flowedu.tensor.linear import matmul, matrix_power
from flowedu.tensor.lu import *  # noqa: F403
from flowedu.tensor.lu import __all__ as _lu
from flowedu.tensor.reductions import vector_norm

_op = REGISTRY.__getitem__


def inv(A):
    """The inverse of each square matrix."""
    return _op("inverse")(A)


inverse = inv


def det(A):
    """The determinant of each square matrix."""
    return _op("det")(A)


def solve(A, B, *, left: bool = True):
    """X with A @ X = B (left=False: X @ A = B); B may be a vector."""
    if B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]):
        return S.squeeze(solve(A, S.unsqueeze(B, -1), left=True), -1) if left else solve(S.mT(A), B)
    return solved(A, B) if left else S.mT(solved(S.mT(A), S.mT(B)))


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim: bool = False, *, dtype=None):
    """Norms of matrices: "fro"; 1, -1, inf, -inf (largest or smallest sum of columns or rows); 2, -2, "nuc" (the largest
    and the smallest singular value, and their sum)."""
    A = A if dtype is None else cast(A, dtype)
    a, b = (one_dim(d, A.ndim, "linalg.matrix_norm") for d in dim)
    if ord == "fro":
        return R.vector_norm(A, 2, (a, b), keepdim)
    if ord in (2, -2, "nuc"):
        s = svdvals(S.movedim(A, (a, b), (-2, -1)))
        y = R.sum(s, -1) if ord == "nuc" else (R.amax if ord == 2 else R.amin)(s, -1)
        for i in sorted((a, b)) if keepdim else ():
            y = S.unsqueeze(y, i)
        return y
    if ord not in (1, -1, float("inf"), -float("inf")):
        raise ArgumentError("linalg.matrix_norm: there is no such ord", expected='"fro", "nuc", 1, -1, 2, -2, inf or -inf',
                            got=repr(ord), fix="flow.linalg.vector_norm for other orders")
    first, second = (a, b) if abs(ord) == 1 else (b, a)
    y = (R.amax if ord > 0 else R.amin)(R.sum(E.abs(A), first, True), second, True)
    return y if keepdim else S.squeeze(y, (a, b))


def cond(A, p=None):
    """How much A @ x may turn a relative error into a larger one: norm(A) * norm(inverse), inf of a singular matrix. p: the
    ord of matrix_norm; None: 2, for which A need not be square."""
    if p in (None, 2, -2):
        s = svdvals(A)
        y = s[..., 0] / s[..., -1]
        return y if p != -2 else 1 / y
    a, singular = regular(A)
    return E.where(singular, float("inf"), matrix_norm(a, p) * matrix_norm(inv(a), p))


def norm(A, ord=None, dim=None, keepdim: bool = False, *, dtype=None):
    """A vector norm, or with two axes (or a matrix and an ord) a matrix norm."""
    A = A if dtype is None else cast(A, dtype)
    if ord is not None and ((dim is None and A.ndim == 2) or (isinstance(dim, (tuple, list)) and len(dim) == 2)):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim)
    return R.vector_norm(A, 2 if ord in (None, "fro") else ord, dim, keepdim)


def cross(input, other, dim: int = -1):
    """The cross product of vectors of size 3 along dim. (`flow.cross` looks for the first axis of size 3.)"""
    return linear.cross(input, other, dim)


def diagonal(A, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """The diagonals of the last two axes, a view: A[..., i, i + offset]. (`flow.diagonal` takes the first two.)"""
    return pieces.diagonal(A, offset, dim1, dim2)


__all__ = ["cond", "cross", "det", "diagonal", "inv", "inverse", "matmul", "matrix_norm", "matrix_power", "norm", "solve",
           "vector_norm", *_factors, *_least_squares, *_lu]
