"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from flowedu.errors import LinAlgError as LinAlgError
from flowedu.tensor import return_types
from typing import overload

def cholesky(input, *, upper: bool = False) -> Tensor:
    """The lower triangle L with L @ L.mT = input, of which only that triangle is read; upper: L.mT, of the other one."""
def cholesky_ex(A, *, upper: bool = False, check_errors: bool = False) -> return_types.linalg_cholesky_ex:
    """(L, info): as cholesky, but a matrix that is not positive definite gives NaN and, in info, the order of its first leading minor that is not (0: all are), if check_errors does not ask for the error."""
def cond(A, p=None) -> Tensor:
    """How much A @ x may turn a relative error into a larger one: norm(A) * norm(inverse), inf of a singular matrix. p: the ord of matrix_norm; None: 2, for which A need not be square."""
def cross(input, other, dim: int = -1) -> Tensor:
    """The cross product of vectors of size 3 along dim. (`flow.cross` looks for the first axis of size 3.)"""
def det(A) -> Tensor: """The determinant of each square matrix."""
def diagonal(A, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of the last two axes, a view: A[..., i, i + offset]. (`flow.diagonal` takes the first two.)"""
def eigh(A, UPLO: str = 'L') -> return_types.linalg_eigh:
    """Return (eigenvalues, eigenvectors as columns) of a symmetric matrix, in ascending order."""
def eigvalsh(A, UPLO: str = 'L') -> Tensor: """The eigenvalues of a symmetric matrix, the smallest first."""
def inv(A) -> Tensor: """The inverse of each square matrix."""
def inv_ex(A, *, check_errors: bool = False) -> return_types.linalg_inv_ex:
    """Return (inverse, info): like inv, but without an error for singular matrices unless check_errors is True."""
def lstsq(A, B, rcond: float | None = None, *, driver: str | None = None) -> return_types.linalg_lstsq:
    """(solution, residuals, rank, singular_values): the X of least |A @ X - B|, and of these the least X, by the pseudo-inverse."""
def lu(A, *, pivot: bool = True) -> return_types.linalg_lu:
    """(P, L, U) with A = P @ L @ U: rows in another order, a lower triangle with ones on its diagonal, an upper one."""
def lu_factor(A, *, pivot: bool = True) -> return_types.linalg_lu_factor: """(LU, pivots), as lu_factor_ex has them."""
def lu_factor_ex(A, *, pivot: bool = True, check_errors: bool = False) -> return_types.linalg_lu_factor_ex:
    """Return (LU, pivots, info)."""
def lu_solve(LU, pivots, B, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A @ X = B (left=False: X @ A = B; adjoint: of A.mT), of what lu_factor gave for A."""
@overload
def matmul(input, other) -> Tensor:
    """The matrix product; vectors are rows on the left and columns on the right, batch axes broadcast."""
@overload
def matmul(a, b, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, name=None) -> Tensor:
    """alpha * op(a) @ op(b): equal batch axes, or an n-d a with a matrix b."""
def matrix_exp(input) -> Tensor: """Return 1 + A + A @ A / 2 + ... of each square matrix A."""
def matrix_norm(A, ord='fro', dim=..., keepdim: bool = False, *, dtype=None) -> Tensor:
    """Norms of matrices: "fro"; 1, -1, inf, -inf (largest or smallest sum of columns or rows); 2, -2, "nuc" (the largest and the smallest singular value, and their sum)."""
def matrix_power(input, n: int) -> Tensor: """x @ x @ ... @ x, n times; of the inverse for a negative n."""
def matrix_rank(A, tol=None, hermitian: bool = False, *, atol=None, rtol=None) -> Tensor:
    """Return the number of singular values above max(atol, rtol * the largest) of each matrix, int64."""
def multi_dot(tensors) -> Tensor:
    """The product of two matrices or more, in the order that takes the fewest multiplications."""
def norm(A, ord=None, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """A vector norm, or with two axes (or a matrix and an ord) a matrix norm."""
def pinv(A, rcond=None, hermitian: bool = False, *, atol=None, rtol=None) -> Tensor:
    """Return the pseudo-inverse of each matrix."""
def qr(A, mode: str = 'reduced') -> return_types.linalg_qr:
    """(Q, R) with A = Q @ R, orthonormal columns of Q and an upper triangle R; mode="complete": Q is square; "r": Q is empty."""
def slogdet(A) -> return_types.linalg_slogdet:
    """(sign, logabsdet): the determinant is sign * exp(logabsdet), which may be too large or too small for a number."""
def solve(A, B, *, left: bool = True) -> Tensor: """X with A @ X = B (left=False: X @ A = B); B may be a vector."""
def solve_triangular(A, B, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Return X with A @ X = B (left=False: X @ A = B) for a triangular matrix A."""
def svd(A, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """(U, S, Vh) with A = U[:, :k] @ diag(S) @ Vh[:k], the largest S first; full_matrices: U and Vh are square."""
def svdvals(A, *, driver: str | None = None) -> Tensor: """The singular values of each matrix, the largest first."""
def tensorinv(A, ind: int = 2) -> Tensor: """The inverse of A as a map from its last axes to the first `ind`."""
def tensorsolve(A, B, dims=None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; dims: axes of A that are moved to its end before."""
def vander(x, *, N: int | None = None) -> Tensor:
    """The rows 1, x, x^2, ... of each number, N of them (None: as many as there are numbers)."""
def vecdot(x, y, *, dim: int = -1) -> Tensor: """The inner products of vectors along an axis."""
def vector_norm(x, ord=2, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """sum(|x|^ord)^(1/ord) over `dim` (None: all); inf and -inf: the largest and smallest; 0: how many are not 0."""
__all__ = ['LinAlgError', 'cholesky', 'cholesky_ex', 'cond', 'cross', 'det', 'diagonal', 'eigh', 'eigvalsh', 'inv', 'inv_ex', 'lstsq', 'lu', 'lu_factor', 'lu_factor_ex', 'lu_solve', 'matmul', 'matrix_exp', 'matrix_norm', 'matrix_power', 'matrix_rank', 'multi_dot', 'norm', 'pinv', 'qr', 'slogdet', 'solve', 'solve_triangular', 'svd', 'svdvals', 'tensorinv', 'tensorsolve', 'vander', 'vecdot', 'vector_norm']
