"""Functions that cut or reorder tensors, such as narrow, split, unfold, diagonal, flip, and roll."""
from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import int64
from flowedu.errors import ArgumentError, AxisError, ShapeError
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.dims import check_int, one_dim, real_dim, reshaped, sizes
from flowedu.tensor.arguments.dims import dims as axes_of
from flowedu.tensor.arguments.types import Axes, Sizes
from flowedu.tensor.devices.conversion import use_device_of
from flowedu.tensor.dtypes.promotion import check_rank
from flowedu.tensor.shapes.reshape_and_permute import ravel, transpose

_op = REGISTRY.__getitem__
_SLICE = _op("slice")


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of `length` elements along an axis.

    Args:
        input: tensor.
        dim: axis.
        start: first position.
        length: number of elements.
    """
    a = one_dim(dim, input.ndim, "narrow")
    n = input.shape[a] if input.ndim else 0
    first, length = check_int("narrow", "start", start), check_int("narrow", "length", length)
    if not input.ndim or not -n <= first <= n:
        raise AxisError(f"narrow: start out of range (expected to be in range of [{-n}, {n}], but got "
                        f"{first})", expected=f"a start in [{-n}, {n}]", got=str(first),
                        fix="a start inside the axis")
    first = first + n if first < 0 else first
    if length < 0 or first + length > n:
        raise ShapeError(f"narrow: start ({first}) + length ({length}) exceeds dimension size ({n}).",
                         expected=f"a length of 0 to {n - first}", got=str(length), fix="a smaller length")
    return part(input, a, first, first + length)


def part(x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """Return x[start:stop:step] along one axis."""
    starts, stops, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return _SLICE.call((x,), (tuple(starts), tuple(stops), tuple(steps)))


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of one position along an axis, without that axis.

    Args:
        input: tensor.
        dim: axis.
        index: position.
    """
    if not input.ndim:
        raise AxisError("select: select() cannot be applied to a 0-dim tensor.", expected="one axis or more",
                        got="0-dim", fix="x is a number already: x.item()")
    a = one_dim(dim, input.ndim, "select")
    n = input.shape[a]
    if not -n <= index < n:
        raise AxisError(f"index {index} is out of range: out of bounds for dimension {a} with size {n}",
                        expected=f"an index in [{-n}, {n - 1}]", got=str(index),
                        fix="an index inside the axis")
    y = part(input, a, index % n, index % n + 1)
    return reshaped(y, (*y.shape[:a], *y.shape[a + 1:]))


