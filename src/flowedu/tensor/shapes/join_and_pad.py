"""Functions that join, pad, and arrange tensors, such as cat, stack, pad, meshgrid, tril, and diag."""
from __future__ import annotations

import functools
from collections.abc import Sequence

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast, promote, scalar
from flowedu.core.values.dtype import bool_, int64
from flowedu.errors import ArgumentError, CallError, DTypeError, NotATensorError, ShapeError
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.dims import one_dim, reshaped, transposed
from flowedu.tensor.arguments.types import Number
from flowedu.tensor.devices.conversion import use_device_of
from flowedu.tensor.dtypes.promotion import check_rank
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip as P

_op = REGISTRY.__getitem__
_CONCAT, _RANGE = _op("concat"), _op("range")


def _list(what: str, tensors: Sequence[Tensor]) -> list:
    if isinstance(tensors, TensorBase) or not isinstance(tensors, (list, tuple)):
        raise DTypeError(f"{what}: tensors is not a list", expected="a list or tuple of tensors",
                         got=type(tensors).__name__, fix=f"flow.{what}([a, b])")
    if not tensors:
        raise ShapeError(f"{what}: expected a non-empty list of Tensors", expected="one tensor or more",
                         got="none", fix="check that the list is not empty")
    for x in tensors:
        if not isinstance(x, TensorBase):
            raise NotATensorError(what, x, "an element of the list")
    return list(tensors)


def cat(tensors: Sequence, dim: int = 0) -> Tensor:
    """Concatenate tensors along an axis.

    Args:
        tensors: tensors with equal sizes except along `dim`. The dtypes are promoted, and empty 1-dim tensors
            are ignored.
        dim: axis.
    """
    xs = _list("cat", tensors)
    first = xs[0]
    if first.ndim and all(x.dtype is first.dtype and x.ndim == first.ndim for x in xs) and len(xs) > 1:
        try:
            return _CONCAT.call(tuple(xs), (one_dim(dim, first.ndim, "cat"),))
        except ShapeError:                                # the checks below raise PyTorch's messages
            pass
    dtype = functools.reduce(promote, [x.dtype for x in xs])
    rank = max(x.ndim for x in xs)
    if rank == 0:
        raise ShapeError("cat: zero-dimensional tensor cannot be concatenated", expected="one axis or more",
                         got="0-dim", fix="flow.stack joins along a new axis")
    axis = one_dim(dim, rank, "cat")
    xs = [cast(x, dtype) for x in xs if x.shape != (0,) or rank == 1] or xs[:1]
    for i, x in enumerate(xs):
        if x.ndim != rank:
            raise ShapeError("cat: Tensors must have same number of dimensions", expected=f"{rank} axes",
                             got=f"{x.ndim} in tensor {i}", fix="unsqueeze or reshape it")
        if x.shape[:axis] + x.shape[axis + 1:] != xs[0].shape[:axis] + xs[0].shape[axis + 1:]:
            raise ShapeError(f"cat: Sizes of tensors must match except in dimension {axis}",
                             got=f"{tuple(x.shape)} in tensor {i}",
                             expected=f"{tuple(xs[0].shape)}, another size only at axis {axis}",
                             fix="narrow or pad the others first")
    return _CONCAT.call(tuple(xs), (axis,)) if len(xs) > 1 else E.clone(xs[0])


concat = concatenate = cat


def stack(tensors: Sequence, dim: int = 0) -> Tensor:
    """Join tensors along a new axis.

    Args:
        tensors: tensors of one shape.
        dim: position of the new axis.
    """
    xs = _list("stack", tensors)
    axis = one_dim(dim, xs[0].ndim + 1, "stack")
    for i, x in enumerate(xs):
        if x.shape != xs[0].shape:
            raise ShapeError(f"stack: stack expects each tensor to be equal size, but got "
                             f"{tuple(xs[0].shape)} at entry 0 and {tuple(x.shape)} at entry {i}",
                             expected="equal shapes",
                             got=str(tuple(x.shape)), fix="flow.cat joins along an axis they have")
    return cat([S.unsqueeze(x, axis) for x in xs], axis)


