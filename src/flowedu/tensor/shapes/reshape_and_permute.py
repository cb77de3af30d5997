"""Functions that change shapes, such as reshape, squeeze, permute, and expand.

Results are views wherever PyTorch returns views.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast
from flowedu.core.ops.view import reshape_strides
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import MAX_RANK, Spec
from flowedu.errors import ArgumentError, CallError, ShapeError
from flowedu.errors.values import too_many_axes
from flowedu.tensor.arguments.dims import dims, one_dim, real_dim, reshaped, sizes, transposed
from flowedu.tensor.arguments.memory_check import room_for
from flowedu.tensor.arguments.types import Axes, Sizes
from flowedu.tensor.devices.memory_format import contiguous  # noqa: F401  (one of this family)

_op = REGISTRY.__getitem__
_RESHAPE, _TRANSPOSE, _EXPAND, _SLICE = map(_op, ("reshape", "transpose", "expand", "slice"))


# ---- reshape and its family
def full_shape(size: int, shape: Sequence[int], what: str = "reshape") -> tuple[int, ...]:
    """Return `shape` with -1 replaced by the missing size; raise ShapeError if the sizes do not fit."""
    known, hole = 1, None
    for i, n in enumerate(shape):
        if n == -1:
            if hole is not None:
                raise ShapeError(f"{what}: only one dimension can be inferred", expected="at most one -1",
                                 got=str(tuple(shape)), fix="write all sizes but one")
            hole = i
        elif n < 0:
            raise ShapeError(f"{what}: invalid shape dimension {n}", expected="sizes of 0 or more, or one -1",
                             got=str(tuple(shape)), fix="-1 is replaced by the computed size")
        else:
            known *= n
    if hole is None:
        if known != size:
            raise ShapeError(f"{what}: shape '{tuple(shape)}' is invalid for input of size {size}",
                             got=f"{known} elements",
                             expected=f"{size} elements", fix="use -1 for one axis and let it be worked out")
        return tuple(shape)
    if known == 0 or size % known:
        raise ShapeError(f"{what}: shape '{tuple(shape)}' is invalid for input of size {size}",
                         got="no size for the -1", expected=f"sizes whose product divides {size}",
                         fix="leave one size out as -1 whose value makes the product fit")
    return (*shape[:hole], size // known, *shape[hole + 1:])


def reshape(input: Tensor, *sizes_: Sizes, shape: Sequence[int] | None = None) -> Tensor:
    """Return the elements in another shape, as a view if the strides allow it, and else as a copy.

    Args:
        input: tensor.
        *sizes_: sizes of the axes, or one tuple; one of them may be -1.
        shape: the sizes as a keyword; default: None.
    """
    return _RESHAPE.call((input,), (full_shape(input._numel, sizes(sizes_ if shape is None else (shape,))),))


def view(input: Tensor, *shape: Any) -> Tensor:
    """Return a view in another shape.

    Args:
        input: tensor.
        *shape: sizes of the axes, or one tuple; one of them may be -1.

    Raises:
        ShapeError: the strides do not allow a view of this shape; use reshape, which copies if needed.
    """
    if len(shape) == 1 and hasattr(shape[0], "is_floating_point"):
        raise ArgumentError("view: a dtype would reinterpret the bytes", expected="sizes", got=repr(shape[0]),
                            fix="x.to(dtype) converts the values")
    full = full_shape(input._numel, sizes(shape), "view")
    if current_interpreter() is None and not input.is_contiguous() and reshape_strides(
            input.shape, input.strides, full) is None:
        raise ShapeError("view: view size is not compatible with input tensor's size and stride (at least "
                         "one dimension spans across two contiguous subspaces)",
                         expected="memory that this shape can run through",
                         got=f"shape {tuple(input.shape)}, strides {input.strides}",
                         fix="Use .reshape(...) instead.")
    return _RESHAPE.call((input,), (full,))


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view in the shape of another tensor.

    Args:
        input: tensor.
        other: tensor that provides the shape.
    """
    return view(input, *other.shape)


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the elements in the shape of another tensor.

    Args:
        input: tensor.
        other: tensor that provides the shape.
    """
    return reshape(input, *other.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge adjacent axes into one; a 0-dim tensor becomes a vector.

    Args:
        input: tensor.
        start_dim: first axis.
        end_dim: last axis.
    """
    if not input.ndim:
        return reshaped(input, (1,))
    a, b = one_dim(start_dim, input.ndim, "flatten"), one_dim(end_dim, input.ndim, "flatten")
    if a > b:
        raise ShapeError("flatten: end_dim comes before start_dim", expected=f"start_dim <= {b}", got=str(a),
                         fix="swap the two")
    return reshaped(input, (*input.shape[:a], prod(input.shape[a:b + 1]), *input.shape[b + 1:]))


