"""Products of matrices, vectors, and tensors, such as matmul, tensordot, kron, and cross."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod
from typing import Any

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.elementwise import zeros_of
from flowedu.core.ops.promote import cast, result_type
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError, DTypeError, NotATensorError, ShapeError
from flowedu.errors.element_types import mixed
from flowedu.tensor.arguments.dims import one_dim, reshaped, transposed
from flowedu.tensor.arguments.types import Axes, Number
from flowedu.tensor.dtypes.promotion import check_rank, check_tensor
from flowedu.tensor.reductions import reduce as R
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip as P

_op = REGISTRY.__getitem__
_MATMUL, _EXPAND = _op("matmul"), _op("expand")


def _same_types(what: str, *xs: Tensor) -> None:
    for x in xs:
        if not isinstance(x, TensorBase):
            raise NotATensorError(what, x, "an operand")
    if any(x.dtype is not xs[0].dtype for x in xs) and thread_state.amp is None:         # which casts them
        raise DTypeError(f"{what}: expected m1 and m2 to have the same dtype", expected="equal types",
                         got=" and ".join(x.dtype.name for x in xs),
                         fix=mixed("convert one with flow.cast (or .to)", *(x.dtype for x in xs)))


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Call the op; integers are computed in float64 (exact below 2^53)."""
    if a.dtype.is_floating_point or a.dtype is not b.dtype:                      # which the op refuses
        return _MATMUL.call((a, b), _MATMUL.defaults)
    from flowedu.core.values import dtype as dt
    if a.dtype is dt.bool_:
        raise DTypeError("matmul: no product of bool matrices", expected="numbers", got="bool",
                         fix="x.float() @ y.float()")
    y = cast(_MATMUL.call((cast(a, dt.float64), cast(b, dt.float64)), _MATMUL.defaults), dt.int64)
    # Wraps around, which C does not define for floats.
    return cast(y, a.dtype)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product; batch axes broadcast.

    Args:
        input: matrices (..., n, k), or a vector (k,) as a row.
        other: matrices (..., k, m), or a vector (k,) as a column.
    """
    try:
        p, q = input.ndim, other.ndim
    except AttributeError:
        raise NotATensorError("matmul", other if isinstance(input, TensorBase) else input,
                              "an operand") from None
    if p == 2 and q == 2:
        return _product(input, other)
    if p == 0 or q == 0:
        raise ShapeError("matmul: both arguments to matmul need to be at least 1D",
                         expected="one axis or more", got=f"{p} and {q}", fix="a number times a tensor is *")
    if p > 1 < q:
        return _of_batches(input, other)
    a = reshaped(input, (1, input.shape[0])) if p == 1 else input
    b = reshaped(other, (other.shape[0], 1)) if q == 1 else other
    try:
        y = _of_batches(a, b)
    except ShapeError as e:
        raise e.with_texts(got=f"a {tuple(input.shape)}, b {tuple(other.shape)}") from None
    shape = y.shape if p > 1 else (*y.shape[:-2], y.shape[-1])
    return reshaped(y, shape if q > 1 else shape[:-1])


matmul.quick = _MATMUL, 2, 2  # type: ignore[attr-defined]  # an attribute of a function


def _of_batches(a: Tensor, b: Tensor) -> Tensor:
    """Return the products of two batches of matrices, which broadcast."""
    if b.ndim > 2 and a.shape[:-2] != b.shape[:-2]:
        batch = S.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (x if x.shape[:-2] == batch else _EXPAND.call((x,), ((*batch, *x.shape[-2:]),))
                for x in (a, b))
    # One batch axis is enough for the kernel.
    if a.ndim > 3 and b.ndim == a.ndim:
        y = _product(S.flatten(a, 0, -3), S.flatten(b, 0, -3))
        return reshaped(y, (*a.shape[:-2], a.shape[-2], b.shape[-1]))
    return _product(a, b)


def _ranks(what: str, *pairs: Any) -> None:
    for name, x, rank in pairs:
        if not isinstance(x, TensorBase):
            raise NotATensorError(what, x, name)
        if x.ndim != rank:
            raise ShapeError(f"{what}: {name} must be a "
                             f"{('vector', 'matrix', 'batch of matrices')[rank - 1]} ({rank}D tensor)",
                             expected=f"{rank} axes", got=str(tuple(x.shape)),
                             fix="flow.matmul takes any number of axes")


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices.

    Args:
        input: matrix (n, k).
        mat2: matrix (k, m).
    """
    _ranks("mm", ("input", input, 2), ("mat2", mat2, 2))
    return matmul(input, mat2)


