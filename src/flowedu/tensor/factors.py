"""Factors of matrices, as PyTorch names them: cholesky, eigh, svd, qr, and systems that are solved by them.

Made of the records of ops/factors.py. LAPACK works in main memory: a matrix on a GPU travels there and back, with its
gradient. `flow.svd`, `flow.qr`, `flow.cholesky` are PyTorch's older spellings.
"""
from __future__ import annotations

from flowedu.core.ops.define import REGISTRY
from flowedu.errors import ArgumentError, LinAlgError, ShapeError
from flowedu.tensor import elementwise as E
from flowedu.tensor import joining as J
from flowedu.tensor import pieces as P
from flowedu.tensor import return_types
from flowedu.tensor import shapes as S
from flowedu.tensor.creation import eye, zeros
from flowedu.tensor.devices import made_with, on_cpu
from flowedu.tensor.linear import matmul
from flowedu.tensor.promotion import check_rank, check_tensor

_SOLVE = REGISTRY["solve"]


def no_driver(what: str, driver) -> None:
    """Raise for a `driver`, which is MAGMA's and cuSOLVER's, as PyTorch does."""
    if driver is not None:
        raise ArgumentError(f"{what}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend",
                            expected="None", got=repr(driver), fix="leave it out")


def solved(A, B):
    """X with A @ X = B, of matrices; their batches broadcast."""
    batch = S.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return _SOLVE(*(x if x.shape[:-2] == batch else S.expand(x, *batch, *x.shape[-2:]) for x in (A, B)))


def identity(x, n: int):
    """Return the n x n identity with the dtype and device of x."""
    with made_with(x):
        return eye(n, dtype=x.dtype)


def mirrored(what: str, A, upper: bool):
    """The symmetric matrix of which only one triangle is read. Its gradient goes to both alike, as if A were it."""
    check_tensor(what, A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"{what}: A must be batches of square matrices", expected="a shape (..., n, n)", got=str(A.shape),
                         fix="the last two axes must be equal")
    read, other = (J.triu, J.tril) if upper else (J.tril, J.triu)
    step = 1 if upper else -1
    a = A.detach()
    return A - other(a, -step) + S.mT(read(a, step))


# ---- Cholesky
def cholesky(input, *, upper: bool = False):
    """The lower triangle L with L @ L.mT = input, of which only that triangle is read; upper: L.mT, of the other one.
    LinAlgError for a matrix that is not positive definite."""
    y = on_cpu("cholesky", mirrored("linalg.cholesky", input, upper))
    return S.mT(y) if upper else y


def cholesky_ex(A, *, upper: bool = False, check_errors: bool = False):
    """(L, info): as cholesky, but a matrix that is not positive definite gives NaN and, in info, the order of its first
    leading minor that is not (0: all are), if check_errors does not ask for the error."""
    a = mirrored("linalg.cholesky_ex", A, upper)
    y = on_cpu("cholesky", a, checked=bool(check_errors))
    return return_types.linalg_cholesky_ex(S.mT(y) if upper else y, on_cpu("leading_minor", a.detach()))


def old_cholesky(input, upper: bool = False):
    """flow.linalg.cholesky(input, upper=upper)."""
    return cholesky(input, upper=upper)


def cholesky_solve(input, input2, upper: bool = False):
    """X with A @ X = input, where input2 is A's Cholesky factor, the lower one or the upper one."""
    low = S.mT(J.triu(input2)) if upper else J.tril(input2)
    return solved(S.mT(low), solved(low, input))


def cholesky_inverse(input, upper: bool = False):
    """The inverse of A, of its Cholesky factor."""
    check_rank("cholesky_inverse", input, 2)
    return cholesky_solve(identity(input, input.shape[-1]), input, upper)


# ---- triangles
def solve_triangular(A, B, *, upper: bool, left: bool = True, unitriangular: bool = False):
    """Return X with A @ X = B (left=False: X @ A = B) for a triangular matrix A.

    The other triangle is not read; with unitriangular, neither is the diagonal, which is taken as 1. Raises
    LinAlgError if the diagonal has a 0.
    """
    if not left:
        return S.mT(solve_triangular(S.mT(A), S.mT(B), upper=not upper, unitriangular=unitriangular))
    step = int(bool(unitriangular))
    a = J.triu(A, step) if upper else J.tril(A, -step)
    return solved(a + identity(A, A.shape[-1]) if unitriangular else a, B)


