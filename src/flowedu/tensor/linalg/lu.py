"""LU factorization with PyTorch's names: lu, lu_factor, and lu_solve, which use the op of ops/lu.py."""
from __future__ import annotations

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast
from flowedu.errors import ArgumentError, LinAlgError, UnsupportedError
from flowedu.tensor import return_types
from flowedu.tensor.devices.conversion import beside, on_cpu
from flowedu.tensor.dtypes.promotion import check_rank, check_tensor
from flowedu.tensor.linalg.factorizations import identity, solve_triangular
from flowedu.tensor.linalg.products import matmul
from flowedu.tensor.shapes import join_and_pad as J
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip as P


def _factored(what: str, A: Tensor, pivot: bool) -> tuple[Tensor, Tensor]:
    check_tensor(what, A, "A")
    if not pivot:
        raise UnsupportedError(f"{what}: LU without pivoting is not implemented on the CPU",
                               expected="pivot=True",
                               got=f"pivot={pivot!r}", fix="leave it out: P says in which order the rows are")
    factors, p = on_cpu("lu", A)
    return factors, p.detach()


def lu(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu:
    """Return (P, L, U) with A = P @ L @ U.

    P is a permutation matrix, L is lower triangular with ones on its diagonal, and U is upper triangular.

    Args:
        A: matrices (..., n, m).
        pivot: must be True, so that rows are exchanged.
    """
    factors, p = _factored("linalg.lu", A, pivot)
    m, n = A.shape[-2:]
    k = min(m, n)
    low = J.tril(P.part(factors, A.ndim - 1, 0, k), -1)
    ones = identity(A, m)
    return return_types.linalg_lu(p, low + (P.part(ones, 1, 0, k) if k < m else ones),
                                  J.triu(P.part(factors, A.ndim - 2, 0, k)))


def lu_factor_ex(A: Tensor, *, pivot: bool = True,
                 check_errors: bool = False) -> return_types.linalg_lu_factor_ex:
    """Return (LU, pivots, info).

    LU contains L below the diagonal and U on and above it. pivots contains, for each row in order, the row
    with which it was exchanged, counted from 1. info is the position of the first 0 on U's diagonal, counted
    from 1, or 0 if the diagonal has no 0.

    Args:
        A: matrices (..., n, m).
        pivot: must be True, so that rows are exchanged.
        check_errors: raise an error like lu_factor.
    """
    factors, p = _factored("linalg.lu_factor_ex", A, pivot)
    order = (p.cpu().numpy() * np.arange(p.shape[-1])[:, None]).sum(-2).astype(int)
    m, k = A.shape[-2], min(A.shape[-2:])
    pivots = np.zeros((*A.shape[:-2], k), np.int32)
    for i in np.ndindex(pivots.shape[:-1]):
        rows = list(range(m))
        for j in range(k):
            pivots[i][j] = at = rows.index(order[i][j]) + 1
            rows[j], rows[at - 1] = rows[at - 1], rows[j]
    zero = factors.detach().cpu().numpy()[..., range(k), range(k)] == 0
    info = (np.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(np.int32) if k
            else np.zeros(A.shape[:-2], np.int32))
    if check_errors and info.any():
        first = info[info != 0].reshape(-1)[0]
        raise LinAlgError(f"linalg.lu_factor: U[{first},{first}] is zero, and lu_solve would divide by it",
                          expected="a matrix with an inverse",
                          got=f"shape {tuple(A.shape)}, info {info.tolist()}",
                          fix="flow.linalg.lu_factor_ex(A) gives the factors all the same; flow.linalg.lstsq "
                          "solves")
    return return_types.linalg_lu_factor_ex(factors, *(beside(from_numpy(x), A)
                                                       for x in (pivots, np.asarray(info))))


def lu_factor(A: Tensor, *, pivot: bool = True) -> return_types.linalg_lu_factor:
    """Return (LU, pivots); see lu_factor_ex.

    Args:
        A: matrices (..., n, m).
        pivot: must be True, so that rows are exchanged.

    Raises:
        LinAlgError: U has a 0 on its diagonal.
    """
    return return_types.linalg_lu_factor(*lu_factor_ex(A, pivot=pivot, check_errors=True)[:2])


def _places(pivots: Tensor, n: int) -> np.ndarray:
    """Return the matrix P of A = P @ L @ U, (..., n, n)."""
    a = pivots.detach().cpu().numpy()
    found = np.zeros((*a.shape[:-1], n, n))
    for i in np.ndindex(a.shape[:-1]):
        rows = list(range(n))
        for j, at in enumerate(a[i]):
            if not 1 <= at <= n:
                raise ArgumentError("linalg.lu_solve: pivots are no rows of LU", expected=f"1 to {n}",
                                    got=str(int(at)),
                                    fix="the pivots that flow.linalg.lu_factor returned with LU")
            rows[j], rows[at - 1] = rows[at - 1], rows[j]
        found[i][rows, range(n)] = 1
    return found


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Return X with A @ X = B from the result of lu_factor.

    Args:
        LU: first result of lu_factor.
        pivots: second result of lu_factor.
        B: right-hand sides (..., n, k).
        left: if False, solve X @ A = B.
        adjoint: if True, solve with A.mT instead of A.
    """
    for name, x in (("LU", LU), ("pivots", pivots), ("B", B)):
        check_rank("linalg.lu_solve", x, 1 if name == "pivots" else 2, name)
    if pivots.dtype.is_floating_point:
        raise ArgumentError("linalg.lu_solve: pivots are not integers", expected="the pivots of lu_factor",
                            got=str(pivots.dtype), fix="LU, pivots = flow.linalg.lu_factor(A)")
    if not left:
        return S.mT(lu_solve(LU, pivots, S.mT(B), adjoint=not adjoint))
    p = cast(beside(from_numpy(_places(pivots, LU.shape[-1])), LU), LU.dtype)
    low = dict(upper=False, unitriangular=True)
    if adjoint:                                          # (P L U)^T X = B
        y = solve_triangular(S.mT(LU), B, upper=False)
        return matmul(p, S.mT(solve_triangular(LU, S.mT(y), left=False, **low)))
    return solve_triangular(LU, solve_triangular(LU, matmul(S.mT(p), B), **low), upper=True)


__all__ = ["lu", "lu_factor", "lu_factor_ex", "lu_solve"]
