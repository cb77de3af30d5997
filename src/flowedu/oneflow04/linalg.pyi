"""Written by `make stubs`: do not edit."""
from collections.abc import Sequence
from flowedu.core.eager.tensor import Tensor
from flowedu.core.values.dtype import dtype
from flowedu.errors import LinAlgError as LinAlgError
from flowedu.tensor import return_types
from flowedu.tensor.arguments.types import Axes, Number
from typing import overload

def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Return the lower triangular matrix L with L @ L.mT = input."""
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> return_types.linalg_cholesky_ex:
    """Return (L, info) like cholesky, without an error for matrices that are not positive definite."""
def cond(A: Tensor, p: Number | str | None = None) -> Tensor:
    """Return the condition number norm(A) * norm(inverse) of each matrix; inf for a singular one."""
def cross(input: Tensor, other: Tensor, dim: int = -1) -> Tensor: """Return the cross product of vectors of size 3."""
def det(A: Tensor) -> Tensor: """Return the determinant of each square matrix."""
def diagonal(A: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of the diagonals A[..., i, i + offset] of the last two axes."""
def eigh(A: Tensor, UPLO: str = 'L') -> return_types.linalg_eigh:
    """Return the eigenvalues of symmetric matrices in ascending order, and the eigenvectors as columns."""
def eigvalsh(A: Tensor, UPLO: str = 'L') -> Tensor: """Return the eigenvalues of symmetric matrices, in ascending order."""
def inv(A: Tensor) -> Tensor: """Return the inverse of each square matrix."""
def inv_ex(A: Tensor, *, check_errors: bool = False) -> return_types.linalg_inv_ex:
    """Return (inverse, info) like inv, without an error for singular matrices."""
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> return_types.linalg_lstsq:
    """Return the least-squares solution of A @ X = B: (solution, residuals, rank, singular_values)."""
def lu(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu: """Return (P, L, U) with A = P @ L @ U."""
def lu_factor(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu_factor:
    """Return (LU, pivots); see lu_factor_ex."""
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> return_types.linalg_lu_factor_ex:
    """Return (LU, pivots, info)."""
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Return X with A @ X = B from the result of lu_factor."""
@overload
def matmul(input: Tensor, other: Tensor) -> Tensor: """Return the matrix product; batch axes broadcast."""
@overload
def matmul(a, b, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, name=None) -> Tensor:
    """Return alpha * op(a) @ op(b), where op transposes the last two axes if the flag is set."""
def matrix_exp(input: Tensor) -> Tensor: """Return 1 + A + A @ A / 2 + ... of each square matrix A."""
def matrix_norm(A: Tensor, ord: Number | str = 'fro', dim: Sequence[int] = ..., keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """Return the norm of each matrix."""
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return the matrix power x @ x @ ... @ x; a negative exponent gives a power of the inverse."""
def matrix_rank(A: Tensor, tol: Tensor | float | None = None, hermitian: bool = False, *, atol: Tensor | float | None = None, rtol: Tensor | float | None = None) -> Tensor:
    """Return the int64 number of singular values of each matrix above max(atol, rtol * the largest one)."""
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of several matrices, in the order with the fewest multiplications."""
def norm(A: Tensor, ord: Number | str | None = None, dim: Axes | None = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """Return a vector norm or a matrix norm."""
def pinv(A: Tensor, rcond: Tensor | float | None = None, hermitian: bool = False, *, atol: Tensor | float | None = None, rtol: Tensor | float | None = None) -> Tensor:
    """Return the pseudo-inverse of each matrix."""
def qr(A: Tensor, mode: str = 'reduced') -> return_types.linalg_qr:
    """Return (Q, R) with A = Q @ R; the columns of Q are orthonormal, and R is upper triangular."""
def slogdet(A: Tensor) -> return_types.linalg_slogdet:
    """Return (sign, logabsdet), such that the determinant is sign * exp(logabsdet)."""
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor: """Return X with A @ X = B."""
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Return X with A @ X = B for a triangular matrix A."""
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """Return the singular value decomposition (U, S, Vh) with A = U[:, :k] @ diag(S) @ Vh[:k]."""
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values of each matrix, in descending order."""
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of A, which is treated as a linear map from its last axes to its first `ind` axes."""
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Return X with tensordot(A, X, X.ndim) = B."""
def vander(x: Tensor, *, N: int | None = None) -> Tensor: """Return the powers 1, x, x^2, ... of each number as a row."""
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor: """Return the inner products of vectors along an axis."""
def vector_norm(x: Tensor, ord: Number = 2, dim: Axes | None = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """Return sum(|x|^ord)^(1/ord)."""
__all__ = ['LinAlgError', 'cholesky', 'cholesky_ex', 'cond', 'cross', 'det', 'diagonal', 'eigh', 'eigvalsh', 'inv', 'inv_ex', 'lstsq', 'lu', 'lu_factor', 'lu_factor_ex', 'lu_solve', 'matmul', 'matrix_exp', 'matrix_norm', 'matrix_power', 'matrix_rank', 'multi_dot', 'norm', 'pinv', 'qr', 'slogdet', 'solve', 'solve_triangular', 'svd', 'svdvals', 'tensorinv', 'tensorsolve', 'vander', 'vecdot', 'vector_norm']
