"""Linear algebra of the standard: products, and the extension `linalg`."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.errors import ShapeError
from flowedu.tensor.array_api.adapters import call_reduction, make_binary, promote, result_type
from flowedu.tensor.array_api.elementwise import multiply
from flowedu.tensor.linalg import inverse_and_norms as L
from flowedu.tensor.linalg import products
from flowedu.tensor.reductions import reduce as R
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes.reshape_and_permute import broadcast_shapes
from flowedu.tensor.shapes.reshape_and_permute import mT as matrix_transpose

matmul, outer = make_binary(products.matmul), make_binary(products.outer)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Return the sum of products over axes."""
    a, b = promote(x1, x2)
    return products.tensordot(a, b, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the inner products of vectors along an axis, which must have the same size in both arrays."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError("vecdot: the vectors have different sizes",
                         got=f"{x1.shape[axis]} and {x2.shape[axis]}")
    return R.sum(multiply(x1, x2), axis, dtype=result_type(x1, x2))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the solution x of x1 @ x = x2; x2 is a vector if it has one axis, else it contains matrices."""
    a, b = promote(x1, S.unsqueeze(x2, 1) if x2.ndim == 1 else x2)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    y = L.solve(S.expand(a, (*batch, *a.shape[-2:])), S.expand(b, (*batch, *b.shape[-2:])))
    return S.squeeze(y, -1) if x2.ndim == 1 else y


linalg = SimpleNamespace(
    matmul=matmul, matrix_transpose=matrix_transpose, tensordot=tensordot, vecdot=vecdot, outer=outer,
    solve=solve, det=L.det, inv=L.inv, eigh=L.eigh, eigvalsh=L.eigvalsh, matrix_power=L.matrix_power,
    slogdet=L.slogdet, svdvals=L.svdvals, cholesky=lambda x, /, *, upper=False: L.cholesky(x, upper=upper),
    cross=lambda x1, x2, /, *, axis=-1: make_binary(lambda a, b: L.cross(a, b, axis))(x1, x2),
    diagonal=lambda x, /, *, offset=0: L.diagonal(x, offset),
    matrix_norm=lambda x, /, *, keepdims=False, ord="fro": L.matrix_norm(x, ord, keepdim=keepdims),
    matrix_rank=lambda x, /, *, rtol=None: L.matrix_rank(x, rtol=rtol),
    pinv=lambda x, /, *, rtol=None: L.pinv(x, rtol=rtol), qr=lambda x, /, *, mode="reduced": L.qr(x, mode),
    svd=lambda x, /, *, full_matrices=True: L.svd(x, full_matrices),
    trace=lambda x, /, *, offset=0, dtype=None: R.sum(L.diagonal(x, offset), -1, dtype=dtype),
    vector_norm=lambda x, /, *, axis=None, keepdims=False, ord=2: call_reduction(
        lambda x, axis, keepdims: L.vector_norm(x, ord, axis, keepdims), x, axis, keepdims))
