"""pad, slice_v2, and other functions that rearrange, cut, and broadcast blobs and tensors (OneFlow 0.4)."""
from __future__ import annotations

import builtins
from collections.abc import Sequence

from flowedu import ops
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import broadcast
from flowedu.errors import ArgumentError, CheckError, DTypeError, ShapeError
from flowedu.oneflow04.axes import normal_axis
from flowedu.oneflow04.matrix_ops import positions
from flowedu.oneflow04.sort_ops import swapped
from flowedu.ops.front import front

_o = ops.REGISTRY


@front("Pad")
def pad(x, paddings: Sequence[Sequence[int]], constant_value: float = 0):
    """x with `constant_value` around it. paddings: (before, after) for each axis."""
    if not isinstance(paddings, (list, tuple)) or len(paddings) != x.ndim or any(
            not isinstance(p, (list, tuple)) or len(p) != 2 or any(not isinstance(n, int) or n < 0 for n in p)
            for p in paddings):
        raise ArgumentError("pad: paddings do not fit", expected=f"a list of {x.ndim} pairs (before, after) of ints, 0 or "
                            f"more: one for each axis of x {x.shape}", got=repr(paddings),
                            fix=f"paddings={[(0, 0)] * (x.ndim - 1) + [(1, 1)]} pads the last axis by one")
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, paddings))
    if shape == x.shape:
        return x
    if constant_value == 0:
        start = tuple(a for a, _ in paddings)
        return _o["slice_grad"](x, shape=shape, start=start, stop=tuple(a + n for a, n in zip(start, x.shape)),
                                step=(1,) * x.ndim)
    for axis, sides in enumerate(paddings):
        band = [_o["constant"](shape=(*x.shape[:axis], n, *x.shape[axis + 1:]), value=constant_value, dtype=x.dtype)
                for n in sides]
        if any(sides):
            x = _o["concat"](band[0], x, band[1], axis=axis)
    return x


# ---- slices
def _ranges(what: str, shape: tuple[int, ...], slices) -> list[builtins.slice]:
    """One Python slice per axis, from (start, stop, step) triples of ints and None; axes left out are taken whole."""
    if not isinstance(slices, (list, tuple)) or len(slices) > len(shape):
        raise ArgumentError(f"{what}: the slices do not fit", expected=f"a list of up to {len(shape)} (start, stop, step)",
                            got=repr(slices), fix="[(None, None, None), (0, 5, 2)]: all of axis 0, every second of axis 1")
    found = []
    for axis, (n, s) in enumerate(zip(shape, [*slices, *[(None, None, None)] * (len(shape) - len(slices))])):
        if not isinstance(s, (list, tuple)) or len(s) != 3 or any(i is not None and type(i) is not int for i in s):
            raise ArgumentError(f"{what}: a slice is not (start, stop, step)", expected="three ints or Nones",
                                got=f"{s!r} for axis {axis}", fix="(None, None, None) takes the whole axis")
        start, _, step = s
        if step == 0:
            raise ArgumentError(f"{what}: a step is 0", expected="a step of 1 or more, or below 0 to go backwards",
                                got=f"{s!r} for axis {axis}", fix="leave it None: every element")
        if start is not None and not -n <= start < max(n, 1):
            raise ArgumentError(f"{what}: a start is out of range", got=f"{s!r}",
                                expected=f"a start in [{-n}, {n - 1}] for axis {axis} of {shape}",
                                fix="None starts at the end that the step comes from")
        found.append(builtins.slice(*s))
    return found


def flipped(x, axis: int):
    """x backwards along an axis."""
    n = x.shape[axis]
    return x if n < 2 else _o["gather"](x, positions(n, start=n - 1, step=-1), axis=axis)


@front("Slice")
def slice_v2(x, slice_tup_list: Sequence[Sequence[int | None]]):
    """x[start:stop:step, ...] as Python slices do: (start, stop, step) for each axis, each may be None, steps may be
    negative. A start must lie inside its axis."""
    back, start, stop, step = [], [], [], []
    for axis, (n, s) in enumerate(zip(x.shape, _ranges("slice_v2", x.shape, slice_tup_list))):
        a, b, c = s.indices(n)
        count = len(range(a, b, c))
        if c < 0 and count:                                     # the same elements from the other side, then turned round
            back.append(axis)
            a, b, c = a + (count - 1) * c, a + 1, -c
        start.append(a if count else 0)
        stop.append(b if count else 0)
        step.append(c if count else 1)
    if (tuple(start), tuple(stop), set(step)) != ((0,) * x.ndim, x.shape, {1}):
        x = _o["slice"](x, start=start, stop=stop, step=step)
    for axis in back:
        x = flipped(x, axis)
    return x


