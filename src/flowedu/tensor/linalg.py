"""flow.linalg for tensors: inv, det, solve, norms, cross, diagonal. (LAPACK by way of NumPy, a matrix after the other.)"""
from __future__ import annotations

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast
from flowedu.errors import ArgumentError
from flowedu.tensor import elementwise as E
from flowedu.tensor import linear, pieces
from flowedu.tensor import reductions as R
from flowedu.tensor import shapes as S
from flowedu.tensor.dims import one_dim
from flowedu.tensor.linear import matmul, matrix_power
from flowedu.tensor.reductions import vector_norm

_op = REGISTRY.__getitem__


def inv(A):
    """The inverse of each square matrix."""
    return _op("inverse")(A)


inverse = inv


def det(A):
    """The determinant of each square matrix."""
    return _op("det")(A)


def solve(A, B):
    """X with A @ X = B; B may be a vector."""
    if B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]):
        return S.squeeze(solve(A, S.unsqueeze(B, -1)), -1)
    batch = S.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    wide = lambda x: S.expand(x, *batch, *x.shape[-2:])
    return _op("solve")(wide(A), wide(B))


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim: bool = False):
    """Norms of matrices: "fro", 1, -1, inf, -inf (largest or smallest sum of columns or rows)."""
    a, b = (one_dim(d, A.ndim, "linalg.matrix_norm") for d in dim)
    if ord == "fro":
        return R.vector_norm(A, 2, (a, b), keepdim)
    if ord not in (1, -1, float("inf"), -float("inf")):
        raise ArgumentError("linalg.matrix_norm: this ord is not implemented", expected='"fro", 1, -1, inf or -inf',
                            got=repr(ord), fix="flow.linalg.vector_norm for other orders")
    first, second = (a, b) if abs(ord) == 1 else (b, a)
    y = (R.amax if ord > 0 else R.amin)(R.sum(E.abs(A), first, True), second, True)
    return y if keepdim else S.squeeze(y, (a, b))


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


__all__ = ["cross", "det", "diagonal", "inv", "inverse", "matmul", "matrix_norm", "matrix_power", "norm", "solve",
           "vector_norm"]