mm.quick = matmul.quick  # type: ignore[attr-defined]  # an attribute of a function


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two batches of matrices.

    Args:
        input: matrices (b, n, k).
        mat2: matrices (b, k, m).
    """
    _ranks("bmm", ("input", input, 3), ("mat2", mat2, 3))
    if input.shape[0] != mat2.shape[0]:
        raise ShapeError("bmm: the batches differ", expected="equal first axes",
                         got=f"{input.shape} and {mat2.shape}", fix="expand one of them")
    return matmul(input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix and a vector.

    Args:
        input: matrix (n, k).
        vec: vector (k,).
    """
    _ranks("mv", ("input", input, 2), ("vec", vec, 1))
    return matmul(input, vec)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return the inner product of two vectors.

    Args:
        input: vector (n,).
        tensor: vector (n,).
    """
    _ranks("dot", ("input", input, 1), ("tensor", tensor, 1))
    _same_types("dot", input, tensor)
    if input.shape != tensor.shape:
        raise ShapeError("dot: inconsistent tensor size", expected="equal lengths",
                         got=f"{input.shape}, {tensor.shape}", fix="flow.outer multiplies all pairs")
    return R.sum(input * tensor, dtype=input.dtype)


vdot = dot


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the sums of products along the last axes of both tensors.

    Args:
        input: tensor (..., k).
        other: tensor (..., k).
    """
    return input * other if not input.ndim or not other.ndim else tensordot(input, other, ([-1], [-1]))


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the products of all pairs of elements of two vectors.

    Args:
        input: vector (n,).
        vec2: vector (m,).
    """
    _ranks("outer", ("input", input, 1), ("vec2", vec2, 1))
    return reshaped(input, (input.shape[0], 1)) * vec2


ger = outer


def _scaled(y: Tensor, input: Tensor, beta: Number, alpha: Number) -> Tensor:
    """Return beta * input + alpha * y; for integers with the integer parts of beta and alpha."""
    kind = result_type(y, input)
    if not kind.is_floating_point:
        beta, alpha = int(beta), int(alpha)
        if kind.name == "bool":
            beta, alpha = bool(beta), bool(alpha)
    y = y if alpha == 1 else y * alpha
    if beta == 0:
        return y
    return y + (input if beta == 1 else input * beta)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return beta * input + alpha * mat1 @ mat2.

    Args:
        input: tensor that broadcasts to (n, m).
        mat1: matrix (n, k).
        mat2: matrix (k, m).
        beta: factor of the input.
        alpha: factor of the product.
    """
    return _scaled(mm(mat1, mat2), input, beta, alpha)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return beta * input + alpha * mat @ vec.

    Args:
        input: tensor that broadcasts to (n,).
        mat: matrix (n, k).
        vec: vector (k,).
        beta: factor of the input.
        alpha: factor of the product.
    """
    return _scaled(mv(mat, vec), input, beta, alpha)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return beta * input + alpha * outer(vec1, vec2).

    Args:
        input: tensor that broadcasts to (n, m).
        vec1: vector (n,).
        vec2: vector (m,).
        beta: factor of the input.
        alpha: factor of the product.
    """
    kind = result_type(input, vec1, vec2)            # the product must not wrap in a narrower type
    return _scaled(outer(cast(vec1, kind), cast(vec2, kind)), input, beta, alpha)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return beta * input + alpha * batch1 @ batch2.

    Args:
        input: tensor that broadcasts to (b, n, m).
        batch1: matrices (b, n, k).
        batch2: matrices (b, k, m).
        beta: factor of the input.
        alpha: factor of the products.
    """
    return _scaled(bmm(batch1, batch2), input, beta, alpha)


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """Return beta * input + alpha * the sum of all products of the batch.

    Args:
        input: tensor that broadcasts to (n, m).
        batch1: matrices (b, n, k).
        batch2: matrices (b, k, m).
        beta: factor of the input.
        alpha: factor of the sum.
    """
    y = bmm(batch1, batch2)
    return _scaled(R.sum(y, 0, dtype=y.dtype), input, beta, alpha)


def chain_matmul(*matrices: Tensor) -> Tensor:
    """Return the product of one matrix or more.

    Args:
        *matrices: matrices; each has as many rows as the previous one has columns.
    """
    if not matrices:
        raise ArgumentError("chain_matmul: no matrix is given", expected="one matrix or more", got="none",
                             fix="flow.chain_matmul(a, b)")
    _same_types("chain_matmul", *matrices)
    return functools.reduce(matmul, matrices)


def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Axes] | Tensor = 2) -> Tensor:
    """Return products summed over several axes.

    Args:
        a: tensor.
        b: tensor.
        dims: number of last axes of a and first axes of b to sum over, or two lists of axes. A tensor of ints
            has the meaning of its number or lists.
    """
    if isinstance(dims, TensorBase):
        numbers: Any = dims.item() if dims.numel() == 1 else dims.tolist()
        return tensordot(a, b, numbers)
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError("tensordot: dims is out of range", expected=f"0 to {min(a.ndim, b.ndim)}",
                             got=str(dims), fix="dims=1 is matmul")
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        if len(dims) != 2:
            raise ArgumentError("tensordot: dims is not right", expected="a number, or two lists of axes",
                                got=repr(dims), fix="dims=([1], [0])")
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
        left, right = ([one_dim(d, a.ndim, "tensordot") for d in left], [one_dim(d, b.ndim, "tensordot")
                                                                         for d in right])
    # An axis of size 1 against a longer one, which is summed first.
    for i, j in zip(left, right):
        if a.shape[i] == 1 != b.shape[j]:
            b = R.sum(b, j, True, dtype=b.dtype)
        elif b.shape[j] == 1 != a.shape[i]:
            a = R.sum(a, i, True, dtype=a.dtype)
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise ShapeError("tensordot: contracted dimensions need to match", expected="equal sizes",
                         got=f"{[a.shape[i] for i in left]} and {[b.shape[i] for i in right]}",
                         fix="check the axes in dims")
    la, lb = [i for i in range(a.ndim) if i not in left], [i for i in range(b.ndim) if i not in right]
    k = prod(a.shape[i] for i in left)
    p, q = tuple(a.shape[i] for i in la), tuple(b.shape[i] for i in lb)
    x = S.reshape(transposed(a, (*la, *left)), prod(p), k)
    y = S.reshape(transposed(b, (*right, *lb)), k, prod(q))
    return reshaped(matmul(x, y), (*p, *q))


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product.

    Args:
        input: tensor.
        other: tensor.
    """
    rank = max(input.ndim, other.ndim)
    a, b = (reshaped(x, (1,) * (rank - x.ndim) + tuple(x.shape)) for x in (input, other))
    wide = reshaped(a, tuple(m for n in a.shape for m in (n, 1))) * reshaped(b, tuple(m for n in b.shape
                                                                                      for m in (1, n)))
    return reshaped(wide, tuple(n * m for n, m in zip(a.shape, b.shape)))


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross product along an axis of size 3.

    Both inputs must have 3 elements along this axis. The other axes broadcast, even if the inputs have
    different numbers of axes, as in the array API standard. PyTorch requires the same number of axes.

    Args:
        input: tensor.
        other: tensor.
        dim: axis of the broadcast shape; default: the first one of size 3.
    """
    check_rank("cross", input, 1)
    check_rank("cross", other, 1, "other")
    a, b = S.broadcast_tensors(input, other)
    if dim is None:
        dim = next((i for i, n in enumerate(a.shape) if n == 3), None)
    axis = 0 if dim is None else one_dim(dim, a.ndim, "cross")
    fits = [x.ndim >= a.ndim - axis and x.shape[axis - a.ndim] == 3 for x in (input, other)]
    if dim is None or not all(fits):
        raise ShapeError("cross: inputs must have a dimension of length 3",
                         expected="an axis of size 3 in both inputs",
                         got=f"{tuple(input.shape)} and {tuple(other.shape)}",
                         fix="dim= names the axis of size 3")
    return P.roll(a, -1, axis) * P.roll(b, -2, axis) - P.roll(a, -2, axis) * P.roll(b, -1, axis)


def trace(input: Tensor) -> Tensor:
    """Return the sum of the diagonal of a matrix.

    Args:
        input: matrix.
    """
    _ranks("trace", ("input", input, 2))
    return R.sum(P.diagonal(input))


def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return the matrix power x @ x @ ... @ x; a negative exponent gives a power of the inverse.

    Args:
        input: matrices (..., n, n).
        n: exponent.
    """
    from flowedu.tensor.construction.creation import eye
    from flowedu.tensor.construction.destination import home
    check_tensor("matrix_power", input)
    if n < 0:
        input, n = _op("inverse")(input), -n
    y, square = None, input
    while n:
        if n & 1:
            y = square if y is None else matmul(y, square)
        n >>= 1
        square = matmul(square, square) if n else square
    if y is not None:
        return y
    y = S.expand(eye(input.shape[-1], dtype=input.dtype, device=home(input)), *input.shape)
    # The derivative is 0, but it exists.
    return y + zeros_of(input) if input.requires_grad else S.contiguous(y)


_CDIST_MODES = ("donot_use_mm_for_euclid_dist", "use_mm_for_euclid_dist_if_necessary",
                "use_mm_for_euclid_dist")


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """Return the p-norm distance of every row of x1 to every row of x2.

    Args:
        x1: (..., n, d).
        x2: (..., m, d).
        p: order of the norm.
        compute_mode: one of PyTorch's three modes, which all give the exact result here; default: None.
    """
    if compute_mode not in (None, *_CDIST_MODES):
        raise ArgumentError("cdist: compute_mode", expected=" or ".join(map(repr, _CDIST_MODES)),
                            got=repr(compute_mode), fix="leave it out")
    return R.vector_norm(S.unsqueeze(x1, -2) - S.unsqueeze(x2, -3), p if x1.shape[-1] else 2, -1)