def hstack(tensors: Sequence) -> Tensor:
    """Concatenate tensors along the second axis (vectors along the first).

    Args:
        tensors: tensors with equal sizes along the other axes.
    """
    xs = [S.atleast_1d(x) for x in _list("hstack", tensors)]
    return cat(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(tensors: Sequence) -> Tensor:
    """Concatenate tensors along the first axis; vectors become rows.

    Args:
        tensors: tensors with equal sizes along the other axes.
    """
    return cat([S.atleast_2d(x) for x in _list("vstack", tensors)], 0)


row_stack = vstack


def dstack(tensors: Sequence) -> Tensor:
    """Concatenate tensors along the third axis.

    Args:
        tensors: tensors with equal sizes along the other axes.
    """
    return cat([S.atleast_3d(x) for x in _list("dstack", tensors)], 2)


def column_stack(tensors: Sequence) -> Tensor:
    """Concatenate vectors as columns, and matrices along the columns.

    Args:
        tensors: vectors of size n and matrices (n, m).
    """
    return hstack([reshaped(x, (x._numel, 1)) if x.ndim < 2 else x for x in _list("column_stack", tensors)])


def block_diag(*tensors: Tensor) -> Tensor:
    """Return a block-diagonal matrix.

    Args:
        *tensors: blocks on the diagonal, which are matrices, vectors (as rows), or 0-dim tensors.
    """
    xs = [S.atleast_2d(x) for x in tensors]
    width, rows, left = sum(x.shape[1] for x in xs), [], 0
    for x in xs:
        rows.append(pad(x, (left, width - left - x.shape[1])))
        left += x.shape[1]
    return cat(rows, 0)


def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid.

    Args:
        *tensors: vectors of n, m, ... elements, all of one dtype, or a list of them. A scalar is a vector of
            one element.
        indexing: "ij" returns tensors of shape (n, m, ...), and "xy" exchanges their first two axes.

    Raises:
        ShapeError: there is no tensor, or one of them has two axes or more.
        DTypeError: the dtypes differ.

    Example:
        >>> rows, columns = flow.meshgrid(flow.arange(2), flow.arange(3))
        >>> rows.tolist(), columns.tolist()
        ([[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]])
    """
    xs = _list("meshgrid", S.unpack_tensors(tensors))
    for x in xs:
        if x.ndim > 1:
            raise ShapeError("meshgrid: expected 0D or 1D tensors", expected="vectors of coordinates",
                             got=f"the shape {tuple(x.shape)}", fix="x.flatten()")
        if x.dtype is not xs[0].dtype:
            raise DTypeError("meshgrid: expected all tensors to have the same dtype",
                             expected=str(xs[0].dtype), got=str(x.dtype),
                             fix="x.to(y.dtype) for the dtype of the first tensor y")
    if indexing not in ("ij", "xy"):
        raise ArgumentError("meshgrid: indexing is unknown", expected='"ij" or "xy"', got=repr(indexing),
                            fix="indexing=\"ij\"")
    turn = indexing == "xy" and len(xs) > 1
    if turn:
        xs[0], xs[1] = xs[1], xs[0]
    shape = tuple(x._numel for x in xs)
    grid = [S.expand(reshaped(x, (1,) * i + (x._numel,) + (1,) * (len(xs) - i - 1)), *shape)
            for i, x in enumerate(xs)]
    if turn:
        grid[0], grid[1] = grid[1], grid[0]
    return tuple(grid)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of elements of vectors, one row each.

    Args:
        *tensors: vectors.
    """
    xs = _list("cartesian_prod", tensors)
    if len(xs) == 1:
        return xs[0]
    return stack([reshaped(S.contiguous(g), (g._numel,)) for g in meshgrid(*xs)], 1)


# ---- padding
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad a tensor on the sides of its last axes.

    Args:
        input: tensor.
        pad: number of elements (before, after) for the last axis, then for the axis before it, and so on.
            Negative numbers crop.
        mode: "constant", "reflect" (pads less than the size of the axis), "replicate", or "circular" (pads at
            most the size of the axis).
        value: constant of mode "constant"; default: 0.
    """
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ShapeError("pad: pad does not fit",
                         expected=f"an even number of ints, at most {2 * input.ndim}",
                         got=str(tuple(pad)),
                         fix="(before, after) of the last axis, then of the one before it")
    pairs = [(input.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    if mode == "constant":
        return _constant_pad(input, pairs, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise ArgumentError("pad: unknown mode", expected='"constant", "reflect", "replicate" or "circular"',
                            got=repr(mode), fix="mode=\"constant\"")
    for axis, a, b in pairs:
        input = _mirrored(input, axis, a, b, mode)
    return input


def _constant_pad(x: Tensor, pairs: list, value: Number) -> Tensor:
    start, stop = [0] * x.ndim, list(x.shape)
    for axis, a, b in pairs:
        start[axis], stop[axis] = -a if a < 0 else 0, stop[axis] + b if b < 0 else stop[axis]
        if x.shape[axis] + a + b < 0:
            raise ShapeError("pad: more is cut off than there is", expected=f"{x.shape[axis]} or less",
                             got=f"({a}, {b})", fix="cut off less")
    if start != [0] * x.ndim or stop != list(x.shape):
        x = _op("slice")(x, start=start, stop=stop, step=(1,) * x.ndim)
    shape, start = list(x.shape), [0] * x.ndim
    for axis, a, b in pairs:
        start[axis] = max(a, 0)
        shape[axis] += max(a, 0) + max(b, 0)
    if tuple(shape) == x.shape:
        return E.clone(x)
    place = dict(shape=tuple(shape), start=tuple(start), stop=tuple(a + n for a, n in zip(start, x.shape)),
                 step=(1,) * x.ndim)
    y = _op("slice_grad")(x, **place)
    if value == 0:
        return y
    with use_device_of(x):
        inside = _op("slice_grad")(_op("constant")(shape=x.shape, value=1, dtype=bool_), **place)
    return E.where(inside, y, scalar(value, x.dtype, "pad"))


def _mirrored(x: Tensor, axis: int, a: int, b: int, mode: str) -> Tensor:
    n = x.shape[axis]
    limit = {"reflect": n - 1, "circular": n, "replicate": 1 << 62}[mode]
    if a > limit or b > limit or n == 0 or a + n + b < 0 or min(a, b) < -n:
        raise ShapeError(f"pad: {mode} padding does not fit",
                         expected=f"at most {limit} on each side of axis {axis}",
                         got=f"({a}, {b})", fix="pad less, or use mode=\"constant\"")
    if mode == "circular" and min(a, b) < 0:             # cropped values do not reappear
        x = _op("slice")(x, start=[max(-a, 0) if i == axis else 0 for i in range(x.ndim)],
                         stop=[n + min(b, 0) if i == axis else m for i, m in enumerate(x.shape)],
                         step=(1,) * x.ndim)
        return _mirrored(x, axis, max(a, 0), max(b, 0), mode)
    with use_device_of(x):
        places = E.add(_RANGE(start=-a, size=a + n + b, dtype=int64), 0)
    if mode == "replicate":
        places = E.clamp(places, 0, n - 1)
    elif mode == "circular":
        places = E.remainder(places, n)
    else:
        places = E.abs(places)
        places = (n - 1) - E.abs(places - (n - 1))
    return _op("gather").call((x, places), (axis,))


# ---- triangles and diagonals
def _below(x: Tensor, diagonal: int) -> Tensor:
    """Return bools for matrices x: True on and below the diagonal shifted `diagonal` columns to the right."""
    rows, columns = x.shape[-2:]
    diagonal = min(max(diagonal, -rows), columns)
    with use_device_of(x):
        return E.ge(reshaped(_RANGE(start=diagonal, size=rows, dtype=int64), (rows, 1)),
                    _RANGE(size=columns, dtype=int64))


def _matrix(what: str, x: Tensor, diagonal: int) -> None:
    if not isinstance(diagonal, int):
        raise CallError(f"{what}: diagonal is not an int", expected="0, or how far to the right",
                        got=repr(diagonal), fix="diagonal=int(d)")
    if x.ndim < 2:
        raise ShapeError(f"{what}: input tensor must have at least 2 dimensions", expected="a matrix",
                         got=str(x.shape), fix="x.unsqueeze(0) makes a vector a matrix")


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the lower triangle of each matrix, with zeros above it.

    Args:
        input: matrices (..., n, m).
        diagonal: number of columns by which the diagonal is shifted to the right.
    """
    _matrix("tril", input, diagonal)
    return E.where(_below(input, diagonal), input, scalar(0, input.dtype))


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the upper triangle of each matrix, with zeros below it.

    Args:
        input: matrices (..., n, m).
        diagonal: number of columns by which the diagonal is shifted to the right.
    """
    _matrix("triu", input, diagonal)
    return E.where(_below(input, diagonal - 1), scalar(0, input.dtype), input)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices with the last axis of the input on their diagonals, and zeros elsewhere.

    Args:
        input: tensor (..., n).
        offset: number of columns by which the diagonal is shifted to the right.
        dim1: position of the rows in the result.
        dim2: position of the columns in the result.
    """
    check_rank("diag_embed", input, 1)
    rank, k = input.ndim + 1, input.shape[-1]
    n = k + abs(offset)
    a, b = one_dim(dim1, rank, "diag_embed"), one_dim(dim2, rank, "diag_embed")
    if a == b:
        raise ShapeError("diag_embed: diagonal dimensions cannot be identical", expected="two axes",
                         got=f"{dim1}, {dim2}", fix="two different axes")
    lead = input.shape[:-1]
    start = max(-offset, 0) * n + max(offset, 0) if k else 0
    flat = _op("slice_grad")(input, shape=(*lead, n * n), start=(*(0,) * len(lead), start),
                             step=(*(1,) * len(lead), n + 1),
                             stop=(*lead, start + (k - 1) * (n + 1) + 1 if k else start))
    y = reshaped(flat, (*lead, n, n))
    order = [i for i in range(rank) if i not in (a, b)] + [a, b]
    return transposed(y, tuple(order.index(i) for i in range(rank)))


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the diagonal of a matrix, or a matrix with a vector on its diagonal.

    Args:
        input: matrix or vector.
        diagonal: number of columns by which the diagonal is shifted to the right.
    """
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise ShapeError("diag: Supports 1D or 2D tensors.", expected="a vector or a matrix",
                         got=str(input.shape), fix="flow.diagonal takes matrices of a batch")
    return E.clone(P.diagonal(input, diagonal))


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a square matrix with all elements on its diagonal, and zeros elsewhere.

    Args:
        input: tensor of any shape.
        offset: number of columns by which the diagonal is shifted to the right.
    """
    return diag_embed(S.ravel(input), offset)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements that an index tensor selects along an axis.

    Args:
        input: tensor.
        indices: int64 tensor with the same number of axes. The axes other than `dim` broadcast.
        dim: axis; default: None, the flattened tensor.
    """
    if dim is None:
        input, indices, dim = S.ravel(input), S.ravel(indices), 0
    axis = one_dim(dim, input.ndim, "take_along_dim")
    if input.ndim != indices.ndim:
        raise ShapeError("take_along_dim: input and indices should have the same number of dimensions",
                         expected=f"indices of {input.ndim} axes", got=str(tuple(indices.shape)),
                         fix="reshape the indices")
    indices = E.where(E.lt(indices, 0), indices + input.shape[axis], indices)
    shape = S.broadcast_shapes(*[(*x.shape[:axis], 1, *x.shape[axis + 1:]) for x in (input, indices)])
    input, indices = (S.expand(x, *shape[:axis], x.shape[axis], *shape[axis + 1:]) for x in (input, indices))
    return _op("dim_gather").call((input, indices), (axis,))


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the matrix with columns x^(N-1), ..., x, 1.

    Args:
        x: vector; integers give int64.
        N: number of columns; default: the size of x.
        increasing: order the columns as 1, x, x^2, ...
    """
    check_rank("vander", x, 1, "x")
    if x.ndim > 1:
        raise ShapeError("vander: x must be a one-dimensional tensor.", expected="one axis",
                         got=str(tuple(x.shape)), fix="flow.linalg.vander takes a batch of vectors")
    x = x if x.dtype.is_floating_point else cast(x, int64)
    n = x.shape[-1] if N is None else N
    with use_device_of(x):
        powers = _RANGE(start=0 if increasing else n - 1, step=1 if increasing else -1, size=n, dtype=int64)
    return E.pow(S.unsqueeze(x, -1), cast(powers, x.dtype))


