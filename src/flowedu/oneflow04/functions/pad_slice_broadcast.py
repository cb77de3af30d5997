"""Functions of OneFlow 0.4 that pad, slice, reverse, and broadcast blobs and tensors."""
from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from flowedu.core.ops.concat import concat, slice_grad
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.elementwise import where
from flowedu.core.ops.view import cast, constant, expand, reshape
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import broadcast
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError
from flowedu.oneflow04.functions.axes import normal_axis
from flowedu.oneflow04.functions.ranges_and_triangles import positions
from flowedu.oneflow04.functions.sort_and_top_k import exchange_axes
from flowedu.ops.front import front
from flowedu.ops.index import gather


@front("Pad")
def pad(x, paddings: Sequence[Sequence[int]], constant_value: float = 0):
    """Pad `x` with a constant.

    Args:
        x: a blob or tensor.
        paddings: a pair (before, after) of ints for each axis, 0 or more.
        constant_value: the value of the padding.
    """
    if not isinstance(paddings, (list, tuple)) or len(paddings) != x.ndim or any(
            not isinstance(p, (list, tuple)) or len(p) != 2 or any(not isinstance(n, int) or n < 0 for n in p)
            for p in paddings):
        raise ArgumentError("pad: paddings do not fit",
                            expected=f"a list of {x.ndim} pairs (before, after) of ints, 0 or more: one for "
                            f"each axis of x {x.shape}", got=repr(paddings),
                            fix=f"paddings={[(0, 0)] * (x.ndim - 1) + [(1, 1)]} pads the last axis by one")
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, paddings))
    if shape == x.shape:
        return x
    if constant_value == 0:
        start = tuple(a for a, _ in paddings)
        return slice_grad(x, shape=shape, start=start, stop=tuple(a + n for a, n in zip(start, x.shape)),
                          step=(1,) * x.ndim)
    for axis, sides in enumerate(paddings):
        band = [constant(shape=(*x.shape[:axis], n, *x.shape[axis + 1:]), value=constant_value, dtype=x.dtype)
                for n in sides]
        if any(sides):
            x = concat(band[0], x, band[1], axis=axis)
    return x


# ---- slices
def _ranges(what: str, shape: tuple[int, ...], slices) -> list[builtins.slice]:
    """Return one Python slice per axis from (start, stop, step) triples.

    Missing triples take the whole axis.
    """
    if not isinstance(slices, (list, tuple)) or len(slices) > len(shape):
        raise ArgumentError(f"{what}: the slices do not fit",
                            expected=f"a list of up to {len(shape)} (start, stop, step)",
                            got=repr(slices),
                            fix="[(None, None, None), (0, 5, 2)]: all of axis 0, every second of axis 1")
    found = []
    for axis, (n, s) in enumerate(zip(shape, [*slices, *[(None, None, None)] * (len(shape) - len(slices))])):
        if (not isinstance(s, (list, tuple)) or len(s) != 3 or any(i is not None and type(i) is not int
                                                                   for i in s)):
            raise ArgumentError(f"{what}: a slice is not (start, stop, step)", expected="three ints or Nones",
                                got=f"{s!r} for axis {axis}", fix="(None, None, None) takes the whole axis")
        start, _, step = s
        if step == 0:
            raise ArgumentError(f"{what}: a step is 0",
                                expected="a step of 1 or more, or below 0 to go backwards",
                                got=f"{s!r} for axis {axis}", fix="leave it None: every element")
        if start is not None and not -n <= start < max(n, 1):
            raise ArgumentError(f"{what}: a start is out of range", got=f"{s!r}",
                                expected=f"a start in [{-n}, {n - 1}] for axis {axis} of {shape}",
                                fix="None starts at the end that the step comes from")
        found.append(builtins.slice(*s))
    return found


def flip_axis(x, axis: int):
    """Return x reversed along an axis."""
    n = x.shape[axis]
    return x if n < 2 else gather(x, positions(n, start=n - 1, step=-1), axis=axis)


@front("Slice")
def slice_v2(x, slice_tup_list: Sequence[Sequence[int | None]]):
    """Return `x[start:stop:step, ...]` with the rules of Python slices.

    Args:
        x: a blob or tensor.
        slice_tup_list: (start, stop, step) for each axis, each an int or None. Steps may be negative. A start
            must be inside its axis.
    """
    back, start = [], []
    stop, step = [], []
    for axis, (n, s) in enumerate(zip(x.shape, _ranges("slice_v2", x.shape, slice_tup_list))):
        a, b, c = s.indices(n)
        count = len(range(a, b, c))
        if c < 0 and count:                                     # slice in the other direction, then reverse
            back.append(axis)
            a, b, c = a + (count - 1) * c, a + 1, -c
        start.append(a if count else 0)
        stop.append(b if count else 0)
        step.append(c if count else 1)
    if (tuple(start), tuple(stop), set(step)) != ((0,) * x.ndim, x.shape, {1}):
        x = slice_op(x, start=start, stop=stop, step=step)
    for axis in back:
        x = flip_axis(x, axis)
    return x


