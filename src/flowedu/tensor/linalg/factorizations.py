"""Matrix factorizations and systems solved by them: cholesky, eigh, svd, and qr, with PyTorch's names.

They use the ops of ops/factors.py. LAPACK works in main memory, so a matrix on a GPU and its gradient are
copied to main memory and back. `flow.svd`, `flow.qr`, and `flow.cholesky` are PyTorch's older forms.
"""
from __future__ import annotations

from flowedu.core.eager.tensor import Tensor
from flowedu.errors import ArgumentError, LinAlgError, ShapeError
from flowedu.ops.linalg import solve as solve_op
from flowedu.tensor import elementwise as E
from flowedu.tensor import return_types
from flowedu.tensor.construction.creation import eye, zeros
from flowedu.tensor.devices.conversion import on_cpu, use_device_of
from flowedu.tensor.dtypes.promotion import check_rank, check_tensor
from flowedu.tensor.linalg.products import matmul
from flowedu.tensor.shapes import join_and_pad as J
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip as P

_SOLVE = solve_op


def no_driver(what: str, driver: str | None) -> None:
    """Raise an error if `driver` is passed, because it selects algorithms of cuSOLVER."""
    if driver is not None:
        raise ArgumentError(f"{what}: keyword argument `driver=` is only supported on CUDA inputs with "
                            f"cuSOLVER backend", expected="None", got=repr(driver), fix="leave it out")


def solved(A: Tensor, B: Tensor) -> Tensor:
    """Return X with A @ X = B for matrices, whose batch axes broadcast."""
    batch = S.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return _SOLVE(*(x if x.shape[:-2] == batch else S.expand(x, *batch, *x.shape[-2:]) for x in (A, B)))


def identity(x: Tensor, n: int) -> Tensor:
    """Return the n x n identity with the dtype and device of x."""
    with use_device_of(x):
        return eye(n, dtype=x.dtype)


def mirrored(what: str, A: Tensor, upper: bool) -> Tensor:
    """Return the symmetric matrix that one triangle of A defines; the gradient passes to A unchanged."""
    check_tensor(what, A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"{what}: A must be batches of square matrices", expected="a shape (..., n, n)",
                         got=str(A.shape), fix="the last two axes must be equal")
    read, other = (J.triu, J.tril) if upper else (J.tril, J.triu)
    step = 1 if upper else -1
    a = A.detach()
    return A - other(a, -step) + S.mT(read(a, step))


# ---- Cholesky
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Return the lower triangular matrix L with L @ L.mT = input.

    Args:
        input: symmetric positive-definite matrices (..., n, n); only one triangle is read.
        upper: read the upper triangle of the input and return L.mT; default: False, read the lower triangle.

    Raises:
        LinAlgError: a matrix is not positive definite.
    """
    y = on_cpu("cholesky", mirrored("linalg.cholesky", input, upper))
    return S.mT(y) if upper else y


def cholesky_ex(A: Tensor, *, upper: bool = False,
                check_errors: bool = False) -> return_types.linalg_cholesky_ex:
    """Return (L, info) like cholesky, without an error for matrices that are not positive definite.

    Args:
        A: symmetric matrices (..., n, n).
        upper: read the upper triangle and return L.mT.
        check_errors: raise an error like cholesky.

    Returns:
        info is 0, or the order of the first leading minor that is not positive definite. In the second case,
        L is NaN.
    """
    a = mirrored("linalg.cholesky_ex", A, upper)
    y = on_cpu("cholesky", a, checked=bool(check_errors))
    return return_types.linalg_cholesky_ex(S.mT(y) if upper else y, on_cpu("leading_minor", a.detach()))


def old_cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return flow.linalg.cholesky(input, upper=upper).

    Args:
        input: symmetric positive-definite matrices (..., n, n).
        upper: read the upper triangle and return L.mT.
    """
    return cholesky(input, upper=upper)


def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """Return X with A @ X = input.

    Args:
        input: right-hand sides (..., n, k).
        input2: Cholesky factor of A.
        upper: input2 is the upper factor.
    """
    low = S.mT(J.triu(input2)) if upper else J.tril(input2)
    return solved(S.mT(low), solved(low, input))