def ravel(input: Tensor) -> Tensor:
    """Return all elements as a vector, a view if the strides allow it.

    Args:
        input: tensor.
    """
    return reshaped(input, (input._numel,))


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split one axis into several.

    Args:
        input: tensor.
        dim: axis.
        sizes: sizes of the new axes; one of them may be -1.
    """
    a = real_dim(dim, input.ndim, "unflatten")
    return reshaped(input, (*input.shape[:a], *full_shape(input.shape[a], sizes, "unflatten"),
                            *input.shape[a + 1:]))


def squeeze(input: Tensor, dim: Axes | None = None) -> Tensor:
    """Remove axes of size 1.

    Args:
        input: tensor.
        dim: axis or axes, of which those of size 1 are removed; default: all axes of size 1.
    """
    if dim is None:
        return reshaped(input, tuple([n for n in input.shape if n != 1]))
    axes = dims(dim, input.ndim, "squeeze") if dim != () else ()
    return reshaped(input, tuple([n for i, n in enumerate(input.shape) if n != 1 or i not in axes]))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert an axis of size 1.

    Args:
        input: tensor.
        dim: position of the new axis.
    """
    a = one_dim(dim, input.ndim + 1, "unsqueeze")
    return _RESHAPE.call((input,), ((*input.shape[:a], 1, *input.shape[a:]),))


# ---- the order of the axes
def permute(input: Tensor, *dims_: Sizes, dims: Sequence[int] | None = None) -> Tensor:
    """Return a view with the axes in another order.

    Args:
        input: tensor.
        *dims_: the axes, or one tuple.
        dims: the axes as a keyword; default: None.
    """
    order = sizes(dims_ if dims is None else (dims,))
    if len(order) != input.ndim:
        raise ShapeError(f"permute: number of dimensions in the tensor input does not match the length of "
                         f"the desired ordering: input.dim() = {input.ndim} is not equal to len(dims) = "
                         f"{len(order)}", expected=f"{input.ndim} axes", got=str(order),
                         fix="x.permute(*reversed(range(x.ndim))) turns them all round")
    order = tuple([one_dim(d, input.ndim, "permute") for d in order])
    if len(set(order)) != len(order):
        raise ShapeError("permute: an axis is given twice", expected="each axis once", got=str(order),
                         fix="name each axis once")
    return _TRANSPOSE.call((input,), (order,))


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with two axes exchanged.

    Args:
        input: tensor.
        dim0: first axis.
        dim1: second axis.
    """
    a, b = one_dim(dim0, input.ndim, "transpose"), one_dim(dim1, input.ndim, "transpose")
    order = list(range(input.ndim))
    if order:
        order[a], order[b] = b, a
    return _TRANSPOSE.call((input,), (tuple(order),))


swapaxes = swapdims = transpose


def t(input: Tensor) -> Tensor:
    """Return the transpose of a matrix; vectors are returned unchanged.

    Args:
        input: tensor with at most two axes.
    """
    if input.ndim > 2:
        raise ShapeError(f"t: t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D",
                         got=str(input.shape),
                         expected="a matrix or a vector", fix="x.transpose(-2, -1), or x.mT")
    return transpose(input, 0, 1) if input.ndim == 2 else _op("identity")(input)


def mT(input: Tensor) -> Tensor:
    """Return a view with the last two axes exchanged."""
    if input.ndim < 2:
        raise ShapeError("mT: a matrix is needed", expected="two axes or more", got=str(input.shape),
                         fix="x.unsqueeze(0) makes a vector a row")
    return transpose(input, -2, -1)


def adjoint(input: Tensor) -> Tensor:
    """Return a view with the last two axes exchanged, which is the adjoint because tensors are real.

    Args:
        input: tensor with at least two axes.
    """
    return mT(input)


def movedim(input: Tensor, source: Axes, destination: Axes) -> Tensor:
    """Move axes to other positions; the other axes keep their order.

    Args:
        input: tensor.
        source: axis or axes.
        destination: their new positions.
    """
    source, destination = ((x,) if isinstance(x, int) else tuple(x) for x in (source, destination))
    if len(source) != len(destination):
        raise ShapeError("movedim: source and destination differ in length", expected="as many of each",
                         got=f"{source} and {destination}", fix="give every axis its place")
    source = [one_dim(d, input.ndim, "movedim") for d in source]
    destination = [one_dim(d, input.ndim, "movedim") for d in destination]
    if len(set(source)) != len(source) or len(set(destination)) != len(destination):
        raise ShapeError("movedim: repeated dim", expected="each axis once", got=f"{source} to {destination}",
                         fix="name each axis once")
    order = [i for i in range(input.ndim) if i not in source]
    for to, from_ in sorted(zip(destination, source)):
        order.insert(to, from_)
    return transposed(input, tuple(order))


moveaxis = movedim


# ---- repetition
def expand(input: Tensor, *sizes_: Sizes, size: Sequence[int] | None = None) -> Tensor:
    """Return a view that is broadcast to a shape; axes of size 1 are repeated without a copy.

    Args:
        input: tensor.
        *sizes_: sizes of the axes, or one tuple; -1 keeps an axis.
        size: the sizes as a keyword; default: None.
    """
    shape = sizes(sizes_ if size is None else (size,))
    lead = len(shape) - input.ndim
    if lead < 0:
        raise ShapeError(f"expand: the number of sizes provided ({len(shape)}) must be greater or equal to "
                         f"the number of dimensions in the tensor ({input.ndim})",
                         expected="a size for every axis", got=str(shape), fix="give x.ndim sizes or more")
    full = []
    for i, n in enumerate(shape):
        own = input.shape[i - lead] if i >= lead else 1
        if n == -1 and i < lead:
            raise ShapeError(f"expand: the expanded size of the tensor (-1) isn't allowed in a leading, "
                             f"non-existing dimension {i}", expected="a size of 0 or more", got=str(shape),
                             fix="-1 keeps a size only of an axis that x has")
        if n not in (-1, own) and own != 1:
            raise ShapeError(f"expand: The expanded size of the tensor ({n}) must match the existing size "
                             f"({own}) at non-singleton dimension {i}",
                             expected="axes that are equal, or 1 in x",
                             got=f"{tuple(input.shape)} to {shape}", fix="reshape x, or use repeat")
        full.append(own if n == -1 else n)
    return _EXPAND.call((input,), (tuple(full),))


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view that is broadcast to the shape of another tensor.

    Args:
        input: tensor.
        other: tensor that provides the shape.
    """
    return expand(input, *other.shape)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Return a view that is broadcast to a shape, like expand.

    Args:
        input: tensor.
        size: sizes of the axes.
    """
    return expand(input, *size)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which all given shapes broadcast.

    Args:
        *shapes: tuples of sizes.
    """
    from flowedu.core.values.spec import broadcast
    return broadcast(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes], what="broadcast_shapes")