@front("SliceUpdate")
def slice_update(x, update, slice_tup_list: Sequence[Sequence[int | None]]):
    """Return `x` with `x[start:stop:step, ...]` replaced by `update`.

    Args:
        x: a blob or tensor.
        update: a blob with the shape of the slice and the dtype of `x`.
        slice_tup_list: (start, stop, step) for each axis, each an int or None. Steps are 1 or more.
    """
    ranges = [s.indices(n) for n, s in zip(x.shape, _ranges("slice_update", x.shape, slice_tup_list))]
    if any(c < 0 for _, _, c in ranges):
        raise ArgumentError("slice_update: a step is negative", expected="steps of 1 or more",
                            got=repr(slice_tup_list), fix="flow.reverse the update instead")
    start, step = [min(a, n) for (a, _, _), n in zip(ranges, x.shape)], [c for _, _, c in ranges]
    stop = [max(a, b) for a, (_, b, _) in zip(start, ranges)]
    want = tuple(len(range(a, b, c)) for a, b, c in zip(start, stop, step))
    if update.shape != want or update.dtype is not x.dtype:
        raise (ShapeError if update.shape != want else DTypeError)(
            "slice_update: update does not fit", expected=f"{x.dtype.name} {want}", got=str(update.spec),
            fix="flow.reshape or flow.cast the update")
    place = dict(shape=x.shape, start=start, stop=stop, step=step)
    ones = constant(shape=want, value=1, dtype=dt.int32)
    mask = cast(slice_grad(ones, **place), dtype=dt.int8)
    return where(mask, slice_grad(update, **place), x)


@front("Reverse")
def reverse(input, axis: int | Sequence[int]):
    """Reverse the order of elements along axes.

    Args:
        input: a blob or tensor.
        axis: an axis, or a list of axes.
    """
    axes: Sequence[Any] = axis if isinstance(axis, (list, tuple)) else [axis]
    for a in {normal_axis(a, input.ndim, "reverse") for a in axes}:
        input = flip_axis(input, a)
    return input


@front("SwapAxes")
def swapaxes(x, axis1: int, axis2: int):
    """Exchange two axes.

    Args:
        x: a blob or tensor.
        axis1: the first axis.
        axis2: the second axis.

    Note:
        OneFlow 0.4 does not have this function for blobs.
    """
    return exchange_axes(x, normal_axis(axis1, x.ndim, "swapaxes"), normal_axis(axis2, x.ndim, "swapaxes"))


# ---- shapes of other values
@front("ReshapeLike")
def reshape_like(x, like):
    """Return the elements of `x` in the shape of `like`.

    Args:
        x: a blob or tensor.
        like: a blob with as many elements.
    """
    if x.spec.size != like.spec.size:
        raise CheckError("reshape_like: like has another number of elements",
                         expected=f"{x.spec.size} elements, as in {x.shape}",
                         got=f"like {like.shape}", fix="flow.broadcast_like repeats elements")
    return reshape(x, shape=like.shape)


def _expand_to(what: str, x, shape: tuple[int, ...], names: str):
    if x.shape == shape:
        return x
    if len(shape) < x.ndim or broadcast(x.shape, shape, what=what) != shape:
        raise ShapeError(f"{what}: x does not broadcast",
                         expected=f"axes that are 1 or those of {names} {shape}",
                         got=f"x {x.shape}", fix="reshape x, or swap the two")
    return expand(x, shape=shape)


@front("BroadcastLike")
def broadcast_like(x, like, broadcast_axes: Sequence[int] | None = None):
    """Broadcast `x` to the shape of `like`.

    Args:
        x: a blob or tensor.
        like: a blob with the shape of the result.
        broadcast_axes: the axes of `like` to repeat along, of size 1 in `x` or missing in it. None uses
            NumPy's rule, which aligns the last axes.
    """
    if broadcast_axes is not None:
        listed = broadcast_axes
        if not isinstance(listed, (list, tuple)) or not 0 < len(listed) <= like.ndim:
            raise ArgumentError("broadcast_like: broadcast_axes do not fit",
                                expected=f"a list of 1 to {like.ndim} axes of like {like.shape}",
                                got=repr(listed), fix="leave it out to broadcast as NumPy does")
        along = {normal_axis(a, like.ndim, "broadcast_like") for a in listed}
        if x.ndim == like.ndim - len(along):
            own = iter(x.shape)
            x = reshape(x, shape=tuple(1 if a in along else next(own) for a in range(like.ndim)))
        if (x.ndim != like.ndim or any(n != m for a, (n, m) in enumerate(zip(x.shape, like.shape))
                                       if a not in along)):
            raise ShapeError("broadcast_like: x does not fit",
                             expected=f"the axes of like {like.shape} except for {sorted(along)}",
                             got=f"x {x.shape}",
                             fix="list every axis of like that x does not have, or has with size 1")
    return _expand_to("broadcast_like", x, like.shape, "like")


@front("BroadcastToCompatibleWith")
def broadcast_to_compatible_with(x, compatible: Sequence):
    """Broadcast `x` to the shape that `x` and all blobs of `compatible` broadcast to.

    Args:
        x: a blob or tensor.
        compatible: a list of blobs.
    """
    if not isinstance(compatible, (list, tuple)):
        raise CheckError("broadcast_to_compatible_with: compatible is not a list", expected="a list of blobs",
                         got=type(compatible).__name__, fix="broadcast_to_compatible_with(x, [y])")
    shape = broadcast(x.shape, *[y.shape for y in compatible], what="broadcast_to_compatible_with")
    return _expand_to("broadcast_to_compatible_with", x, shape, "the common shape")


__all__ = ["broadcast_like", "broadcast_to_compatible_with", "pad", "reshape_like", "reverse",
           "slice_update", "slice_v2", "swapaxes"]
