"""LU factorization: a row order, a unit lower triangular matrix, and an upper triangular one.

Gaussian elimination is written with NumPy array operations, because NumPy has no LU function.

As in ops/linalg.py, `ref` is the kernel, and the gradient is made of ops. The row order has no derivative.
"""
from __future__ import annotations

import numpy as np

from flowedu.core.ops.concat import concat, slice
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import sign
from flowedu.core.ops.record import Laws, Meaning
from flowedu.core.ops.view import reshape
from flowedu.ops.factors import check_matrix
from flowedu.ops.linalg import batch_axes, solve, turned
from flowedu.ops.order import range as numbers
from flowedu.ops.types import AnyTensor


def _lu_ref(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factorize all matrices of the batch at once, column by column, with the largest number as pivot."""
    *batch, m, n = x.shape
    count = int(np.prod(batch))
    a, order, which = x.reshape(count, m, n).copy(), np.tile(np.arange(m), (count, 1)), np.arange(count)
    with np.errstate(all="ignore"):
        for k in range(min(m, n)):
            pivot = k + np.argmax(np.abs(a[:, k:, k]), 1)
            for rows in (a, order):
                rows[which, k], rows[which, pivot] = rows[which, pivot].copy(), rows[which, k].copy()
            top = a[:, k, k, None]
            a[:, k + 1:, k] = np.where(top == 0, a[:, k + 1:, k],
                                       a[:, k + 1:, k] / np.where(top == 0, 1, top))
            a[:, k + 1:, k + 1:] -= a[:, k + 1:, k, None] * a[:, None, k, k + 1:]
    places = np.zeros((len(a), m, m), x.dtype)
    np.put_along_axis(places, order[:, None], 1, 1)
    return a.reshape(x.shape), places.reshape(*batch, m, m)


def _block(x: AnyTensor, rows: tuple[int, int], columns: tuple[int, int]) -> AnyTensor:
    lead = x.shape[:-2]
    return slice(x, start=(*(0 for _ in lead), rows[0], columns[0]), stop=(*lead, rows[1], columns[1]),
                 step=(1,) * x.ndim)


def _lu_grad(dfactors: AnyTensor | None, factors: AnyTensor, p: AnyTensor) -> AnyTensor | None:
    """Return the gradient of the matrix from that of its factors.

    For the leading square L U it is L^-T (tril(L^T dL, -1) + triu(dU U^T)) U^-T. Further rows are L2 = A2
    U^-1, further columns U2 = L^-1 A2, and they pass gradients on to the square.
    """
    if dfactors is None:
        return None
    m, n = factors.shape[-2:]
    k = min(m, n)
    places = numbers(size=k, dtype=factors.dtype)
    sides = sign(reshape(places, shape=(k, 1)) - places)
    low, diagonal = (sides + sides * sides) * 0.5, 1 - sides * sides              # below the diagonal; on it
    square, g = (_block(x, (0, k), (0, k)) for x in (factors, dfactors))
    lower, upper = square * low + diagonal, square * (1 - low)
    dl, du = g * low, g * (1 - low)
    if m > k:
        more = turned(solve(upper, turned(_block(dfactors, (k, m), (0, k)))))
        du = du - turned(_block(factors, (k, m), (0, k))) @ more
    if n > k:
        more = solve(turned(lower), _block(dfactors, (0, k), (k, n)))
        dl = dl - more @ turned(_block(factors, (0, k), (k, n)))
    inner = (turned(lower) @ dl) * low + (du * (1 - low) @ turned(upper)) * (1 - low)
    dx = turned(solve(upper, turned(solve(turned(lower), inner))))
    if m != n:
        dx = concat(dx, more, axis=factors.ndim - (2 if m > k else 1))
    return p @ dx


lu = define(
    "lu(x) -> (factors, p)",
    Meaning(lambda x: "{0}MN->{0}MN,{0}MK".format(batch_axes(x.ndim)), _lu_ref,
            shape=lambda x: (x.shape, (*x.shape[:-1], x.shape[-2])), check=check_matrix("linalg.lu")),
    Laws([dict(shapes=[(4, 4)]), dict(shapes=[(6, 4, 3)]), dict(shapes=[(2, 5)])]), grad={"x": _lu_grad},
    doc="x = p @ L @ U with L below the diagonal of factors, ones on its own, and U from there on; p: a "
    "matrix of zeros and ones, of the order of the rows.")