def unpack_tensors(tensors: tuple) -> Sequence:
    """Return the tensors of a call whose arguments are tensors, or one list of them."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """Return views of the tensors in their common shape.

    Args:
        *tensors: tensors.
    """
    xs = unpack_tensors(tensors)
    shape = broadcast_shapes(*[x.shape for x in xs])
    return [x if x.shape == shape else _EXPAND.call((x,), (shape,)) for x in xs]


def repeat(input: Tensor, *times_: Sizes, repeats: Sequence[int] | None = None) -> Tensor:
    """Repeat the tensor along its axes.

    Args:
        input: tensor.
        *times_: number of copies per axis, or one tuple. If there are more counts than axes, new axes come
            first.
        repeats: the counts as a keyword; default: None.
    """
    times = sizes(times_ if repeats is None else (repeats,))
    lead = len(times) - input.ndim
    if lead < 0:
        raise ShapeError("repeat: Number of dimensions of repeat dims can not be smaller than number of "
                         "dimensions of tensor", expected=f"{input.ndim} numbers or more", got=str(times),
                         fix="x.repeat(*(1,) * x.ndim) is a copy")
    if len(times) > MAX_RANK:
        raise too_many_axes("repeat", MAX_RANK, times)
    if min(times, default=0) < 0:
        raise ShapeError("repeat: a count is negative", expected="0 or more", got=str(times),
                         fix="1 keeps an axis as it is")
    return _repeat_axes(reshaped(input, (*(1,) * lead, *input.shape)), times)


def _repeat_axes(x: Tensor, times: tuple[int, ...]) -> Tensor:
    """Repeat axis i times[i] times; meanwhile, an axis longer than 1 needs two axes, (times, size)."""
    pairs = [(k, n) if k != 1 and n != 1 else (k * n,) for k, n in zip(times, x.shape)]
    if sum(map(len, pairs)) > MAX_RANK:
        # Repeat one axis after the other, with the axes around it merged.
        for i, k in enumerate(times):
            if k != 1:
                shape = tuple(x.shape)
                merged = reshaped(x, (prod(shape[:i]), shape[i], prod(shape[i + 1:])))
                x = reshaped(_repeat_axes(merged, (1, k, 1)), (*shape[:i], shape[i] * k, *shape[i + 1:]))
        return x
    narrow = tuple(m for pair, n in zip(pairs, x.shape) for m in ((1, n) if len(pair) == 2 else (n,)))
    wide = _EXPAND.call((reshaped(x, narrow),), (tuple(m for pair in pairs for m in pair),))
    shape = tuple(k * n for k, n in zip(times, x.shape))
    return _RESHAPE.call((_op("contiguous").call((wide,), ()),), (shape,))


def tile(input: Tensor, *dims_: Sizes, dims: Sequence[int] | None = None) -> Tensor:
    """Repeat the tensor along its axes.

    Args:
        input: tensor.
        *dims_: number of copies per axis, or one tuple. If there are fewer counts than axes, the first axes
            are not repeated.
        dims: the counts as a keyword; default: None.
    """
    times = sizes(dims_ if dims is None else (dims,))
    return repeat(input, (1,) * (input.ndim - len(times)) + times)


def repeat_interleave(input: Tensor, repeats: Tensor | int | None = None, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Repeat every element, or every slice along an axis, several times in a row.

    If only a vector of counts is passed, return each position of the vector as often as its count.

    Args:
        input: tensor, or a vector of counts.
        repeats: number of repetitions, an int or a tensor with one number per slice; default: None.
        dim: axis; default: None, the flattened tensor.
        output_size: expected size of the result along `dim`, which is checked; default: None.
    """
    if output_size is not None:
        y = repeat_interleave(input, repeats, dim)
        found = y.shape[dim or 0]
        if found != output_size:
            raise ShapeError("repeat_interleave: output_size is not what the repeats make",
                             expected=str(found),
                             got=repr(output_size), fix=f"output_size={found}, or leave it out")
        return y
    if repeats is None:
        from flowedu.tensor.construction.creation import arange
        from flowedu.tensor.construction.destination import home, spread_as
        return spread_as(repeat_interleave(arange(input._numel, device=home(input)), input, 0), input)
    if dim is None:
        input, dim = ravel(input), 0
    a = one_dim(dim, input.ndim, "repeat_interleave")
    if not isinstance(repeats, int):
        import numpy as np
        times = repeats.peek().reshape(-1)
        if times.size not in (1, input.shape[a]):
            raise ShapeError("repeat_interleave: repeats must have the same size as input along dim",
                             expected=f"{input.shape[a]} numbers", got=str(times.size),
                             fix="one number, or one for each part")
        if times.size == 1:
            repeats = int(times[0])
        else:
            from flowedu.tensor.interop.protocols import alike
            if times.dtype.kind not in "iub" or times.min(initial=0) < 0:
                raise ArgumentError("repeat_interleave: repeats can not be negative, nor floats",
                                    got=f"{times.dtype}, {times.min(initial=0)}",
                                    expected="ints of 0 or more", fix="repeats.clamp(0).long()")
            with room_for("repeat_interleave", Spec((sum(times.tolist()),), dt.int64)):
                places = np.repeat(np.arange(input.shape[a]), times)
            return _op("gather").call((input, alike(places, input)), (a,))
    if input.ndim == MAX_RANK:                            # without room for one more axis
        merged = reshape(input, prod(input.shape[:a]), input.shape[a], prod(input.shape[a + 1:]))
        result = repeat_interleave(merged, repeats, 1)
        return reshape(result, *input.shape[:a], input.shape[a] * repeats, *input.shape[a + 1:])
    x = unsqueeze(input, a + 1)
    x = expand(x, *input.shape[:a + 1], repeats, *input.shape[a + 1:])
    return reshape(x, *input.shape[:a], input.shape[a] * repeats, *input.shape[a + 1:])


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Convert to the dtype of another tensor.

    Args:
        input: tensor.
        other: tensor that provides the dtype.
    """
    return cast(input, other.dtype)


def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Return views with at least one axis.

    Args:
        *tensors: tensors, or one list of them. For a single tensor, a single view is returned.
    """
    return _atleast(1, tensors)


def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Return views with at least two axes; new axes come first.

    Args:
        *tensors: tensors, or one list of them. For a single tensor, a single view is returned.
    """
    return _atleast(2, tensors)


def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Any:
    """Return views with at least three axes: (n,) becomes (1, n, 1), and (n, m) becomes (n, m, 1).

    Args:
        *tensors: tensors, or one list of them. For a single tensor, a single view is returned.
    """
    return _atleast(3, tensors)


def _atleast(rank: int, tensors: tuple) -> Any:
    if not tensors:
        raise CallError(f"atleast_{rank}d: no tensor", expected="one or more", got="none",
                        fix="pass a tensor")
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(_atleast(rank, (x,)) for x in tensors[0])
    if len(tensors) > 1:
        return tuple(_atleast(rank, (x,)) for x in tensors)
    x = tensors[0]
    while x.ndim < rank:
        x = unsqueeze(x, -1 if rank == 3 and x.ndim == 2 else 0)
    return x