def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of A from its Cholesky factor.

    Args:
        input: Cholesky factor (..., n, n).
        upper: input is the upper factor.
    """
    check_rank("cholesky_inverse", input, 2)
    return cholesky_solve(identity(input, input.shape[-1]), input, upper)


# ---- triangles
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> Tensor:
    """Return X with A @ X = B for a triangular matrix A.

    Args:
        A: triangular matrices (..., n, n); the other triangle is not read.
        B: right-hand sides (..., n, k).
        upper: A is an upper triangular matrix; if False, a lower triangular matrix.
        left: True solves A @ X = B; False solves X @ A = B.
        unitriangular: treat the elements of the diagonal as 1.

    Raises:
        LinAlgError: the diagonal contains 0.
    """
    if not left:
        return S.mT(solve_triangular(S.mT(A), S.mT(B), upper=not upper, unitriangular=unitriangular))
    step = int(bool(unitriangular))
    a = J.triu(A, step) if upper else J.tril(A, -step)
    return solved(a + identity(A, A.shape[-1]) if unitriangular else a, B)


def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> return_types.triangular_solve:
    """Return (X, A) with A @ X = input for a triangular matrix A; an older form of solve_triangular.

    Args:
        input: right-hand sides (..., n, k).
        A: triangular matrices (..., n, n).
        upper: A is an upper triangular matrix; if False, a lower triangular matrix.
        transpose: solve A.mT @ X = input.
        unitriangular: take the diagonal as 1.
    """
    a, above = (S.mT(A), not upper) if transpose else (A, upper)
    return return_types.triangular_solve(solve_triangular(a, input, upper=above, unitriangular=unitriangular),
                                         E.clone(A))


# ---- eigenvalues of symmetric matrices
def _upper(what: str, UPLO: str) -> bool:
    if UPLO not in ("L", "U", "l", "u"):
        raise ArgumentError(f"{what}: Expected UPLO argument to be 'L' or 'U'", expected="'L' or 'U'",
                            got=repr(UPLO), fix="'L': the lower triangle is read")
    return UPLO in "Uu"


def eigh(A: Tensor, UPLO: str = "L") -> return_types.linalg_eigh:
    """Return the eigenvalues of symmetric matrices in ascending order, and the eigenvectors as columns.

    Args:
        A: symmetric matrices (..., n, n).
        UPLO: triangle to read, "L" or "U".

    Note:
        Eigenvectors of equal eigenvalues are only determined up to a rotation. The derivative of this
        rotation is taken as 0.
    """
    return return_types.linalg_eigh(*on_cpu("eigh", mirrored("linalg.eigh", A, _upper("linalg.eigh", UPLO))))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of symmetric matrices, in ascending order.

    Args:
        A: symmetric matrices (..., n, n).
        UPLO: triangle to read, "L" or "U".
    """
    return on_cpu("eigh", mirrored("linalg.eigvalsh", A, _upper("linalg.eigvalsh", UPLO)))[0]


# ---- singular values
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> return_types.linalg_svd:
    """Return the singular value decomposition (U, S, Vh) with A = U[:, :k] @ diag(S) @ Vh[:k].

    Here k is the number of singular values, min(n, m).

    Args:
        A: matrices (..., n, m).
        full_matrices: make U and Vh square; the additional columns have no derivative.
        driver: must be None.

    Note:
        Singular vectors of equal singular values are only determined up to a rotation, which has no
        derivative.
    """
    no_driver("linalg.svd", driver)
    check_tensor("linalg.svd", A)
    return return_types.linalg_svd(*on_cpu("svd", A, full=bool(full_matrices)))


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values of each matrix, in descending order.

    Args:
        A: matrices (..., n, m).
        driver: must be None.
    """
    no_driver("linalg.svdvals", driver)
    check_tensor("linalg.svdvals", A)
    return on_cpu("svd", A)[1]


def old_svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> return_types.svd:
    """Return (U, S, V) with input = U @ diag(S) @ V.mT; an older form of linalg.svd.

    Args:
        input: matrices (..., n, m).
        some: if False, U and V are square.
        compute_uv: if False, U and V are zeros.
    """
    u, s, vh = svd(input, not (some and compute_uv))
    if not compute_uv:
        with use_device_of(input):
            u, vh = (zeros(*x.shape, dtype=input.dtype) for x in (u, vh))
    return return_types.svd(u, s, S.mT(vh))


# ---- QR
def qr(A: Tensor, mode: str = "reduced") -> return_types.linalg_qr:
    """Return (Q, R) with A = Q @ R; the columns of Q are orthonormal, and R is upper triangular.

    Args:
        A: matrices (..., n, m).
        mode: "reduced"; "complete" for a square Q, which has no gradient if n > m; "r" for an empty Q.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError("linalg.qr: qr received unrecognized mode",
                            expected="'reduced', 'complete' or 'r'", got=repr(mode), fix="mode='reduced'")
    check_tensor("linalg.qr", A)
    # Q of the first columns; the other columns are multiplied by it
    if A.ndim > 1 and A.shape[-2] < A.shape[-1]:
        m, n = A.shape[-2:]
        q, r = on_cpu("qr", P.part(A, A.ndim - 1, 0, m))
        r = J.cat([r, matmul(S.mT(q), P.part(A, A.ndim - 1, m, n))], -1)
    else:
        q, r = on_cpu("qr", A, complete=mode == "complete")
    if mode == "r":
        with use_device_of(A):
            q = zeros(0, dtype=A.dtype)
    return return_types.linalg_qr(q, r)


def old_qr(input: Tensor, some: bool = True) -> return_types.qr:
    """Return flow.linalg.qr(input), an older form.

    Args:
        input: matrices (..., n, m).
        some: if False, Q is square.
    """
    return return_types.qr(*qr(input, "reduced" if some else "complete"))


__all__ = ["LinAlgError", "cholesky", "cholesky_ex", "eigh", "eigvalsh", "qr", "solve_triangular", "svd",
           "svdvals"]