def split(input: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of pieces along an axis.

    Args:
        input: tensor.
        split_size_or_sections: size of the pieces (the last may be smaller), or a list of sizes.
        dim: axis.
    """
    a = real_dim(dim, input.ndim, "split")
    n, size = input.shape[a], split_size_or_sections
    if not isinstance(size, (tuple, list)):
        size = check_int("split", "split_size", size)
        if size < 0 or size == 0 and n:
            raise ShapeError("split: split expects split_size be non-negative",
                             expected="a size of 1 or more", got=str(size), fix="split_size=1, say")
        parts = [builtins.min(size, n - i) for i in range(0, n, size)] if n else [0]
    else:
        parts = [check_int("split", "a size", n) for n in size]
        if builtins.sum(parts) != n or builtins.any(p < 0 for p in parts):
            raise ShapeError(f"split: split_with_sizes expects split_sizes to sum exactly to {n} (input "
                             f"tensor's size at dimension {a})", expected=f"sizes that add up to {n}",
                             got=str(parts), fix="make the sizes add up")
    return _cut(input, a, parts)


def _cut(x: Tensor, axis: int, lengths: Iterable[int]) -> tuple[Tensor, ...]:
    out, at = [], 0
    for n in lengths:
        out.append(part(x, axis, at, at + n))
        at += n
    return tuple(out)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most `chunks` pieces along an axis, which have equal sizes except for the last one.

    Args:
        input: tensor.
        chunks: number of pieces.
        dim: axis.
    """
    chunks = check_int("chunk", "chunks", chunks)
    if chunks < 1:
        raise ArgumentError("chunk: chunk expects `chunks` to be greater than 0", expected="1 or more",
                            got=str(chunks), fix="chunks=1 gives the whole")
    n = input.shape[real_dim(dim, input.ndim, "chunk")]
    size = -(-n // chunks)
    return split(input, size, dim) if n else _cut(input, one_dim(dim, input.ndim, "chunk"), [0] * chunks)


def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor,
                 dim: int = 0) -> tuple[Tensor, ...]:
    """Return pieces along an axis.

    Args:
        input: tensor.
        indices_or_sections: number of pieces, or a list of positions to cut at.
        dim: axis.
    """
    a = real_dim(dim, input.ndim, "tensor_split")
    n = input.shape[a]
    if hasattr(indices_or_sections, "tolist"):
        indices_or_sections = indices_or_sections.tolist()
    if not isinstance(indices_or_sections, (tuple, list)):
        indices_or_sections = check_int("tensor_split", "indices_or_sections", indices_or_sections)
        if indices_or_sections < 1:
            raise ArgumentError("tensor_split: number of sections must be larger than 0",
                                expected="1 or more", got=str(indices_or_sections), fix="1 gives the whole")
        if indices_or_sections > 1 << 24:
            raise ArgumentError("tensor_split: so many sections are a mistake", expected=f"at most {1 << 24}",
                                got=str(indices_or_sections), fix="x.unbind(dim) gives all slices")
        k, more = divmod(n, indices_or_sections)
        return _cut(input, a, [k + 1] * more + [k] * (indices_or_sections - more))
    cuts = [check_int("tensor_split", "an index", i) for i in indices_or_sections]
    marks = [0, *[builtins.range(n)[slice(None, i)].stop for i in cuts], n]
    return tuple(part(input, a, p, builtins.max(p, q)) for p, q in zip(marks, marks[1:]))


def _even(what: str, input: Tensor, where: int | Sequence[int] | Tensor, dim: int,
          least: int) -> tuple[Tensor, ...]:
    """Split along an axis like tensor_split; a number of sections must divide the size."""
    if input.ndim < least:
        raise ShapeError(f"{what}: requires a tensor with at least {least} dimension{'s' * (least > 1)}",
                         expected=f"{least} or more axes", got=str(tuple(input.shape)),
                         fix=f"flow.atleast_{least}d(x)")
    if isinstance(where, int) and (where < 1 or input.shape[dim] % where):
        raise ShapeError(f"{what}: attempted to split along dimension {dim}, but the size of the dimension "
                         f"{input.shape[dim]} is not divisible by the split_size {where}", got=str(where),
                         expected="a divisor of the axis", fix="flow.tensor_split makes parts of two sizes")
    return tensor_split(input, where, dim)


def hsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
    """Return views of pieces along axis 1, or along axis 0 of a vector.

    Args:
        input: tensor with at least one axis.
        indices_or_sections: number of equal pieces, or a list of positions to cut at.
    """
    return _even("hsplit", input, indices_or_sections, builtins.min(1, builtins.max(input.ndim - 1, 0)), 1)


def vsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
    """Return views of pieces along axis 0.

    Args:
        input: tensor with at least two axes.
        indices_or_sections: number of equal pieces, or a list of positions to cut at.
    """
    return _even("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
    """Return views of pieces along axis 2.

    Args:
        input: tensor with at least three axes.
        indices_or_sections: number of equal pieces, or a list of positions to cut at.
    """
    return _even("dsplit", input, indices_or_sections, 2, 3)


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return one view per position along an axis.

    Args:
        input: tensor.
        dim: axis.
    """
    a = one_dim(dim, input.ndim, "unbind")
    if not input.ndim:
        raise AxisError("unbind: a 0-dim tensor has no axis", expected="one axis or more", got="0-dim",
                        fix="x.reshape(1)")
    return tuple(select(input, a, i) for i in range(input.shape[a]))


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of sliding windows along an axis, with the elements of each window along a new last axis.

    Args:
        input: tensor.
        dimension: axis.
        size: size of a window.
        step: distance between the starts of neighboring windows.
    """
    a = one_dim(dimension, input.ndim, "unfold")
    x = input if input.ndim else reshaped(input, (1,))
    if not 0 <= size <= x.shape[a] or step < 1:
        raise ShapeError(f"unfold: maximum size for tensor at dimension {a} is {x.shape[a]} but size is "
                         f"{size}",
                         expected="0 <= size <= the axis, a step of 1 or more",
                         got=f"size={size}, step={step}", fix="a size no larger than the axis")
    y = _op("unfold")(x, axis=a, size=size, step=step)
    return y if input.ndim else reshaped(y, (size,))


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonals of two axes; a new last axis replaces the two axes.

    Args:
        input: tensor with at least two axes.
        offset: number of columns by which the diagonal is shifted to the right.
        dim1: axis of the rows.
        dim2: axis of the columns.
    """
    a, b = one_dim(dim1, input.ndim, "diagonal"), one_dim(dim2, input.ndim, "diagonal")
    if a == b:
        raise ShapeError("diagonal: diagonal dimensions cannot be identical", expected="two axes",
                         got=f"{dim1}, {dim2}", fix="two different axes")
    return _op("diagonal")(input, offset=offset, axis1=a, axis2=b)


def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int],
               storage_offset: int | None = None) -> Tensor:
    """Return a view with the given sizes and strides over the memory of a contiguous tensor.

    Args:
        input: contiguous tensor.
        size: sizes of the axes.
        stride: distance of neighbors along each axis, in elements.
        storage_offset: position of the first element in the memory; default: that of the input.
    """
    if current_interpreter() is None and not input.is_contiguous():
        raise ShapeError("as_strided: the tensor is not contiguous", expected="a contiguous tensor",
                         got=f"strides {input.strides} of {input.shape}",
                         fix="x.contiguous().as_strided(...)")
    return _op("as_strided")(input, size=tuple(size), stride=tuple(stride), offset=storage_offset or 0)


# ---- reordering (copies)
def flip(input: Tensor, *dims_: Sizes, dims: Axes | None = None) -> Tensor:
    """Reverse the order along axes.

    Args:
        input: tensor.
        *dims_: axes, or one tuple.
        dims: the axes as a keyword; default: None.
    """
    order = sizes(dims_ if dims is None else (dims,))
    axes = axes_of(order, input.ndim, "flip") if order else ()
    for a in axes:
        n = input.shape[a]
        with use_device_of(input):
            places = _op("range").call((), (n - 1 if n else 0, -1, n, int64))
        input = _op("gather").call((input, places), (a,))
    return E.clone(input) if not axes else input


def fliplr(input: Tensor) -> Tensor:
    """Reverse the second axis.

    Args:
        input: tensor with at least two axes.
    """
    check_rank("fliplr", input, 2)
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """Reverse the first axis.

    Args:
        input: tensor with at least one axis.
    """
    check_rank("flipud", input, 1)
    return flip(input, 0)


def roll(input: Tensor, shifts: Axes, dims: Axes | None = None) -> Tensor:
    """Shift elements along axes; elements shifted past the end reappear at the start.

    Args:
        input: tensor.
        shifts: number of positions, an int or one per axis.
        dims: axis or axes; default: None, the flattened tensor.
    """
    if dims is None:
        return reshaped(roll(ravel(input), shifts, 0), input.shape)
    shifts, along = (tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in (shifts, dims))
    if len(shifts) != len(along):
        raise ShapeError("roll: shifts and dimensions must align", expected="as many of each",
                         got=f"{shifts}, {along}", fix="one shift for every axis")
    for by, dim in zip(shifts, along):
        a = real_dim(dim, input.ndim, "roll")
        n, by = input.shape[a], check_int("roll", "shifts", by)
        k = by % n if n else 0
        if k:
            input = _op("concat")(part(input, a, n - k, n), part(input, a, 0, n - k), axis=a)
        else:
            input = E.clone(input)
    return input


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotate by multiples of 90 degrees in the plane of two axes.

    Args:
        input: tensor.
        k: number of rotations from the first axis towards the second.
        dims: the two axes.
    """
    k = check_int("rot90", "k", k)
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise ArgumentError("rot90: dims must be two axes", expected="two ints", got=repr(dims),
                            fix="dims=(0, 1), say")
    a, b = (one_dim(d, input.ndim, "rot90") for d in dims)
    if a == b:
        raise ShapeError("rot90: expected rotation dims to be different", expected="two axes",
                         got=str(tuple(dims)), fix="dims=(0, 1), say")
    k %= 4
    if k == 0:
        return E.clone(input)
    if k == 2:
        return flip(input, a, b)
    return transpose(flip(input, b), a, b) if k == 1 else flip(transpose(input, a, b), b)