@front("SliceUpdate")
def slice_update(x, update, slice_tup_list: Sequence[Sequence[int | None]]):
    """x with x[start:stop:step, ...] replaced by `update`. Steps of 1 or more."""
    ranges = [s.indices(n) for n, s in zip(x.shape, _ranges("slice_update", x.shape, slice_tup_list))]
    if any(c < 0 for _, _, c in ranges):
        raise ArgumentError("slice_update: a step is negative", expected="steps of 1 or more", got=repr(slice_tup_list),
                            fix="flow.reverse the update instead")
    start, step = [min(a, n) for (a, _, _), n in zip(ranges, x.shape)], [c for _, _, c in ranges]
    stop = [max(a, b) for a, (_, b, _) in zip(start, ranges)]
    want = tuple(len(range(a, b, c)) for a, b, c in zip(start, stop, step))
    if update.shape != want or update.dtype is not x.dtype:
        raise (ShapeError if update.shape != want else DTypeError)(
            "slice_update: update does not fit", expected=f"{x.dtype.name} {want}", got=str(update.spec),
            fix="flow.reshape or flow.cast the update")
    place = dict(shape=x.shape, start=start, stop=stop, step=step)
    ones = _o["constant"](shape=want, value=1, dtype=dt.int32)
    mask = _o["cast"](_o["slice_grad"](ones, **place), dtype=dt.int8)
    return _o["where"](mask, _o["slice_grad"](update, **place), x)


@front("Reverse")
def reverse(input, axis: int | Sequence[int]):
    """Backwards along an axis or several."""
    for a in {normal_axis(a, input.ndim, "reverse") for a in (axis if isinstance(axis, (list, tuple)) else [axis])}:
        input = flipped(input, a)
    return input


@front("SwapAxes")
def swapaxes(x, axis1: int, axis2: int):
    """x with two axes exchanged. (Not in OneFlow 0.4.)"""
    return swapped(x, normal_axis(axis1, x.ndim, "swapaxes"), normal_axis(axis2, x.ndim, "swapaxes"))


# ---- like another
@front("ReshapeLike")
def reshape_like(x, like):
    """The elements of x in the shape of `like`, which must have as many."""
    if x.spec.size != like.spec.size:
        raise CheckError("reshape_like: the numbers of elements differ",
                         expected=f"{x.spec.size} elements, as in {x.shape}",
                         got=f"like {like.shape}", fix="flow.broadcast_like repeats elements")
    return _o["reshape"](x, shape=like.shape)


def _expanded(what: str, x, shape: tuple[int, ...], names: str):
    if x.shape == shape:
        return x
    if len(shape) < x.ndim or broadcast(x.shape, shape, what=what) != shape:
        raise ShapeError(f"{what}: x does not broadcast", expected=f"axes that are 1 or those of {names} {shape}",
                         got=f"x {x.shape}", fix="reshape x, or swap the two")
    return _o["expand"](x, shape=shape)


@front("BroadcastLike")
def broadcast_like(x, like, broadcast_axes: Sequence[int] | None = None):
    """x repeated to the shape of `like`.

    broadcast_axes: the axes of `like` to repeat along: of size 1 in x, or missing there. None: by NumPy's rule, which
    compares axes from the last one on.
    """
    if broadcast_axes is not None:
        listed = broadcast_axes
        if not isinstance(listed, (list, tuple)) or not 0 < len(listed) <= like.ndim:
            raise ArgumentError("broadcast_like: broadcast_axes do not fit", expected=f"a list of 1 to {like.ndim} axes of "
                                f"like {like.shape}", got=repr(listed), fix="leave it out to broadcast as NumPy does")
        along = {normal_axis(a, like.ndim, "broadcast_like") for a in listed}
        if x.ndim == like.ndim - len(along):
            own = iter(x.shape)
            x = _o["reshape"](x, shape=tuple(1 if a in along else next(own) for a in range(like.ndim)))
        if x.ndim != like.ndim or any(n != m for a, (n, m) in enumerate(zip(x.shape, like.shape)) if a not in along):
            raise ShapeError("broadcast_like: x does not fit", expected=f"the axes of like {like.shape} except for "
                             f"{sorted(along)}", got=f"x {x.shape}", fix="name every axis of like that x lacks or has as 1")
    return _expanded("broadcast_like", x, like.shape, "like")


@front("BroadcastToCompatibleWith")
def broadcast_to_compatible_with(x, compatible: Sequence):
    """x repeated so that it has the shape that x and all of `compatible` broadcast to."""
    if not isinstance(compatible, (list, tuple)):
        raise CheckError("broadcast_to_compatible_with: compatible is not a list", expected="a list of blobs",
                         got=type(compatible).__name__, fix="broadcast_to_compatible_with(x, [y])")
    shape = broadcast(x.shape, *[y.shape for y in compatible], what="broadcast_to_compatible_with")
    return _expanded("broadcast_to_compatible_with", x, shape, "the common shape")


__all__ = ["broadcast_like", "broadcast_to_compatible_with", "pad", "reshape_like", "reverse", "slice_update", "slice_v2",
           "swapaxes"]