def triangular_solve(input, A, upper: bool = True, transpose: bool = False, unitriangular: bool = False):
    """(solution X of A @ X = input, A); transpose: of A.mT @ X = input."""
    a, above = (S.mT(A), not upper) if transpose else (A, upper)
    return return_types.triangular_solve(solve_triangular(a, input, upper=above, unitriangular=unitriangular), E.clone(A))


# ---- eigenvalues of symmetric matrices
def _upper(what: str, UPLO) -> bool:
    if UPLO not in ("L", "U", "l", "u"):
        raise ArgumentError(f"{what}: Expected UPLO argument to be 'L' or 'U'", expected="'L' or 'U'", got=repr(UPLO),
                            fix="'L': the lower triangle is read")
    return UPLO in "Uu"


def eigh(A, UPLO: str = "L"):
    """Return (eigenvalues, eigenvectors as columns) of a symmetric matrix, in ascending order. UPLO: the
    triangle to read.

    The rotation between eigenvectors of equal eigenvalues has no derivative; it counts as 0.
    """
    return return_types.linalg_eigh(*on_cpu("eigh", mirrored("linalg.eigh", A, _upper("linalg.eigh", UPLO))))


def eigvalsh(A, UPLO: str = "L"):
    """The eigenvalues of a symmetric matrix, the smallest first."""
    return on_cpu("eigh", mirrored("linalg.eigvalsh", A, _upper("linalg.eigvalsh", UPLO)))[0]


# ---- singular values
def svd(A, full_matrices: bool = True, *, driver: str | None = None):
    """(U, S, Vh) with A = U[:, :k] @ diag(S) @ Vh[:k], the largest S first; full_matrices: U and Vh are square. The columns
    that makes more have no derivative, nor has what turns vectors of equal values into each other."""
    no_driver("linalg.svd", driver)
    check_tensor("linalg.svd", A)
    return return_types.linalg_svd(*on_cpu("svd", A, full=bool(full_matrices)))


def svdvals(A, *, driver: str | None = None):
    """The singular values of each matrix, the largest first."""
    no_driver("linalg.svdvals", driver)
    check_tensor("linalg.svdvals", A)
    return on_cpu("svd", A)[1]


def old_svd(input, some: bool = True, compute_uv: bool = True):
    """(U, S, V) with input = U @ diag(S) @ V.mT; some=False: U and V are square; compute_uv=False: they are zeros."""
    u, s, vh = svd(input, not (some and compute_uv))
    if not compute_uv:
        with made_with(input):
            u, vh = (zeros(*x.shape, dtype=input.dtype) for x in (u, vh))
    return return_types.svd(u, s, S.mT(vh))


# ---- QR
def qr(A, mode: str = "reduced"):
    """(Q, R) with A = Q @ R, orthonormal columns of Q and an upper triangle R; mode="complete": Q is square; "r": Q is
    empty. Of a complete Q with more rows than columns there is no gradient."""
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError("linalg.qr: qr received unrecognized mode", expected="'reduced', 'complete' or 'r'",
                            got=repr(mode), fix="mode='reduced'")
    check_tensor("linalg.qr", A)
    if A.ndim > 1 and A.shape[-2] < A.shape[-1]:         # Q is that of the first columns; the others are turned by it
        m, n = A.shape[-2:]
        q, r = on_cpu("qr", P.part(A, A.ndim - 1, 0, m))
        r = J.cat([r, matmul(S.mT(q), P.part(A, A.ndim - 1, m, n))], -1)
    else:
        q, r = on_cpu("qr", A, complete=mode == "complete")
    if mode == "r":
        with made_with(A):
            q = zeros(0, dtype=A.dtype)
    return return_types.linalg_qr(q, r)


def old_qr(input, some: bool = True):
    """flow.linalg.qr(input), "complete" unless some."""
    return return_types.qr(*qr(input, "reduced" if some else "complete"))


__all__ = ["LinAlgError", "cholesky", "cholesky_ex", "eigh", "eigvalsh", "qr", "solve_triangular", "svd", "svdvals"]
